package marketdata

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// plainData returns a small market.
func plainData() *mdEvents {
	m := &mdEvents{md: New(), at: 2 * minute}
	m.apply(event.Event{Kind: event.EpochStarted, Other: 7})
	m.apply(event.Event{Kind: event.InstrumentSet, Code: uint16(event.StatusTrading)})
	m.rest(market.Buy, 10, 3)
	m.rest(market.Sell, 12, 4)
	m.rest(market.Sell, 13, 5)
	m.apply(event.Event{Kind: event.Traded, Side: market.Buy, Price: 12, Qty: 1, Aux: 1})
	return m
}

// TestMarketDataGolden pins the bytes of version 3, and that versions 1 and 2 can be read:
// missing counts start again.
func TestMarketDataGolden(t *testing.T) {
	const v3 = "42444d44" + "0300" + "0100" + "0700000000000000" + "0600000000000000" + "00b08ef01b000000" +
		"0000" + "01" + "1f" + "01000000" + "02000000" + "0100" + "0100" +
		"0c00000000000000" + "0100000000000000" + "00b08ef01b000000" +
		"0000000000000000" + "0100000000000000" + "0100000000000000" + "0600000000000000" + "00b08ef01b000000" +
		"0a00000000000000" + "0300000000000000" +
		"0d00000000000000" + "0500000000000000" + "0c00000000000000" + "0300000000000000" +
		"0100000000000000" + "0600000000000000" + "00b08ef01b000000" + "0c00000000000000" + "0100000000000000" + "01" + "0000000000000000" +
		"0200000000000000" + "0c00000000000000" + "0c00000000000000" + "0c00000000000000" + "0100000000000000" +
		"0000000000000000" + "0c00000000000000" + "0100000000000000"
	const v1 = "42444d44" + "0100" + "0100" + "0700000000000000" + "0600000000000000" + "00b08ef01b000000" +
		"0000" + "01" + "00" + "01000000" + "02000000" + "0100" + "0100" +
		"0c00000000000000" + "0100000000000000" + "00b08ef01b000000" +
		"0a00000000000000" + "0300000000000000" +
		"0d00000000000000" + "0500000000000000" + "0c00000000000000" + "0300000000000000" +
		"0100000000000000" + "0600000000000000" + "00b08ef01b000000" + "0c00000000000000" + "0100000000000000" + "01" +
		"0200000000000000" + "0c00000000000000" + "0c00000000000000" + "0c00000000000000" + "0100000000000000" +
		"0000000000000000" + "0c00000000000000" + "0100000000000000"
	if got := hex.EncodeToString(plainData().md.AppendSnapshot(nil)); got != v3 {
		t.Fatalf("snapshot\n%s, want\n%s", got, v3)
	}
	readsOld(t, v1, plainData())
}

// readsOld restores a snapshot of an earlier version of what data has seen in one epoch,
// and compares the two in the next one.
func readsOld(t *testing.T, old string, data *mdEvents) {
	t.Helper()
	text, err := hex.DecodeString(old)
	if err != nil {
		t.Fatal(err)
	}
	restored := *data
	if restored.md, _, err = Restore(text); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*mdEvents{data, &restored} {
		m.md.Flush(nil)
		m.ended = true
		m.apply(event.Event{Kind: event.EpochStarted, Other: 8})
		m.md.Flush(nil)
	}
	want, got := data.md.View(0), restored.md.View(0)
	if got.DepthSeq != 1 || got.TradesSeq != 1 || !bytes.Equal(restored.md.AppendSnapshot(nil), data.md.AppendSnapshot(nil)) {
		t.Errorf("after an old snapshot %+v, want %+v", got, want)
	}
}

