package marketdata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// level applies a level of a refresh; the next apply belongs to the same command.
func (m *mdEvents) level(side market.Side, p market.Price, delta int64) {
	m.apply(event.Event{Kind: event.MirrorLevel, Side: side, Price: p, Aux: delta})
	m.seq--
}

func (m *mdEvents) mirrored(slot uint64) { m.apply(event.Event{Kind: event.Mirrored, Other: slot}) }

// swap applies a trade with its on-chain time, and returns it as views show it.
func (m *mdEvents) swap(ordinal uint64, happened int64, p market.Price, q market.Qty) Trade {
	m.id++
	m.apply(event.Event{
		Kind: event.MirrorTraded, OrderID: market.OrderID(happened), Other: ordinal, Side: market.Buy, Price: p, Qty: q, Aux: m.id,
	})
	return Trade{ID: market.TradeID(m.id), Seq: m.seq, At: happened, Price: p, Qty: q, Side: market.Buy, Ordinal: ordinal}
}

// TestViewsShowWholeRefreshes: whenever Flush is called, a view shows the book of one slot;
// other instruments do not wait.
func TestViewsShowWholeRefreshes(t *testing.T) {
	m := newMDEvents()
	m.level(market.Buy, 100, 5)
	m.level(market.Sell, 102, 5)
	m.mirrored(7)
	first, _ := m.mustFlush(t)
	if first.Slot != 7 || first.Bids[0].Price != 100 || first.Asks[0].Price != 102 {
		t.Fatalf("view %+v", first)
	}
	m.level(market.Buy, 103, 1)
	m.level(market.Sell, 102, -5)
	if v, _, ok := m.flush(t); ok {
		t.Fatalf("half a refresh: %+v", v)
	}
	m.ended = false // the batch goes on
	m.apply(event.Event{Kind: event.Accepted, Instrument: 1, Side: market.Buy, Price: 5, Aux: 1})
	m.seq--
	m.md.Flush(func(_, next *View, _ []Trade) {
		if next.Instrument != 1 {
			t.Fatalf("half a refresh: %+v", next)
		}
	})
	m.level(market.Sell, 104, 5)
	m.mirrored(8)
	v, _ := m.mustFlush(t)
	want := View{Bids: []market.Level{{Price: 103, Qty: 1}, {Price: 100, Qty: 5}}, Asks: []market.Level{{Price: 104, Qty: 5}}}
	if v.Slot != 8 || !slices.Equal(v.Bids, want.Bids) || !slices.Equal(v.Asks, want.Asks) || v.DepthSeq != first.DepthSeq+1 {
		t.Fatalf("view %+v", v)
	}
}

// TestSlotChangeOnly: if only the slot changes, the view has the new slot and unchanged Seqs.
func TestSlotChangeOnly(t *testing.T) {
	m := newMDEvents()
	m.level(market.Buy, 100, 5)
	m.mirrored(7)
	first, _ := m.mustFlush(t)
	m.at += minute / 6
	m.mirrored(9)
	v, trades := m.mustFlush(t)
	if v.Slot != 9 || v.At != m.at || v.EngineSeq != m.seq || len(trades) != 0 {
		t.Errorf("view %+v", v)
	}
	if v.DepthSeq != first.DepthSeq || v.TradesSeq != first.TradesSeq || v.TickerSeq != first.TickerSeq {
		t.Errorf("seqs %d, %d, %d after %d, %d, %d", v.DepthSeq, v.TradesSeq, v.TickerSeq, first.DepthSeq, first.TradesSeq, first.TickerSeq)
	}
}

