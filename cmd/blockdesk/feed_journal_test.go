package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/feed/archive"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service"
)

// journaled is one trade as the journal's commands lead to it, matched by the
// obvious book and not by the one that serves.
type journaled struct {
	id    uint64
	price market.Price
	qty   market.Qty
	side  market.Side
	at    int64 // Unix nanoseconds
}

// tape is the trades of one instrument, oldest first.
type tape struct {
	in     market.Instrument
	trades []journaled
}

// journalTapes replays a copy of the journal of a server that does not run, from
// its first command.
func journalTapes(t *testing.T, s *server.Server) map[string]*tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(s.DataDir(), service.JournalFolder))); err != nil {
		t.Fatal(err)
	}
	state := engine.StateOptions{Naive: true}
	store, err := persist.Open(persist.Options{Dir: dir, State: state, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	byInstrument := map[market.InstrumentID]*tape{}
	replica, err := store.Recover(0, func(events []event.Event) {
		for i := range events {
			e := &events[i]
			x, ok := engine.TradeOf(e)
			if !ok {
				continue
			}
			if byInstrument[e.Instrument] == nil {
				byInstrument[e.Instrument] = &tape{}
			}
			of := byInstrument[e.Instrument]
			of.trades = append(of.trades, journaled{id: uint64(x.ID), price: x.Price, qty: x.Qty, side: x.Side, at: x.At})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	tapes := map[string]*tape{}
	for _, in := range replica.State.Instruments() {
		of := byInstrument[in.ID]
		if of == nil {
			of = &tape{}
		}
		of.in = in
		tapes[in.Symbol] = of
	}
	return tapes
}

// toldTrade is a trade as the feed and REST tell it.
type toldTrade struct {
	ID    uint64 `json:"trade_id"`
	Price string `json:"price"`
	Qty   string `json:"qty"`
	Side  string `json:"side"`
	TS    string `json:"ts"`
}

// told is the trade at i as it must be told.
func (p *tape) told(i int) toldTrade {
	x := &p.trades[i]
	return toldTrade{
		ID: x.id, Price: string(p.in.AppendPrice(nil, x.price)), Qty: string(p.in.AppendQty(nil, x.qty)), Side: x.side.String(),
		TS: time.Unix(0, x.at).UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
}

// digest is the hash that the followers make of their tapes.
func (p *tape) digest() string {
	hash := sha256.New()
	for i := range p.trades {
		x := p.told(i)
		fmt.Fprintf(hash, "%d,%s,%s,%s,%s\n", x.ID, x.Price, x.Qty, x.Side, x.TS)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// candles sums the trades up, in REST's form.
func (p *tape) candles(width time.Duration) [][8]any {
	var out [][8]any
	for from := 0; from < len(p.trades); {
		open := p.trades[from].at - p.trades[from].at%int64(width)
		to := from
		high, low, volume, quote := market.Price(0), market.MaxPrice, market.Qty(0), market.Uint128{}
		for ; to < len(p.trades) && p.trades[to].at-open < int64(width); to++ {
			x := &p.trades[to]
			high, low, volume = max(high, x.price), min(low, x.price), volume+x.qty
			quote = must(quote.Add(market.Mul(uint64(x.price), uint64(x.qty))))
		}
		price := func(n market.Price) any { return string(p.in.AppendPrice(nil, n)) }
		out = append(out, [8]any{
			float64(open / int64(time.Millisecond)), price(p.trades[from].price), price(high), price(low), price(p.trades[to-1].price),
			string(p.in.AppendQty(nil, volume)), string(p.in.AppendTickLots(nil, quote)), float64(to - from),
		})
		from = to
	}
	return out
}

// checkHistory holds what REST tells of the past to the journal: every trade by
// its pages, and every candle of every interval.
func checkHistory(t *testing.T, s *server.Server, tapes map[string]*tape) {
	t.Helper()
	for symbol, of := range tapes {
		all := pageTrades(t, s, symbol)
		if len(all) != len(of.trades) {
			t.Fatalf("%s: %d trades by the history, %d by the journal", symbol, len(all), len(of.trades))
		}
		for i, x := range all { // newest first
			if want := of.told(len(all) - 1 - i); x != want {
				t.Fatalf("%s: the history has %+v, the journal %+v", symbol, x, want)
			}
		}
		for i := archive.Minute1; i <= archive.Day1; i++ {
			var answer struct {
				Candles [][8]any `json:"candles"`
			}
			getJSON(t, s.Addresses.API+"/api/v1/market/candles?limit=1440&timeframe="+i.String()+"&symbol="+symbol, &answer)
			want := of.candles(i.Length())
			if !slices.Equal(answer.Candles, want) {
				t.Fatalf("%s: the candles of %s are\n%v, of the journal's trades\n%v", symbol, i, answer.Candles, want)
			}
		}
	}
}

// pageTrades reads all trades of a symbol by their cursor, newest first.
func pageTrades(t *testing.T, s *server.Server, symbol string) (all []toldTrade) {
	t.Helper()
	const most = 100
	before := uint64(1<<63 - 1)
	for {
		var page struct{ Trades []toldTrade }
		getJSON(t, fmt.Sprintf("%s/api/v1/market/trades?symbol=%s&limit=%d&before=%d", s.Addresses.API, symbol, most, before), &page)
		all = append(all, page.Trades...)
		if len(page.Trades) < most {
			return all
		}
		before = page.Trades[most-1].ID
	}
}
