package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// batchNode is a node whose first request hangs until release is closed, so that the
// requests after it gather. answer replies to a batch.
type batchNode struct {
	*httptest.Server
	release chan struct{}
	answer  func(w http.ResponseWriter, batch []asked)

	mu      sync.Mutex
	singles int
	batches []int // their lengths
}

// unknown is the answer to a request for a transaction that the node does not know.
func unknown(c asked) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":null}`, c.ID) }

// known is the answer to a request for signed, or for a transaction that the node does not
// know.
func known(t *testing.T, c asked) string {
	if text, _ := json.Marshal(signature.String()); len(c.Params) > 0 && string(c.Params[0]) != string(text) {
		return unknown(c)
	}
	return has(t, c)
}

// has is the answer to any request with signed.
func has(t *testing.T, c asked) string {
	w := httptest.NewRecorder()
	landed(t, 4, "50")(w, c)
	return w.Body.String()
}

// honest answers each request of a batch.
func honest(w http.ResponseWriter, batch []asked) {
	texts := make([]string, len(batch))
	for i := range batch {
		texts[len(batch)-1-i] = unknown(batch[i]) // in any order
	}
	fmt.Fprintf(w, "[%s]", strings.Join(texts, ","))
}

func newBatchNode(t *testing.T, answer func(http.ResponseWriter, []asked)) *batchNode {
	n := &batchNode{release: make(chan struct{}), answer: answer}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var batch []asked
		var one asked
		switch {
		case err != nil:
		case json.Unmarshal(body, &batch) == nil:
			n.mu.Lock()
			n.batches = append(n.batches, len(batch))
			n.mu.Unlock()
			n.answer(w, batch)
		case json.Unmarshal(body, &one) == nil:
			n.mu.Lock()
			n.singles++
			n.mu.Unlock()
			<-n.release
			fmt.Fprint(w, unknown(one))
		default:
			t.Errorf("the node got %s", body)
		}
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *batchNode) seen() (singles int, batches []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.singles, append([]int(nil), n.batches...)
}

// gatheringClient asks each node once a call, and waits for a batch until the request before
// it is answered.
func gatheringClient(t *testing.T, o rpc.Options, nodes ...*batchNode) *rpc.Client {
	for i, n := range nodes {
		o.Upstreams = append(o.Upstreams, rpc.Upstream{Name: string(rune('a' + i)), URL: n.URL + "/?api-key=SECRET"})
	}
	o.HedgeAfter, o.Attempts = -1, 1
	o.Timeout, o.AttemptTimeout = runtest.HangTimeout, runtest.HangTimeout
	c := newClient(t, o)
	c.SetGatherFor(time.Hour)
	return c
}

// gather asks for many transactions while the node is at work on a first one, and returns
// the error of each.
func gather(t *testing.T, n *batchNode, c *rpc.Client, count int) []error {
	t.Helper()
	errs := make([]error, count)
	var group sync.WaitGroup
	call := func(i int) {
		group.Go(func() {
			got, found, err := c.Transaction(t.Context(), solana.Signature{byte(i), byte(i >> 8), 1}, rpc.Finalized)
			if found || got != (*ledger.Confirmed)(nil) {
				t.Errorf("transaction %d is found", i)
			}
			errs[i] = err
		})
	}
	call(0)
	await.True(t, "the first request", func() bool { singles, _ := n.seen(); return singles == 1 })
	for i := 1; i < count; i++ {
		call(i)
		// One after the other, so that the order of the batch is that of the requests.
		await.True(t, "a request that waits", func() bool { return c.Waiting() == i%rpc.MaxBatch || i >= rpc.MaxBatch })
	}
	close(n.release)
	group.Wait()
	return errs
}

