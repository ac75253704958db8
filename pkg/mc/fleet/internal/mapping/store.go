// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"runtime"
	"sync"
	"weak"
)

// store has the values that mappers share. Its zero value is ready for use.
type store struct {
	documents interned[document]
	resources interned[resources]
	catalogs  interned[catalog]
}

// shared is the store of the process.
var shared store

// interned has one value for each content while it is in use.
type interned[T any] struct {
	mu     sync.Mutex // guards values
	values map[key]weak.Pointer[T]
}

// get returns the value of the content, nil if there is none.
func (i *interned[T]) get(k key) *T {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.values[k].Value()
}

// add adds the value of the content, and returns it, or the value that was added
// earlier.
func (i *interned[T]) add(k key, value *T) *T {
	i.mu.Lock()
	defer i.mu.Unlock()
	if earlier := i.values[k].Value(); earlier != nil {
		return earlier
	}
	if i.values == nil {
		i.values = map[key]weak.Pointer[T]{}
	}
	i.values[k] = weak.Make(value)
	runtime.AddCleanup(value, i.forget, k)
	return value
}

// forget removes the entry of a value that is no longer in use, unless the content
// has a new one.
func (i *interned[T]) forget(k key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.values[k].Value() == nil {
		delete(i.values, k)
	}
}

// key is the hash of a content.
type key [sha256.Size]byte

// digest computes keys.
type digest struct{ hash hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

// add adds fields with their lengths, so that no two sequences are equal.
func (d digest) add(fields ...string) {
	for _, field := range fields {
		d.addBytes([]byte(field))
	}
}

func (d digest) addBytes(field []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(field)))
	d.hash.Write(size[:]) // never fails
	d.hash.Write(field)
}

func (d digest) key() key { return key(d.hash.Sum(nil)) }
