package admin

import (
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw/gatewaytest"
)

// TestSettlementMetrics: each metric has its name, nodes are labelled; without a
// source there is none.
func TestSettlementMetrics(t *testing.T) {
	a := startAdmin(t, Options{Settlement: SettlementSources{
		Chain: func() desk.ChainHealth {
			return desk.ChainHealth{Slot: 10, Tracked: 4, Landed: 2, BlockhashAge: 1500 * time.Millisecond, BlockhashSlot: 9, Nodes: []desk.ChainNode{
				{Name: "main", Available: true, Slot: 10}, {Name: "spare", Slot: 3, Lag: 7}, {Name: "new"}, {Name: "main", Slot: 99},
			}, Balances: []desk.Balance{{Asset: "SOL", Atoms: 5, Needed: 6}, {Asset: "SLUSD", Base: true, Atoms: 8}}}
		},
		Money: func() desk.MoneyCounts {
			return desk.MoneyCounts{RefundsDue: 1, DeliveriesFailing: 2, Unmatched: 3, OutcomesUnknown: 7}
		},
		Tokens: func() int { return 5 },
		Counts: NewMetrics(settlementPrefix, func() uint64 { return 6 }).Counter("cosigned_total", "Signatures.", func(n *uint64) float64 { return float64(*n) }),
	}})
	_, body := gatewaytest.Do(t, a.Addr(), "GET", "/metrics", "Connection: close\r\n")
	for _, line := range []string{
		"tracked 4", "landed 2", "blockhash_age_seconds 1.5", "blockhash_slot 9", "refunds_due 1", "deliveries_failing 2", "stuck_deliveries 2", "unmatched_payments 3", "strays 3", "outcome_unknown 7", "doubtful 7", "tokens 5", "cosigned_total 6",
		`node_available{node="main"} 1`, `node_available{node="spare"} 0`, `node_available{node="new"} 0`,
		`desk_balance_atoms{asset="SOL"} 5`, `desk_balance_needed_atoms{asset="SOL"} 6`, `desk_balance_atoms{asset="SLUSD"} 8`,
		`node_slot{node="main"} 10`, `node_slot{node="spare"} 3`, `node_lag_slots{node="main"} 0`, `node_lag_slots{node="spare"} 7`,
	} {
		if !strings.Contains(string(body), "\nblockdesk_settlement_"+line+"\n") {
			t.Errorf("/metrics lacks blockdesk_settlement_%s", line)
		}
	}
	if strings.Contains(string(body), `node_slot{node="new"}`) {
		t.Error("a node that has shown no slot has one")
	}
	_, body = gatewaytest.Do(t, startAdmin(t, Options{}).Addr(), "GET", "/metrics", "Connection: close\r\n")
	if strings.Contains(string(body), "blockdesk_settlement_") {
		t.Error("a metric without a source")
	}
}