// TestBatch: requests that are made while the node answers another go in one batch, whose
// length is bounded; a lone request goes alone.
func TestBatch(t *testing.T) {
	n := newBatchNode(t, honest)
	c := gatheringClient(t, rpc.Options{}, n)
	for i, err := range gather(t, n, c, 8) {
		if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if singles, batches := n.seen(); singles != 1 || len(batches) != 1 || batches[0] != 7 {
		t.Errorf("%d requests alone, batches of %v", singles, batches)
	}
	if h := c.Health()[0]; h.Calls != 8 || h.Errors != 0 {
		t.Errorf("%+v", h)
	}
	if _, _, err := c.Transaction(t.Context(), solana.Signature{9}, rpc.Finalized); err != nil {
		t.Error(err)
	}
	if singles, _ := n.seen(); singles != 2 {
		t.Errorf("%d requests alone after a lone one", singles)
	}

	long := newBatchNode(t, honest)
	c = gatheringClient(t, rpc.Options{}, long)
	for i, err := range gather(t, long, c, 3*rpc.MaxBatch) {
		if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	sum, most := 0, 0
	singles, batches := long.seen()
	for _, length := range batches {
		sum, most = sum+length, max(most, length)
	}
	if sum+singles != 3*rpc.MaxBatch || most != rpc.MaxBatch {
		t.Errorf("%d requests alone, batches of %v", singles, batches)
	}
}

// TestBatchOfASlowNode: a node that does not answer holds up no request that comes later.
func TestBatchOfASlowNode(t *testing.T) {
	n := newBatchNode(t, honest)
	c := gatheringClient(t, rpc.Options{}, n)
	c.SetGatherFor(time.Millisecond)
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			if _, _, err := c.Transaction(t.Context(), solana.Signature{byte(i), 1}, rpc.Finalized); err != nil {
				t.Error(err)
			}
		})
	}
	await.True(t, "a batch or two requests, beside the one that hangs", func() bool {
		singles, batches := n.seen()
		return singles+len(batches) >= 2
	})
	close(n.release)
	group.Wait()
}

// batchAnswer is a form of a batch's answer, and what it means to the batch's three requests.
type batchAnswer struct {
	answer func(http.ResponseWriter, []asked)
	want   []rpc.Kind // nil: all succeed
	alone  int        // requests that are made alone afterwards
}

// batchAnswers are the forms that an answer to a batch of three can have.
func batchAnswers(t *testing.T) map[string]batchAnswer {
	list := func(texts func(batch []asked) []string) func(http.ResponseWriter, []asked) {
		return func(w http.ResponseWriter, batch []asked) { fmt.Fprintf(w, "[%s]", strings.Join(texts(batch), ",")) }
	}
	whole := func(code int, body string) func(http.ResponseWriter, []asked) {
		return func(w http.ResponseWriter, _ []asked) { status(code, body)(w, asked{}) }
	}
	const refusal = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not supported"},"id":null}`
	const limited = `{"jsonrpc":"2.0","error":{"code":-32429,"message":"slow down"},"id":null}`
	wrong, busy := []rpc.Kind{0, rpc.WrongAnswer, 0}, []rpc.Kind{rpc.RateLimited, rpc.RateLimited, rpc.RateLimited}
	fails := func(c asked, code int) string {
		return fmt.Sprintf(`{"id":%d,"error":{"code":%d,"message":"no"}}`, c.ID, code)
	}
	// second has the second request answered so.
	second := func(text func(b asked) string) func(http.ResponseWriter, []asked) {
		return list(func(b []asked) []string { return []string{unknown(b[0]), text(b[1]), unknown(b[2])} })
	}
	return map[string]batchAnswer{
		"short": {list(func(b []asked) []string { return []string{unknown(b[0]), unknown(b[2])} }), nil, 1},
		"it ends at an error": {
			list(func(b []asked) []string { return []string{unknown(b[0]), fails(b[1], -32602)} }), []rpc.Kind{0, rpc.Rejected, 0}, 1,
		},
		"empty": {list(func([]asked) []string { return nil }), nil, 3},
		"an answer twice": {list(func(b []asked) []string {
			return []string{unknown(b[0]), unknown(b[1]), unknown(b[1]), unknown(b[2])}
		}), wrong, 0},
		"an answer three times": {list(func(b []asked) []string {
			return []string{unknown(b[1]), unknown(b[0]), unknown(b[1]), unknown(b[2]), unknown(b[1])}
		}), wrong, 0},
		"more answers than requests": {list(func(b []asked) []string {
			return slices.Repeat([]string{unknown(b[0]), unknown(b[1]), unknown(b[2])}, 3)
		}), nil, 3},
		"an answer to another request": {second(func(asked) string { return unknown(asked{ID: 1 << 40}) }), nil, 1},
		"an answer without an id":      {second(func(asked) string { return `{"jsonrpc":"2.0","result":null}` }), nil, 1},
		"an error without an id":       {second(func(asked) string { return limited }), nil, 1},
		"no object":                    {second(func(asked) string { return `7` }), nil, 1},
		"broken":                       {second(func(asked) string { return `{"id"` }), nil, 3},
		"neither result nor error":     {second(func(b asked) string { return fmt.Sprintf(`{"id":%d}`, b.ID) }), wrong, 0},
		"no transaction":               {second(func(b asked) string { return fmt.Sprintf(`{"id":%d,"result":{"slot":1}}`, b.ID) }), wrong, 0},
		"another transaction":          {second(func(b asked) string { return has(t, b) }), wrong, 0},
		"an error of one":              {second(func(b asked) string { return fails(b, -32005) }), []rpc.Kind{0, rpc.Behind, 0}, 0},
		"one is limited":               {second(func(b asked) string { return fails(b, 429) }), []rpc.Kind{0, rpc.RateLimited, 0}, 0},
		"down":                         {whole(http.StatusServiceUnavailable, ""), []rpc.Kind{rpc.Down, rpc.Down, rpc.Down}, 0},
		"limited by status":            {whole(http.StatusTooManyRequests, ""), busy, 0},
		"limited by code":              {whole(http.StatusOK, limited), busy, 0},
		"limited in a list":            {whole(http.StatusOK, "["+limited+"]"), busy, 0},
		"refused by code":              {whole(http.StatusOK, refusal), nil, 3},
		"refused in a list":            {whole(http.StatusOK, "["+refusal+"]"), nil, 3},
		"refused by status":            {whole(http.StatusBadRequest, refusal), nil, 3},
		"forbidden":                    {whole(http.StatusForbidden, "a paid plan"), nil, 3},
		"too large":                    {whole(http.StatusRequestEntityTooLarge, ""), nil, 3},
		"a page":                       {whole(http.StatusOK, "<html>"), nil, 3},
		"null":                         {whole(http.StatusOK, "null"), nil, 3},
		"longer than allowed": {
			func(w http.ResponseWriter, b []asked) { fmt.Fprint(w, strings.Repeat(" ", 1<<16)); honest(w, b) }, nil, 3,
		},
	}
}

