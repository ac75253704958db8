// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// retries is the number of attempts after the first.
	retries = 4

	// maxRetryAfter limits the delay that a server can request, in seconds.
	maxRetryAfter = 10
)

// transport sends the requests of one run. It retries on status 429 and 500 or
// above, and records the last failure.
type transport struct {
	// ctx lasts for the run. The library makes some requests without a context.
	ctx   context.Context
	base  *http.Transport
	delay time.Duration

	mu      sync.Mutex
	failure error // guarded by mu: of the last request, or nil
}

func newTransport(ctx context.Context, delay time.Duration) *transport {
	base := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		base = standard.Clone()
	}
	return &transport{ctx: ctx, base: base, delay: delay}
}

func (t *transport) close() { t.base.CloseIdleConnections() }

func (t *transport) lastFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.attempt(request)
	failure := err
	if err == nil && (response.StatusCode < 200 || response.StatusCode > 299) {
		failure = statusError(response)
	}
	if failure != nil {
		failure = fmt.Errorf("%s: %w", request.URL.Host, failure)
	}
	t.mu.Lock()
	t.failure = failure
	t.mu.Unlock()
	return response, err
}

func (t *transport) attempt(request *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		clone := request.Clone(t.ctx)
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			clone.Body = body
		}
		response, err := t.base.RoundTrip(clone)
		repeatable := request.Body == nil || request.GetBody != nil
		if err != nil || !isRetryable(response.StatusCode) || !repeatable || attempt == retries {
			return response, err
		}
		wait := retryAfter(response)
		_, _ = io.CopyN(io.Discard, response.Body, maxResponse)
		_ = response.Body.Close()
		if wait > 0 {
			err = sleep(t.ctx, wait)
		} else {
			err = pause(t.ctx, t.delay, attempt)
		}
		if err != nil {
			return nil, err
		}
	}
}

func isRetryable(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// retryAfter returns the delay that the server requests, or 0.
func retryAfter(response *http.Response) time.Duration {
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if it is missing or a date
	return time.Duration(min(max(seconds, 0), maxRetryAfter)) * time.Second
}

// pause waits before the retry that follows the attempt, with jitter, so that
// many processes do not retry at the same time.
func pause(ctx context.Context, delay time.Duration, attempt int) error {
	delay <<= attempt
	return sleep(ctx, time.Duration(float64(delay)*(0.5+rand.Float64())))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statusError returns the response's status and reason. The body can still be
// read.
func statusError(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse)) // a partial body has no reason
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	if reason := reasonIn(body); reason != "" {
		return fmt.Errorf("status %d: %s", response.StatusCode, reason)
	}
	return fmt.Errorf("status %d", response.StatusCode)
}

// reasonIn parses the errors of OAuth ({"error":"…","error_description":"…"}) and
// those of Google's APIs ({"error":{"status":"…","message":"…"}}).
func reasonIn(body []byte) string {
	var envelope struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return ""
	}
	var api struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	code := ""
	if json.Unmarshal(envelope.Error, &code) != nil && json.Unmarshal(envelope.Error, &api) == nil {
		code = api.Status
	}
	return sanitize(code + " " + envelope.Description + " " + api.Message)
}

// sanitize returns the text of a server's error on one line, without control
// characters. The SDK redacts secrets.
func sanitize(text string) string {
	const limit = 400
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
	if len(text) > limit {
		// At a space: half of a secret may not be recognised.
		text = strings.ToValidUTF8(text[:max(0, strings.LastIndexByte(text[:limit+1], ' '))], "") + " …"
	}
	return text
}