func TestRestoreMarketDataRefuses(t *testing.T) {
	m := newMDEvents()
	m.rest(market.Buy, 10, 3)
	m.rest(market.Buy, 11, 3)
	m.trade(market.Sell, 10, 1)
	good := m.md.AppendSnapshot(nil)
	const listing = marketHeaderSize
	const stand = listing + dataHeaderSize + slotSize
	const bids = stand + viewSeqsSize
	const trade = bids + 2*levelSize
	const bucket = trade + tradeSize + ordinalSize
	for name, spoil := range map[string]func(b []byte){
		"another magic":                 func(b []byte) { b[0]++ },
		"a version to come":             func(b []byte) { b[4]++ },
		"an earlier version":            func(b []byte) { b[4]-- },
		"more instruments than data":    func(b []byte) { b[6]++ },
		"more instruments than limit":   func(b []byte) { binary.LittleEndian.PutUint16(b[6:], market.MaxInstruments+1) },
		"a time before 1970":            func(b []byte) { b[31] |= 0x80 },
		"an instrument past the limit":  func(b []byte) { binary.LittleEndian.PutUint16(b[listing:], market.MaxInstruments) },
		"a part that does not exist":    func(b []byte) { b[listing+3] = byte(changedAll) + 1 },
		"a view of a later command":     func(b []byte) { b[stand+16]++ },
		"a view of a later time":        func(b []byte) { b[stand+24]++ },
		"a view of before 1970":         func(b []byte) { b[stand+31] |= 0x80 },
		"more bids than data":           func(b []byte) { b[listing+7] = 0xff },
		"more trades than MaxTape":      func(b []byte) { b[listing+12] = MaxTape + 1 },
		"more buckets than the window":  func(b []byte) { binary.LittleEndian.PutUint16(b[listing+14:], windowMinutes+1) },
		"a last trade of the future":    func(b []byte) { b[listing+39] = 0x7f },
		"a level without price":         func(b []byte) { clear(b[bids : bids+8]) },
		"a level above MaxPrice":        func(b []byte) { b[bids+7] = 1 },
		"a level without quantity":      func(b []byte) { clear(b[bids+8 : bids+16]) },
		"a level above MaxLevelQty":     func(b []byte) { b[bids+15] = 0x20 },
		"levels out of order":           func(b []byte) { b[bids] = 11 },
		"a trade of the future":         func(b []byte) { b[trade+23] = 0x7f },
		"a trade without price":         func(b []byte) { clear(b[trade+24 : trade+32]) },
		"a trade without side":          func(b []byte) { b[trade+40] = 0 },
		"a bucket before the window":    func(b []byte) { binary.LittleEndian.PutUint64(b[bucket:], 1) },
		"a bucket after the last event": func(b []byte) { b[bucket]++ },
		"a bucket without trades":       func(b []byte) { clear(b[bucket+56 : bucket+64]) },
		"a bucket with low above open":  func(b []byte) { b[bucket+24] = 11 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := slices.Clone(good)
			spoil(bad)
			if _, _, err := Restore(bad); err == nil {
				t.Fatal("was restored")
			} else if !errors.Is(err, codec.ErrSnapshot) && name != "a version to come" {
				t.Fatalf("error %v is not codec.ErrSnapshot", err)
			}
		})
	}
	for n := range good {
		if _, _, err := Restore(good[:n]); err == nil {
			t.Fatalf("%d of %d bytes were restored", n, len(good))
		}
	}
}

func FuzzRestoreMarketData(f *testing.F) {
	busy := newMDEvents()
	for i := range market.Price(200) {
		busy.rest(market.Buy, 100+i, 1)
		busy.trade(market.Sell, 400+i%7, 2)
		busy.at += minute / 3
	}
	for _, m := range []*mdEvents{plainData(), mirroredData(), busy} {
		f.Add(m.md.AppendSnapshot(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, rest, err := Restore(data)
		if err != nil {
			return
		}
		version := binary.LittleEndian.Uint16(data[4:])
		if again := append(m.appendSnapshot(nil, version), rest...); !bytes.Equal(again, data) {
			t.Fatalf("restored %x, appends %x", data, again)
		}
		m.Flush(nil)
		if m.at > math.MaxInt64-2*windowMinutes*minute {
			return
		}
		m.Advance(m.at + 2*windowMinutes*minute)
		m.Flush(nil)
		for _, l := range m.data {
			if l != nil && l.view.Ticker.Trades24h != 0 {
				t.Fatalf("trades of two days ago: %+v", l.view.Ticker)
			}
		}
	})
}
