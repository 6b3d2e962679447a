package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/market"
)

const (
	// MaxMirrorLevels is the most levels a side of a mirrored book.
	MaxMirrorLevels = MaxDepth
	// MaxMirrorQty is the most lots that a level of a mirrored book shows.
	MaxMirrorQty = book.MaxLevelQty

	mirrorVersion    = 1
	mirrorHeaderSize = 16
	// mirrorLevelBytes is the longest a level is: a price of up to 47 bits and a
	// quantity of up to 61.
	mirrorLevelBytes = 7 + 9
	maxMirrorBytes   = mirrorHeaderSize + 2*MaxMirrorLevels*mirrorLevelBytes
)

// ErrMirror is what is wrong with a refresh or a trade that the chain cannot
// have made.
var ErrMirror = errors.New("engine: not a market's")

// MirrorBook is the displayed book of a mirrored instrument at one slot.
type MirrorBook struct {
	Instrument market.InstrumentID
	Slot       uint64 // at least 1
	// Bids and Asks are best first, each price once, at most MaxMirrorLevels.
	// Prices are 1..market.MaxPrice ticks, quantities 1..MaxMirrorQty lots. A bid
	// may be above an ask: some chains leave such orders for a while.
	Bids, Asks []market.Level
}

// MirrorRefreshCommands appends to dst the 1..MaxPieces commands that make a
// mirrored instrument's book what b says, for one SubmitAll, and returns the
// extended slice. It keeps nothing of b. Errors wrap ErrMirror.
//
// The encoding travels as a request to the desk does (DeskCommands), its last
// piece in a MirrorRefresh. Little-endian; a level is two varints, the distance
// from the price before it (from 0 the first time) and the quantity:
//
//	 0         1   2            4      12     14     16
//	┌─────────┬───┬────────────┬──────┬──────┬──────┐
//	│ version │ 0 │ instrument │ slot │ bids │ asks │  then bids and asks, best first
//	└─────────┴───┴────────────┴──────┴──────┴──────┘
//
// The engine refuses a slot that is not after the one it has (ReasonStaleSlot)
// and an instrument of our own (ReasonNotMirrored), and drops what is torn, see
// State rule 6: whatever is refused changes nothing.
func MirrorRefreshCommands(dst []Command, b *MirrorBook) ([]Command, error) {
	var buf [maxMirrorBytes]byte
	if err := b.validate(); err != nil {
		return dst, fmt.Errorf("instrument %d, slot %d: %w", b.Instrument, b.Slot, err)
	}
	return appendPieces(dst, b.append(buf[:0]), MirrorRefresh, uint64(b.Instrument)), nil
}

func (b *MirrorBook) validate() error {
	if b.Instrument >= market.MaxInstruments || b.Slot == 0 {
		return ErrMirror
	}
	if err := checkLevels(b.Bids, -1); err != nil {
		return fmt.Errorf("bids: %w", err)
	}
	if err := checkLevels(b.Asks, +1); err != nil {
		return fmt.Errorf("asks: %w", err)
	}
	return nil
}

// checkLevels reports what is wrong with a side of a mirrored book, whose prices
// go the way of sign from the best on.
func checkLevels(levels []market.Level, sign market.Price) error {
	if len(levels) > MaxMirrorLevels {
		return fmt.Errorf("%w: %d levels, at most %d", ErrMirror, len(levels), MaxMirrorLevels)
	}
	for i, l := range levels {
		if l.Price < 1 || l.Price > market.MaxPrice || l.Qty < 1 || l.Qty > MaxMirrorQty ||
			i > 0 && (l.Price-levels[i-1].Price)*sign <= 0 {
			return fmt.Errorf("%w: level %d: price %d, quantity %d", ErrMirror, i, l.Price, l.Qty)
		}
	}
	return nil
}

// append appends the encoding of a book that is valid.
func (b *MirrorBook) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, mirrorVersion, 0)
	dst = le.AppendUint16(dst, uint16(b.Instrument))
	dst = le.AppendUint64(dst, b.Slot)
	dst = le.AppendUint16(dst, uint16(len(b.Bids)))
	dst = le.AppendUint16(dst, uint16(len(b.Asks)))
	for _, side := range [...][]market.Level{b.Bids, b.Asks} {
		var last market.Price
		for _, l := range side {
			dst = binary.AppendUvarint(dst, uint64(max(l.Price-last, last-l.Price)))
			dst = binary.AppendUvarint(dst, uint64(l.Qty))
			last = l.Price
		}
	}
	return dst
}

