package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// gatheringClient has one node, asks it once a call, and waits for a batch until the
// request before it is answered.
func gatheringClient(t *testing.T, n *batchNode, o rpc.Options) *rpc.Client {
	o.Upstreams, o.HedgeAfter, o.Attempts = []rpc.Upstream{{Name: "a", URL: n.URL + "/?api-key=SECRET"}}, -1, 1
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
	c := gatheringClient(t, n, rpc.Options{})
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
	c = gatheringClient(t, long, rpc.Options{})
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
	c := gatheringClient(t, n, rpc.Options{})
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

// TestBadBatches: what each form of a batch's answer means to its requests: an error for
// those that it does not answer, a request alone after a refusal.
func TestBadBatches(t *testing.T) {
	list := func(texts func(batch []asked) []string) func(http.ResponseWriter, []asked) {
		return func(w http.ResponseWriter, batch []asked) { fmt.Fprintf(w, "[%s]", strings.Join(texts(batch), ",")) }
	}
	whole := func(code int, body string) func(http.ResponseWriter, []asked) {
		return func(w http.ResponseWriter, _ []asked) { status(code, body)(w, asked{}) }
	}
	const refusal = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not supported"},"id":null}`
	wrong := []rpc.Kind{0, rpc.WrongAnswer, 0}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, []asked)
		want   []rpc.Kind // of the batch's three requests; nil: they succeed alone
	}{
		"short": {list(func(b []asked) []string { return []string{unknown(b[0]), unknown(b[2])} }), wrong},
		"empty": {list(func([]asked) []string { return nil }), []rpc.Kind{rpc.WrongAnswer, rpc.WrongAnswer, rpc.WrongAnswer}},
		"an answer twice": {list(func(b []asked) []string {
			return []string{unknown(b[0]), unknown(b[1]), unknown(b[1]), unknown(b[2])}
		}), wrong},
		"an answer to another request": {list(func(b []asked) []string {
			return []string{unknown(b[0]), unknown(asked{ID: 1 << 40}), unknown(b[2])}
		}), wrong},
		"an answer without an id": {list(func(b []asked) []string {
			return []string{unknown(b[0]), `{"jsonrpc":"2.0","result":null}`, unknown(b[2])}
		}), wrong},
		"no object": {list(func(b []asked) []string { return []string{unknown(b[0]), `7`, unknown(b[2])} }), wrong},
		"neither result nor error": {list(func(b []asked) []string {
			return []string{unknown(b[0]), fmt.Sprintf(`{"id":%d}`, b[1].ID), unknown(b[2])}
		}), wrong},
		"another transaction": {list(func(b []asked) []string {
			return []string{unknown(b[0]), fmt.Sprintf(`{"id":%d,"result":{"slot":1}}`, b[1].ID), unknown(b[2])}
		}), wrong},
		"an error of one": {list(func(b []asked) []string {
			return []string{unknown(b[0]), fmt.Sprintf(`{"id":%d,"error":{"code":-32005,"message":"behind"}}`, b[1].ID), unknown(b[2])}
		}), []rpc.Kind{0, rpc.Behind, 0}},
		"down":              {whole(http.StatusServiceUnavailable, ""), []rpc.Kind{rpc.Down, rpc.Down, rpc.Down}},
		"limited by status": {whole(http.StatusTooManyRequests, ""), []rpc.Kind{rpc.RateLimited, rpc.RateLimited, rpc.RateLimited}},
		"limited by code": {
			whole(http.StatusOK, `{"jsonrpc":"2.0","error":{"code":-32429,"message":"slow down"},"id":null}`),
			[]rpc.Kind{rpc.RateLimited, rpc.RateLimited, rpc.RateLimited},
		},
		"refused by code":   {whole(http.StatusOK, refusal), nil},
		"refused by status": {whole(http.StatusBadRequest, refusal), nil},
		"forbidden":         {whole(http.StatusForbidden, "a paid plan"), nil},
		"too large":         {whole(http.StatusRequestEntityTooLarge, ""), nil},
		"a page":            {whole(http.StatusOK, "<html>"), nil},
		"null":              {whole(http.StatusOK, "null"), nil},
		"longer than allowed": {
			func(w http.ResponseWriter, b []asked) { fmt.Fprint(w, strings.Repeat(" ", 1<<16)); honest(w, b) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBatchNode(t, c.answer)
			client := gatheringClient(t, n, rpc.Options{MaxAnswer: 1 << 16})
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
			singles, batches := n.seen()
			if alone := c.want == nil; len(batches) != 1 || singles != 1 && !alone || singles != 4 && alone {
				t.Errorf("%d requests alone, batches of %v", singles, batches)
			}
		})
	}
}

// TestBatchRefusedOnce: a node that has refused a batch gets single requests.
func TestBatchRefusedOnce(t *testing.T) {
	n := newBatchNode(t, func(w http.ResponseWriter, _ []asked) { http.Error(w, "no batches", http.StatusBadRequest) })
	c := gatheringClient(t, n, rpc.Options{})
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
		c := gatheringClient(t, n, rpc.Options{})
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
