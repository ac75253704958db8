// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"fmt"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/apiserver"
)

// shared keeps the types of earlier clusters as long as one of these is in use.
var shared struct {
	sync.Mutex
	byScheme map[typesKey]weak.Pointer[apiserver.Types] // guarded by Mutex
}

type typesKey struct {
	scheme *runtime.Scheme
	// kinds changes when types are added to the scheme.
	kinds         int
	clusterScoped string
}

func sharedTypes(scheme *runtime.Scheme, clusterScoped []schema.GroupKind) *apiserver.Types {
	var schemes []*runtime.Scheme
	key := typesKey{clusterScoped: fmt.Sprint(clusterScoped)}
	if scheme != nil {
		schemes = append(schemes, scheme)
		key.scheme, key.kinds = scheme, len(scheme.AllKnownTypes())
	}
	shared.Lock()
	defer shared.Unlock()
	for key, pointer := range shared.byScheme {
		if pointer.Value() == nil {
			delete(shared.byScheme, key)
		}
	}
	if types := shared.byScheme[key].Value(); types != nil {
		return types
	}
	types := apiserver.NewTypes(clusterScoped, schemes...)
	if shared.byScheme == nil {
		shared.byScheme = map[typesKey]weak.Pointer[apiserver.Types]{}
	}
	shared.byScheme[key] = weak.Make(types)
	return types
}
