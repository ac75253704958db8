// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import stdheap "container/heap"

// heap is a binary heap whose elements know their position, so that each can be
// moved or removed in logarithmic time.
type heap[E element[E]] []E

// element is an element of a heap. It is in one heap at a time.
type element[E any] interface {
	// before reports whether the element precedes another one of its heap.
	before(E) bool
	// position points to the element's index in the heap, counted from 1. It is
	// 0 while the element is in no heap.
	position() *int
}

func (h *heap[E]) insert(e E) { stdheap.Push(h, e) }
func (h *heap[E]) remove(e E) { stdheap.Remove(h, *e.position()-1) }
func (h *heap[E]) fix(e E)    { stdheap.Fix(h, *e.position()-1) }

// Len, Less, Swap, Push and Pop are only for container/heap.

func (h heap[E]) Len() int           { return len(h) }
func (h heap[E]) Less(i, j int) bool { return h[i].before(h[j]) }

func (h heap[E]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].position(), *h[j].position() = i+1, j+1
}

func (h *heap[E]) Push(x any) {
	e := x.(E)
	*h = append(*h, e)
	*e.position() = len(*h)
}

func (h *heap[E]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	clear((*h)[last:])
	*h = (*h)[:last]
	*e.position() = 0
	return e
}
