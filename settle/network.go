package settle

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// ErrNetwork means that the nodes are not of the configured network, or not of the same,
// or too few for a public one. The text says which.
var ErrNetwork = errors.New("settle: the configured Solana nodes are refused")

// network is what the nodes' network must be, and is.
type network struct {
	*env
	want        solana.Network // "" = any
	trustSingle bool
	known       atomic.Pointer[solana.Network]
}

// check reads the hash of the first block from every node, until a majority has
// answered once. Errors: [ErrNetwork]; [ErrChain] while too few answer.
func (n *network) check(ctx context.Context) error {
	if n.known.Load() != nil {
		return nil
	}
	views, err := n.node.GenesisFromEach(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChain, err)
	}
	is, err := n.judge(views)
	if err != nil {
		return err
	}
	n.known.Store(&is)
	n.log.Info("network of the Solana nodes checked", "network", string(is))
	return nil
}

// judge returns the network that a majority of the configured nodes reports. Every node
// that answers must be on it.
func (n *network) judge(views []rpc.NodeGenesis) (is solana.Network, err error) {
	answered := 0
	var first *rpc.NodeGenesis
	for i := range views {
		v := &views[i]
		if v.Err != nil {
			err = v.Err
			continue
		}
		answered++
		if first == nil {
			first, is = v, solana.NetworkOf(v.Hash)
		}
		switch {
		case v.Hash != first.Hash:
			return "", fmt.Errorf("%w: chain.rpc_urls: %s and %s are on different networks (%s and %s): configure nodes of one network", ErrNetwork, first.Upstream, v.Upstream, is, solana.NetworkOf(v.Hash))
		case n.want != "" && solana.NetworkOf(v.Hash) != n.want:
			return "", fmt.Errorf("%w: chain.rpc_urls: %s is on network %s, but chain.network is %s", ErrNetwork, v.Upstream, solana.NetworkOf(v.Hash), n.want)
		}
	}
	switch {
	case answered > 0 && len(views) == 1 && is.Public() && !n.trustSingle:
		return "", fmt.Errorf("%w: chain.rpc_urls: %s is the only node, and of a public network (%s): "+
			"configure three of independent operators, or set chain.trust_single_node", ErrNetwork, first.Upstream, is)
	case answered < len(views)/2+1:
		return "", fmt.Errorf("%w: the network is unknown: %d of %d nodes answer: %w", ErrChain, answered, len(views), err)
	}
	return is, nil
}

// CheckNetwork reads the network of the nodes before the service starts. An error means
// that the nodes are refused; nodes that do not answer are checked later, and nothing is
// settled before. Errors: [ErrNetwork].
func (n *network) CheckNetwork(ctx context.Context) error {
	if err := n.check(ctx); errors.Is(err, ErrNetwork) {
		return err
	}
	return nil
}

// Network returns the network of the nodes, "" before enough have answered. It does not
// block.
func (n *network) Network() solana.Network {
	if is := n.known.Load(); is != nil {
		return *is
	}
	return ""
}
