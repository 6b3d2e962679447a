package market

import "testing"

func TestRails(t *testing.T) {
	for r, want := range map[Rail]struct {
		name     string
		decimals int
	}{RailUSDC: {"USDC", 6}, RailSOL: {"SOL", 9}} {
		if !r.Valid() || r.String() != want.name || r.Decimals() != want.decimals {
			t.Errorf("rail %d: %v, %d decimals", r, r, r.Decimals())
		}
		if again, ok := ParseRail([]byte(want.name)); !ok || again != r {
			t.Errorf("%q is %v, %v", want.name, again, ok)
		}
		one := Rails(0).With(r)
		if !one.Has(r) || one.Has(RailCount-r) || !AllRails.Has(r) {
			t.Errorf("the set of %v is %b", r, one)
		}
	}
	for _, r := range []Rail{0, RailCount, 255} {
		if r.Valid() || AllRails.Has(r) || r.String() != "unknown" {
			t.Errorf("rail %d is one", r)
		}
	}
	for _, text := range []string{"", "usdc", "USDC ", "BTC", "unknown"} {
		if r, ok := ParseRail([]byte(text)); ok {
			t.Errorf("%q is %v", text, r)
		}
	}
	if Rails(0).With(RailUSDC).With(RailSOL) != AllRails {
		t.Errorf("all rails are %b", AllRails)
	}
}

func TestFills(t *testing.T) {
	for f, want := range map[FillUSD]struct {
		text string
		usd  USD
	}{
		1: {"250", 250_000_000},
		2: {"1000", 1_000_000_000},
		3: {"25000", 25_000_000_000},
		4: {"250000", 250_000_000_000},
		5: {"1000000", 1_000_000_000_000},
		6: {"2500000", 2_500_000_000_000},
	} {
		again, ok := ParseFill([]byte(want.text))
		if !f.Valid() || f.String() != want.text || f.USD() != want.usd || !ok || again != f {
			t.Errorf("step %d: %v, %d, parsed %v %v", f, f, f.USD(), again, ok)
		}
	}
	for _, f := range []FillUSD{0, FillCount + 1, 255} {
		if f.Valid() || f.String() != "unknown" {
			t.Errorf("step %d is one", f)
		}
	}
	for _, text := range []string{"", "0", "0250", "250.0", "250 ", "500", "unknown"} {
		if f, ok := ParseFill([]byte(text)); ok {
			t.Errorf("%q is %v", text, f)
		}
	}
}

// TestShards: ids contain the shard that issued them; the tickets of a service without
// shards are those of shard 1.
func TestShards(t *testing.T) {
	for _, c := range []struct {
		ticket TicketID
		want   ShardID
	}{
		{0, 0},
		{1, 1},
		{TicketsPerShard, 1},
		{TicketsPerShard + 1, 2},
		{2 * TicketsPerShard, 2},
		{MaxShards * TicketsPerShard, MaxShards},
		{MaxShards*TicketsPerShard + 1, 0},
		{1<<64 - 1, 0},
	} {
		if got := c.ticket.Shard(); got != c.want {
			t.Errorf("ticket %d is of shard %d, want %d", c.ticket, got, c.want)
		}
	}
	for g := ShardID(1); g <= MaxShards; g++ {
		if got := FirstTicket(g).Shard(); got != g {
			t.Errorf("the first ticket of shard %d is of %d", g, got)
		}
		for _, word := range []uint64{0, 1, 1<<64 - 1} {
			if got := ClaimID(ShardWord(g, word)).Shard(); got != g {
				t.Errorf("word %x of shard %d is of %d", word, g, got)
			}
		}
	}
	if got := ShardWord(0, 1<<64-1); got != 1<<64-1 {
		t.Errorf("of no shard: %x", got)
	}
	if a, b := ShardWord(5, 1), ShardWord(5, 2); a == b {
		t.Error("two words of a shard are equal")
	}
}
