package rpc_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestKinds: the error kind of each answer, which is a whole body or an HTTP status.
func TestKinds(t *testing.T) {
	raw := func(body string) func(http.ResponseWriter, asked) { return status(http.StatusOK, body) }
	for _, c := range []struct {
		name  string
		reply func(http.ResponseWriter, asked)
		want  rpc.Kind
		tries int
	}{
		{"good", result("77"), 0, 1},
		{"unhealthy", failure(`{"code":-32005,"message":"Node is behind by 42 slots","data":{"numSlotsBehind":42}}`), rpc.Behind, 3},
		{"minimum slot not reached", failure(`{"code":-32016,"message":"Minimum context slot has not been reached","data":{"contextSlot":5}}`), rpc.Behind, 3},
		{"no history", failure(`{"code":-32011,"message":"Transaction history is not available from this node"}`), rpc.Behind, 3},
		{"internal", failure(`{"code":-32603,"message":"Internal error"}`), rpc.Down, 3},
		{"invalid params", failure(`{"code":-32602,"message":"Invalid param: WrongSize"}`), rpc.Rejected, 1},
		{"no such method", failure(`{"code":-32601,"message":"Method not found"}`), rpc.Rejected, 1},
		{"unknown code", failure(`{"code":-1,"message":"?"}`), rpc.Rejected, 1},
		{"limited by code", failure(`{"code":429,"message":"Too many requests"}`), rpc.RateLimited, 1},
		{"limited by status", status(http.StatusTooManyRequests, "slow down"), rpc.RateLimited, 1},
		{"bad gateway", status(http.StatusBadGateway, "<html>"), rpc.Down, 3},
		{"unauthorized", status(http.StatusUnauthorized, "key"), rpc.Down, 3},
		{"redirect", func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		}, rpc.WrongAnswer, 3},
		{"page", raw("<html>"), rpc.WrongAnswer, 3},
		{"nothing", raw(""), rpc.WrongAnswer, 3},
		{"no object", raw("[]"), rpc.WrongAnswer, 3},
		{"no id", raw(`{"jsonrpc":"2.0","result":5}`), rpc.WrongAnswer, 3},
		{"other id", raw(`{"jsonrpc":"2.0","id":999999,"result":5}`), rpc.WrongAnswer, 3},
		{"id a text", raw(`{"jsonrpc":"2.0","id":"1","result":5}`), rpc.WrongAnswer, 3},
		{"neither result nor error", func(w http.ResponseWriter, c asked) { result("5")(&dropResult{w}, c) }, rpc.WrongAnswer, 3},
		{"error without id", raw(`{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}`), rpc.Rejected, 1},
		{"null", result("null"), rpc.WrongAnswer, 3},
		{"a text", result(`"77"`), rpc.WrongAnswer, 3},
		{"a fraction", result("77.5"), rpc.WrongAnswer, 3},
		{"negative", result("-1"), rpc.WrongAnswer, 3},
		{"2^64", result("18446744073709551616"), rpc.WrongAnswer, 3},
		{"cut", func(w http.ResponseWriter, _ asked) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"json`))
		}, rpc.Down, 3},
		{"longer than allowed", func(w http.ResponseWriter, c asked) {
			result("77")(w, c)
			_, _ = w.Write([]byte(strings.Repeat(" ", 1<<16)))
		}, rpc.WrongAnswer, 3},
		{"with spaces", func(w http.ResponseWriter, c asked) {
			result("77")(w, c)
			_, _ = w.Write([]byte(strings.Repeat(" ", 1<<15)))
		}, 0, 1},
		{"deep", raw(strings.Repeat("[", 60_000)), rpc.WrongAnswer, 3},
		{"hangs up", func(http.ResponseWriter, asked) { panic(http.ErrAbortHandler) }, rpc.Down, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, c.reply)
			client := newClient(t, options(n))
			slot, err := client.Slot(t.Context(), rpc.Confirmed)
			if rpc.KindOf(err) != c.want || c.want == 0 && (err != nil || slot != 77) {
				t.Errorf("%d, %v; want %v", slot, err, c.want)
			}
			// net/http itself sends a request again whose kept connection died.
			if got := len(n.calls()); got != c.tries && c.name != "hangs up" {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
			noSecret(t, err)
			h := client.Health()[0]
			if (h.Errors > 0) != (c.want != 0) || h.LastError == "" != (c.want == 0) || strings.Contains(h.LastError, "SECRET") {
				t.Errorf("health %+v", h)
			}
		})
	}
}

