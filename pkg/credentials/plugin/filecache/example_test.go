// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

func ExampleCache_Get() {
	dir, err := os.MkdirTemp("", "tokens-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	cache := &filecache.Cache{Dir: dir} // the flag --cache-dir, see AddFlags
	key := struct{ Plugin, Account, Scope string }{"mc-credential-example", "robot", "read"}
	for range 3 { // as if the plugin ran three times
		credential, err := cache.Get(context.Background(), key, func(context.Context) (*plugin.Credential, error) {
			fmt.Println("requesting a token")
			return &plugin.Credential{Token: "t1", Expiry: time.Now().Add(time.Hour)}, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(credential.Token)
	}
	// Output:
	// requesting a token
	// t1
	// t1
	// t1
}
