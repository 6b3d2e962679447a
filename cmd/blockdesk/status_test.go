package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestShowStatus: the first lines say whether claims are accepted, and on which network.
func TestShowStatus(t *testing.T) {
	var a statusAnswer
	const answer = `{"ok":true,"execution_network":"solana-local","accepting":false,"accepting_reason":"price_stale",
		"locks":[{"name":"deliveries","locked":true,"since":"2030-01-02T03:04:05Z","by":"ann","reason":"drill"}],
		"prices":[{"rail":"SOL","price_usd":null,"set_at":null,"fault":"price_without_quorum","sources":[{"name":"pyth","price_usd":"150","fault":"price_too_old"}]}],
		"balances":[{"asset":"SOL","mint":null,"balance":"1.500000000","needed":"2.000000000","problem":"low_sol"}],
		"nodes":[{"name":"a","available":true,"slot":7,"lag_slots":2},{"name":"b","available":false,"slot":null,"lag_slots":null}],
		"money":{"refunds_due":3}}`
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := showStatus(&out, &a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"claims   NOT accepted: price_stale\n", "network  solana-local (not mainnet: its tokens have no value)\n", "3 refunds due",
		"deliveries  LOCKED", "price_without_quorum: not sold", "price_too_old", "LOW: low_sol", "UNAVAILABLE",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