// TestBadBatches: what each form of a batch's answer means to its requests: an error for
// those that it answers wrongly, a request alone for those that it leaves out and after a
// refusal.
func TestBadBatches(t *testing.T) {
	for name, c := range batchAnswers(t) {
		t.Run(name, func(t *testing.T) {
			n := newBatchNode(t, c.answer)
			client := gatheringClient(t, rpc.Options{MaxAnswer: 1 << 16}, n)
			errs := gather(t, n, client, 4)
			if errs[0] != nil {
				t.Errorf("the request before the batch: %v", errs[0])
			}
			for i, err := range errs[1:] {
				want := rpc.Kind(0)
				if c.want != nil {
					want = c.want[i]
				}
				if rpc.KindOf(err) != want || want == 0 && err != nil {
					t.Errorf("request %d of the batch: %v, want kind %v", i, err, want)
				}
				noSecret(t, err)
			}
			if singles, batches := n.seen(); len(batches) != 1 || singles != 1+c.alone {
				t.Errorf("%d requests alone, batches of %v", singles, batches)
			}
		})
	}
}

// TestBatchOfStrangers: whatever one of three nodes answers to a batch of which two requests
// are strangers', in whatever place of it the third one is: its payment is found, with the
// block time of the others.
func TestBatchOfStrangers(t *testing.T) {
	answers := batchAnswers(t)
	answers["nothing"] = batchAnswer{}
	for name, c := range answers {
		for place := range 3 {
			t.Run(fmt.Sprint(name, place), func(t *testing.T) {
				knows := func(w http.ResponseWriter, batch []asked) {
					texts := make([]string, len(batch))
					for i := range batch {
						texts[i] = known(t, batch[i])
					}
					fmt.Fprintf(w, "[%s]", strings.Join(texts, ","))
				}
				answer, hangs := c.answer, make(chan struct{})
				if answer == nil {
					answer = func(http.ResponseWriter, []asked) { <-hangs }
				}
				defer close(hangs)
				nodes := []*batchNode{newBatchNode(t, answer), newBatchNode(t, knows), newBatchNode(t, knows)}
				client := gatheringClient(t, rpc.Options{MaxAnswer: 1 << 16}, nodes...)
				ctx, leave := context.WithCancel(t.Context())
				var strangers, payer sync.WaitGroup
				ask := func(s solana.Signature) {
					strangers.Go(func() { _, _, _ = client.TransactionByQuorum(ctx, s, rpc.Finalized) })
				}
				ask(solana.Signature{7})
				for _, n := range nodes {
					await.True(t, "the first request", func() bool { singles, _ := n.seen(); return singles == 1 })
				}
				for i := range 3 {
					if i == place {
						payer.Go(func() {
							got, found, err := client.TransactionByQuorum(t.Context(), signature, rpc.Finalized)
							if err != nil || !found || got.BlockTime != 50 {
								t.Errorf("%+v, %t, %v", got, found, err)
							}
						})
					} else {
						ask(solana.Signature{8, byte(i)})
					}
					for k := range nodes {
						await.Equal(t, "requests that wait", i+1, func() int { return client.WaitingAt(k) })
					}
				}
				for _, n := range nodes {
					close(n.release)
				}
				payer.Wait()
				leave() // strangers wait for the node that hangs
				strangers.Wait()
			})
		}
	}
}

