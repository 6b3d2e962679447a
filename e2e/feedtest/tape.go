package feedtest

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
	"blockdesk/e2e/programtest"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service"
)

// Journaled is a trade by the journal's commands, matched by the naive book instead of
// the serving one.
type Journaled struct {
	ID    uint64
	Price market.Price
	Qty   market.Qty
	Side  market.Side
	At    int64 // Unix nanoseconds
}

// Tape is the trades of one instrument, oldest first.
type Tape struct {
	In     market.Instrument
	Trades []Journaled
}

// JournalTapes replays a copy of a stopped server's journal from its first command.
func JournalTapes(t *testing.T, s *server.Server) map[string]*Tape {
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
	byInstrument := map[market.InstrumentID]*Tape{}
	replica, err := store.Recover(0, func(events []event.Event) {
		for i := range events {
			e := &events[i]
			x, ok := marketdata.TradeOf(e)
			if !ok {
				continue
			}
			if byInstrument[e.Instrument] == nil {
				byInstrument[e.Instrument] = &Tape{}
			}
			of := byInstrument[e.Instrument]
			of.Trades = append(of.Trades, Journaled{ID: uint64(x.ID), Price: x.Price, Qty: x.Qty, Side: x.Side, At: x.At})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	tapes := map[string]*Tape{}
	for _, in := range replica.State.Instruments() {
		of := byInstrument[in.ID]
		if of == nil {
			of = &Tape{}
		}
		of.In = in
		tapes[in.Symbol] = of
	}
	return tapes
}

// PublishedTrade is a trade as published by the feed and REST.
type PublishedTrade struct {
	ID    uint64 `json:"trade_id"`
	Price string `json:"price"`
	Qty   string `json:"qty"`
	Side  string `json:"side"`
	TS    string `json:"ts"`
}

// Published returns trade i in the form in which it must be published.
func (p *Tape) Published(i int) PublishedTrade {
	x := &p.Trades[i]
	return PublishedTrade{
		ID: x.ID, Price: string(p.In.AppendPrice(nil, x.Price)), Qty: string(p.In.AppendQty(nil, x.Qty)), Side: x.Side.String(),
		TS: time.Unix(0, x.At).UTC().Format("2006-01-02T15:04:05.000000Z"),
	}
}

// Digest returns the hash that followers compute of their tapes.
func (p *Tape) Digest() string {
	hash := sha256.New()
	for i := range p.Trades {
		x := p.Published(i)
		fmt.Fprintf(hash, "%d,%s,%s,%s,%s\n", x.ID, x.Price, x.Qty, x.Side, x.TS)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// candles returns the trades' candles in REST's format.
func (p *Tape) candles(width time.Duration) [][8]any {
	var out [][8]any
	for from := 0; from < len(p.Trades); {
		open := p.Trades[from].At - p.Trades[from].At%int64(width)
		to := from
		high, low, volume, quote := market.Price(0), market.MaxPrice, market.Qty(0), market.Uint128{}
		for ; to < len(p.Trades) && p.Trades[to].At-open < int64(width); to++ {
			x := &p.Trades[to]
			high, low, volume = max(high, x.Price), min(low, x.Price), volume+x.Qty
			quote = programtest.Must(quote.Add(market.Mul(uint64(x.Price), uint64(x.Qty))))
		}
		price := func(n market.Price) any { return string(p.In.AppendPrice(nil, n)) }
		out = append(out, [8]any{
			float64(open / int64(time.Millisecond)), price(p.Trades[from].Price), price(high), price(low), price(p.Trades[to-1].Price),
			string(p.In.AppendQty(nil, volume)), string(p.In.AppendTickLots(nil, quote)), float64(to - from),
		})
		from = to
	}
	return out
}

// CheckHistory compares REST's history with the journal: every trade, by paging, and
// every candle of every interval.
func CheckHistory(t *testing.T, s *server.Server, tapes map[string]*Tape) {
	t.Helper()
	for symbol, of := range tapes {
		all := pageTrades(t, s, symbol)
		if len(all) != len(of.Trades) {
			t.Fatalf("%s: %d trades by the history, %d by the journal", symbol, len(all), len(of.Trades))
		}
		for i, x := range all { // newest first
			if want := of.Published(len(all) - 1 - i); x != want {
				t.Fatalf("%s: the history has %+v, the journal %+v", symbol, x, want)
			}
		}
		for i := archive.Minute1; i <= archive.Day1; i++ {
			var answer struct {
				Candles [][8]any `json:"candles"`
			}
			programtest.GetJSON(t, s.Addresses.API+"/api/v1/market/candles?limit=1440&timeframe="+i.String()+"&symbol="+symbol, &answer)
			want := of.candles(i.Length())
			if !slices.Equal(answer.Candles, want) {
				t.Fatalf("%s: the candles of %s are\n%v, of the journal's trades\n%v", symbol, i, answer.Candles, want)
			}
		}
	}
}

// pageTrades reads all trades of a symbol by their cursor, newest first.
func pageTrades(t *testing.T, s *server.Server, symbol string) (all []PublishedTrade) {
	t.Helper()
	const most = 100
	before := uint64(1<<63 - 1)
	for {
		var page struct{ Trades []PublishedTrade }
		programtest.GetJSON(t, fmt.Sprintf("%s/api/v1/market/trades?symbol=%s&limit=%d&before=%d", s.Addresses.API, symbol, most, before), &page)
		all = append(all, page.Trades...)
		if len(page.Trades) < most {
			return all
		}
		before = page.Trades[most-1].ID
	}
}
