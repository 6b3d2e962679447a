package service

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// slowNodes are three nodes; answers has how many of them answer, by question.
type slowNodes struct {
	answers []int
	asked   int
	other   bool // the second is on another network
}

func (n *slowNodes) GenesisFromEach(context.Context) ([]rpc.NodeGenesis, error) {
	views := make([]rpc.NodeGenesis, 3)
	for i := range views {
		views[i].Hash = solana.Hash{1}
		if n.other && i == 1 {
			views[i].Hash = solana.Hash{2}
		}
		if i >= n.answers[min(n.asked, len(n.answers)-1)] {
			views[i] = rpc.NodeGenesis{Err: errors.New("away")}
		}
	}
	n.asked++
	return views, nil
}

// TestMirrorsNetwork: the mirror's network is that of a majority of its nodes, which it asks
// until there is one.
func TestMirrorsNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		nodes slowNodes
		asked int
	}{
		"at once": {slowNodes{answers: []int{3}}, 1}, "later": {slowNodes{answers: []int{0, 1, 2}}, 3},
		"one of another": {slowNodes{answers: []int{2, 2, 3}, other: true}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &nodesNetwork{}
			if n.get() != "" {
				t.Errorf("%s: known before: %s", name, n.get())
			}
			if err := n.learn(t.Context(), &c.nodes, time.Second, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if want := solana.NetworkOf(solana.Hash{1}); n.get() != want || c.nodes.asked != c.asked {
				t.Errorf("%s: %q after %d questions, want %q after %d", name, n.get(), c.nodes.asked, want, c.asked)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := &nodesNetwork{}
	if err := n.learn(ctx, &slowNodes{answers: []int{0}}, time.Hour, slog.New(slog.DiscardHandler)); err != nil || n.get() != "" {
		t.Errorf("at the end: %v, %q", err, n.get())
	}
}
