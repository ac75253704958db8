// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/pkg/mc/queue"
)

// model is a simple implementation of the queue's behaviour. It has flat lists
// and searches them.
type model struct {
	limit    int
	now      time.Duration
	seq      int
	items    map[string]*modelItem
	failures map[string]int
	paused   map[multicluster.ClusterName]map[queue.PauseReason]bool
	// active has the subqueues with requests that can be taken, the one that was
	// served least recently first.
	active []subqueue
	// accounts has the worker time of the subqueues that are queued or processed.
	accounts map[subqueue]*account
	// virtualTime is, by priority, the highest time of an account when served.
	virtualTime map[int]time.Duration
	// getters counts the calls of Get that are blocked.
	getters int
}

type subqueue struct {
	cluster  multicluster.ClusterName
	priority int
}

// account is the worker time that a subqueue has used.
type account struct {
	used    time.Duration
	running int
}

type modelItem struct {
	key                 string
	priority, seq       int
	waiting, delayed    bool
	readyAt             time.Duration
	processing, dropped bool
	// servedFrom accounts for the worker, while processing.
	servedFrom subqueue
}

func newModel(limit int) *model {
	return &model{
		limit:       limit,
		items:       map[string]*modelItem{},
		failures:    map[string]int{},
		paused:      map[multicluster.ClusterName]map[queue.PauseReason]bool{},
		accounts:    map[subqueue]*account{},
		virtualTime: map[int]time.Duration{},
	}
}

const (
	modelBaseDelay = 10 * time.Millisecond
	modelMaxDelay  = 100 * time.Millisecond
	modelQuantum   = 50 * time.Millisecond
	modelMaxDebt   = 30 * time.Second
	modelMaxCredit = 500 * time.Millisecond
)

func (m *model) add(key string, priority int, after time.Duration, rateLimited bool) {
	item := m.items[key]
	if item != nil && item.dropped && (after > 0 || rateLimited) {
		if rateLimited {
			delete(m.failures, key)
		}
		return
	}
	m.addFromSource(key, priority, after, rateLimited)
}

func (m *model) addFromSource(key string, priority int, after time.Duration, rateLimited bool) {
	item := m.items[key]
	if rateLimited {
		limit := min(modelBaseDelay<<m.failures[key], modelMaxDelay)
		m.failures[key]++
		if after == 0 || limit < after {
			after = limit
		}
	}
	if item == nil {
		item = &modelItem{key: key}
		m.items[key] = item
	}
	queued := item.waiting || item.delayed
	if !queued || priority > item.priority {
		m.seq++
		item.priority, item.seq = priority, m.seq
	}
	switch {
	case item.waiting:
	case after <= 0:
		item.waiting, item.delayed = true, false
	case !item.delayed || m.now+after < item.readyAt:
		item.delayed, item.readyAt = true, m.now+after
	}
}

func (m *model) done(key string) {
	item := m.items[key]
	account := m.accounts[item.servedFrom]
	account.used = min(m.used(item.servedFrom), m.virtualTime[item.servedFrom.priority]+modelMaxDebt)
	item.processing, item.dropped = false, false
	m.tidy() // before running decreases: the account has not been idle
	account.running--
}

func (m *model) pause(cluster multicluster.ClusterName, reason queue.PauseReason) {
	if m.paused[cluster] == nil {
		m.paused[cluster] = map[queue.PauseReason]bool{}
	}
	m.paused[cluster][reason] = true
}

func (m *model) resume(cluster multicluster.ClusterName, reason queue.PauseReason) {
	delete(m.paused[cluster], reason)
}

func (m *model) drop(cluster multicluster.ClusterName) {
	delete(m.paused, cluster)
	for key, item := range m.items {
		if clusterOf(key) == cluster {
			item.waiting, item.delayed = false, false
			item.dropped = item.processing
			delete(m.failures, key)
		}
	}
}

// settle hands items to blocked getters and returns these items.
func (m *model) settle() []got {
	var taken []got
	for {
		m.tidy()
		item := m.next()
		if item == nil || m.getters == 0 {
			return taken
		}
		m.getters--
		served := subqueue{clusterOf(item.key), item.priority}
		item.waiting, item.processing, item.servedFrom = false, true, served
		account := m.accounts[served]
		account.used = m.used(served)
		account.running++
		m.virtualTime[served.priority] = max(m.virtualTime[served.priority], account.used)
		m.active = slices.DeleteFunc(m.active, func(s subqueue) bool { return s == served })
		m.active = append(m.active, served)
		taken = append(taken, got{item: item.key, priority: item.priority})
	}
}