// TestSplitList: the elements of a list are those that encoding/json finds, and of a list
// that is too long none is kept.
func TestSplitList(t *testing.T) {
	for _, text := range []string{
		`[]`, ` [ ] `, `[1]`, `[1,2]`, ` [ {"a":"]"} , [1,[2,"\"]"]], "x,y" ] `, `["\\",",\"]`, `[null,{"a":{"b":[]}}]`, "[\t1\r\n,2]",
		``, `{}`, `[`, `]`, `[1`, `1]`, `[[1]`, `[1]]`, `["]`, `[1]{}`, `["\]`, `[1],[2]`, `[}{]`, "\u00a0[1]",
	} {
		var want []json.RawMessage
		err := json.Unmarshal([]byte(text), &want)
		got, ok := rpc.SplitList([]byte(text), 9)
		if err == nil && !ok || len(want) != len(got) && err == nil {
			t.Errorf("%q: %q, %t", text, got, ok)
			continue
		}
		for i := range want {
			if strings.TrimSpace(string(got[i])) != string(want[i]) {
				t.Errorf("%q: element %d is %q", text, i, got[i])
			}
		}
		// A text that is no list is not split into elements that all parse.
		if err != nil && ok && !slices.ContainsFunc(got, func(x []byte) bool { return !json.Valid(x) }) {
			t.Errorf("%q is split into %q", text, got)
		}
	}
	if got, ok := rpc.SplitList([]byte(`[1,2,3]`), 3); !ok || len(got) != 3 {
		t.Errorf("%q, %t", got, ok)
	}
	many := []byte("[" + strings.Repeat("0,", 1<<20) + "0]")
	if got, ok := rpc.SplitList(many, 64); ok || got != nil {
		t.Errorf("%d elements, %t", len(got), ok)
	}
	if n := testing.AllocsPerRun(3, func() { rpc.SplitList(many, 64) }); n > 16 {
		t.Errorf("%v allocations for a list of a million", n)
	}
}

// TestBatchRefusedOnce: a node that has refused a batch gets single requests.
func TestBatchRefusedOnce(t *testing.T) {
	n := newBatchNode(t, func(w http.ResponseWriter, _ []asked) { http.Error(w, "no batches", http.StatusBadRequest) })
	c := gatheringClient(t, rpc.Options{}, n)
	gather(t, n, c, 4)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if _, _, err := c.Transaction(t.Context(), solana.Signature{byte(i), 2}, rpc.Finalized); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if singles, batches := n.seen(); singles != 12 || len(batches) != 1 {
		t.Errorf("%d requests alone, batches of %v", singles, batches)
	}
}

// TestBatchLeft: a caller that leaves takes nothing from the others of its batch, and a
// batch that all have left ends.
func TestBatchLeft(t *testing.T) {
	for _, all := range []bool{false, true} {
		arrived, answer := make(chan struct{}), make(chan struct{})
		n := newBatchNode(t, nil)
		n.answer = func(w http.ResponseWriter, b []asked) { close(arrived); <-answer; honest(w, b) }
		c := gatheringClient(t, rpc.Options{}, n)
		leaving, leave := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var servedErr error
		call := func(ctx context.Context, i byte, err *error) {
			group.Go(func() { _, _, *err = c.Transaction(ctx, solana.Signature{i, 3}, rpc.Finalized) })
		}
		var first, cancelledErr error
		call(t.Context(), 0, &first)
		await.True(t, "the first request", func() bool { singles, _ := n.seen(); return singles == 1 })
		call(leaving, 1, &cancelledErr)
		if all {
			call(leaving, 2, &servedErr)
		} else {
			call(t.Context(), 2, &servedErr)
		}
		await.Equal(t, "waiting", 2, c.Waiting)
		close(n.release)
		await.Closed(t, "the batch", arrived)
		leave()
		if all {
			group.Wait() // although the node has not answered
			await.Equal(t, "requests under way", 0, c.UnderWay)
			close(answer)
		} else {
			close(answer)
			group.Wait()
		}
		if first != nil || cancelledErr == nil || all == (servedErr == nil) {
			t.Errorf("all %t: %v, %v, %v", all, first, cancelledErr, servedErr)
		}
	}
}
