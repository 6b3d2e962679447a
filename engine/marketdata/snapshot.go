package marketdata

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/codec"
	"blockdesk/market"
)

// Data's snapshot, version 3 or 4: what later events depend on, in one canonical order,
// without what was flushed. Little-endian; no checksum, because persist adds one.
//
//	header
//	 0        4         6             8       16     24     32
//	┌────────┬─────────┬─────────────┬───────┬──────┬──────┐
//	│ "BDMD" │ version │ instruments │ epoch │ seq  │  at  │  then instruments by ID
//	└────────┴─────────┴─────────────┴───────┴──────┴──────┘
//
//	instrument
//	 0    2        3   4      8      12       14        16     24         32        40
//	┌────┬────────┬───┬──────┬──────┬────────┬─────────┬──────┬──────────┬─────────┐
//	│ id │ status │ c │ bids │ asks │ trades │ buckets │ last │ last qty │ last at │
//	└────┴────────┴───┴──────┴──────┴────────┴─────────┴──────┴──────────┴─────────┘
//	 40     48          56           64           72   80
//	┌──────┬───────────┬────────────┬────────────┬────┐
//	│ slot │ depth seq │ trades seq │ engine seq │ at │  then bids and asks (each worst
//	└──────┴───────────┴────────────┴────────────┴────┘  first), trades and buckets (each
//	                                                     oldest first)
//	  c is instrumentData.counted; before the bids version 4 has the auction: price, volume,
//	  imbalance, end, and 1 if it is uncrossing, 8 bytes each
//
//	level             trade
//	 0       8     16  0    8     16   24      32    40     41        49
//	┌───────┬─────┐   ┌────┬─────┬────┬───────┬─────┬──────┬─────────┐
//	│ price │ qty │   │ id │ seq │ at │ price │ qty │ side │ ordinal │
//	└───────┴─────┘   └────┴─────┴────┴───────┴─────┴──────┴─────────┘
//
//	bucket
//	 0        8      16     24    32       40                        56       64
//	┌────────┬──────┬──────┬─────┬────────┬─────────────────────────┬────────┐
//	│ minute │ open │ high │ low │ volume │ quote volume (high, low)│ trades │
//	└────────┴──────┴──────┴─────┴────────┴─────────────────────────┴────────┘
//
// Data without an auction is written as version 3. Version 2 lacks c and what follows the slot, so its epoch counts views from the start
// again. Version 1 also lacks the slot and the ordinals. Both are read but not written.
const (
	marketMagic   = "BDMD"
	marketVersion = 4
	// marketVersion3 lacks auctions.
	marketVersion3 = 3
	// marketVersion2 lacks the Seqs of views.
	marketVersion2 = 2
	// marketVersion1 also lacks mirrored instruments.
	marketVersion1 = 1

	marketHeaderSize = 32
	dataHeaderSize   = 40
	levelSize        = 16
	tradeSize        = 41
	bucketSize       = 64
	ordinalSize      = 8  // of a trade, since version 2
	slotSize         = 8  // of an instrument, since version 2
	viewSeqsSize     = 32 // of an instrument, since version 3
	auctionSize      = 40 // of an instrument, since version 4
)

// AppendSnapshot appends the encoding of m and returns the extended slice.
func (m *Data) AppendSnapshot(dst []byte) []byte {
	if m.hasAuction() {
		return m.appendSnapshot(dst, marketVersion)
	}
	return m.appendSnapshot(dst, marketVersion3)
}

func (m *Data) hasAuction() bool {
	for _, l := range m.data {
		if l != nil && l.auction != (Auction{}) {
			return true
		}
	}
	return false
}

// appendSnapshot can also write older versions, so that Restore can check that what
// it has read is canonical.
func (m *Data) appendSnapshot(dst []byte, version uint16) []byte {
	le := binary.LittleEndian
	dst = append(dst, marketMagic...)
	dst = le.AppendUint16(dst, version)
	count := len(dst)
	dst = le.AppendUint16(dst, 0)
	dst = le.AppendUint64(dst, m.epoch)
	dst = le.AppendUint64(dst, m.seq)
	dst = le.AppendUint64(dst, uint64(m.at))
	var n uint16
	for _, l := range m.data {
		if l != nil {
			dst = l.append(dst, version)
			n++
		}
	}
	le.PutUint16(dst[count:], n)
	return dst
}

