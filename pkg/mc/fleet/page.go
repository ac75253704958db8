// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"html"
	"html/template"
	"net/http"
	"slices"
	"strconv"
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
	return statusHandler(func() ([]ClusterStatus, bool) { return f.Status(), f.synced.Load() }, f.options.Connection.Clock.Now)
}

// StatusHandler is Fleet.StatusHandler for providers that are composed of fleets. The
// function returns the status of all clusters, which the handler may change, and
// whether all inventories have been listed. It may be called concurrently.
func StatusHandler(status func() (clusters []ClusterStatus, synced bool)) http.Handler {
	return statusHandler(status, time.Now)
}

func statusHandler(status func() ([]ClusterStatus, bool), now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		all, synced := status()
		slices.SortStableFunc(all, func(a, b ClusterStatus) int { return cmp.Compare(a.Name, b.Name) })
		var body bytes.Buffer
		var err error
		contentType := "application/json"
		if wantsJSON(req) {
			if all == nil {
				all = []ClusterStatus{}
			}
			err = json.NewEncoder(&body).Encode(map[string]any{"synced": synced, "clusters": all})
		} else {
			contentType = "text/html; charset=utf-8"
			err = pageTemplate.Execute(&body, newPage(all, synced, now()))
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
	Synced bool // the inventory has been listed
	Total  int
	Counts []stateCount
	Rows   template.HTML
}

type stateCount struct {
	State State
	Count int
}

func newPage(all []ClusterStatus, synced bool, now time.Time) page {
	p := page{Synced: synced, Total: len(all)}
	counts := map[State]int{}
	for i := range all {
		counts[all[i].State]++
	}
	for _, state := range states {
		if counts[state] > 0 {
			p.Counts = append(p.Counts, stateCount{state, counts[state]})
		}
	}
	rows := make(rowWriter, 0, len(all)*512)
	for i := range all {
		rows.cluster(&all[i], now)
	}
	p.Rows = template.HTML(rows) //nolint:gosec // each cell is escaped
	return p
}

// rowWriter has the rows of the table. A template takes many times longer for them.
type rowWriter []byte

func (r *rowWriter) cluster(s *ClusterStatus, now time.Time) {
	*r = append(*r, "\n  <tr>"...)
	r.cell("", s.Name.String())
	r.cell("", s.Profile.String())
	r.cell(string(s.State)+" "+string(s.Reason), string(s.State))
	r.cell(string(s.Reason), string(s.Reason))
	r.cell("", now.Sub(s.Since).Round(time.Second).String())
	for _, text := range []string{s.Server, s.UID, s.ClusterID, s.ClusterSet, s.Version} {
		r.cell("", text)
	}
	expiry := ""
	if !s.CredentialExpiry.IsZero() {
		expiry = s.CredentialExpiry.Sub(now).Round(time.Second).String()
	}
	r.cell("", expiry)
	r.cell("number", strconv.Itoa(s.OpenWatches))
	r.cell("number", strconv.Itoa(s.Queued))
	var alternates strings.Builder
	for _, key := range s.Alternates {
		alternates.WriteString(key.String() + " ")
	}
	r.cell("", alternates.String())
	lastError := s.LastError
	if s.AccessError != "" && s.AccessError != s.LastError {
		lastError += "; the new access cannot be used: " + s.AccessError
	}
	if s.Conflict != "" {
		lastError += " " + s.Conflict
	}
	r.cell("error", lastError)
	*r = append(*r, "</tr>"...)
}

// cell appends a cell with a class, which may be "", and a text. Both are escaped.
func (r *rowWriter) cell(class, text string) {
	*r = append(*r, "<td"...)
	if class != "" {
		*r = append(*r, ` class="`...)
		*r = append(*r, html.EscapeString(class)...)
		*r = append(*r, '"')
	}
	*r = append(*r, '>')
	*r = append(*r, html.EscapeString(text)...)
	*r = append(*r, "</td>"...)
}
