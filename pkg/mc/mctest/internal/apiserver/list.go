// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// continuation is the content of a continue token: where the next page starts,
// and at which revision. Revision 0 is the latest.
type continuation struct {
	Revision uint64 `json:"rv,omitempty"`
	After    string `json:"after"`
}

func (c continuation) token() string {
	raw, _ := json.Marshal(c) // None of its types can fail.
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseContinuation(token string) (continuation, error) {
	var c continuation
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return c, nil
}

// Records are those of the page.
func (p *Page) Records() []*store.Record { return p.records }

// List reads the objects of the target's namespace, or of all.
func (s *Server) List(t Target, o *metainternal.ListOptions) (*Page, error) {
	if err := invalidOptions("ListOptions", internalvalidation.ValidateListOptions(o, true)); err != nil {
		return nil, err
	}
	sel, err := newSelection(t, o)
	if err != nil {
		return nil, err
	}
	wanted, err := parseRevision(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	p, after, err := s.snapshot(t, o, wanted)
	if err != nil {
		return nil, err
	}
	if after != "" {
		start := 0
		for start < len(p.records) && p.records[start].Key() <= after {
			start++
		}
		p.records = p.records[start:]
	}
	p.records = sel.filter(p.records)
	limit := int(o.Limit)
	if o.ResourceVersion == "0" {
		limit = 0 // Like a real server, which answers such a list from its cache.
	}
	if limit > 0 && len(p.records) > limit {
		if sel.everything() {
			p.remaining = ptr.To(int64(len(p.records) - limit))
		}
		p.records = p.records[:limit]
		p.next = continuation{Revision: p.revision, After: p.records[limit-1].Key()}.token()
	}
	return p, nil
}

// snapshot returns the records of a list, and the key after which its page
// starts.
func (s *Server) snapshot(t Target, o *metainternal.ListOptions, wanted uint64) (*Page, string, error) {
	var after string
	exact := uint64(0)
	switch {
	case o.Continue != "":
		c, err := parseContinuation(o.Continue)
		if err != nil {
			return nil, "", err
		}
		exact, after = c.Revision, c.After
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		o.ResourceVersionMatch == "" && o.Limit > 0 && wanted > 0:
		exact = wanted
	}
	storage := t.Resource.Storage()
	if exact == 0 {
		records, revision := s.store.List(storage, t.Namespace)
		if wanted > revision {
			return nil, "", tooLarge(wanted, revision)
		}
		return &Page{records: records, revision: revision}, after, nil
	}
	records, err := s.store.ListAt(storage, t.Namespace, exact)
	switch {
	case errors.Is(err, store.ErrExpired) && o.Continue != "":
		expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.")
		expired.ErrStatus.ListMeta.Continue = continuation{After: after}.token()
		return nil, "", expired
	case errors.Is(err, store.ErrExpired):
		return nil, "", apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d", exact))
	case errors.Is(err, store.ErrFuture):
		return nil, "", tooLarge(exact, s.store.Revision())
	case err != nil:
		return nil, "", err
	}
	return &Page{records: records, revision: exact}, after, nil
}

func parseRevision(version string) (uint64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
	}
	return revision, nil
}

func tooLarge(wanted, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}
