package rpc_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// TestAllNodesCutOff: if the caller's context ends after one node has answered, the
// others do not count as failed nodes. Otherwise one node would be a majority.
func TestAllNodesCutOff(t *testing.T) {
	answers := position(1000, 600)
	answers["getMultipleAccounts"] = `{"context":{"slot":72},"value":[null]}`
	answers["getTransaction"] = "null"
	answers["getSignaturesForAddress"] = "[]"
	views := []rpc.NodeStatuses{{Upstream: "a"}, {Upstream: "b"}, {Upstream: "c"}}
	cutOff := false
	for name, call := range map[string]func(ctx context.Context, c *rpc.Client) error{
		"statuses": func(ctx context.Context, c *rpc.Client) error {
			_, err := c.StatusesFromEach(ctx, []solana.Signature{{1}, {2}})
			return err
		},
		"accounts": func(ctx context.Context, c *rpc.Client) error {
			_, err := c.AccountsFromEach(ctx, []solana.Address{{1}}, rpc.Finalized, 0)
			return err
		},
		"transaction": func(ctx context.Context, c *rpc.Client) error {
			_, _, err := c.TransactionByQuorum(ctx, solana.Signature{1}, rpc.Finalized)
			return err
		},
		"transaction by most": func(ctx context.Context, c *rpc.Client) error {
			_, _, err := c.TransactionByMajority(ctx, solana.Signature{1}, rpc.Finalized)
			return err
		},
		"pages": func(ctx context.Context, c *rpc.Client) error {
			_, err := c.SignaturePageFromEach(ctx, solana.Address{1}, rpc.Page{}, rpc.Finalized)
			return err
		},
		"histories": func(ctx context.Context, c *rpc.Client) error {
			var first error
			for i, h := range c.SignaturesFromEach(ctx, solana.Address{1}, views, 10) {
				if h.Upstream != views[i].Upstream || cutOff && (h.List != nil || h.Err == nil) {
					t.Errorf("a history is %+v", h)
				}
				if i == 0 {
					first = h.Err
				}
			}
			return first
		},
	} {
		t.Run(name, func(t *testing.T) {
			// How many calls each node gets if all answer.
			whole := newClient(t, options(newNode(t, answering(answers)), newNode(t, answering(answers)), newNode(t, answering(answers))))
			cutOff = false
			if err := call(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			calls := max(whole.Health()[0].Calls, 1) // one that is not waited for counts no call
			cutOff = true

			release := make(chan struct{})
			defer close(release)
			called := make(chan struct{}, 8)
			hang := func(http.ResponseWriter, asked) {
				called <- struct{}{}
				<-release
			}
			c := newClient(t, options(newNode(t, answering(answers)), newNode(t, hang), newNode(t, hang)))
			ctx, cut := context.WithCancel(t.Context())
			defer cut()
			go func() {
				defer cut()
				<-called
				<-called
				err := await.Poll(t.Context(), "the answers of the first", func() bool { return c.Health()[0].Calls == calls })
				if err != nil {
					t.Error(err)
				}
			}()
			if err := call(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
}
