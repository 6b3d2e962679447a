package ledger

import (
	"bytes"
	"cmp"
	"slices"
)

// Difference names the first part in which two nodes' answers about a transaction
// differ, "" if they agree. It compares a block time and an inner call's depth if both
// nodes know them. It ignores logs and error texts, which nodes cut and write as they
// like, and the order of token balances.
func (c *Confirmed) Difference(o *Confirmed) string {
	switch {
	case c.Slot != o.Slot:
		return "slot"
	case c.BlockTime != o.BlockTime && c.BlockTime != 0 && o.BlockTime != 0:
		return "block time"
	case !slices.Equal(c.Tx.Signatures, o.Tx.Signatures) || !bytes.Equal(c.Tx.Signed, o.Tx.Signed):
		return "bytes"
	case c.Failed != o.Failed:
		return "failure"
	case c.Fee != o.Fee:
		return "fee"
	case !slices.Equal(c.Keys, o.Keys):
		return "loaded addresses"
	case !slices.Equal(c.Before, o.Before) || !slices.Equal(c.After, o.After):
		return "balances"
	case !sameTokens(c.TokensBefore, o.TokensBefore) || !sameTokens(c.TokensAfter, o.TokensAfter):
		return "token balances"
	case !slices.EqualFunc(c.Inner, o.Inner, sameInner):
		return "inner instructions"
	}
	return ""
}

func sameTokens(a, b []TokenBalance) bool {
	return slices.Equal(a, b) || slices.Equal(byAccount(a), byAccount(b))
}

// byAccount returns a copy sorted by account, which occurs once.
func byAccount(list []TokenBalance) []TokenBalance {
	return slices.SortedFunc(slices.Values(list), func(a, b TokenBalance) int { return cmp.Compare(a.Account, b.Account) })
}

func sameInner(a, b InnerInstruction) bool {
	return a.Outer == b.Outer && a.Program == b.Program && a.Skipped == b.Skipped &&
		(a.Depth == b.Depth || a.Depth == 0 || b.Depth == 0) &&
		bytes.Equal(a.Accounts, b.Accounts) && bytes.Equal(a.Data, b.Data)
}
