package mirror_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/market"
	"blockdesk/mirror"
)

// describe formats movements for tests: where, kind, and the vaults' changes.
func describe(list []mirror.Movement) (out []string) {
	signed := func(d mirror.Delta) string {
		if d.Out {
			return fmt.Sprintf("-%d", d.Atoms)
		}
		return fmt.Sprint(d.Atoms)
	}
	for i := range list {
		m := &list[i]
		text := fmt.Sprintf("%d.%d %v %s %s", m.Key.Instruction, m.Key.Inner, m.Kind, signed(m.Base), signed(m.Quote))
		if m.Calls != 1 {
			text += fmt.Sprint(" of ", m.Calls)
		}
		out = append(out, text)
	}
	return out
}

// feeOn makes the base mint one of Token-2022.
func feeOn(s *scene) *scene {
	s.programs[keyUserBase], s.programs[keyBaseVault] = keyToken2022, keyToken2022
	return s
}

var bothVaults = []uint8{keyBaseVault, keyQuoteVault}

// TestDecodeSwaps: the effects of a transaction on the vaults, call by call.
func TestDecodeSwaps(t *testing.T) {
	gift := func(s *scene, depth int) *scene { return s.transfer(depth, keyOther, keyQuoteVault, 5) }
	for name, c := range map[string]struct {
		scene *scene
		want  []string
		err   error
	}{
		"nothing":                {scene: newScene().do(1, keyRouter, nil, keyPayer)},
		"a buy":                  {newScene().buy(1, 10, 70), []string{"0.0 swap -10 70"}, nil},
		"a sell":                 {newScene().sell(1, 10, 70), []string{"0.0 swap 10 -70"}, nil},
		"loaded addresses":       {newScene().loaded().buy(1, 10, 70), []string{"0.0 swap -10 70"}, nil},
		"a deposit":              {newScene().pool(1).transfer(2, keyUserBase, keyBaseVault, 3).transfer(2, keyUserQuote, keyQuoteVault, 4), []string{"0.0 deposit 3 4"}, nil},
		"a withdrawal":           {newScene().pool(1).transfer(2, keyBaseVault, keyUserBase, 3).transfer(2, keyQuoteVault, keyUserQuote, 4), []string{"0.0 withdrawal -3 -4"}, nil},
		"a gift":                 {gift(newScene(), 1), []string{"0.0 one_sided 0 5"}, nil},
		"borrowed and paid back": {scene: newScene().pool(1).transfer(2, keyBaseVault, keyUserBase, 9).transfer(2, keyUserBase, keyBaseVault, 9)},
		"vault to itself":        {scene: newScene().pool(1).transfer(2, keyBaseVault, keyBaseVault, 9)},
		"two swaps":              {newScene().buy(1, 10, 70).sell(1, 20, 130), []string{"0.0 swap -10 70", "1.0 swap 20 -130"}, nil},
		"two by a router":        {newScene().router(bothVaults...).buy(2, 10, 70).sell(2, 10, 69), []string{"0.1 swap -10 70", "0.4 swap 10 -69"}, nil},
		"a router blind":         {newScene().router(keyPayer).buy(2, 10, 70).sell(2, 4, 20), []string{"0.1 swap -10 70", "0.4 swap 4 -20"}, nil},
		"a round trip":           {newScene().router(bothVaults...).buy(2, 10, 70).sell(2, 10, 70), []string{"0.1 swap -10 70", "0.4 swap 10 -70"}, nil},
		"a gift in between":      {gift(newScene().buy(1, 10, 70), 1).sell(1, 20, 130), []string{"0.0 swap -10 70", "1.0 one_sided 0 5", "2.0 swap 20 -130"}, nil},
		// The gift belongs to the router, which is called at a lower depth than the pool.
		"a router's gift":     {gift(newScene().router(bothVaults...).buy(2, 10, 70), 2), []string{"0.0 one_sided 0 5", "0.1 swap -10 70"}, nil},
		"no program, a pair":  {newScene().transfer(1, keyUserQuote, keyQuoteVault, 70).transfer(1, keyBaseVault, keyUserBase, 10), []string{"0.0 swap -10 70"}, nil},
		"paid by a call back": {newScene().pool(1).transfer(2, keyBaseVault, keyUserBase, 10).do(2, keyRouter, nil, keyQuoteVault).transfer(3, keyUserQuote, keyQuoteVault, 70).buy(1, 1, 7), []string{"0.0 swap -10 70", "1.0 swap -1 7"}, nil},
		// Liquidity may be one-sided. A withdrawal of one asset and a deposit of the
		// other are no swap and make no price.
		"moved liquidity": {newScene().pool(1).transfer(2, keyBaseVault, keyUserBase, 10).pool(1).transfer(2, keyUserQuote, keyQuoteVault, 70), []string{"0.0 one_sided -10 0", "1.0 one_sided 0 70"}, nil},
		"a gift before":   {gift(newScene(), 1).pool(1).transfer(2, keyBaseVault, keyUserBase, 10), []string{"0.0 one_sided 0 5", "1.0 one_sided -10 0"}, nil},
		"a fee":           {feeOn(newScene()).pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 70), []string{"0.0 swap 97 -70"}, nil},
		"a fee, of one of two": {
			feeOn(newScene()).pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 70).buy(1, 10, 7),
			[]string{"0.0 swap 97 -70", "1.0 swap -10 7"},
			nil,
		},
		"a fee of unknown kind": {
			feeOn(newScene()).pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 70).
				pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 60).buy(1, 5, 30),
			[]string{"0.0 swap 194 -130 of 2", "2.0 swap -5 30"},
			nil,
		},
		"a fee, of a gift too": {
			feeOn(newScene()).pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 70).
				pool(1).checked(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyUserQuote, keyQuoteVault, 60), nil, mirror.ErrUnbalanced,
		},
		"wrapped by calls": {
			// Anybody can call a program of their own with both vaults.
			wrapped(wrapped(newScene().router(bothVaults...).transfer(2, keyUserBase, keyBaseVault, 1), 2).router(bothVaults...).transfer(2, keyUserBase, keyBaseVault, 1), 2).buy(1, 10, 70),
			[]string{"0.0 deposit 2 22 of 2", "2.0 swap -10 70"},
			nil,
		},
		"fees reported": {
			feeOn(newScene()).pool(1).feeReported(2, keyUserBase, keyBaseVault, 100, 3).transfer(2, keyQuoteVault, keyUserQuote, 70).
				pool(1).feeReported(2, keyUserBase, keyBaseVault, 50, 2).transfer(2, keyQuoteVault, keyUserQuote, 30),
			[]string{"0.0 swap 97 -70", "1.0 swap 48 -30"},
			nil,
		},
		"no fee after all": {
			feeOn(newScene()).pool(1).checked(2, keyUserBase, keyBaseVault, 100, 0).transfer(2, keyQuoteVault, keyUserQuote, 70).
				pool(1).checked(2, keyUserBase, keyBaseVault, 50, 0).transfer(2, keyQuoteVault, keyUserQuote, 30),
			[]string{"0.0 swap 100 -70", "1.0 swap 50 -30"},
			nil,
		},
		"a batch":   {batched(newScene()), []string{"0.0 swap -10 70"}, nil},
		"wrapped":   {wrapped(newScene().buy(1, 10, 70).sell(1, 3, 20), 1), []string{"0.0 swap -10 70", "1.0 swap 3 -20", "2.0 one_sided 0 11"}, nil},
		"untouched": {newScene().do(1, keyToken, []byte{6, 2}, keyBaseVault).buy(1, 10, 70), []string{"1.0 swap -10 70"}, nil},
	} {
		pair := scenePair()
		confirmed := c.scene.confirmed()
		for _, depths := range []string{"reported", "not reported"} {
			trace, err := pair.Decode(confirmed)
			if !errors.Is(err, c.err) || !slices.Equal(describe(trace.Movements), c.want) {
				t.Errorf("%s, depths %s: %q, %v; want %q, %v", name, depths, describe(trace.Movements), err, c.want, c.err)
			}
			if name == "a router's gift" {
				break // only depths show these
			}
			for i := range confirmed.Inner {
				confirmed.Inner[i].Depth = 0
			}
		}
	}
}

