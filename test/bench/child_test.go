// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"testing"
	"time"
)

// child is a process of this test binary that serves the methods of one of the
// types in TestChild.
type child struct {
	tb     testing.TB
	role   string
	client *rpc.Client
}

// Task is what a child does. It reads it as JSON from its standard input.
type Task struct {
	Role   string // servers, bare, rollcall or clients
	Parent string // the address where the parent accepts a connection
	// Clusters is the number of clusters to start for each contender, for servers.
	Clusters int
	// Home and Members are the clusters, for contenders and clients.
	Home    remoteCluster
	Members []remoteCluster
}

var contestants = map[string]contestant{"bare": startBare, "rollcall": startRollcall}

// isChild is the environment variable that is set for children.
const isChild = "ROLLCALL_BENCH_CHILD"

// TestChild is what children run. It does nothing in any other process.
func TestChild(t *testing.T) {
	if os.Getenv(isChild) == "" {
		return
	}
	var todo Task
	check(t, json.NewDecoder(os.Stdin).Decode(&todo))
	var receiver any
	switch start := contestants[todo.Role]; {
	case start != nil:
		receiver = newRemoteContender(t, start, todo)
	case todo.Role == "clients":
		receiver = newRemoteClients(t, todo)
	default:
		receiver = newRemoteServers(t, todo)
	}
	methods := rpc.NewServer()
	check(t, methods.RegisterName("Child", receiver))
	conn, err := net.Dial("tcp", todo.Parent)
	check(t, err)
	methods.ServeConn(conn) // until the parent closes it
}

// startChild starts a child, which ends with stop.
func startChild(tb testing.TB, todo Task) (c *child, stop func()) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(tb, err)
	defer listener.Close()
	todo.Parent = listener.Addr().String()
	text, err := json.Marshal(todo)
	check(tb, err)

	var output bytes.Buffer
	process := exec.Command(os.Args[0], "-test.run", "^TestChild$", "-test.timeout", "30m")
	process.Env = append(os.Environ(), isChild+"=1")
	process.Stdin = bytes.NewReader(text)
	process.Stdout, process.Stderr = &output, &output
	check(tb, process.Start())
	ended := make(chan error, 1)
	go func() {
		ended <- process.Wait()
		listener.Close()
	}()
	conn, err := listener.Accept()
	if err != nil {
		tb.Fatalf("%s: %v\n%s", todo.Role, <-ended, output.String())
	}
	c = &child{tb: tb, role: todo.Role, client: rpc.NewClient(conn)}
	return c, func() {
		tb.Helper()
		_ = c.client.Close()
		select {
		case err = <-ended:
		case <-time.After(waitLimit):
			_ = process.Process.Kill()
			err = <-ended
		}
		if err != nil {
			tb.Errorf("%s: %v\n%s", todo.Role, err, output.String())
		}
	}
}

// ask calls a method of the child, and returns its reply.
func ask[reply any](c *child, method string, argument any) reply {
	c.tb.Helper()
	var r reply
	call := c.client.Go("Child."+method, argument, &r, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil {
			c.tb.Fatalf("%s of %s: %v", method, c.role, call.Error)
		}
	case <-time.After(waitLimit):
		c.tb.Fatalf("%s of %s has not returned after %v", method, c.role, waitLimit)
	}
	return r
}
