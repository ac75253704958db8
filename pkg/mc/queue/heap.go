// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import stdheap "container/heap"

// ordered is what a heap holds. An element is in one heap at a time.
type ordered[E any] interface {
	// before tells whether the element goes ahead of another of its heap.
	before(E) bool
	// slot is where the element keeps its place in the heap, counted from 1.
	// It is 0 while the element is in none.
	slot() *int
}

// heap is a binary heap whose elements know their place, so that any of them
// can be moved or removed in logarithmic time.
type heap[E ordered[E]] []E

func (h *heap[E]) insert(e E) { stdheap.Push(h, e) }
func (h *heap[E]) remove(e E) { stdheap.Remove(h, *e.slot()-1) }
func (h *heap[E]) fix(e E)    { stdheap.Fix(h, *e.slot()-1) }

// Len, Less, Swap, Push and Pop are for container/heap alone.

func (h heap[E]) Len() int           { return len(h) }
func (h heap[E]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h heap[E]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].slot(), *h[j].slot() = i+1, j+1
}

func (h *heap[E]) Push(x any) {
	e := x.(E)
	*h = append(*h, e)
	*e.slot() = len(*h)
}

func (h *heap[E]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*e.slot() = 0
	return e
}