// batched makes a buy in one instruction of the token program.
func batched(s *scene) *scene {
	s.move(keyUserQuote, keyQuoteVault, 70, 0)
	s.move(keyBaseVault, keyUserBase, 10, 0)
	data := append([]byte{255, 3, 9, 3}, amountBytes(70)...)
	data = append(append(data, 3, 9, 3), amountBytes(10)...)
	return s.pool(1).do(2, keyToken, data, keyUserQuote, keyQuoteVault, keyPayer, keyBaseVault, keyUserBase, keyPayer)
}

// wrapped sends lamports to the quote vault, as anybody can if it holds wrapped SOL: no
// token instruction has the amount.
func wrapped(s *scene, depth int) *scene {
	s.amount[keyQuoteVault] += 11
	return s.do(depth, keyToken, []byte{17}, keyQuoteVault)
}

// TestDecodeRefuses: contradictory transactions are errors, and the trace has only
// signature, slot, time and payer.
func TestDecodeRefuses(t *testing.T) {
	pair := scenePair()
	change := func(f func(c *ledger.Confirmed)) *ledger.Confirmed {
		c := newScene().buy(1, 10, 70).buy(1, 1, 8).confirmed()
		f(c)
		return c
	}
	vault := func(list []ledger.TokenBalance, key int) int {
		return slices.IndexFunc(list, func(b ledger.TokenBalance) bool { return b.Account == key })
	}
	for name, c := range map[string]struct {
		confirmed *ledger.Confirmed
		want      error
	}{
		"another mint": {change(func(c *ledger.Confirmed) { c.TokensAfter[vault(c.TokensAfter, keyBaseVault)].Mint = solana.Address{8} }), mirror.ErrOtherMint},
		"no balance before": {change(func(c *ledger.Confirmed) {
			i := vault(c.TokensBefore, keyBaseVault)
			c.TokensBefore = slices.Delete(c.TokensBefore, i, i+1)
		}), mirror.ErrNoBalance},
		"no balance after": {change(func(c *ledger.Confirmed) {
			i := vault(c.TokensAfter, keyQuoteVault)
			c.TokensAfter = slices.Delete(c.TokensAfter, i, i+1)
		}), mirror.ErrNoBalance},
		"an atom more":     {change(func(c *ledger.Confirmed) { c.TokensAfter[vault(c.TokensAfter, keyBaseVault)].Amount++ }), mirror.ErrUnbalanced},
		"an atom less":     {change(func(c *ledger.Confirmed) { c.TokensAfter[vault(c.TokensAfter, keyQuoteVault)].Amount-- }), mirror.ErrUnbalanced},
		"no instructions":  {change(func(c *ledger.Confirmed) { c.Inner = nil }), mirror.ErrUnbalanced},
		"an inner one cut": {change(func(c *ledger.Confirmed) { c.Inner = c.Inner[1:] }), mirror.ErrUnbalanced},
		"a huge amount": {change(func(c *ledger.Confirmed) {
			copy(c.Inner[0].Data[1:], amountBytes(math.MaxUint64))
			copy(c.Inner[2].Data[1:], amountBytes(math.MaxUint64))
		}), mirror.ErrUnbalanced},
		"more than there is, and back": {newScene().buy(1, 10, 70).pool(1).transfer(2, keyQuoteVault, keyUserQuote, 1_000_071).transfer(2, keyUserQuote, keyQuoteVault, 1_000_071).confirmed(), mirror.ErrUnbalanced},
		"more than can be, and back":   {newScene().pool(1).transfer(2, keyUserQuote, keyQuoteVault, math.MaxUint64).transfer(2, keyQuoteVault, keyUserQuote, math.MaxUint64).confirmed(), mirror.ErrUnbalanced},
	} {
		trace, err := pair.Decode(c.confirmed)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if trace.Movements != nil || trace.Base.Named || trace.Signature != c.confirmed.Signature() || trace.Slot != 7 || trace.Time != 1_700_000_000 || trace.Payer != sceneKey(keyPayer) {
			t.Errorf("%s: %+v", name, trace)
		}
	}
	for name, p := range map[string]mirror.VaultPair{
		"none": {}, "one mint": {Base: pair.Base, Quote: mirror.Vault{Account: solana.Address{5}, Mint: pair.Base.Mint}},
		"one account": {Base: pair.Base, Quote: mirror.Vault{Account: pair.Base.Account, Mint: pair.Quote.Mint}},
	} {
		if _, err := p.Decode(newScene().confirmed()); !errors.Is(err, mirror.ErrVaults) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecodeBalances: failed transactions moved nothing; a transaction may create a
// vault, or not name it.
func TestDecodeBalances(t *testing.T) {
	pair := scenePair()
	failed := newScene().buy(1, 10, 70).confirmed()
	failed.Failed = true
	if trace, err := pair.Decode(failed); err != nil || trace.Movements != nil {
		t.Errorf("failed: %+v, %v", trace, err)
	}
	s := newScene()
	s.absent[keyBaseVault], s.before[keyBaseVault], s.amount[keyBaseVault] = true, 0, 0
	trace, err := pair.Decode(s.pool(1).transfer(2, keyUserBase, keyBaseVault, 3).transfer(2, keyUserQuote, keyQuoteVault, 4).confirmed())
	if want := (mirror.Balance{Named: true, Created: true, After: 3}); err != nil || trace.Base != want {
		t.Errorf("created: %+v, %v", trace.Base, err)
	}
	if want := (mirror.Balance{Named: true, Before: 1_000_000, After: 1_000_004}); trace.Quote != want {
		t.Errorf("not created: %+v", trace.Quote)
	}
	pair.Base.Account = solana.Address{99}
	trace, err = pair.Decode(newScene().buy(1, 10, 70).confirmed())
	if err != nil || trace.Base != (mirror.Balance{}) || !slices.Equal(describe(trace.Movements), []string{"0.1 one_sided 0 70"}) {
		t.Errorf("one vault: %+v, %v", trace, err)
	}
}

// TestDecodeProperty decodes random calls, within and outside of routers.
func TestDecodeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene()
		s.unpublished = rapid.Bool().Draw(t, "unpublished")
		var want []string
		amount := rapid.Custom(func(t *rapid.T) market.Amount { return market.Amount(rapid.IntRange(1, 1000).Draw(t, "atoms")) })
		swap := func(depth int) {
			b, q := amount.Draw(t, "base"), amount.Draw(t, "quote")
			inner := 0
			outer := len(s.c.Tx.Message.Instructions)
			if depth > 1 {
				outer--
				for i := range s.c.Inner {
					if s.c.Inner[i].Outer == outer {
						inner++
					}
				}
				inner++
			}
			if rapid.Bool().Draw(t, "buy") {
				s.buy(depth, b, q)
				want = append(want, fmt.Sprintf("%d.%d swap -%d %d", outer, inner, b, q))
			} else {
				s.sell(depth, b, q)
				want = append(want, fmt.Sprintf("%d.%d swap %d -%d", outer, inner, b, q))
			}
		}
		for range rapid.IntRange(0, 6).Draw(t, "instructions") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				swap(1)
			case 1:
				s.router(rapid.SampledFrom([][]uint8{bothVaults, {keyBaseVault}, nil}).Draw(t, "names")...)
				for range rapid.IntRange(0, 3).Draw(t, "swaps") {
					swap(2)
					s.transfer(2, keyUserQuote, keyOther, 1) // the router's own business
				}
			default:
				s.transfer(1, keyOther, keyUserQuote, 1)
			}
		}
		pair := scenePair()
		trace, err := pair.Decode(s.confirmed())
		if err != nil || !slices.Equal(describe(trace.Movements), want) {
			t.Fatalf("%q, %v\nwant %q", describe(trace.Movements), err, want)
		}
	})
}
