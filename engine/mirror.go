package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

const (
	// MaxMirrorLevels is the most levels on a side of a mirrored book.
	MaxMirrorLevels = marketdata.MaxDepth
	// MaxMirrorQty is the largest quantity of a level of a mirrored book, in lots.
	MaxMirrorQty = book.MaxLevelQty

	mirrorVersion    = 1
	mirrorHeaderSize = 16
	// mirrorLevelBytes is the longest encoding of a level: a price of up to 47 bits and a
	// quantity of up to 61.
	mirrorLevelBytes = 7 + 9
	maxMirrorBytes   = mirrorHeaderSize + 2*MaxMirrorLevels*mirrorLevelBytes
)

// ErrMirror is wrapped by errors about a refresh or trade that the chain cannot have produced.
var ErrMirror = errors.New("engine: invalid mirror data")

// MirrorBook is the displayed book of a mirrored instrument at one slot.
type MirrorBook struct {
	Instrument market.InstrumentID
	Slot       uint64 // at least 1
	// Bids and Asks are best first, each price once, at most MaxMirrorLevels. Prices are
	// 1..market.MaxPrice ticks, quantities 1..MaxMirrorQty lots. A bid may exceed an ask,
	// because some chains leave crossed orders for a while.
	Bids, Asks []market.Level
}

// MirrorRefreshCommands appends to dst the 1..MaxPieces commands that set a mirrored
// instrument's book to b, for one SubmitAll, and returns the extended slice. It keeps
// nothing of b. Errors wrap ErrMirror.
//
// The encoding is split like a desk request (DeskCommands), with the last piece in a
// MirrorRefresh. Little-endian; a level is two varints, the distance from the price before
// it (from 0 for the first) and the quantity:
//
//	 0         1   2            4      12     14     16
//	┌─────────┬───┬────────────┬──────┬──────┬──────┐
//	│ version │ 0 │ instrument │ slot │ bids │ asks │  then bids and asks, best first
//	└─────────┴───┴────────────┴──────┴──────┴──────┘
//
// The engine rejects a slot that is not after the current one (ReasonStaleSlot) and a
// matched instrument (ReasonNotMirrored), and drops an incomplete refresh (State rule 6).
// A rejected refresh changes nothing.
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

// checkLevels checks one side of a mirrored book. sign is +1 if prices rise from the best on,
// -1 if they fall.
func checkLevels(levels []market.Level, sign market.Price) error {
	if len(levels) > MaxMirrorLevels {
		return fmt.Errorf("%w: %d levels: at most %d", ErrMirror, len(levels), MaxMirrorLevels)
	}
	for i, l := range levels {
		if l.Price < 1 || l.Price > market.MaxPrice || l.Qty < 1 || l.Qty > MaxMirrorQty ||
			i > 0 && (l.Price-levels[i-1].Price)*sign <= 0 {
			return fmt.Errorf("%w: level %d: price %d, quantity %d: a value is out of range, or the price is not worse than the level before", ErrMirror, i, l.Price, l.Qty)
		}
	}
	return nil
}

// append appends the encoding of a valid book.
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

// DecodeMirrorBook decodes a refresh that an Assembler has joined. It keeps nothing of data
// and allocates at most what MaxMirrorLevels need. Errors wrap ErrMirror.
func DecodeMirrorBook(data []byte) (MirrorBook, error) {
	if len(data) < mirrorHeaderSize || data[0] != mirrorVersion || data[1] != 0 {
		return MirrorBook{}, fmt.Errorf("%w: unknown header in %d bytes", ErrMirror, len(data))
	}
	le := binary.LittleEndian
	b := MirrorBook{Instrument: market.InstrumentID(le.Uint16(data[2:])), Slot: le.Uint64(data[4:])}
	bids, asks := int(le.Uint16(data[12:])), int(le.Uint16(data[14:]))
	rest := data[mirrorHeaderSize:]
	var whole, also bool
	b.Bids, rest, whole = readLevels(rest, bids, -1)
	b.Asks, rest, also = readLevels(rest, asks, +1)
	if !whole || !also || len(rest) != 0 {
		return MirrorBook{}, fmt.Errorf("%w: %d bids and %d asks do not fill %d bytes", ErrMirror, bids, asks, len(data))
	}
	return b, b.validate()
}

// readLevels decodes n levels. The caller checks their order and range; prices cannot
// overflow.
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

// MirrorSwap is one on-chain trade of a mirrored instrument.
type MirrorSwap struct {
	Instrument market.InstrumentID
	// Ordinal numbers the instrument's trades from 1 without gaps; the engine takes each once.
	// The mirror numbers them in chain order and skips swaps of less than a lot or a tick. It
	// continues from State.MirrorPosition.
	Ordinal uint64
	Price   market.Price // 1..market.MaxPrice ticks
	Qty     market.Qty   // 1..market.MaxQty lots
	Side    market.Side  // of the aggressor
	// At is the block's time, Unix nanoseconds, above 0.
	At   int64
	Slot uint64 // for readers of the journal
}

// MirrorTradeCommand packs a trade: the ordinal in Order.ID, the block's time in
// Order.ExpireAt, the slot in Arg. Errors wrap ErrMirror.
//
// The engine rejects every trade but the one after the instrument's last: ReasonOutOfSequence,
// with the expected ordinal in Aux. It clamps the block's time to between the time of the
// last trade and that of the command.
func MirrorTradeCommand(t *MirrorSwap) (Command, error) {
	c := Command{Kind: MirrorTrade, Instrument: t.Instrument, Arg: t.Slot}
	c.Order = book.Order{
		ID: market.OrderID(t.Ordinal), Price: t.Price, Qty: t.Qty, Side: t.Side, ExpireAt: t.At,
	}
	if t.Instrument >= market.MaxInstruments || t.Ordinal == 0 || !market.ValidTrade(t.Price, t.Qty) || !t.Side.Valid() || t.At < 1 {
		return Command{}, fmt.Errorf("%w: instrument %d: trade %d of %d lots at %d ticks: a value is out of range", ErrMirror, t.Instrument, t.Ordinal, t.Qty, t.Price)
	}
	return c, nil
}