func (l *instrumentData) append(dst []byte, version uint16) []byte {
	le := binary.LittleEndian
	var old []Trade
	if l.view != nil {
		old = l.view.Trades
	}
	trades := l.tape.appendLast(nil, old)
	dst = le.AppendUint16(dst, uint16(l.id))
	dst = append(dst, l.status, uint8(l.counted))
	dst = le.AppendUint32(dst, uint32(l.bids.len()))
	dst = le.AppendUint32(dst, uint32(l.asks.len()))
	dst = le.AppendUint16(dst, uint16(len(trades)))
	dst = le.AppendUint16(dst, uint16(len(l.window)))
	dst = le.AppendUint64(dst, uint64(l.ticker.Last))
	dst = le.AppendUint64(dst, uint64(l.ticker.LastQty))
	dst = le.AppendUint64(dst, uint64(l.ticker.LastAt))
	if version > marketVersion1 {
		dst = le.AppendUint64(dst, l.slot)
	}
	if version > marketVersion2 {
		dst = le.AppendUint64(dst, l.seqs.depthSeq)
		dst = le.AppendUint64(dst, l.seqs.tradesSeq)
		dst = le.AppendUint64(dst, l.seqs.engineSeq)
		dst = le.AppendUint64(dst, uint64(l.seqs.at))
	}
	if version > marketVersion3 {
		a := &l.auction
		for _, v := range [...]int64{int64(a.Price), int64(a.Volume), int64(a.Imbalance), a.Until, int64(one(a.Uncrossing))} {
			dst = le.AppendUint64(dst, uint64(v))
		}
	}
	dst = l.bids.append(dst, +1)
	dst = l.asks.append(dst, -1)
	for i := range trades {
		t := &trades[i]
		dst = le.AppendUint64(dst, uint64(t.ID))
		dst = le.AppendUint64(dst, t.Seq)
		dst = le.AppendUint64(dst, uint64(t.At))
		dst = le.AppendUint64(dst, uint64(t.Price))
		dst = le.AppendUint64(dst, uint64(t.Qty))
		dst = append(dst, uint8(t.Side))
		if version > marketVersion1 {
			dst = le.AppendUint64(dst, t.Ordinal)
		}
	}
	for i := range l.window {
		b := &l.window[i]
		dst = le.AppendUint64(dst, uint64(b.minute))
		dst = le.AppendUint64(dst, uint64(b.open))
		dst = le.AppendUint64(dst, uint64(b.high))
		dst = le.AppendUint64(dst, uint64(b.low))
		dst = le.AppendUint64(dst, uint64(b.volume))
		dst = le.AppendUint64(dst, b.quote.Hi)
		dst = le.AppendUint64(dst, b.quote.Lo)
		dst = le.AppendUint64(dst, b.trades)
	}
	return dst
}

func (s *levels) append(dst []byte, sign int64) []byte {
	le := binary.LittleEndian
	for _, page := range s.pages {
		for _, l := range page {
			dst = le.AppendUint64(dst, uint64(sign*l.key))
			dst = le.AppendUint64(dst, uint64(l.qty))
		}
	}
	return dst
}

// Restore decodes a snapshot and returns the rest of data. It refuses, with
// codec.ErrSnapshot, what AppendSnapshot cannot have written. Memory stays proportional to data. The
// next Flush makes a view of every instrument.
func Restore(data []byte) (*Data, []byte, error) {
	r := &codec.Reader{Data: data}
	if string(r.Take(4)) != marketMagic {
		return nil, nil, fmt.Errorf("not a market data snapshot: %w", codec.ErrSnapshot)
	}
	version := r.U16()
	if version < marketVersion1 || version > marketVersion {
		return nil, nil, fmt.Errorf("market data snapshot version %d, this program reads %d to %d: %w",
			version, marketVersion1, marketVersion, codec.ErrVersion)
	}
	m := New()
	count := int(r.U16())
	m.epoch, m.seq, m.at = r.U64(), r.U64(), int64(r.U64())
	if count > market.MaxInstruments || m.at < 0 || r.Short {
		return nil, nil, fmt.Errorf("market data header: %w", codec.ErrSnapshot)
	}
	m.minute = m.at / nanosPerMinute
	next, mirrors := 0, false
	for range count {
		l, err := m.restoreInstrument(r, next, version)
		if err != nil {
			return nil, nil, err
		}
		next = int(l.id) + 1
		mirrors = mirrors || l.slot != 0 || len(l.tape.recent) > 0 && l.tape.recent[0].Ordinal != 0
	}
	used := data[:len(data)-len(r.Data)]
	if r.Short || version == marketVersion2 && !mirrors || version == marketVersion && !m.hasAuction() ||
		!bytes.Equal(m.appendSnapshot(make([]byte, 0, len(used)), version), used) {
		return nil, nil, fmt.Errorf("market data is not in canonical form: %w", codec.ErrSnapshot)
	}
	return m, r.Data, nil
}

