package mirror_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/mirror"
)

// question is a call to a simulated node.
type question struct {
	ID     uint64            `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// answer writes a result.
func answer(w io.Writer, id uint64, result any) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text) // only the test's own client closes early
}

// wireNode serves a fakeChain over HTTP. before may answer instead.
func wireNode(t *testing.T, chain *fakeChain, before func(w http.ResponseWriter, r *http.Request, q *question) bool) rpc.Upstream {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Errorf("a question: %v", err)
			return
		}
		if before != nil && before(w, r, &q) {
			return
		}
		switch q.Method {
		case "getSlot":
			answer(w, q.ID, chain.slot())
		case "getSignaturesForAddress":
			answer(w, q.ID, []any{})
		case "getMultipleAccounts":
			answer(w, q.ID, chain.wire(t, &q, chain.slot()))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return rpc.Upstream{Name: fmt.Sprint("node ", strings.TrimPrefix(s.URL, "http://127.0.0.1:")), URL: s.URL}
}

// wire returns the result of getMultipleAccounts as of a slot.
func (c *fakeChain) wire(t *testing.T, q *question, slot uint64) any {
	var list []string
	if err := json.Unmarshal(q.Params[0], &list); err != nil {
		t.Errorf("a question: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make([]any, len(list))
	for i, text := range list {
		address, err := solana.ParseAddress(text)
		if err != nil {
			t.Errorf("a question: %v", err)
		}
		a := c.account(address)
		if address == solana.ClockSysvar {
			a = clockAccount(slot, uint64(c.now().Unix()))
		}
		if a != nil {
			values[i] = map[string]any{
				"lamports": 1, "owner": solana.Base58(a.Owner), "executable": false, "rentEpoch": 0,
				"data": []string{base64.StdEncoding.EncodeToString(a.Data), "base64"},
			}
		}
	}
	return map[string]any{"context": map[string]any{"slot": slot}, "value": values}
}

// drip sends a byte now and then until the client disconnects.
func drip(w http.ResponseWriter, r *http.Request, _ *question) bool {
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, " "); err != nil {
			return true
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// flood sends far more than the limit of an answer.
func flood(w http.ResponseWriter, r *http.Request, _ *question) bool {
	junk := strings.Repeat("[", 1<<16)
	for range 1 << 10 {
		if _, err := io.WriteString(w, junk); err != nil || r.Context().Err() != nil {
			break
		}
	}
	return true
}

func answers(text string) func(w http.ResponseWriter, r *http.Request, q *question) bool {
	return func(w http.ResponseWriter, _ *http.Request, q *question) bool {
		_, _ = io.WriteString(w, strings.ReplaceAll(text, "ID", fmt.Sprint(q.ID)))
		return true
	}
}

// TestServiceHostile: over real connections, a hostile node of each kind stops nothing if
// it is one of three, and nothing is published if it is the only one.
func TestServiceHostile(t *testing.T) {
	timeouts := map[string]time.Duration{"drips": 500 * time.Millisecond} // the others end by themselves
	for name, malice := range map[string]func(w http.ResponseWriter, r *http.Request, q *question) bool{
		"floods":              flood,
		"drips":               drip,
		"not JSON":            answers("<html>"),
		"nothing":             answers(""),
		"null":                answers(`{"jsonrpc":"2.0","id":ID,"result":null}`),
		"another's answer":    answers(`{"jsonrpc":"2.0","id":1000000,"result":{"context":{"slot":1},"value":[]}}`),
		"no values":           answers(`{"jsonrpc":"2.0","id":ID,"result":{"context":{"slot":18446744073709551615},"value":[]}}`),
		"a negative slot":     answers(`{"jsonrpc":"2.0","id":ID,"result":{"context":{"slot":-1},"value":[]}}`),
		"deep":                answers(strings.Repeat("[", 1<<15)),
		"an error of its own": answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"` + strings.Repeat("x", 1<<15) + `"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("one of three", func(t *testing.T) {
				chain := newFakeChain(0)
				s, engine, stop := serveWire(t, chain, timeouts[name], wireNode(t, chain, malice), wireNode(t, chain, nil), wireNode(t, chain, nil))
				defer stop()
				await.Value(t, "a state by two nodes", s.State, func(s *mirror.State) bool {
					p := &s.Pairs[0]
					return p.AgreeingNodes == 2 && p.Pool != nil && p.Pool.BaseBalance == chain.past.vaults[0] &&
						p.Reasons&^mirror.Reasons(0).With(mirror.HistoryBehind) == 0 && engine.Durable(3).Slot != 0 && s.Upstreams[0].Refused != nil
				})
			})
			t.Run("alone", func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				chain := newFakeChain(0)
				s, engine, stop := serveWire(t, chain, timeouts[name], wireNode(t, chain, malice))
				await.Value(t, "a state without an active node", s.State, func(s *mirror.State) bool {
					return s.Pairs[0].Err != nil && s.Reasons.Has(mirror.NoUpstream) && s.Upstreams[0].Calls > 2
				})
				stop()
				runtime.GC()
				if runtime.ReadMemStats(&after); engine.Durable(3).Slot != 0 || after.HeapAlloc > before.HeapAlloc+(64<<20) {
					t.Errorf("slot %d, %d bytes more", engine.Durable(3).Slot, after.HeapAlloc-before.HeapAlloc)
				}
			})
		})
	}
}

// TestServiceHostileSlots: a node that returns the others' data with future slots
// advances no slot, and is named.
func TestServiceHostileSlots(t *testing.T) {
	chain := newFakeChain(0)
	ahead := func(w http.ResponseWriter, _ *http.Request, q *question) bool {
		if q.Method != "getMultipleAccounts" {
			return false
		}
		answer(w, q.ID, chain.wire(t, q, chain.slot()+1<<40))
		return true
	}
	s, engine, stop := serveWire(t, chain, 0, wireNode(t, chain, ahead), wireNode(t, chain, nil), wireNode(t, chain, nil))
	defer stop()
	await.Value(t, "a slot of the future", s.State, func(s *mirror.State) bool {
		return s.Reasons.Has(mirror.FutureSlot) && s.Pairs[0].AgreeingNodes == 2
	})
	if slot := engine.Durable(3).Slot; slot > chain.slot() {
		t.Errorf("slot %d", slot)
	}
}

// serveWire runs a service over simulated nodes with short intervals. timeout is the time
// for an answer; by default longer than any test.
func serveWire(t *testing.T, chain *fakeChain, timeout time.Duration, nodes ...rpc.Upstream) (s *mirror.Service, engine *fakeEngine, stop func()) {
	t.Helper()
	client, err := rpc.New(rpc.Options{
		Upstreams: nodes, Timeout: cmp.Or(timeout, runtest.HangTimeout), AttemptTimeout: cmp.Or(timeout, runtest.HangTimeout),
		Backoff: time.Millisecond, MaxAnswer: 1 << 16,
	})
	if err != nil {
		t.Fatal(err)
	}
	engine = &fakeEngine{}
	o := mirror.Options{Pairs: []mirror.Pair{bothPair()}, Now: chain.now, Every: 20 * time.Millisecond, AttemptPause: time.Millisecond, StaleAfter: runtest.HangTimeout}
	if s, err = mirror.New(o, client, engine, newMemKV()); err != nil {
		t.Fatal(err)
	}
	end := runtest.Start(t, s.Run)
	return s, engine, func() {
		end()
		client.Close()
	}
}
