package proof

import (
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// moved is a random transaction by its effects: the changes of balances.
type moved struct {
	// tokens by holder: the treasury's account to be paid, another one of the
	// treasury's, the desk's, the payer's, a stranger's.
	tokens [5]int64
	// lamports of the treasury, the desk, the payer and a stranger.
	lamports [4]int64
	named    int // how many claims; 1 is the payer's own
}

const (
	atPayTo = iota
	atSpare
	atDesk
	atPayer
	atStranger
)

// confirmed makes a transaction of it, signed by the stranger, who pays no fee.
func (x *table) confirmed(m *moved, c, other *rfq.Claim) *ledger.Confirmed {
	var memos []string
	if m.named > 0 {
		memos = append(memos, binding.Memo(c.ID))
	}
	if m.named > 1 {
		memos = append(memos, binding.Memo(other.ID))
	}
	out := x.node.transfer(x.t, fakeFriend, 0, memos...)
	extra := []solana.Address{fakeTreasury.addr, fakeDesk, fakePayer.addr}
	accounts := []solana.Address{fakeCoin.of(fakeTreasury.addr), {0xa1}, {0xa2}, {0xa3}, fakeCoin.of(fakeFriend.addr)}
	owners := []solana.Address{fakeTreasury.addr, fakeTreasury.addr, fakeDesk, fakePayer.addr, fakeFriend.addr}
	index := func(a solana.Address) int {
		for i, k := range out.Keys {
			if k == a {
				return i
			}
		}
		out.Keys = append(out.Keys[:len(out.Keys):len(out.Keys)], a)
		out.Before, out.After = append(out.Before, 1e12), append(out.After, 1e12)
		return len(out.Keys) - 1
	}
	out.Fee, out.After[0] = 0, out.Before[0]
	out.TokensBefore, out.TokensAfter = nil, nil
	for i := range accounts {
		b := ledger.TokenBalance{Account: index(accounts[i]), Mint: fakeCoin.mint, Owner: owners[i], Program: fakeCoin.program, Amount: 1e12}
		out.TokensBefore = append(out.TokensBefore, b)
		b.Amount = market.Amount(1e12 + m.tokens[i])
		out.TokensAfter = append(out.TokensAfter, b)
	}
	for i, a := range append(extra, fakeFriend.addr) {
		at := index(a)
		out.Before[at], out.After[at] = 1e12, market.Amount(1e12+m.lamports[i])
	}
	return out
}

// fakeDesk is another wallet of ours.
var fakeDesk = fakePerson("desk").addr

// TestLaws: whatever moved, a claim is paid exactly by its own rule, and what we
// gained is booked or stored as unmatched, and nothing else is.
func TestLaws(t *testing.T) {
	x := newTable(t, func(o *Options) {
		o.Rails[market.RailSOL] = Rail{Treasury: []solana.Address{fakeTreasury.addr}}
		o.Wallets = []solana.Address{fakeDesk}
	})
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SampledFrom([]int64{0, 0, 0, 1, -1, dueUSDC - 1, dueUSDC, dueUSDC + 1, -dueUSDC, 1 - dueUSDC, -dueUSDC - 1, dueSOL, dueSOL - 1, -dueSOL, 1 - dueSOL})
		var m moved
		for i := range m.tokens {
			m.tokens[i] = amounts.Draw(t, "tokens")
		}
		for i := range m.lamports {
			m.lamports[i] = amounts.Draw(t, "lamports")
		}
		m.named = rapid.IntRange(0, 2).Draw(t, "named")
		rail := rapid.SampledFrom([]market.Rail{market.RailUSDC, market.RailSOL}).Draw(t, "rail")
		c := x.desk.take(x.t, fakePayer.addr, rail, rfq.Modular, 1)
		sig := x.node.lands(x.confirmed(&m, c, x.desk.take(x.t, fakePayer.addr, rail, rfq.Modular, 1)))
		v, err := x.Verify(x.t.Context(), request(sig, c))
		if err != nil {
			t.Fatal(err)
		}
		tokens := m.tokens[atPayTo] + m.tokens[atSpare] + m.tokens[atDesk]
		lamports := m.lamports[0] + m.lamports[1]
		credited, lost, price := min(m.tokens[atPayTo], tokens), -m.tokens[atPayer], int64(dueUSDC)
		if rail == market.RailSOL {
			credited, lost, price = min(m.lamports[0], lamports), -m.lamports[2], int64(dueSOL)
		}
		pays := m.named == 1 && credited >= price && lost >= price
		if pays != (wordOf(&v) == verified) || pays != (x.state(c) == rfq.ClaimPaid) {
			t.Fatalf("%+v on %s: %+v (%s)", m, rail, v, v.Refused)
		}
		entry, unmatched := x.store.unmatched(sig)
		h, _, _ := x.desk.Claim(c.ID)
		list := h.Payments
		if gained := tokens > 0 || lamports > 0; gained != (unmatched || len(list) > 0) {
			t.Fatalf("%+v on %s: booked %+v, unmatched %+v", m, rail, list, entry)
		}
		// The reported amount of a rail is never more than the amount that came over it.
		reported := map[market.Rail]int64{}
		for i := range list {
			reported[list[i].Rail] += int64(list[i].Amount)
		}
		reported[entry.Rail] += int64(entry.Amount)
		if reported[market.RailUSDC] > max(0, tokens) || reported[market.RailSOL] > max(0, lamports) {
			t.Fatalf("%+v on %s: booked %+v, unmatched %+v", m, rail, list, entry)
		}
		// And on one rail it is all of it.
		if tokens > 0 && lamports <= 0 && reported[market.RailUSDC] != tokens || lamports > 0 && tokens <= 0 && reported[market.RailSOL] != lamports {
			t.Fatalf("%+v on %s: booked %+v, unmatched %+v", m, rail, list, entry)
		}
	})
	x.desk.check(t)
}
