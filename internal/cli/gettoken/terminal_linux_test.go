// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
)

// openTerminal returns both sides of a pseudo-terminal.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { _ = controller.Close() })
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, controller.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return controller, terminal
}

// onTerminal returns what get-token writes to a terminal.
func (e *environment) onTerminal(context string, env []string, args ...string) string {
	e.t.Helper()
	controller, terminal := openTerminal(e.t)
	c := e.command(context, args...)
	c.Env, c.Stdout = append(c.Env, env...), terminal
	if err := c.Run(); err != nil {
		e.t.Fatal(err)
	}
	text := make([]byte, 64<<10)
	n, err := controller.Read(text)
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.ReplaceAll(string(text[:n]), "\r\n", "\n")
}

func TestTerminal(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:a:b","iss":"https://issuer"}`))
	token := "header." + claims + ".signature"
	e.output("east", token, inAnHour())
	text := e.onTerminal("east", []string{"NO_COLOR=1"})
	g.Expect(text).To(MatchRegexp(`(?m)^Server:     https://east.example.com$`))
	g.Expect(text).To(MatchRegexp(`(?m)^Identity:   "system:serviceaccount:a:b" of issuer "https://issuer", says the token$`))
	g.Expect(text).To(MatchRegexp(`(?m)^Expires:    20\d\d-\S+ \(in \d+m\)$`))
	g.Expect(text).To(MatchRegexp(`(?m)^Token:      hidden \(\d+ characters\), shown with --show-token$`))
	g.Expect(text).NotTo(ContainSubstring(claims))
	g.Expect(e.onTerminal("east", nil)).To(ContainSubstring("\x1b[2mhidden"))
	g.Expect(e.onTerminal("east", nil, "--show-token")).To(MatchRegexp(`(?m)^Token: +` + token + `$`))

	e.output("west", "opaque", time.Time{})
	text = e.onTerminal("west", nil)
	g.Expect(text).To(MatchRegexp(`(?m)^Identity: +unknown \(the token does not say\)$`))
	g.Expect(text).To(MatchRegexp(`(?m)^Expires: +unknown$`))
}
