package engine

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"blockdesk/engine/book"
	"blockdesk/engine/codec"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ErrSnapshot is wrapped by the errors of RestoreState and RestoreReplica about a damaged
// snapshot, ErrVersion by those about an intact one of another program version.
var (
	ErrSnapshot = codec.ErrSnapshot
	ErrVersion  = codec.ErrVersion
)

// RestoreState decodes a snapshot. It refuses, with ErrSnapshot, what AppendSnapshot cannot
// have written: it checks every record, and the restored state must encode to the same
// bytes. o.MaxOrders is ignored, because the snapshot has its own. Memory stays
// proportional to data.
func RestoreState(data []byte, o StateOptions) (*State, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := NewState(o)
	// The limit may have been lowered below the number of live orders.
	s.maxOrders = book.MaxMaxOrders
	r := &codec.Reader{Data: data}
	h, err := s.restoreHeader(r)
	if err != nil {
		return nil, err
	}
	var orders []book.LiveOrder
	var bounds []int
	for i := range h.instruments {
		if orders, err = s.restoreInstrument(r, market.InstrumentID(i), orders); err != nil {
			return nil, fmt.Errorf("instrument %d: %w", i, err)
		}
		bounds = append(bounds, len(orders))
	}
	for range h.participants {
		if err := s.restoreParticipant(r); err != nil {
			return nil, err
		}
	}
	if err := s.restoreDesk(r); err != nil {
		return nil, err
	}
	if err := s.restoreMirrored(r, h.version); err != nil {
		return nil, err
	}
	if err := s.restoreQuotes(r, h.version); err != nil {
		return nil, err
	}
	if err := s.restoreAuctions(r, h.version); err != nil {
		return nil, err
	}
	if r.Short || len(r.Data) != 0 {
		return nil, fmt.Errorf("%d bytes are too few or too many: %w", len(data), ErrSnapshot)
	}
	if err := s.restoreOrders(orders, bounds); err != nil {
		return nil, err
	}
	s.setMaxOrders(h.maxOrders)
	if !bytes.Equal(s.AppendSnapshot(make([]byte, 0, len(data))), data) {
		return nil, fmt.Errorf("not in canonical form: %w", ErrSnapshot)
	}
	return s, nil
}

// stateHeader is the header of a State's snapshot.
type stateHeader struct {
	version                              uint16
	instruments, participants, maxOrders int
}

func (s *State) restoreHeader(r *codec.Reader) (h stateHeader, err error) {
	if string(r.Take(4)) != stateMagic {
		return h, fmt.Errorf("not a state snapshot: %w", ErrSnapshot)
	}
	if h.version = r.U16(); h.version < stateVersion2 || h.version > stateVersion {
		return h, fmt.Errorf("state snapshot version %d, this program reads %d to %d: %w",
			h.version, stateVersion2, stateVersion, ErrVersion)
	}
	h.instruments, h.participants = int(r.U16()), int(r.U16())
	s.inSlices = r.U16() == flagInSlices && h.version >= stateVersion5
	h.maxOrders = int(r.U32())
	s.seq = r.U64()
	s.at = int64(r.U64())
	s.epoch = r.U64()
	s.trades = market.TradeID(r.U64())
	if h.instruments > market.MaxInstruments || s.at < 0 || s.epoch > MaxEpoch ||
		h.maxOrders < 1 || h.maxOrders > book.MaxMaxOrders || s.trades > math.MaxInt64 || r.Short {
		return h, fmt.Errorf("header: %w", ErrSnapshot)
	}
	return h, nil
}

// restoreInstrument decodes an instrument and appends its orders to orders. restoreOrders
// adds them to the book once the participants are known.
func (s *State) restoreInstrument(r *codec.Reader, id market.InstrumentID, orders []book.LiveOrder) ([]book.LiveOrder, error) {
	length := int(r.U8())
	def := market.Instrument{ID: id, PriceDecimals: r.U8(), QtyDecimals: r.U8(), Source: market.BookSource(r.U8())}
	status := r.U8()
	r.Take(3)
	def.Tick, def.Lot = r.U64(), r.U64()
	def.MinQty, def.MaxQty, def.MaxPrice = market.Qty(r.U64()), market.Qty(r.U64()), market.Price(r.U64())
	last := market.Price(r.U64())
	count := int(r.U32())
	def.Symbol = string(r.Take(length))
	def.Base, def.Quote, _ = strings.Cut(def.Symbol, "/")
	if err := def.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrSnapshot)
	}
	if status < StatusTrading || status > StatusAuction || last < 0 || last > market.MaxPrice ||
		count > s.maxOrders || count > len(r.Data)/orderSize || s.hasSymbol(def.Symbol) ||
		count > 0 && def.Source == market.Mirrored {
		return nil, ErrSnapshot
	}
	s.addInstrument(def)
	in := &s.instruments[id]
	in.setStatus(status)
	in.book.stored().SetLastTrade(last)
	orders = slices.Grow(orders, count)
	for range count {
		orders = append(orders, readOrder(r))
	}
	return orders, nil
}

