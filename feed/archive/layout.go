package archive

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// The keys of the store. Numbers are big-endian. Times and TradeIDs are inverted (^n), so
// that a scan begins with the newest.
//
//	v                                  layout version, 1 byte
//	c                                  cursor: see appendCursor
//	t instrument ^TradeID              at i64 · Seq u64 · price i64 · qty i64 · side u8,
//	                                   if mirrored also · ordinal u64
//	p instrument participant           first TradeID of the participant there, u64
//	i instrument                       its definition: Seq u64 · at i64; zeros if it is unknown
//	f                                  the store follows definitions, 1 byte
//	k instrument interval ^open        open, high, low, close i64 · volume i64 ·
//	                                   quote u128 · trades u64
const (
	keyTrade      byte = 't'
	keyCandle     byte = 'k'
	keyTrader     byte = 'p'
	keyDefinition byte = 'i'
	keyFollowed   byte = 'f'

	layoutVersion = 1

	cursorSize    = 32
	tradeKeySize  = 11
	tradeSize     = 33
	mirroredSize  = tradeSize + 8 // a trade with its ordinal
	candleKeySize = 12
	candleSize    = 64
	traderKeySize = 5
	traderSize    = 8

	definitionKeySize = 3
	definitionSize    = 16
)

// ErrLayout means that the store has a record that this version cannot read.
var ErrLayout = errors.New("archive: record cannot be read")

func tradeKey(dst []byte, in market.InstrumentID, id market.TradeID) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, keyTrade), uint16(in))
	return binary.BigEndian.AppendUint64(dst, ^uint64(id))
}

// tradesEnd returns the key after an instrument's oldest trade.
func tradesEnd(in market.InstrumentID) []byte {
	return append(tradeKey(nil, in, 0), 0)
}

func traderKey(dst []byte, in market.InstrumentID, p market.ParticipantID) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, keyTrader), uint16(in))
	return binary.BigEndian.AppendUint16(dst, uint16(p))
}

func definitionKey(dst []byte, in market.InstrumentID) []byte {
	return binary.BigEndian.AppendUint16(append(dst, keyDefinition), uint16(in))
}

func candleKey(dst []byte, in market.InstrumentID, i Interval, open int64) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, keyCandle), uint16(in))
	return binary.BigEndian.AppendUint64(append(dst, byte(i)), ^uint64(open))
}

// candlesEnd returns the key after the oldest candle of an instrument and interval.
func candlesEnd(in market.InstrumentID, i Interval) []byte {
	return append(candleKey(nil, in, i, 0), 0)
}

func appendTrade(dst []byte, t *marketdata.Trade) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(t.At))
	dst = be.AppendUint64(dst, t.Seq)
	dst = be.AppendUint64(dst, uint64(t.Price))
	dst = be.AppendUint64(dst, uint64(t.Qty))
	dst = append(dst, byte(t.Side))
	if t.Ordinal != 0 {
		dst = be.AppendUint64(dst, t.Ordinal)
	}
	return dst
}

func parseTrade(key, value []byte) (t marketdata.Trade, err error) {
	be := binary.BigEndian
	if len(key) != tradeKeySize || len(value) != tradeSize && len(value) != mirroredSize {
		return t, fmt.Errorf("%w: trade: key of %d bytes, value of %d", ErrLayout, len(key), len(value))
	}
	t = marketdata.Trade{
		ID: market.TradeID(^be.Uint64(key[3:])), At: int64(be.Uint64(value)), Seq: be.Uint64(value[8:]),
		Price: market.Price(be.Uint64(value[16:])), Qty: market.Qty(be.Uint64(value[24:])), Side: market.Side(value[32]),
	}
	mirrored := len(value) == mirroredSize
	if mirrored {
		t.Ordinal = be.Uint64(value[tradeSize:])
	}
	if t.ID == 0 || t.At < 0 || t.Price <= 0 || t.Qty <= 0 || !t.Side.Valid() || mirrored != (t.Ordinal != 0) {
		return t, fmt.Errorf("%w: trade %d: invalid values", ErrLayout, t.ID)
	}
	return t, nil
}

func appendCandle(dst []byte, c *Candle) []byte {
	be := binary.BigEndian
	for _, n := range [...]uint64{
		uint64(c.Open), uint64(c.High), uint64(c.Low), uint64(c.Close), uint64(c.Volume), c.Quote.Hi, c.Quote.Lo, c.Trades,
	} {
		dst = be.AppendUint64(dst, n)
	}
	return dst
}

func parseCandle(key, value []byte) (c Candle, err error) {
	be := binary.BigEndian
	if len(key) != candleKeySize || len(value) != candleSize {
		return c, fmt.Errorf("%w: candle: key of %d bytes, value of %d", ErrLayout, len(key), len(value))
	}
	c = Candle{
		OpenAt: int64(^be.Uint64(key[4:])),
		Open:   market.Price(be.Uint64(value)), High: market.Price(be.Uint64(value[8:])),
		Low: market.Price(be.Uint64(value[16:])), Close: market.Price(be.Uint64(value[24:])),
		Volume: market.Qty(be.Uint64(value[32:])), Quote: market.Uint128{Hi: be.Uint64(value[40:]), Lo: be.Uint64(value[48:])},
		Trades: be.Uint64(value[56:]),
	}
	sound := c.OpenAt >= 0 && c.Low > 0 && c.Low <= min(c.Open, c.Close) && max(c.Open, c.Close) <= c.High &&
		c.Volume > 0 && c.Trades > 0
	if !sound {
		return c, fmt.Errorf("%w: candle at %d: invalid values", ErrLayout, c.OpenAt)
	}
	return c, nil
}

// cursor is the position up to which the store has been written.
type cursor struct {
	seq   uint64         // last command whose events were applied
	trade market.TradeID // last trade
	at    int64          // time of the last trade or gap, Unix ns
	// gapEnd is the end of the last gap. No candle that opens before it is made, unless
	// it was complete before the gap.
	gapEnd int64
}

func appendCursor(dst []byte, c cursor) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, c.seq)
	dst = be.AppendUint64(dst, uint64(c.trade))
	dst = be.AppendUint64(dst, uint64(c.at))
	return be.AppendUint64(dst, uint64(c.gapEnd))
}

func parseCursor(value []byte) (c cursor, err error) {
	be := binary.BigEndian
	if len(value) != cursorSize {
		return c, fmt.Errorf("%w: cursor of %d bytes", ErrLayout, len(value))
	}
	return cursor{
		seq: be.Uint64(value), trade: market.TradeID(be.Uint64(value[8:])),
		at: int64(be.Uint64(value[16:])), gapEnd: int64(be.Uint64(value[24:])),
	}, nil
}
