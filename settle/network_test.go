package settle

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// TestNetwork: every node that answers must be on the configured network, or all on one,
// and a majority must answer; a single node of a public network is trusted only with TrustSingleNode.
func TestNetwork(t *testing.T) {
	hash := func(text string) solana.Hash {
		h, err := solana.ParseHash(text)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	mainnet, devnet, local := hash("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"), hash("EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"), solana.Hash{7}
	down := solana.Hash{}
	for name, c := range map[string]struct {
		nodes []solana.Hash // down does not answer
		want  solana.Network
		trust bool
		is    solana.Network
		err   error
		text  string
	}{
		"three of mainnet":      {nodes: []solana.Hash{mainnet, mainnet, mainnet}, want: solana.Mainnet, is: solana.Mainnet},
		"any":                   {nodes: []solana.Hash{devnet, devnet, devnet}, is: solana.Devnet},
		"one is down":           {nodes: []solana.Hash{down, devnet, devnet}, is: solana.Devnet},
		"two are down":          {nodes: []solana.Hash{down, devnet, down}, err: ErrChain, text: "1 of 3"},
		"all are down":          {nodes: []solana.Hash{down, down}, err: ErrChain, text: "0 of 2"},
		"one of two is down":    {nodes: []solana.Hash{devnet, down}, err: ErrChain},
		"another network":       {nodes: []solana.Hash{devnet, devnet, devnet}, want: solana.Mainnet, err: ErrNetwork, text: "chain.network is mainnet"},
		"the last differs":      {nodes: []solana.Hash{mainnet, mainnet, devnet}, err: ErrNetwork, text: "mainnet and devnet"},
		"two local chains":      {nodes: []solana.Hash{local, {8}}, err: ErrNetwork},
		"one of mainnet":        {nodes: []solana.Hash{mainnet}, err: ErrNetwork, text: "chain.trust_single_node"},
		"one of devnet":         {nodes: []solana.Hash{devnet}, want: solana.Devnet, err: ErrNetwork},
		"one of devnet, wanted": {nodes: []solana.Hash{devnet}, trust: true, is: solana.Devnet},
		"one of a local chain":  {nodes: []solana.Hash{local}, is: solana.Local},
		"local wanted":          {nodes: []solana.Hash{mainnet, mainnet}, want: solana.Local, err: ErrNetwork},
	} {
		n := network{env: &env{log: slog.New(slog.DiscardHandler)}, want: c.want, trustSingle: c.trust}
		var views []rpc.NodeGenesis
		for i, h := range c.nodes {
			v := rpc.NodeGenesis{Upstream: string(rune('a' + i)), Hash: h}
			if h == down {
				v.Err = errors.New("down")
			}
			views = append(views, v)
		}
		is, err := n.judge(views)
		if is != c.is || !errors.Is(err, c.err) || (err != nil) != (c.err != nil) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %q, %v", name, is, err)
		}
	}
}