func readOrder(r *codec.Reader) book.LiveOrder {
	var o book.LiveOrder
	o.ID = market.OrderID(r.U64())
	o.Price, o.Stop = market.Price(r.U64()), market.Price(r.U64())
	o.Qty, o.Display = market.Qty(r.U64()), market.Qty(r.U64())
	o.ExpireAt = int64(r.U64())
	o.Open, o.Shown = market.Qty(r.U64()), market.Qty(r.U64())
	o.EnteredSeq = r.U64()
	o.Participant = market.ParticipantID(r.U16())
	o.Side, o.Type = market.Side(r.U8()), book.Type(r.U8())
	o.TIF, o.Flags, o.STP = book.TIF(r.U8()), book.Flag(r.U8()), book.STP(r.U8())
	o.Waiting = r.U8() == 1
	return o
}

func (s *State) restoreParticipant(r *codec.Reader) error {
	number, status := r.U16(), r.U8()
	r.U8()
	own := int(r.U16())
	r.U16()
	if number == 0 || s.ParticipantStatus(market.ParticipantID(number)) != 0 ||
		status != StatusKilled && status != StatusLive ||
		own > len(s.instruments) || (own+1)*limitsSize > len(r.Data) {
		return fmt.Errorf("participant %d: %w", number, ErrSnapshot)
	}
	p := s.participantAt(market.ParticipantID(number))
	p.status = status
	for i := range own + 1 {
		l, err := readLimits(r)
		switch {
		case err != nil:
			return fmt.Errorf("participant %d: %w: %w", number, err, ErrSnapshot)
		case i == 0:
			p.common = l
		default:
			p.own = append(p.own, l)
		}
	}
	return nil
}

func readLimits(r *codec.Reader) (limits, error) {
	var l Limits
	l.MaxQty = market.Qty(r.U64())
	l.MaxNotional.Hi = r.U64()
	l.MaxNotional.Lo = r.U64()
	l.MaxOpenOrders = int32(r.U32())
	l.BandBps = r.U16()
	r.U16()
	return l.compile(), l.Validate()
}

func (s *State) restoreDesk(r *codec.Reader) error {
	length := r.U64()
	if length > uint64(len(r.Data)) {
		return fmt.Errorf("desk: length %d: %w", length, ErrSnapshot)
	}
	desk, err := rfq.Restore(r.Take(int(length)))
	if err != nil {
		return fmt.Errorf("desk: %w: %w", err, ErrSnapshot)
	}
	s.desk = desk
	s.expiresAt(desk.NextExpiry())
	pieces := r.U32()
	if uint64(pieces) > uint64(len(r.Data)) || !s.assembler.restore(r.Take(int(pieces)), s.seq+1) {
		return fmt.Errorf("desk: %d bytes of a request: %w", pieces, ErrSnapshot)
	}
	return nil
}

// restoreOrders fills the books. bounds[i] is the end of the orders of instrument i.
func (s *State) restoreOrders(orders []book.LiveOrder, bounds []int) error {
	start := 0
	for i, end := range bounds {
		b := s.instruments[i].book.stored()
		for k := start; k < end; k++ {
			o := &orders[k]
			if s.ParticipantStatus(o.Participant) == 0 {
				return fmt.Errorf("instrument %d: order %d of unknown participant %d: %w", i, o.ID, o.Participant, ErrSnapshot)
			}
			if err := b.Import(*o); err != nil {
				return fmt.Errorf("instrument %d: %w: %w", i, err, ErrSnapshot)
			}
			s.orderExpiresAt(o.ExpireAt)
		}
		if b.Sweeping() {
			if !s.inSlices {
				return fmt.Errorf("instrument %d: ending orders: %w", i, ErrSnapshot)
			}
			s.addSweep(market.InstrumentID(i))
		}
		start = end
	}
	return nil
}