// restoreInstrument decodes an instrument, whose ID must be least or more.
func (m *Data) restoreInstrument(r *codec.Reader, least int, version uint16) (*instrumentData, error) {
	id, status, counted := market.InstrumentID(r.U16()), r.U8(), change(r.U8())
	bids, asks := int(r.U32()), int(r.U32())
	trades, buckets := int(r.U16()), int(r.U16())
	ticker := Ticker{Last: market.Price(r.U64()), LastQty: market.Qty(r.U64()), LastAt: int64(r.U64())}
	size := (bids+asks)*levelSize + trades*tradeSize + buckets*bucketSize
	if version > marketVersion1 {
		size += slotSize + trades*ordinalSize
	}
	if version > marketVersion2 {
		size += viewSeqsSize
	}
	if version > marketVersion3 {
		size += auctionSize
	}
	if int(id) < least || id >= market.MaxInstruments || trades > MaxTape || buckets > windowMinutes ||
		size > len(r.Data) || counted > changedAll || version <= marketVersion2 && counted != 0 || r.Short {
		return nil, fmt.Errorf("market data of instrument %d: %w", id, codec.ErrSnapshot)
	}
	l := m.instrument(id)
	l.status, l.ticker = status, ticker
	if version > marketVersion1 {
		l.slot = r.U64()
	}
	l.counted, l.seqs = counted, viewSeqs{engineSeq: m.seq, at: m.at}
	if version > marketVersion2 {
		l.seqs = viewSeqs{depthSeq: r.U64(), tradesSeq: r.U64(), engineSeq: r.U64(), at: int64(r.U64())}
	}
	if version > marketVersion3 {
		l.auction = Auction{
			Price: market.Price(r.U64()), Volume: market.Qty(r.U64()), Imbalance: market.Qty(r.U64()), Until: int64(r.U64()),
			Uncrossing: r.U64() == 1,
		}
	}
	ok := l.bids.restore(r, bids, +1) && l.asks.restore(r, asks, -1) &&
		l.tape.restore(r, trades, m.at, version > marketVersion1) && l.window.restore(r, buckets, m.minute)
	if !ok || l.seqs.engineSeq > m.seq || l.seqs.at < 0 || l.seqs.at > m.at || ticker.Last < 0 || ticker.LastQty < 0 || ticker.LastAt < 0 || ticker.LastAt > m.at {
		return nil, fmt.Errorf("market data of instrument %d: %w", id, codec.ErrSnapshot)
	}
	l.window.sum(&l.ticker)
	m.markChanged(l, changedAll)
	return l, nil
}

func (s *levels) restore(r *codec.Reader, n int, sign int64) bool {
	for i := range n {
		price, qty := int64(r.U64()), int64(r.U64())
		key := sign * price
		if price < 1 || price > int64(market.MaxPrice) || qty < 1 || qty > int64(book.MaxLevelQty) {
			return false
		}
		last := len(s.pages) - 1
		if i > 0 {
			page := s.pages[last]
			if page[len(page)-1].key >= key {
				return false
			}
		}
		if last < 0 || len(s.pages[last]) == levelPage {
			s.pages = append(s.pages, s.newPage())
			last++
		}
		s.pages[last] = append(s.pages[last], level{key, qty})
	}
	return true
}

func (t *tape) restore(r *codec.Reader, n int, latest int64, ordinals bool) bool {
	for range n {
		trade := Trade{
			ID: market.TradeID(r.U64()), Seq: r.U64(), At: int64(r.U64()),
			Price: market.Price(r.U64()), Qty: market.Qty(r.U64()), Side: market.Side(r.U8()),
		}
		if ordinals {
			trade.Ordinal = r.U64()
		}
		if trade.At < 0 || trade.At > latest || !market.ValidTrade(trade.Price, trade.Qty) || !trade.Side.Valid() {
			return false
		}
		t.add(trade, false)
	}
	return true
}

func (w *window) restore(r *codec.Reader, n int, newest int64) bool {
	oldest := newest - windowMinutes + 1
	for range n {
		b := bucket{
			minute: int64(r.U64()), open: market.Price(r.U64()), high: market.Price(r.U64()),
			low: market.Price(r.U64()), volume: market.Qty(r.U64()),
		}
		b.quote.Hi = r.U64()
		b.quote.Lo = r.U64()
		b.trades = r.U64()
		if b.minute < oldest || b.minute > newest || b.low < 1 || b.low > b.open || b.open > b.high ||
			b.high > market.MaxPrice || b.volume < 1 || b.trades == 0 {
			return false
		}
		*w = append(*w, b)
		oldest = b.minute + 1
	}
	return true
}
