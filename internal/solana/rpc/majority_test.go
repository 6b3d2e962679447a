package rpc_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"blockdesk/internal/runtest"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// TestTransactionByMajority: more than half of the nodes that answer must agree.
func TestTransactionByMajority(t *testing.T) {
	has, timeless, other, hides := landed(t, 4, "50"), landed(t, 4, "null"), landed(t, 5, "50"), result("null")
	down, behind := status(http.StatusServiceUnavailable, "no"), failure(`{"code":-32004,"message":"no"}`)
	for name, c := range map[string]transactionCase{
		"one":                      {nodes: replies{has}, found: true, time: 50},
		"one, unknown":             {nodes: replies{hides}},
		"all":                      {nodes: replies{has, has}, found: true, time: 50},
		"the first is silent":      {nodes: replies{timeless, has, hides}, found: true, time: 50},
		"two times":                {nodes: replies{has, landed(t, 4, "51")}, err: rpc.ErrDisagree},
		"unknown to one of two":    {nodes: replies{has, hides}, err: rpc.ErrNoMajority},
		"unknown to the first":     {nodes: replies{hides, has, has}, found: true, time: 50},
		"unknown to two of four":   {nodes: replies{has, has, hides, hides}, err: rpc.ErrNoMajority},
		"unknown to all":           {nodes: replies{hides, down, hides}},
		"the first differs":        {nodes: replies{other, has, has}, found: true, time: 50},
		"each answers differently": {nodes: replies{other, has, hides}, err: rpc.ErrNoMajority},
		"two differ":               {nodes: replies{other, has}, err: rpc.ErrDisagree},
		"two by two":               {nodes: replies{other, other, has, has}, err: rpc.ErrDisagree},
		"only one answers":         {nodes: replies{down, has, behind}, found: true, time: 50},
		"none answers":             {nodes: replies{behind, down}, kind: rpc.Behind},
	} {
		c.check(t, name, (*rpc.Client).TransactionByMajority)
	}
}

// TestTransactionByMajorityWaitsForNone: a silent node does not delay what the others
// agree about, and is waited for if they do not.
func TestTransactionByMajorityWaitsForNone(t *testing.T) {
	over := make(chan struct{})
	hangs := func(http.ResponseWriter, asked) { <-over }
	has := landed(t, 4, "50")
	nodes := []*node{newNode(t, hangs), newNode(t, has), newNode(t, has)}
	t.Cleanup(func() { close(over) }) // before the nodes are closed
	o := options(nodes...)
	c := newClient(t, o)
	if got, found, err := c.TransactionByMajority(t.Context(), signature, rpc.Finalized); !found || err != nil || got.Slot != 4 {
		t.Errorf("%+v, %t, %v", got, found, err)
	}
	if h := c.Health()[0]; h.Errors != 0 {
		t.Errorf("a node that was given up counts as failing: %+v", h)
	}

	nodes[1].respond(result("null"))
	var err error
	for o.Timeout = 50 * time.Millisecond; o.Timeout < runtest.HangTimeout; o.Timeout *= 2 { // until the other two answer as quickly
		o.AttemptTimeout = o.Timeout
		var got *ledger.Confirmed
		var found bool
		if got, found, err = newClient(t, o).TransactionByMajority(t.Context(), signature, rpc.Finalized); found {
			t.Fatalf("one of two knows it: %+v", got)
		}
		if errors.Is(err, rpc.ErrNoMajority) {
			return
		}
	}
	t.Errorf("one of two knows it: %v", err)
}
