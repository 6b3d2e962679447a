package archive

import (
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
)

// TestSkipKeepsCompleteCandles: whatever is missing, every returned candle is that of all
// trades, and candles before the gap stay.
func TestSkipKeepsCompleteCandles(t *testing.T) {
	remaining, removed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		last := events[len(events)-1].Seq
		from := uint64(rapid.IntRange(0, int(last)).Draw(t, "from"))
		to := uint64(rapid.IntRange(int(from), int(last)).Draw(t, "to"))
		store := kvtest.New()
		a := must(t, store)
		before := upTo(events, from)
		if err := errors.Join(a.Replay(before), a.Start(from)); err != nil {
			t.Fatal(err)
		}
		a = must(t, store)
		missing := upTo(events, to)
		at := int64(0)
		if len(missing) > 0 {
			at = missing[len(missing)-1].At
		}
		if err := a.Skip(to, at); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Replay(events[len(missing):]), a.Start(last)); err != nil {
			t.Fatal(err)
		}
		for in := market.InstrumentID(0); in <= mirror; in++ {
			for i := Minute1; i <= Day1; i++ {
				got, err := a.Candles(in, i, 0, MaxCandles)
				if err != nil {
					t.Fatal(err)
				}
				want := model(events, in, i)
				for _, c := range got {
					if !slices.Contains(want, c) {
						t.Fatalf("gap after %d up to %d, instrument %d, %s: candle %+v, of all trades %+v", from, to, in, i, c, want)
					}
				}
				remaining, removed = remaining+len(got), removed+len(want)-len(got)
			}
		}
	})
	if remaining == 0 || removed == 0 {
		t.Errorf("%d candles kept, %d deleted: not both were tried", remaining, removed)
	}
}

// TestPruneLeavesWhatAReconcileNeeds: old trades of a mirrored instrument that have just
// arrived are neither missing in the candles nor counted twice if the journal loses its end
// after they were pruned.
func TestPruneLeavesWhatAReconcileNeeds(t *testing.T) {
	pruned := 0
	rapid.Check(t, func(t *rapid.T) {
		var events []event.Event
		happened := begin - int64(20*day)
		for seq := uint64(1); seq <= uint64(rapid.IntRange(2, 60).Draw(t, "trades")); seq++ {
			happened += rapid.SampledFrom([]int64{0, int64(time.Minute), int64(5 * time.Hour)}).Draw(t, "later")
			events = append(events, mirrored(seq, market.TradeID(seq), seq, begin, happened, 3, 1))
		}
		last := events[len(events)-1].Seq
		store := kvtest.New()
		now := time.Unix(0, begin)
		a, err := New(Options{KeepTrades: 2 * day, PruneEvery: time.Millisecond, Now: fixed}, store)
		if err != nil {
			t.Fatal(err)
		}
		// The journal keeps at least what it had at the prune before the last.
		safe := []uint64{0, 0}
		for from := 0; from < len(events); {
			n := rapid.IntRange(1, len(events)-from).Draw(t, "piece")
			now = now.Add(time.Second)
			if err := errors.Join(a.Replay(events[from:from+n]), a.follower.commit(true), a.prune(now)); err != nil {
				t.Fatal(err)
			}
			from += n
			safe = append(safe, uint64(from))
		}
		seq := uint64(rapid.IntRange(int(safe[len(safe)-2]), int(last)).Draw(t, "journal's end"))
		left, err := a.Trades(mirror, 0, MaxTrades)
		if err != nil {
			t.Fatal(err)
		}
		pruned += len(events) - len(left)
		if a, err = New(Options{KeepTrades: 2 * day, Now: fixed}, store); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Reconcile(seq), a.Replay(events[seq:]), a.Start(last)); err != nil {
			t.Fatal(err)
		}
		for _, i := range []Interval{Hour1, Hour4, Day1} {
			got, err := a.Candles(mirror, i, 0, MaxCandles)
			if want := model(events, mirror, i); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s after a rebase to %d of %d: %v\n got %+v\nwant %+v", i, seq, last, err, got, want)
			}
		}
	})
	if pruned == 0 {
		t.Error("nothing was pruned")
	}
}

// TestTradeRecords checks the stored format of a trade.
func TestTradeRecords(t *testing.T) {
	own := marketdata.Trade{ID: 7, Seq: 2, At: 1, Price: 3, Qty: 4, Side: market.Sell}
	mirrored := own
	mirrored.Ordinal = 5
	for _, c := range []struct {
		trade marketdata.Trade
		want  string
	}{
		{own, "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" + "02"},
		{mirrored, "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" + "02" + "0000000000000005"},
	} {
		key, value := tradeKey(nil, 1, c.trade.ID), appendTrade(nil, &c.trade)
		if got := hex.EncodeToString(value); got != c.want {
			t.Errorf("%+v: %s, want %s", c.trade, got, c.want)
		}
		if got, err := parseTrade(key, value); err != nil || got != c.trade {
			t.Errorf("%x: %+v, %v", value, got, err)
		}
	}
	for _, text := range []string{
		"0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" + "02" + "0000000000000000",
		"0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" + "02" + "00000000000005",
	} {
		value, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseTrade(tradeKey(nil, 1, 7), value); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
