package persist

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/market"
)

// mirrorWorkload is a stamped flow of refreshes and trades of a mirrored
// instrument, among orders.
func mirrorWorkload(t testing.TB, n int) []engine.Command {
	t.Helper()
	const in market.InstrumentID = 2
	define, err := engine.DefineInstrumentCommand(&market.Instrument{
		ID: in, Symbol: "SOL/USDC", Base: "SOL", Quote: "USDC", PriceDecimals: 4, QtyDecimals: 2, Tick: 1, Lot: 1,
		MinQty: 1, MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Mirrored,
	})
	if err != nil {
		t.Fatal(err)
	}
	all := append(workload(t, 200, 31), define)
	for slot := uint64(1); len(all) < n; slot++ {
		b := engine.MirrorBook{Instrument: in, Slot: slot}
		for i := range market.Price(slot % (engine.MaxMirrorLevels + 1)) {
			b.Bids = append(b.Bids, market.Level{Price: 500 - i - market.Price(slot%7), Qty: market.Qty(1 + slot%3)})
			b.Asks = append(b.Asks, market.Level{Price: 501 + 2*i, Qty: market.Qty(1 + slot%5)})
		}
		if all, err = engine.MirrorRefreshCommands(all, &b); err != nil {
			t.Fatal(err)
		}
		c, err := engine.MirrorTradeCommand(&engine.MirrorSwap{
			Instrument: in, Ordinal: slot, Price: 500, Qty: market.Qty(slot), Side: market.Buy, At: 1_590_000_000_000_000_000, Slot: slot,
		})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for i := range all {
		all[i].Seq = uint64(i + 1)
		all[i].At = max(all[i].At, all[max(i, 1)-1].At)
	}
	return all
}

// TestMirrorsAreKept: mirrored books and trades come back from the journal, from
// snapshots before and after them, and from the middle of a refresh.
func TestMirrorsAreKept(t *testing.T) {
	all := mirrorWorkload(t, 1_000)
	for _, every := range []uint64{70, 1 << 40} {
		o := testOptions(vfs.NewMem())
		o.SnapshotEvery = every
		for from := 0; from < len(all); {
			w := mustOpen(t, o, NewestSnapshot, nil)
			sameReplica(t, w.replica, replayed(all[:from]))
			to := min(from+97, len(all))
			w.mustAppend(t, all[from:to], 10)
			w.catchUp(t)
			w.mustClose(t)
			from = to
		}
		w := mustOpen(t, o, NewestSnapshot, nil)
		sameReplica(t, w.replica, replayed(all))
		slot, ordinal := w.replica.State.MirrorPosition(2)
		if last := all[len(all)-1]; slot != last.Arg || ordinal != uint64(last.Order.ID) {
			t.Errorf("slot %d, ordinal %d; want %d, %d", slot, ordinal, last.Arg, last.Order.ID)
		}
		w.mustClose(t)
		if report, err := Verify(toolsFor(o)); err != nil || every < 1000 && len(report.Snapshots) < 2 {
			t.Errorf("%+v, %v", report, err)
		}
	}
}
