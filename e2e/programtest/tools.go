package programtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"blockdesk/bench/server"
)

// Must returns v, and panics on an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// FromEnv returns a number from the environment, or otherwise.
func FromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a whole number", name, text)
	}
	return n
}

// Pause waits for d, a client's pause between requests, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// FreePort returns a port that no other caller gets until the test ends.
func FreePort(t *testing.T) string {
	t.Helper()
	port, held, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return strconv.Itoa(port)
}

// JSON is a value's JSON, for messages.
func JSON(v any) string { return string(Must(json.Marshal(v))) }

// Root returns the folder of this source tree.
func Root(t testing.TB) string {
	t.Helper()
	root, err := sourceRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// DeployFile returns a file of docs/deploy.
func DeployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Buffer is what a program has printed so far.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
