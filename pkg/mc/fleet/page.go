// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("fleet").Parse(pageText))

// StatusHandler serves the status of all clusters as an HTML page, or as JSON for
// requests with ?format=json or that accept only application/json. It contains no
// secret, but names, addresses and errors of clusters. A program that wants to serve
// it adds it to a server:
//
//	err := mgr.AddMetricsServerExtraHandler("/fleet", fleet.StatusHandler())
func (f *Fleet) StatusHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		all := f.Status()
		slices.SortStableFunc(all, func(a, b ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
		var body bytes.Buffer
		var err error
		contentType := "application/json"
		if wantsJSON(req) {
			if all == nil {
				all = []ClusterStatus{}
			}
			err = json.NewEncoder(&body).Encode(map[string]any{"synced": f.synced.Load(), "clusters": all})
		} else {
			contentType = "text/html; charset=utf-8"
			err = pageTemplate.Execute(&body, newPage(all, f.synced.Load(), f.options.Connection.Clock.Now()))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(body.Bytes())
	})
}

func wantsJSON(req *http.Request) bool {
	accept := req.Header.Get("Accept")
	return req.URL.Query().Get("format") == "json" ||
		strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

type page struct {
	now      time.Time
	Synced   bool // the inventory has been listed
	Clusters []ClusterStatus
	Counts   []stateCount
}

type stateCount struct {
	State State
	Count int
}

func newPage(all []ClusterStatus, synced bool, now time.Time) page {
	p := page{now: now, Synced: synced, Clusters: all}
	for _, state := range states {
		count := 0
		for _, status := range all {
			if status.State == state {
				count++
			}
		}
		if count > 0 {
			p.Counts = append(p.Counts, stateCount{state, count})
		}
	}
	return p
}

// Ago returns how long ago the time was.
func (p page) Ago(t time.Time) string { return p.now.Sub(t).Round(time.Second).String() }

// Until returns how long it is until the time.
func (p page) Until(t time.Time) string { return t.Sub(p.now).Round(time.Second).String() }
