package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// codeMarketState means that an instrument cannot be halted, resumed or called now: our choice.
const codeMarketState = "MARKET_STATE"

// Markets serves /desk/markets: the status of the instruments' books. Implementations are
// safe for concurrent use.
type Markets interface {
	// View returns the published state of an instrument; nil = none yet.
	View(in market.InstrumentID) *marketdata.View
	// SetStatus halts an instrument, resumes it, or begins an auction, in which orders gather
	// for a time; 0 = until it is resumed. It returns once that is published, or with ctx's
	// error. Errors: as of desk.Desk.Do.
	SetStatus(ctx context.Context, by market.OperatorID, in market.InstrumentID, status uint8, gather time.Duration) error
}

// marketWait bounds how long a change of a status may take until it is published.
const marketWait = 5 * time.Second

// marketJSON is an instrument's book in JSON.
type marketJSON struct {
	Pair    string       `json:"pair"`
	Source  string       `json:"book_source"`
	Status  string       `json:"status"` // trading, halted, auction or unknown
	Auction *auctionJSON `json:"auction"`
}

// auctionJSON is what an auction would trade now; null: nothing.
type auctionJSON struct {
	Price      *string   `json:"indicative_price"`
	Volume     string    `json:"indicative_volume"`
	EndsAt     wire.Time `json:"ends_at"` // null: on a command
	Uncrossing bool      `json:"uncrossing"`
}

type marketsAnswer struct {
	OK      bool         `json:"ok"`
	Markets []marketJSON `json:"markets"`
}

// marketEndpoints are the operators' endpoints of the books.
type marketEndpoints struct {
	markets     Markets
	instruments *market.Instruments
	log         commandLog
}

func (e *marketEndpoints) routes() operatorRoutes {
	return operatorRoutes{"/desk/markets": {"GET": e.list, "POST": bodied(e.set)}}
}

func (e *marketEndpoints) list(*call) (any, *wire.Problem) {
	answer := marketsAnswer{true, []marketJSON{}}
	for i := range e.instruments.Len() {
		answer.Markets = append(answer.Markets, e.market(e.instruments.Get(market.InstrumentID(i))))
	}
	return answer, nil
}

func (e *marketEndpoints) market(in *market.Instrument) marketJSON {
	m := marketJSON{Pair: in.Symbol, Source: in.Source.String(), Status: "unknown"}
	v := e.markets.View(in.ID)
	if v == nil {
		return m
	}
	switch v.Status {
	case event.StatusTrading:
		m.Status = "trading"
	case event.StatusHalted:
		m.Status = "halted"
	case event.StatusAuction:
		a := &v.Auction
		m.Status = "auction"
		m.Auction = &auctionJSON{Volume: string(in.AppendQty(nil, a.Volume)), EndsAt: wire.Time(a.Until), Uncrossing: a.Uncrossing}
		if a.Price != 0 {
			p := string(in.AppendPrice(nil, a.Price))
			m.Auction.Price = &p
		}
	}
	return m
}

type setMarketBody struct {
	Pair   string `json:"pair"`
	Status string `json:"status"` // halted, auction or trading
	CallS  int64  `json:"call_s"` // how long orders gather; 0: until the market is resumed
}

// set changes the status of an instrument. Repeating it has no other effect, except that an
// auction's call begins again.
func (e *marketEndpoints) set(c *call, in *setMarketBody) (any, *wire.Problem) {
	if in.Pair == "" {
		return nil, wire.MissingMember("pair")
	}
	instrument := e.instruments.Lookup([]byte(in.Pair))
	if instrument == nil {
		return nil, &wire.Problem{
			Status: http.StatusBadRequest, Code: wire.CodeUnknownSymbol, Field: "pair",
			Text: "Unknown pair. GET /desk/markets lists all pairs.",
		}
	}
	status, ok := map[string]uint8{"halted": engine.StatusHalted, "auction": engine.StatusAuction, "trading": engine.StatusTrading}[in.Status]
	gather := time.Duration(in.CallS) * time.Second
	switch {
	case !ok:
		return nil, invalidOperatorField("status", "must be halted, auction or trading")
	case in.CallS < 0 || in.CallS > int64(engine.MaxCall/time.Second) || in.CallS != 0 && status != engine.StatusAuction:
		return nil, invalidOperatorField("call_s", fmt.Sprintf("must be 0 to %d, and only with the status auction", int64(engine.MaxCall/time.Second)))
	case status == engine.StatusAuction && instrument.Source != market.Matched:
		return nil, marketState("not_matched", "The book is a mirror: it has no auctions.")
	}
	if v := e.markets.View(instrument.ID); status == engine.StatusAuction && v != nil && v.Auction.Uncrossing {
		return nil, marketState("uncrossing", "The auction's orders trade now. Try again in a moment.")
	}
	ctx, cancel := context.WithTimeout(c.Context(), marketWait)
	defer cancel()
	if err := e.markets.SetStatus(ctx, c.operator.ID, instrument.ID, status, gather); err != nil {
		problem := terms.DeskProblem(err)
		e.log.Error("operator command failed", "request_id", string(c.id[:]), "path", c.Pattern, "error", err)
		return nil, problem
	}
	e.log.Info("market status changed", "request_id", string(c.id[:]), "operator", c.operator.Name,
		"pair", in.Pair, "status", in.Status, "call", gather)
	return marketsAnswer{true, []marketJSON{e.market(instrument)}}, nil
}

func marketState(reason, text string) *wire.Problem {
	return &wire.Problem{Status: http.StatusConflict, Code: codeMarketState, Reason: reason, Text: text}
}
