package service

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// nodesNetwork is the network of the mirror's nodes, which the documents of a service that
// settles nothing name. Settlement asks its own nodes.
type nodesNetwork struct {
	known atomic.Pointer[solana.Network]
}

// get returns the network, or "" before enough nodes have answered.
func (n *nodesNetwork) get() solana.Network {
	if is := n.known.Load(); is != nil {
		return *is
	}
	return ""
}

// learn asks the nodes until a majority of them names the same first block.
func (n *nodesNetwork) learn(ctx context.Context, nodes interface {
	GenesisFromEach(ctx context.Context) ([]rpc.NodeGenesis, error)
}, every time.Duration, log *slog.Logger,
) error {
	for {
		views, err := nodes.GenesisFromEach(ctx)
		if is, ok := networkOfMost(views); ok && err == nil {
			n.known.Store(&is)
			log.Info("network of the mirror's nodes", "network", string(is))
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// networkOfMost returns the network whose first block more than half of all nodes have.
func networkOfMost(views []rpc.NodeGenesis) (solana.Network, bool) {
	count := map[solana.Hash]int{}
	for i := range views {
		if views[i].Err != nil {
			continue
		}
		if count[views[i].Hash]++; count[views[i].Hash] > len(views)/2 {
			return solana.NetworkOf(views[i].Hash), true
		}
	}
	return "", false
}
