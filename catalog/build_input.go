package catalog

import (
	"time"

	"blockdesk/desk"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// Cycle is how long facts are valid (docs/specification.md 1.4).
const Cycle = 10 * time.Second

// Input is everything from which facts are computed, read at one moment.
type Input struct {
	At      Time
	Service Service
	URLs    URLs
	// Tokens come from the configuration. NewFacts adds supplies and balances to a copy.
	Tokens      []Token
	Instruments []market.Instrument
	Views       Views
	History     History
	Mirror      Mirror
	Settlement  *Settlement // nil without a chain
	// Desk is the RFQ desk's state. It may be nil before the first event, and is nil if
	// the desk is not enabled.
	DeskEnabled bool
	Desk        *rfq.View
	Sales       SalesReader // nil without a desk
}

// SalesReader sums up the desk's sales; *desk.Desk is one.
type SalesReader interface {
	// SalesSummary returns the totals of all sales of an instrument, and of those that
	// settled after a time in Unix nanoseconds.
	SalesSummary(in market.InstrumentID, after int64) (all, since desk.SalesTotals, err error)
}

// Views returns the published view of an instrument, nil before its first event.
type Views interface {
	View(in market.InstrumentID) *marketdata.View
}

// History has the trades that are older than those of the views; *archive.Archive is one.
type History interface {
	// Candles returns the candles that open before a time in Unix nanoseconds (0: the
	// newest), oldest first.
	Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) ([]archive.Candle, error)
	// TradeBefore returns the last trade before a time in Unix nanoseconds; ok is false if
	// there is none.
	TradeBefore(in market.InstrumentID, at int64) (t marketdata.Trade, ok bool, err error)
	// Traders returns how many participants have traded on an instrument's own book.
	Traders(in market.InstrumentID) uint64
	// Definition returns when an instrument was defined; ok is false if that is unknown.
	Definition(in market.InstrumentID) (d archive.Definition, ok bool)
	// CompleteSince returns the time since which no trade is missing, Unix nanoseconds.
	CompleteSince() int64
}

// Mirror is the state of the mirrored instruments. The zero value means that no chain is
// read.
type Mirror struct {
	Pairs  []MirrorPair
	State  *mirror.State
	Trades TradeFinder // may be nil
}

// MirrorPair is the configuration of one mirrored instrument.
type MirrorPair struct {
	Symbol                      string
	BaseMint, QuoteMint         string
	BaseDecimals, QuoteDecimals int
	// Book: the pair has an order book on chain.
	Book bool
	// Pool has the members that the configuration sets; nil = no pool.
	Pool *Pool
	// PoolFees: the pool's program counts the fees that it owes.
	PoolFees bool
	// Observed have Address, Role and Label.
	Observed []Account
}

// Settlement is the state of settlement's nodes and its open work.
type Settlement struct {
	Nodes    []rpc.UpstreamHealth
	UnderWay int
	// RefundsDue counts all refunds due; Refunds may be truncated.
	RefundsDue int
	Refunds    []rfq.Payment
	// Unmatched counts the payments that match no claim, UnmatchedItems are the first of them.
	Unmatched      int
	UnmatchedItems []desk.MoneyItem
	// Balances are those of the desk's wallet, with the supplies of their mints.
	Balances []desk.Balance
}

// desk sums up tickets, claims and refunds.
func (in *Input) desk() Desk {
	d := Desk{Enabled: true}
	if v := in.Desk; v != nil {
		for _, t := range v.Tickets {
			open := t.State == rfq.TicketOpen
			if open {
				d.OpenTickets++
			}
			for i := range t.Tranches {
				tr := &t.Tranches[i]
				d.ReservedUSD += tr.Reserved
				if open {
					d.CapacityUSD += tr.Capacity
					d.AvailableUSD += tr.Available()
				}
			}
		}
	}
	if s := in.Settlement; s != nil {
		d.UnderWay, d.RefundsDue = uint64(s.UnderWay), uint64(s.RefundsDue)
		d.Unmatched = uint64(s.Unmatched)
		for i := range s.UnmatchedItems {
			if x := &s.UnmatchedItems[i]; x.Rail == market.RailUSDC {
				d.UnmatchedUSDC += market.Amount(x.Amount)
			} else {
				d.UnmatchedSOL += market.Amount(x.Amount)
			}
		}
		for i := range s.Refunds {
			if p := &s.Refunds[i]; p.Rail == market.RailUSDC {
				d.RefundsUSDC += market.Amount(p.Amount)
			} else {
				d.RefundsSOL += market.Amount(p.Amount)
			}
		}
	}
	return d
}

// TradeFinder finds the transaction of a mirrored instrument's trade; *mirror.Service is
// one.
type TradeFinder interface {
	Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error)
}