// TestMirroredWindow: a trade counts at its on-chain time, however late it is reported; a
// trade older than the window is only on the tape.
func TestMirroredWindow(t *testing.T) {
	m := newMDEvents()
	now := m.at
	tape := []Trade{
		m.swap(1, now-windowMinutes*minute, 90, 1),
		m.swap(2, now-(windowMinutes-1)*minute, 50, 2),
		m.swap(3, now-(windowMinutes-1)*minute, 60, 3),
		m.swap(4, now-minute, 40, 1),
	}
	v, news := m.mustFlush(t)
	if !slices.Equal(news, tape) {
		t.Errorf("news %+v, want %+v", news, tape)
	}
	slices.Reverse(tape)
	if !slices.Equal(v.Trades, tape) {
		t.Errorf("tape %+v, want %+v", v.Trades, tape)
	}
	want := Ticker{
		Last: 40, LastQty: 1, LastAt: now - minute, Open24h: 50, High24h: 60, Low24h: 40,
		Volume24h: 6, QuoteVolume24h: market.Uint128{Lo: 320}, Trades24h: 3,
	}
	if v.Ticker != want {
		t.Errorf("ticker %+v, want %+v", v.Ticker, want)
	}
	m.md.Advance(now + minute)
	v, _ = m.mustFlush(t)
	want.Open24h, want.High24h, want.Volume24h, want.QuoteVolume24h, want.Trades24h = 40, 40, 1, market.Uint128{Lo: 40}, 1
	if v.Ticker != want {
		t.Errorf("a minute later %+v, want %+v", v.Ticker, want)
	}
}

func mirroredData() *mdEvents {
	m := &mdEvents{md: New(), at: 2 * minute}
	m.apply(event.Event{Kind: event.EpochStarted, Other: 7})
	m.apply(event.Event{Kind: event.InstrumentSet, Code: uint16(event.StatusTrading)})
	m.level(market.Buy, 10, 3)
	m.mirrored(9)
	m.swap(5, minute, 12, 1)
	return m
}

// TestMirroredDataGolden pins the bytes of version 3, and that version 2 can be read.
func TestMirroredDataGolden(t *testing.T) {
	const tail = "0a00000000000000" + "0300000000000000" +
		"0100000000000000" + "0400000000000000" + "005847f80d000000" + "0c00000000000000" + "0100000000000000" + "01" + "0500000000000000" +
		"0100000000000000" + "0c00000000000000" + "0c00000000000000" + "0c00000000000000" + "0100000000000000" +
		"0000000000000000" + "0c00000000000000" + "0100000000000000"
	const v3 = "42444d44" + "0300" + "0100" + "0700000000000000" + "0400000000000000" + "00b08ef01b000000" +
		"0000" + "01" + "3f" + "01000000" + "00000000" + "0100" + "0100" +
		"0c00000000000000" + "0100000000000000" + "005847f80d000000" + "0900000000000000" +
		"0100000000000000" + "0100000000000000" + "0400000000000000" + "00b08ef01b000000" + tail
	const v2 = "42444d44" + "0200" + "0100" + "0700000000000000" + "0400000000000000" + "00b08ef01b000000" +
		"0000" + "01" + "00" + "01000000" + "00000000" + "0100" + "0100" +
		"0c00000000000000" + "0100000000000000" + "005847f80d000000" + "0900000000000000" + tail
	if got := hex.EncodeToString(mirroredData().md.AppendSnapshot(nil)); got != v3 {
		t.Fatalf("snapshot\n%s, want\n%s", got, v3)
	}
	readsOld(t, v2, mirroredData())
}

func TestRestoreMirroredDataRefuses(t *testing.T) {
	good := mirroredData().md.appendSnapshot(nil, marketVersion2)
	good[marketHeaderSize+3] = 0
	const slot = marketHeaderSize + dataHeaderSize
	const trade = slot + slotSize + levelSize
	for name, spoil := range map[string]func(b []byte){
		"nothing mirrored": func(b []byte) { b[slot], b[trade+tradeSize] = 0, 0 },
		"counted":          func(b []byte) { b[marketHeaderSize+3] = 1 },
		"version 1":        func(b []byte) { b[4] = marketVersion1 },
		"more trades":      func(b []byte) { b[marketHeaderSize+12]++ },
		"more asks":        func(b []byte) { binary.LittleEndian.PutUint32(b[marketHeaderSize+8:], 8) },
	} {
		bad := slices.Clone(good)
		spoil(bad)
		if _, rest, err := Restore(bad); err == nil && len(rest) == 0 || err != nil && !errors.Is(err, codec.ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range good {
		if _, _, err := Restore(good[:n]); err == nil {
			t.Fatalf("%d of %d bytes were restored", n, len(good))
		}
	}
	m, rest, err := Restore(good)
	if err != nil || len(rest) != 0 || !bytes.Equal(m.appendSnapshot(nil, marketVersion2), good) {
		t.Errorf("the snapshot itself: %v", err)
	}
}
