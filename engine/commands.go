package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"blockdesk/market"
)

// DefineInstrumentCommand packs an instrument into a command: the symbol in Ref, decimals
// and source in Arg, Tick in Order.ID, Lot in Order.Stop, MinQty in Order.Display, MaxQty
// in Order.Qty, MaxPrice in Order.Price. Errors: those of Instrument.Validate.
//
// The engine requires consecutive IDs from 0. A second definition may change only MinQty,
// MaxQty and MaxPrice.
func DefineInstrumentCommand(in *market.Instrument) (Command, error) {
	if err := in.Validate(); err != nil {
		return Command{}, err
	}
	c := Command{Kind: DefineInstrument, Instrument: in.ID}
	c.Order.ID = market.OrderID(in.Tick)
	c.Order.Stop = market.Price(in.Lot)
	c.Order.Display = in.MinQty
	c.Order.Qty = in.MaxQty
	c.Order.Price = in.MaxPrice
	c.Arg = uint64(in.PriceDecimals) | uint64(in.QtyDecimals)<<8 | uint64(in.Source)<<16
	c.SetRef([]byte(in.Symbol))
	return c, nil
}

// definition unpacks and validates what DefineInstrumentCommand packed.
func definition(c *Command) (market.Instrument, error) {
	symbol := string(c.RefText())
	base, quote, _ := strings.Cut(symbol, "/")
	in := market.Instrument{
		ID: c.Instrument, Symbol: symbol, Base: base, Quote: quote,
		PriceDecimals: uint8(c.Arg), QtyDecimals: uint8(c.Arg >> 8), Source: market.BookSource(c.Arg >> 16),
		Tick: uint64(c.Order.ID), Lot: uint64(c.Order.Stop),
		MinQty: c.Order.Display, MaxQty: c.Order.Qty, MaxPrice: c.Order.Price,
	}
	if c.Arg>>24 != 0 {
		return in, fmt.Errorf("%q: packed definition %#x has unknown bits", symbol, c.Arg)
	}
	return in, in.Validate()
}

// CheckRedefinition returns an error that names the first field in which next, a new
// definition of an instrument, may not differ from now.
func CheckRedefinition(now, next *market.Instrument) error {
	switch {
	case now.ID != next.ID:
		return fmt.Errorf("%s: id %d: the journal has %d", next.Symbol, next.ID, now.ID)
	case now.Symbol != next.Symbol:
		return fmt.Errorf("instrument %d: symbol %s: the journal has %s", now.ID, next.Symbol, now.Symbol)
	case now.PriceDecimals != next.PriceDecimals:
		return fmt.Errorf("%s: price_decimals %d: the journal has %d", now.Symbol, next.PriceDecimals, now.PriceDecimals)
	case now.QtyDecimals != next.QtyDecimals:
		return fmt.Errorf("%s: qty_decimals %d: the journal has %d", now.Symbol, next.QtyDecimals, now.QtyDecimals)
	case now.Tick != next.Tick:
		return fmt.Errorf("%s: tick %d: the journal has %d", now.Symbol, next.Tick, now.Tick)
	case now.Lot != next.Lot:
		return fmt.Errorf("%s: lot %d: the journal has %d", now.Symbol, next.Lot, now.Lot)
	case now.Source != next.Source:
		return fmt.Errorf("%s: book_source %s: the journal has %s", now.Symbol, next.Source, now.Source)
	}
	return nil
}

// SetAuctionsCommand packs auction rules: BandBps in Order.Display, Call and Opening in
// Order.Qty and Arg, in nanoseconds, Reference in Order.Price.
func SetAuctionsCommand(in market.InstrumentID, r AuctionRules) (Command, error) {
	if err := r.Validate(); err != nil {
		return Command{}, err
	}
	c := Command{Kind: SetAuctions, Instrument: in, Arg: uint64(r.Opening)}
	c.Order.Display, c.Order.Qty, c.Order.Price = market.Qty(r.BandBps), market.Qty(r.Call), r.Reference
	return c, nil
}

// auctionRulesOf unpacks and validates what SetAuctionsCommand packed.
func auctionRulesOf(c *Command) (AuctionRules, error) {
	o := &c.Order
	if o.Display < 0 || o.Display > MaxBandBps {
		return AuctionRules{}, fmt.Errorf("packed volatility band %d: out of range", o.Display)
	}
	r := AuctionRules{
		BandBps: uint16(o.Display), Call: time.Duration(o.Qty), Opening: time.Duration(c.Arg), Reference: o.Price,
	}
	return r, r.Validate()
}

// SetRiskCommand packs the limits of a participant on an instrument or on AllInstruments.
// Limits on AllInstruments replace those on single ones and apply to later instruments too.
// MaxQty is in Order.Qty, MaxNotional in Arg and (high half) Order.ID, MaxOpenOrders in
// Order.Stop, BandBps in Order.Display.
func SetRiskCommand(participant market.ParticipantID, in market.InstrumentID, l Limits) (Command, error) {
	if participant == 0 {
		return Command{}, errors.New("participant 0 is the service itself and has no limits: give a participant from 1")
	}
	if err := l.Validate(); err != nil {
		return Command{}, fmt.Errorf("participant %d: %w", participant, err)
	}
	c := Command{Kind: SetRisk, Instrument: in, Arg: l.MaxNotional.Lo}
	c.Order.ID = market.OrderID(l.MaxNotional.Hi)
	c.Order.Participant = participant
	c.Order.Qty = l.MaxQty
	c.Order.Stop = market.Price(l.MaxOpenOrders)
	c.Order.Display = market.Qty(l.BandBps)
	return c, nil
}

// limitsOf unpacks and validates what SetRiskCommand packed.
func limitsOf(c *Command) (Limits, error) {
	o := &c.Order
	if o.Stop < 0 || o.Stop > math.MaxInt32 || o.Display < 0 || o.Display > MaxBandBps {
		return Limits{}, fmt.Errorf("packed limits max_open_orders %d, band_bps %d: out of range", o.Stop, o.Display)
	}
	l := Limits{
		MaxQty: o.Qty, MaxNotional: market.Uint128{Hi: uint64(o.ID), Lo: c.Arg},
		MaxOpenOrders: int32(o.Stop), BandBps: uint16(o.Display),
	}
	return l, l.Validate()
}