// DecodeMirrorBook reads what an Assembler has put together of MirrorRefresh. It
// keeps nothing of data, and takes no more memory than MaxMirrorLevels need.
// Errors wrap ErrMirror.
func DecodeMirrorBook(data []byte) (MirrorBook, error) {
	if len(data) < mirrorHeaderSize || data[0] != mirrorVersion || data[1] != 0 {
		return MirrorBook{}, fmt.Errorf("%w: header", ErrMirror)
	}
	le := binary.LittleEndian
	b := MirrorBook{Instrument: market.InstrumentID(le.Uint16(data[2:])), Slot: le.Uint64(data[4:])}
	bids, asks := int(le.Uint16(data[12:])), int(le.Uint16(data[14:]))
	rest := data[mirrorHeaderSize:]
	var whole, also bool
	b.Bids, rest, whole = readLevels(rest, bids, -1)
	b.Asks, rest, also = readLevels(rest, asks, +1)
	if !whole || !also || len(rest) != 0 {
		return MirrorBook{}, fmt.Errorf("%w: levels", ErrMirror)
	}
	return b, b.validate()
}

// readLevels reads n levels off data. Their order and range are the caller's to
// check; what it returns cannot overflow.
func readLevels(data []byte, n int, sign market.Price) (levels []market.Level, rest []byte, ok bool) {
	if n > MaxMirrorLevels {
		return nil, nil, false
	}
	levels = make([]market.Level, n)
	var price market.Price
	for i := range levels {
		distance, a := binary.Uvarint(data)
		if a <= 0 || distance > uint64(market.MaxPrice) {
			return nil, nil, false
		}
		qty, b := binary.Uvarint(data[a:])
		if b <= 0 || qty > uint64(MaxMirrorQty) {
			return nil, nil, false
		}
		data = data[a+b:]
		if i == 0 {
			price = market.Price(distance)
		} else {
			price += sign * market.Price(distance)
		}
		levels[i] = market.Level{Price: price, Qty: market.Qty(qty)}
	}
	return levels, data, true
}

// MirrorSwap is one trade of a mirrored instrument, made on chain.
type MirrorSwap struct {
	Instrument market.InstrumentID
	// Ordinal is the trade's number in its instrument, from 1 without gaps, by
	// which the engine takes each once. The mirror gives them in the order of the
	// chain, and none to a swap of less than a lot or a tick. Which is next is the
	// engine's to say: State.MirrorPosition when it begins, then the trades of views.
	Ordinal uint64
	Price   market.Price // 1..market.MaxPrice ticks
	Qty     market.Qty   // 1..market.MaxQty lots
	Side    market.Side  // of the aggressor
	// At is the block's time, Unix nanoseconds, above 0.
	At   int64
	Slot uint64 // for the journal's readers
}

// MirrorTradeCommand packs a trade: the ordinal into Order.ID, the block's time
// into Order.ExpireAt, the slot into Arg. Errors wrap ErrMirror.
//
// The engine refuses whatever is not the trade after the instrument's last one:
// ReasonOutOfTurn, the ordinal wanted in Aux. The trades of an instrument never go
// back in time nor ahead of the engine: a block's time before that of the last
// trade counts as that, one after the command's own time as this.
func MirrorTradeCommand(t *MirrorSwap) (Command, error) {
	c := Command{Kind: MirrorTrade, Instrument: t.Instrument, Arg: t.Slot}
	c.Order = book.Order{
		ID: market.OrderID(t.Ordinal), Price: t.Price, Qty: t.Qty, Side: t.Side, ExpireAt: t.At,
	}
	if t.Instrument >= market.MaxInstruments || t.Ordinal == 0 || !validTrade(t.Price, t.Qty) || !t.Side.Valid() || t.At < 1 {
		return Command{}, fmt.Errorf("instrument %d, trade %d of %d lots at %d: %w", t.Instrument, t.Ordinal, t.Qty, t.Price, ErrMirror)
	}
	return c, nil
}
