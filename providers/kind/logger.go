// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"

	"github.com/go-logr/logr"
	kindlog "sigs.k8s.io/kind/pkg/log"
)

// logger is the log of kind's library.
type logger struct{ log logr.Logger }

var _ kindlog.Logger = logger{}

func (l logger) Warn(message string)               { l.log.Info(message) }
func (l logger) Warnf(format string, args ...any)  { l.Warn(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.log.Error(nil, message) }
func (l logger) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

// V returns the level above that of the provider: what kind says to people who run it is
// not news for a controller.
func (l logger) V(level kindlog.Level) kindlog.InfoLogger {
	return infoLogger{l.log.V(int(level) + 1)}
}

type infoLogger struct{ log logr.Logger }

func (l infoLogger) Info(message string)              { l.log.Info(message) }
func (l infoLogger) Infof(format string, args ...any) { l.Info(fmt.Sprintf(format, args...)) }
func (l infoLogger) Enabled() bool                    { return l.log.Enabled() }