// sleep advances the time and returns the items that getters took.
func (m *model) sleep(d time.Duration) []got {
	var taken []got
	for end := m.now + d; ; {
		var due []*modelItem
		for _, item := range m.items {
			if item.delayed && item.readyAt <= end {
				due = append(due, item)
			}
		}
		if len(due) == 0 {
			m.advance(end)
			return taken
		}
		slices.SortFunc(due, func(a, b *modelItem) int {
			return cmp.Or(cmp.Compare(a.readyAt, b.readyAt), cmp.Compare(a.seq, b.seq))
		})
		m.advance(due[0].readyAt)
		for _, item := range due {
			if item.readyAt == m.now {
				m.seq++
				item.waiting, item.delayed, item.seq = true, false, m.seq
				m.tidy()
			}
		}
		taken = append(taken, m.settle()...)
	}
}

// advance advances the time and accounts for running workers.
func (m *model) advance(to time.Duration) {
	for _, account := range m.accounts {
		account.used += time.Duration(account.running) * (to - m.now)
	}
	m.now = to
}

// tidy deletes items that are neither queued nor processed, and updates the
// active subqueues and the accounts.
func (m *model) tidy() {
	maps.DeleteFunc(m.items, func(_ string, item *modelItem) bool {
		return !item.waiting && !item.delayed && !item.processing
	})
	m.tidyAccounts()
	active := map[subqueue]bool{}
	for key, item := range m.items {
		if item.waiting && !item.processing {
			active[subqueue{clusterOf(key), item.priority}] = true
		}
	}
	m.active = slices.DeleteFunc(m.active, func(s subqueue) bool { return !active[s] })
	for s := range active {
		if !slices.Contains(m.active, s) {
			m.active = append(m.active, s)
			if account := m.accounts[s]; account.running == 0 {
				account.used = max(account.used, m.virtualTime[s.priority])
			}
		}
	}
}

func (m *model) tidyAccounts() {
	accounts, virtualTime := map[subqueue]*account{}, map[int]time.Duration{}
	keep := func(s subqueue) {
		accounts[s] = cmp.Or(m.accounts[s], accounts[s], &account{})
		virtualTime[s.priority] = m.virtualTime[s.priority]
	}
	for key, item := range m.items {
		if item.waiting || item.delayed {
			keep(subqueue{clusterOf(key), item.priority})
		}
		if item.processing {
			keep(item.servedFrom)
		}
	}
	m.accounts, m.virtualTime = accounts, virtualTime
}

// used returns the worker time of a subqueue, with the limit of credit.
func (m *model) used(s subqueue) time.Duration {
	return max(m.accounts[s].used, m.virtualTime[s.priority]-modelMaxCredit)
}

// rank returns the worker time in quanta. A running request counts one quantum
// more.
func (m *model) rank(s subqueue) int {
	return int(m.used(s)/modelQuantum) + m.accounts[s].running
}

// next returns the item to be served next, or nil.
func (m *model) next() *modelItem {
	var best *subqueue
	for _, s := range m.active {
		atLimit := m.limit > 0 && m.depth(s.cluster).Processing >= m.limit
		if len(m.paused[s.cluster]) > 0 || atLimit {
			continue
		}
		if best == nil || s.priority > best.priority || s.priority == best.priority && m.rank(s) < m.rank(*best) {
			best = &s
		}
	}
	if best == nil {
		return nil
	}
	var first *modelItem
	for key, item := range m.items {
		if item.waiting && !item.processing && item.priority == best.priority && clusterOf(key) == best.cluster {
			if first == nil || item.seq < first.seq {
				first = item
			}
		}
	}
	return first
}

func (m *model) depth(cluster multicluster.ClusterName) queue.Depth {
	var depth queue.Depth
	for key, item := range m.items {
		if clusterOf(key) != cluster {
			continue
		}
		if item.waiting {
			depth.Waiting++
		}
		if item.delayed {
			depth.Delayed++
		}
		if item.processing {
			depth.Processing++
		}
	}
	return depth
}

func (m *model) len() int {
	n := 0
	for _, item := range m.items {
		if item.waiting {
			n++
		}
	}
	return n
}

// processing returns the keys that workers have, sorted.
func (m *model) processing() []string {
	var keys []string
	for key, item := range m.items {
		if item.processing {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m *model) knownClusters() int {
	known := map[multicluster.ClusterName]bool{}
	for key := range m.items {
		known[clusterOf(key)] = true
	}
	for cluster, reasons := range m.paused {
		if len(reasons) > 0 {
			known[cluster] = true
		}
	}
	return len(known)
}
