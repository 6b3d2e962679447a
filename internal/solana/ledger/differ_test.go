package ledger_test

import (
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// answer returns a new copy of one answer.
func answer() *ledger.Confirmed {
	return &ledger.Confirmed{
		Slot: 7, BlockTime: 1_700_000_000, Fee: 5000,
		Tx:     &tx.Transaction{Signatures: []solana.Signature{{1}, {2}}, Signed: []byte("message")},
		Keys:   []solana.Address{{1}, {2}, {3}},
		Before: []market.Amount{10, 20, 30}, After: []market.Amount{5, 25, 30},
		TokensBefore: []ledger.TokenBalance{{Account: 1, Mint: solana.Address{9}, Amount: 3}, {Account: 2, Mint: solana.Address{9}, Amount: 4}},
		TokensAfter:  []ledger.TokenBalance{{Account: 1, Mint: solana.Address{9}, Amount: 2}, {Account: 2, Mint: solana.Address{9}, Amount: 5}},
		Inner:        []ledger.InnerInstruction{{Outer: 1, Depth: 2, Instruction: tx.Instruction{Program: 2, Accounts: []uint8{0, 1}, Data: []byte("memo")}}},
		Logs:         []string{"Program log: 1"},
	}
}

// TestDifference: everything that decides about a payment must be the same.
func TestDifference(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *ledger.Confirmed)
		want   string
	}{
		"nothing":              {func(*ledger.Confirmed) {}, ""},
		"slot":                 {func(c *ledger.Confirmed) { c.Slot++ }, "slot"},
		"block time":           {func(c *ledger.Confirmed) { c.BlockTime++ }, "block time"},
		"no block time":        {func(c *ledger.Confirmed) { c.BlockTime = 0 }, ""},
		"a signature":          {func(c *ledger.Confirmed) { c.Tx.Signatures[1] = solana.Signature{3} }, "bytes"},
		"a signature more":     {func(c *ledger.Confirmed) { c.Tx.Signatures = append(c.Tx.Signatures, solana.Signature{3}) }, "bytes"},
		"the message":          {func(c *ledger.Confirmed) { c.Tx.Signed[0]++ }, "bytes"},
		"failed":               {func(c *ledger.Confirmed) { c.Failed, c.Error = true, `"x"` }, "failure"},
		"the error's text":     {func(c *ledger.Confirmed) { c.Error = `"x"` }, ""},
		"fee":                  {func(c *ledger.Confirmed) { c.Fee-- }, "fee"},
		"a loaded address":     {func(c *ledger.Confirmed) { c.Keys[2] = solana.Address{4} }, "loaded addresses"},
		"lamports before":      {func(c *ledger.Confirmed) { c.Before[1]++ }, "balances"},
		"lamports after":       {func(c *ledger.Confirmed) { c.After[2]++ }, "balances"},
		"tokens before":        {func(c *ledger.Confirmed) { c.TokensBefore[0].Amount++ }, "token balances"},
		"tokens after":         {func(c *ledger.Confirmed) { c.TokensAfter[1].Amount++ }, "token balances"},
		"an owner":             {func(c *ledger.Confirmed) { c.TokensAfter[1].Owner = solana.Address{8} }, "token balances"},
		"a balance left out":   {func(c *ledger.Confirmed) { c.TokensAfter = c.TokensAfter[:1] }, "token balances"},
		"tokens, other order":  {func(c *ledger.Confirmed) { l := c.TokensAfter; l[0], l[1] = l[1], l[0] }, ""},
		"inner left out":       {func(c *ledger.Confirmed) { c.Inner = nil }, "inner instructions"},
		"inner, of another":    {func(c *ledger.Confirmed) { c.Inner[0].Outer = 0 }, "inner instructions"},
		"inner, the program":   {func(c *ledger.Confirmed) { c.Inner[0].Program = 1 }, "inner instructions"},
		"inner, an account":    {func(c *ledger.Confirmed) { c.Inner[0].Accounts[0] = 2 }, "inner instructions"},
		"inner, the data":      {func(c *ledger.Confirmed) { c.Inner[0].Data = []byte("Memo") }, "inner instructions"},
		"inner, not decoded":   {func(c *ledger.Confirmed) { c.Inner[0].Skipped = true }, "inner instructions"},
		"inner, the depth":     {func(c *ledger.Confirmed) { c.Inner[0].Depth = 3 }, "inner instructions"},
		"inner, no depth":      {func(c *ledger.Confirmed) { c.Inner[0].Depth = 0 }, ""},
		"the logs":             {func(c *ledger.Confirmed) { c.Logs = nil }, ""},
		"no tokens, both ways": {func(c *ledger.Confirmed) { c.TokensBefore = nil }, "token balances"},
	} {
		a, b := answer(), answer()
		c.change(b)
		if there, back := a.Difference(b), b.Difference(a); there != c.want || back != c.want {
			t.Errorf("%s: %q, and the other way %q, want %q", name, there, back, c.want)
		}
	}
}