// dropResult writes an answer without its result.
type dropResult struct{ http.ResponseWriter }

func (d *dropResult) Write(b []byte) (int, error) {
	_, err := d.ResponseWriter.Write([]byte(strings.Replace(string(b), `"result"`, `"other"`, 1)))
	return len(b), err
}

func TestPreflight(t *testing.T) {
	n := newNode(t, failure(`{"code":-32002,"message":"Transaction simulation failed","data":{"err":{"InstructionError":[2,{"Custom":1}]},"logs":["Program log: Error: insufficient funds"],"unitsConsumed":450}}`))
	c := newClient(t, options(n, n2(t)))
	_, err := c.Send(t.Context(), signed(t), rpc.SendOptions{})
	e := (*rpc.Error)(nil)
	if !errors.As(err, &e) || e.Kind != rpc.Preflight || len(e.Logs) != 1 || !strings.Contains(e.TxError, "InstructionError") || e.Upstream != "a" {
		t.Errorf("%+v", err)
	}
	if len(n.calls()) != 1 {
		t.Errorf("%d tries", len(n.calls()))
	}
	n.respond(failure(`{"code":-32002,"message":"Transaction simulation failed: Blockhash not found","data":"?"}`))
	if _, err := c.Send(t.Context(), signed(t), rpc.SendOptions{}); rpc.KindOf(err) != rpc.Preflight {
		t.Errorf("odd data: %v", err)
	}
}

func n2(t *testing.T) *node { return newNode(t, result("0")) }

// TestFailover: the next node is asked at once, and one that keeps failing is
// asked last.
func TestFailover(t *testing.T) {
	a, b := newNode(t, status(http.StatusServiceUnavailable, "")), newNode(t, result("9"))
	c := newClient(t, options(a, b))
	for i := range 5 {
		if slot, err := c.Slot(t.Context(), rpc.Finalized); err != nil || slot != 9 || c.Active() != "b" {
			t.Fatalf("call %d: %d, %v, active %s", i, slot, err, c.Active())
		}
	}
	if len(a.calls()) != 3 || len(b.calls()) != 5 {
		t.Errorf("%d and %d calls: a node that failed three times is asked last", len(a.calls()), len(b.calls()))
	}
	h := c.Health()
	if h[0].Available || !h[1].Available || h[0].ConsecutiveFailures != 3 || h[1].LastOK.IsZero() || h[1].Latency <= 0 {
		t.Errorf("health %+v", h)
	}
	// When the other one fails too, the first is asked again, and is back.
	a.respond(result("10"))
	b.respond(status(http.StatusServiceUnavailable, ""))
	if slot, err := c.Slot(t.Context(), rpc.Finalized); err != nil || slot != 10 || c.Active() != "a" {
		t.Errorf("%d, %v, active %s", slot, err, c.Active())
	}
	if h := c.Health(); !h[0].Available {
		t.Errorf("health %+v", h)
	}
}

