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

// model says what a queue should do, in the plainest way: it keeps flat lists
// and searches them.
type model struct {
	limit    int
	now      time.Duration
	seq      int
	items    map[string]*modelItem
	failures map[string]int
	holds    map[multicluster.ClusterName]map[queue.PauseReason]bool
	// turns lists cluster and priority of what can be taken, the one that was
	// served longest ago first.
	turns []turn
	// accounts has the worker time of all that is queued or processed.
	accounts map[turn]*account
	// served is, by priority, the most that an account had when it was served.
	served map[int]time.Duration
	// getters counts the calls of Get that are blocked.
	getters int
}

type turn struct {
	cluster  multicluster.ClusterName
	priority int
}

// account is the worker time that a cluster has used at a priority.
type account struct {
	used    time.Duration
	running int
}

type modelItem struct {
	key                          string
	priority, seq                int
	waiting, delayed             bool
	readyAt                      time.Duration
	processing, droppedMeanwhile bool
	// charged is whose worker time it is, while processing.
	charged turn
}

func newModel(limit int) *model {
	return &model{
		limit:    limit,
		items:    map[string]*modelItem{},
		failures: map[string]int{},
		holds:    map[multicluster.ClusterName]map[queue.PauseReason]bool{},
		accounts: map[turn]*account{},
		served:   map[int]time.Duration{},
	}
}

const (
	modelBaseDelay = 10 * time.Millisecond
	modelMaxDelay  = 100 * time.Millisecond
	modelQuantum   = 50 * time.Millisecond
	modelMaxLead   = 30 * time.Second
	modelMaxLag    = 500 * time.Millisecond
)

func (m *model) add(key string, priority int, after time.Duration, rateLimited bool) {
	item := m.items[key]
	if item != nil && item.droppedMeanwhile && (after > 0 || rateLimited) {
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
	account := m.accounts[item.charged]
	account.used = min(m.used(item.charged), m.served[item.charged.priority]+modelMaxLead)
	item.processing, item.droppedMeanwhile = false, false
	m.tidy() // if it was added again, the account has not been idle
	account.running--
}

func (m *model) hold(cluster multicluster.ClusterName, reason queue.PauseReason) {
	if m.holds[cluster] == nil {
		m.holds[cluster] = map[queue.PauseReason]bool{}
	}
	m.holds[cluster][reason] = true
}

func (m *model) resume(cluster multicluster.ClusterName, reason queue.PauseReason) {
	delete(m.holds[cluster], reason)
}

func (m *model) drop(cluster multicluster.ClusterName) {
	delete(m.holds, cluster)
	for key, item := range m.items {
		if clusterOf(key) == cluster {
			item.waiting, item.delayed = false, false
			item.droppedMeanwhile = item.processing
			delete(m.failures, key)
		}
	}
}

// settle lets blocked getters take what they can, and returns that.
func (m *model) settle() []got {
	var taken []got
	for {
		m.tidy()
		item := m.next()
		if item == nil || m.getters == 0 {
			return taken
		}
		m.getters--
		served := turn{clusterOf(item.key), item.priority}
		item.waiting, item.processing, item.charged = false, true, served
		account := m.accounts[served]
		account.used = m.used(served)
		account.running++
		m.served[served.priority] = max(m.served[served.priority], account.used)
		m.turns = slices.DeleteFunc(m.turns, func(t turn) bool { return t == served })
		m.turns = append(m.turns, served)
		taken = append(taken, got{item: item.key, priority: item.priority})
	}
}

// sleep moves time on, and returns what getters took on the way.
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

// advance moves time on while workers work.
func (m *model) advance(to time.Duration) {
	for _, account := range m.accounts {
		account.used += time.Duration(account.running) * (to - m.now)
	}
	m.now = to
}

// tidy forgets items that are nowhere, and makes turns and accounts those of
// what is there.
func (m *model) tidy() {
	maps.DeleteFunc(m.items, func(_ string, item *modelItem) bool {
		return !item.waiting && !item.delayed && !item.processing
	})
	m.tidyAccounts()
	there := map[turn]bool{}
	for key, item := range m.items {
		if item.waiting && !item.processing {
			there[turn{clusterOf(key), item.priority}] = true
		}
	}
	m.turns = slices.DeleteFunc(m.turns, func(t turn) bool { return !there[t] })
	for t := range there {
		if !slices.Contains(m.turns, t) {
			m.turns = append(m.turns, t)
			if account := m.accounts[t]; account.running == 0 {
				account.used = max(account.used, m.served[t.priority])
			}
		}
	}
}

func (m *model) tidyAccounts() {
	accounts, served := map[turn]*account{}, map[int]time.Duration{}
	keep := func(t turn) {
		accounts[t] = cmp.Or(m.accounts[t], accounts[t], &account{})
		served[t.priority] = m.served[t.priority]
	}
	for key, item := range m.items {
		if item.waiting || item.delayed {
			keep(turn{clusterOf(key), item.priority})
		}
		if item.processing {
			keep(item.charged)
		}
	}
	m.accounts, m.served = accounts, served
}

// used is the worker time of an account, of which not much less than that of
// the one served last is saved up.
func (m *model) used(t turn) time.Duration {
	return max(m.accounts[t].used, m.served[t.priority]-modelMaxLag)
}

// level is the worker time in steps. A request with a worker counts as one
// step more.
func (m *model) level(t turn) int {
	return int(m.used(t)/modelQuantum) + m.accounts[t].running
}

// next returns the item to be served next, or nil.
func (m *model) next() *modelItem {
	var best *turn
	for _, t := range m.turns {
		held := len(m.holds[t.cluster]) > 0
		capped := m.limit > 0 && m.depth(t.cluster).Processing >= m.limit
		if held || capped {
			continue
		}
		if best == nil || t.priority > best.priority || t.priority == best.priority && m.level(t) < m.level(*best) {
			best = &t
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

// processing returns what workers have, in a fixed order.
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
	for cluster, holds := range m.holds {
		if len(holds) > 0 {
			known[cluster] = true
		}
	}
	return len(known)
}
