package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"

	"blockdesk/desk"
	"blockdesk/httpgw/wire"
)

// TestStatus: an operator sees at once why nothing sells, on which network, what is locked,
// and which balance is low.
func TestStatus(t *testing.T) {
	rig := newOperatorRig(t)
	o := rig.options(t)
	o.Prices = &ruledSOL{}
	o.Status = StatusSources{
		Accepting: func() (bool, string) { return false, "locked" },
		Network:   func() string { return "solana-local" },
		Chain: func() desk.ChainHealth {
			return desk.ChainHealth{
				Nodes: []desk.ChainNode{{Name: "a", Available: true, Slot: 7, Lag: 2}, {Name: "b"}},
				Balances: []desk.Balance{
					{Asset: "SOL", Atoms: 1_500_000_000, Needed: 2_000_000_000},
					{Asset: "USDC", Mint: "usdc", Atoms: 2_500_000, Needed: 1},
					{Asset: "SLUSD", Mint: "slusd", Base: true, Atoms: 7, Needed: 8},
				},
			}
		},
	}
	rig.mux = http.NewServeMux()
	newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler)).register(rig.mux)
	w := rig.send("GET", "/desk/status", "", bobToken)
	var got struct {
		Network   string `json:"execution_network"`
		Accepting bool
		Reason    string `json:"accepting_reason"`
		Locks     []struct{ Locked bool }
		Prices    []struct {
			Rail, Fault string
			Age         *int64 `json:"age_s"`
		}
		Balances []struct{ Asset, Mint, Balance, Needed, Problem string }
		Nodes    []struct {
			Available bool
			Lag       *uint64 `json:"lag_slots"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	if got.Network != "solana-local" || got.Accepting || got.Reason != "locked" || len(got.Prices) == 0 {
		t.Errorf("%s", w.Body)
	}
	for _, l := range got.Locks {
		if !l.Locked {
			t.Errorf("a lock that is not set: %s", w.Body)
		}
	}
	if len(got.Balances) != 3 || got.Balances[0].Balance != "1.500000000" || got.Balances[0].Problem != desk.LowSOL ||
		got.Balances[1].Balance != "2.500000" || got.Balances[1].Problem != "" || got.Balances[2].Asset != "SLUSD" || got.Balances[2].Problem != desk.LowToken {
		t.Errorf("balances %+v", got.Balances)
	}
	if len(got.Nodes) != 2 || got.Nodes[0].Lag == nil || *got.Nodes[0].Lag != 2 || got.Nodes[1].Lag != nil {
		t.Errorf("nodes %+v", got.Nodes)
	}
}