// TestWrongAnswersFailOver: after an answer that cannot be right another node is
// called.
func TestWrongAnswersFailOver(t *testing.T) {
	a, b := newNode(t, result(`{"context":{"slot":1},"value":[null]}`)), newNode(t, result(`{"context":{"slot":1},"value":[null,null]}`))
	c := newClient(t, options(a, b))
	list, _, err := c.Accounts(t.Context(), make([]solana.Address, 2), rpc.Confirmed, 0)
	if err != nil || len(list) != 2 || len(a.calls()) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestHedge: a slow node does not delay a read by more than the hedge's delay.
func TestHedge(t *testing.T) {
	release := make(chan struct{})
	a := newNode(t, func(w http.ResponseWriter, c asked) { <-release; result("1")(w, c) })
	b := newNode(t, result("2"))
	o := options(a, b)
	o.HedgeAfter = 5 * time.Millisecond
	c := newClient(t, o)
	if slot, err := c.Slot(t.Context(), rpc.Confirmed); err != nil || slot != 2 {
		t.Errorf("%d, %v", slot, err)
	}
	if h := c.Health(); h[0].ConsecutiveFailures != 0 || h[0].Calls != 0 || h[1].Calls != 1 {
		t.Errorf("a call that we gave up counts: %+v", h)
	}
	// A send is not hedged: a second node sees it only when the first fails.
	b.respond(func(w http.ResponseWriter, c asked) { <-release; result("1")(w, c) })
	sends := func() (n int) {
		for _, call := range append(a.calls(), b.calls()...) {
			if call.Method == "sendTransaction" {
				n++
			}
		}
		return n
	}
	// Long enough to be sent, and a hundred times the hedge's delay.
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := c.Send(ctx, signed(t), rpc.SendOptions{}); rpc.KindOf(err) != rpc.Down || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if n := sends(); n != 1 {
		t.Errorf("a send was made %d times", n)
	}
	close(release)
}

func TestHedgeBothFail(t *testing.T) {
	release := make(chan struct{})
	a := newNode(t, func(w http.ResponseWriter, c asked) { <-release; status(http.StatusBadGateway, "")(w, c) })
	b := newNode(t, func(w http.ResponseWriter, c asked) { close(release); status(http.StatusBadGateway, "")(w, c) })
	o := options(a, b)
	o.HedgeAfter, o.Attempts = 5*time.Millisecond, 2
	c := newClient(t, o)
	if _, err := c.Slot(t.Context(), rpc.Confirmed); rpc.KindOf(err) != rpc.Down {
		t.Errorf("%v", err)
	}
	if len(a.calls()) != 1 || len(b.calls()) != 1 {
		t.Errorf("%d and %d calls", len(a.calls()), len(b.calls()))
	}
}

// TestDeadlines: a node that never answers ends each try, and the call.
func TestDeadlines(t *testing.T) {
	release := make(chan struct{})
	a := newNode(t, func(http.ResponseWriter, asked) { <-release })
	defer close(release)
	o := options(a)
	o.AttemptTimeout, o.Attempts = 10*time.Millisecond, 2
	c := newClient(t, o)
	if _, err := c.Slot(t.Context(), rpc.Confirmed); rpc.KindOf(err) != rpc.Down || c.Health()[0].Errors != 2 {
		t.Errorf("%v after %d tries", err, c.Health()[0].Errors)
	}
	o.AttemptTimeout, o.Timeout = runtest.HangTimeout, 10*time.Millisecond
	c = newClient(t, o)
	if _, err := c.Slot(t.Context(), rpc.Confirmed); rpc.KindOf(err) != rpc.Down || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	o.Timeout, o.Backoff = 2*runtest.HangTimeout, runtest.HangTimeout
	down := newNode(t, status(http.StatusBadGateway, ""))
	o.Upstreams[0].URL = down.URL
	c = newClient(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	down.respond(func(w http.ResponseWriter, a asked) { cancel(); status(http.StatusBadGateway, "")(w, a) })
	if _, err := c.Slot(ctx, rpc.Confirmed); rpc.KindOf(err) != rpc.Down {
		t.Errorf("cancelled in a pause: %v", err)
	}
}

func TestRateLimit(t *testing.T) {
	a, b := newNode(t, status(http.StatusTooManyRequests, "")), newNode(t, result("2"))
	c := newClient(t, options(a, b))
	for range 3 {
		if slot, err := c.Slot(t.Context(), rpc.Confirmed); err != nil || slot != 2 {
			t.Fatalf("%d, %v", slot, err)
		}
	}
	if len(a.calls()) != 1 {
		t.Errorf("%d calls of a node that limits us", len(a.calls()))
	}
	b.respond(status(http.StatusTooManyRequests, ""))
	_, err := c.Slot(t.Context(), rpc.Confirmed)
	e := (*rpc.Error)(nil)
	if !errors.As(err, &e) || e.Kind != rpc.RateLimited || e.RetryAfter != 29*time.Second {
		t.Errorf("%+v", err)
	}
}

// TestRun: nodes are probed and a blockhash is cached; a node far behind is called
// last; an older blockhash does not replace a newer one.
func TestRun(t *testing.T) {
	var height atomic.Uint64
	height.Store(100)
	chain := func(slot string) func(http.ResponseWriter, asked) {
		return func(w http.ResponseWriter, c asked) {
			if c.Method == "getSlot" {
				result(slot)(w, c)
				return
			}
			if c.Method == "isBlockhashValid" {
				result(`{"context":{"slot":`+slot+`},"value":true}`)(w, c)
				return
			}
			h := height.Load()
			result(`{"context":{"slot":`+slot+`},"value":{"blockhash":"`+solana.Hash{byte(h)}.String()+`","lastValidBlockHeight":`+decimal(h)+`}}`)(w, c)
		}
	}
	a, b := newNode(t, chain("1000")), newNode(t, chain("1041"))
	c := newClient(t, options(a, b))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	await.True(t, "the slots of both nodes", func() bool { h := c.Health(); return h[0].Slot == 1000 && h[1].Slot == 1041 })
	if h := c.Health(); h[0].Available || h[0].Lag != 41 || !h[1].Available || h[1].Lag != 0 {
		t.Errorf("health %+v", h)
	}
	if _, err := c.BlockHeight(t.Context(), rpc.Finalized); rpc.KindOf(err) != rpc.WrongAnswer {
		t.Errorf("an object as height: %v", err)
	}
	await.True(t, "a blockhash", func() bool {
		h, err := c.Blockhash(t.Context())
		return err == nil && h.LastValidBlockHeight == 100 && h.Hash == (solana.Hash{100})
	})
	height.Store(99)
	fetched := func() (n int) {
		for _, call := range b.calls() {
			if call.Method == "getLatestBlockhash" {
				n++
			}
		}
		return n
	}
	seen := fetched()
	await.True(t, "two more blockhashes that were fetched", func() bool { return fetched() > seen+2 })
	if h, err := c.Blockhash(t.Context()); err != nil || h.LastValidBlockHeight != 100 {
		t.Errorf("an older blockhash replaced a newer: %+v, %v", h, err)
	}
	height.Store(101)
	await.True(t, "the newer blockhash", func() bool {
		h, err := c.Blockhash(t.Context())
		return err == nil && h.LastValidBlockHeight == 101
	})
	cancel()
	wg.Wait()
	before := len(a.calls()) + len(b.calls())
	for range 50 {
		if _, err := c.Blockhash(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.calls()) + len(b.calls()) - before; n != 0 {
		t.Errorf("%d calls for 50 kept blockhashes", n)
	}
}

// TestBlockhashOnce: concurrent callers of Blockhash cause one call.
func TestBlockhashOnce(t *testing.T) {
	n := newNode(t, result(`{"context":{"slot":5},"value":{"blockhash":"`+solana.Hash{7}.String()+`","lastValidBlockHeight":150}}`))
	c := newClient(t, options(n))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if b, err := c.Blockhash(t.Context()); err != nil || b.Hash != (solana.Hash{7}) || b.LastValidBlockHeight != 150 || b.Slot != 5 {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
	wg.Wait()
	if len(n.calls()) != 1 {
		t.Errorf("%d calls", len(n.calls()))
	}
	for _, text := range []string{`{"context":{"slot":5},"value":null}`, `{"value":{"blockhash":"x","lastValidBlockHeight":1}}`, `{"context":{"slot":5},"value":{"blockhash":"x","lastValidBlockHeight":1}}`, `{"context":{"slot":5},"value":{"blockhash":"11111111111111111111111111111111"}}`} {
		n.respond(result(text))
		if b, err := newClient(t, options(n)).Blockhash(t.Context()); rpc.KindOf(err) != rpc.WrongAnswer {
			t.Errorf("%s: %+v, %v", text, b, err)
		}
	}
}

func TestOptions(t *testing.T) {
	good := rpc.Upstream{URL: "https://node.example/key"}
	for name, o := range map[string]rpc.Options{
		"no upstream":         {},
		"too many":            {Upstreams: make([]rpc.Upstream, rpc.MaxUpstreams+1)},
		"no URL":              {Upstreams: []rpc.Upstream{{}}},
		"no scheme":           {Upstreams: []rpc.Upstream{{URL: "node.example"}}},
		"WebSocket":           {Upstreams: []rpc.Upstream{{URL: "wss://node.example"}}},
		"no host":             {Upstreams: []rpc.Upstream{{URL: "http:///x"}}},
		"the same twice":      {Upstreams: []rpc.Upstream{good, good}},
		"negative timeout":    {Upstreams: []rpc.Upstream{good}, Timeout: -1},
		"17 attempts":         {Upstreams: []rpc.Upstream{good}, Attempts: 17},
		"negative attempts":   {Upstreams: []rpc.Upstream{good}, Attempts: -1},
		"negative answer":     {Upstreams: []rpc.Upstream{good}, MaxAnswer: -1},
		"unknown commitment":  {Upstreams: []rpc.Upstream{good}, BlockhashCommitment: 4},
		"negative connection": {Upstreams: []rpc.Upstream{good}, MaxConnections: -1},
	} {
		if _, err := rpc.New(o); !errors.Is(err, rpc.ErrOptions) || strings.Contains(err.Error(), "key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := rpc.New(rpc.Options{Upstreams: []rpc.Upstream{good, {Name: "spare", URL: good.URL}}})
	if err != nil || c.Active() != "node.example" || c.Health()[1].Name != "spare" {
		t.Errorf("%v, %v", c, err)
	}
}

// TestHidesKeys: a node that repeats a request shows no part of its URL that may be a
// key, neither encoded nor decoded.
func TestHidesKeys(t *testing.T) {
	const message = "no /v2/PATHKEY1/with%20PATHKEY2, with PATHKEY2, ?key=QUERY%2FKEY3&n=4 of QUERY/KEY3 for USERKEY4:PASSKEY5"
	for name, reply := range map[string]string{
		"its message": `{"code":-32601,"message":"` + message + `"}`,
		"a preflight": `{"code":-32002,"message":"","data":{"err":"` + message + `","logs":["` + message + `"]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, failure(reply))
			o := options(n)
			o.Upstreams[0].URL = strings.Replace(n.URL, "//", "//USERKEY4:PASSKEY5@", 1) + "/v2/PATHKEY1/with%20PATHKEY2?key=QUERY%2FKEY3&n=4"
			c := newClient(t, o)
			_, err := c.Slot(t.Context(), rpc.Finalized)
			e := (*rpc.Error)(nil)
			if !errors.As(err, &e) {
				t.Fatalf("it fails with %v", err)
			}
			text := e.Error() + strings.Join(e.Logs, " ") + c.Health()[0].LastError
			if strings.Contains(text, "KEY") || !strings.Contains(text, "no /v2/***") {
				t.Errorf("the error has %s", text)
			}
		})
	}
}
