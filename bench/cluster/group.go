package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
	"blockdesk/engine"
	"blockdesk/persist/quorum"
)

// groupTimeout is how long a leader of a group in this process may be silent: long,
// because no node is killed here and a busy machine must not cause an election.
const groupTimeout = 2 * time.Second

// group is three nodes of a quorum in this process, over TCP on loopback, each
// with a folder of its own on the one disk, and the term of the one that leads.
type group struct {
	term *quorum.Term
	ends bench.Closers
}

// startGroup begins a new group in dir and waits for its leader.
func startGroup(ctx context.Context, dir string) (_ *group, err error) {
	g := &group{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.ends.Close())
		}
	}()
	peers := make([]quorum.Peer, clusterNodes)
	for i := range peers {
		port, held, err := server.FreePort()
		if err != nil {
			return nil, err
		}
		g.ends.Add(held.Close)
		peers[i] = quorum.Peer{ID: fmt.Sprintf("n%d", i+1), Address: fmt.Sprintf("127.0.0.1:%d", port)}
	}
	nodes := make([]*quorum.Node, len(peers))
	for i, p := range peers {
		nodes[i], err = quorum.Open(quorum.Options{
			ID: p.ID, Dir: filepath.Join(dir, p.ID), Bind: p.Address, Peers: peers, Timeout: groupTimeout,
			State: benchState(), Logger: bench.Quiet(),
		})
		if err != nil {
			return nil, err
		}
		g.ends.Add(nodes[i].Close)
	}
	for _, n := range nodes {
		g.ends.Add(bench.Running(ctx, n.Run))
	}
	g.term, err = firstTerm(ctx, nodes)
	return g, err
}

// firstTerm waits until one of the nodes leads.
func firstTerm(ctx context.Context, nodes []*quorum.Node) (*quorum.Term, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterPatience)
	defer cancel()
	type led struct {
		term *quorum.Term
		err  error
	}
	all := make(chan led, len(nodes))
	for _, n := range nodes {
		go func() {
			term, err := n.AwaitTerm(ctx)
			all <- led{term, err}
		}()
	}
	var won *quorum.Term
	var errs []error
	for range nodes {
		got := <-all
		if got.term != nil {
			won = got.term
			cancel() // the others wait for nothing any more
		} else {
			errs = append(errs, got.err)
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, won.Err()
}

// benchState holds every order of a benchmark's mix.
func benchState() engine.StateOptions { return engine.StateOptions{MaxOrders: 1 << 20} }
