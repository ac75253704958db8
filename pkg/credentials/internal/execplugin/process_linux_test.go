// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

// The test binary is also the controllers of these tests: with this variable,
// it does what is named there.
const controllerVariable = "ROLLCALL_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	switch os.Getenv(controllerVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "hang":
		_, err := newShellRunner(time.Minute).Run(context.Background(), "p", shell(os.Args[1]), nil, func() {})
		fmt.Println(err)
	case "reap":
		reapAsInit()
	}
}

func newShellRunner(timeout time.Duration) *Runner {
	return NewRunner(Options{Timeout: timeout, MaxConcurrentRuns: 8})
}

// shell returns the run of a script.
func shell(script string) *Invocation {
	return &Invocation{Command: "/bin/sh", Args: []string{"-c", script}}
}

// controller returns the test binary as a controller with the script as its
// plugin.
func controller(t *testing.T, does, script string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, script)
	command.Env = append(os.Environ(), controllerVariable+"="+does, "GORACE=atexit_sleep_ms=0")
	return command
}

// plugins are processes that have a pipe open.
type plugins struct {
	path   string        // of the pipe, for a script to open
	opened chan struct{} // closed when one of them has opened it
	closed chan error    // gets an element when all of them have ended
}

func newPlugins(t *testing.T) *plugins {
	t.Helper()
	p := &plugins{path: filepath.Join(t.TempDir(), "alive"), opened: make(chan struct{}), closed: make(chan error, 1)}
	if err := syscall.Mkfifo(p.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		alive, err := os.Open(p.path) // waits for a writer
		close(p.opened)
		if err == nil {
			_, err = io.Copy(io.Discard, alive)
			_ = alive.Close()
		}
		p.closed <- err
	}()
	return p
}

func TestKilledControllerTakesPluginAlong(t *testing.T) {
	g := NewWithT(t)
	plugins := newPlugins(t)
	// It ends by itself after a minute if this test fails.
	command := controller(t, "hang", fmt.Sprintf("exec 3>%q; exec sleep 60", plugins.path))
	g.Expect(command.Start()).To(Succeed())
	<-plugins.opened
	g.Expect(command.Process.Kill()).To(Succeed())
	_ = command.Wait()
	g.Eventually(plugins.closed, "30s").Should(Receive(BeNil()))
}

func TestPluginSurvivesEndOfOtherThreads(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	var threads, runs sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			for ctx.Err() == nil {
				var one sync.WaitGroup
				one.Go(runtime.LockOSThread) // without the unlocking, the thread ends
				one.Wait()
				runtime.Gosched()
			}
		})
	}
	runner := newShellRunner(time.Minute)
	for i := range 4 {
		runs.Go(func() {
			for range 5 {
				_, err := runner.Run(ctx, "p", shell(fmt.Sprintf("sleep 0.05; exit 3%d", i)), nil, func() {})
				failed, _ := errors.AsType[*RunError](err)
				if failed == nil || failed.ExitCode != 30+i {
					t.Errorf("the plugin did not end by itself: %v", err)
				}
			}
		})
	}
	runs.Wait()
	cancel()
	threads.Wait()
	g.Expect(runner.slots.queues).To(BeEmpty())
}

func TestNoZombies(t *testing.T) {
	for _, test := range []struct {
		name       string
		attributes *syscall.SysProcAttr
	}{
		{"as a subreaper", &syscall.SysProcAttr{}},
		{"as the init process of a container", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			command := controller(t, "reap", "")
			command.SysProcAttr = test.attributes
			output, err := command.CombinedOutput()
			if errors.Is(err, syscall.EPERM) && test.attributes.Cloneflags != 0 {
				t.Skip("a PID namespace needs root")
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(output)).To(Equal("no children\n"))
		})
	}
}

// reapAsInit is a controller that inherits the children of its plugins. It reports
// those that are left.
func reapAsInit() {
	const setChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		fmt.Println("prctl:", errno)
	}
	var all sync.WaitGroup
	runner := newShellRunner(time.Second)
	for _, script := range []string{
		"sleep 60 & (sleep 60 & sleep 60) & sleep 60",              // hangs
		"sleep 60 >/dev/null 2>&1 & echo 1",                        // leaves a child behind
		"(true & true & true & exec sleep 60) & sleep 0.3; exit 1", // has zombies of its own
	} {
		all.Go(func() {
			if c, err := runner.Run(context.Background(), "p", shell(script), nil, func() {}); err == nil {
				fmt.Println(c)
			}
		})
	}
	// Those who started the others wait for them.
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := exec.Command("/bin/sh", "-c", "sleep 0.02 & wait").Run(); err != nil {
					fmt.Println("stolen:", err)
				}
			}
		})
	}
	all.Wait()
	switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
	case errors.Is(err, syscall.ECHILD):
		fmt.Println("no children")
	case pid > 0:
		fmt.Println("a zombie is left")
	default:
		fmt.Println("children go on:", err)
	}
}
