package rpc_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/internal/runtest"
	"blockdesk/internal/solana/rpc"
)

// node is a server that answers as a test says.
type node struct {
	*httptest.Server
	mu    sync.Mutex
	reply func(w http.ResponseWriter, c asked)
	log   []asked
}

// asked is a call that the node got.
type asked struct {
	ID     uint64            `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// result answers with a result.
func result(text string) func(http.ResponseWriter, asked) {
	return func(w http.ResponseWriter, c asked) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, c.ID, text)
	}
}

// failure answers with an error.
func failure(text string) func(http.ResponseWriter, asked) {
	return func(w http.ResponseWriter, c asked) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"error":%s}`, c.ID, text)
	}
}

// status answers with an HTTP status.
func status(code int, body string) func(http.ResponseWriter, asked) {
	return func(w http.ResponseWriter, _ asked) {
		w.Header().Set("Retry-After", "29")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func newNode(t testing.TB, reply func(http.ResponseWriter, asked)) *node {
	n := &node{reply: reply}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c asked
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the node got %s %s: %v", r.Method, r.Header.Get("Content-Type"), err)
			return
		}
		n.mu.Lock()
		n.log = append(n.log, c)
		reply := n.reply
		n.mu.Unlock()
		reply(w, c)
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *node) respond(reply func(http.ResponseWriter, asked)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reply = reply
}

func (n *node) calls() []asked {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]asked(nil), n.log...)
}

// options are over some nodes, named a, b, c. No call times out.
func options(nodes ...*node) rpc.Options {
	o := rpc.Options{
		Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout, MaxBlockhashAge: time.Hour, Backoff: time.Millisecond, HedgeAfter: -1,
		ProbeEvery: 5 * time.Millisecond, BlockhashEvery: 5 * time.Millisecond, MaxAnswer: 1 << 16,
	}
	for i, n := range nodes {
		o.Upstreams = append(o.Upstreams, rpc.Upstream{Name: string(rune('a' + i)), URL: n.URL + "/?api-key=SECRET"})
	}
	return o
}

func newClient(t testing.TB, o rpc.Options) *rpc.Client {
	t.Helper()
	c, err := rpc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// noSecret checks that an error does not show a URL.
func noSecret(t *testing.T, err error) {
	t.Helper()
	if err != nil && (strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "http://")) {
		t.Errorf("the error shows the URL: %v", err)
	}
}
