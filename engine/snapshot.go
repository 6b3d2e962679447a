package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// A State's snapshot, version 2 to 6: exactly what later commands depend on, in one
// canonical order, so that equal states have equal bytes with both book implementations.
// Little-endian; unnamed bytes are zero; no checksum, because persist adds one.
//
//	header
//	 0        4         6             8              10  12         16       24
//	┌────────┬─────────┬─────────────┬──────────────┬───┬──────────┬────────┬────────┐
//	│ "BDST" │ version │ instruments │ participants │ * │ max ord. │  seq   │   at   │
//	└────────┴─────────┴─────────────┴──────────────┴───┴──────────┴────────┴────────┘
//	 32       40             48
//	┌────────┬──────────────┐
//	│ epoch  │ last tradeID │  then instruments by ID, then participants by number
//	└────────┴──────────────┘
//
//	* flags (from version 5): flagInSlices; orders may have FlagMassCancelled and FlagKilled then
//
//	instrument
//	 0      1       2       3        4        5   8      16     24      32      40
//	┌──────┬───────┬───────┬────────┬────────┬───┬──────┬──────┬───────┬───────┬───────────┐
//	│ len  │ price │ qty   │ book   │ status │ 0 │ tick │ lot  │ min   │ max   │ max       │
//	│ sym. │ dec.  │ dec.  │ source │        │   │      │      │ qty   │ qty   │ price     │
//	└──────┴───────┴───────┴────────┴────────┴───┴──────┴──────┴───────┴───────┴───────────┘
//	 48           56       60       60+len
//	┌────────────┬────────┬────────┐
//	│ last trade │ orders │ symbol │  then its orders in canonical order (book rule 9)
//	└────────────┴────────┴────────┘
//
//	order
//	 0    8       16     24    32        40         48     56      64        72       74
//	┌────┬───────┬──────┬─────┬─────────┬──────────┬──────┬───────┬─────────┬────────┬──────┐
//	│ id │ price │ stop │ qty │ display │ expireAt │ open │ shown │ entered │ partic.│ side │
//	└────┴───────┴──────┴─────┴─────────┴──────────┴──────┴───────┴─────────┴────────┴──────┘
//	 75     76    77      78    79        80
//	┌──────┬─────┬───────┬─────┬─────────┐
//	│ type │ tif │ flags │ stp │ waiting │
//	└──────┴─────┴───────┴─────┴─────────┘
//
//	participant                       limits
//	 0        2        3   4     6   8            0         8               24         28     30  32
//	┌────────┬────────┬───┬─────┬───┬────────┐   ┌─────────┬───────────────┬──────────┬──────┬───┐
//	│ number │ status │ 0 │ own │ 0 │ limits │   │ max qty │ max notional  │ max open │ band │ 0 │
//	└────────┴────────┴───┴─────┴───┴────────┘   │         │ (high, low)   │          │ bps  │   │
//	  then own × limits, of instrument 0..own-1  └─────────┴───────────────┴──────────┴──────┴───┘
//
//	desk                      incomplete request, if the last command was a piece
//	 0        8      8+len     0        4       4+len
//	┌────────┬──────┐         ┌────────┬────────┐
//	│ length │ desk │         │ length │ pieces │  0..MaxPieces-1 of MaxPiece bytes
//	└────────┴──────┘         └────────┴────────┘
//	  in the form of package rfq
//
//	mirrored (version 3)
//	 0       2
//	┌───────┬──────────────────────────────────────────────────────────────────┐
//	│ count │ the mirrored instruments that have data, by ID                  │
//	└───────┴──────────────────────────────────────────────────────────────────┘
//	 0    2      4      6   8      16        24          32
//	┌────┬──────┬──────┬───┬──────┬─────────┬───────────┬─────────────────────┐
//	│ id │ bids │ asks │ 0 │ slot │ ordinal │ traded at │ levels, best first  │
//	└────┴──────┴──────┴───┴──────┴─────────┴───────────┴─────────────────────┘
//	  a level: price u64, qty u64
//
//	quote sets (version 4; mirrored is there too)
//	 0       2
//	┌───────┬─────────────────────────────────────────────────────┐
//	│ count │ the quote sets, by participant, session and number  │
//	└───────┴─────────────────────────────────────────────────────┘
//	 0         2         4        6         7        8           12      16       24      32
//	┌─────────┬─────────┬────────┬─────────┬────────┬───────────┬───────┬────────┬───────┬─────────┐
//	│ partic. │ session │ number │ entries │ pulled │ max fills │ fills │ window │ since │ entries │
//	└─────────┴─────────┴────────┴─────────┴────────┴───────────┴───────┴────────┴───────┴─────────┘
//	 0            2   8        16       24        32       40
//	┌────────────┬───┬────────┬────────┬─────────┬────────┐
//	│ instrument │ 0 │ bid id │ ask id │ max qty │ traded │
//	└────────────┴───┴────────┴────────┴─────────┴────────┘
//
//	auctions (version 6; mirrored and quote sets are there too)
//	 0       2
//	┌───────┬─────────────────────────────────────────────────────────────────┐
//	│ count │ the instruments that have auction rules or an auction, by ID   │
//	└───────┴─────────────────────────────────────────────────────────────────┘
//	 0    2       3       4      6   8      16        24          32      40           48      56       64          72
//	┌────┬───────┬───────┬──────┬───┬──────┬─────────┬───────────┬───────┬────────────┬───────┬────────┬───────────┐
//	│ id │ phase │ begun │ band │ 0 │ call │ opening │ reference │ until │ publish at │ price │ volume │ imbalance │
//	└────┴───────┴───────┴──────┴───┴──────┴─────────┴───────────┴───────┴────────────┴───────┴────────┴───────────┘
//	 72          80        88          96        104      112   120   128
//	┌───────────┬─────────┬───────────┬─────────┬────────┬─────┬──────┐
//	│ bid price │ bid qty │ ask price │ ask qty │ volume │ low │ high │   of auction.Search, if it has begun
//	└───────────┴─────────┴───────────┴─────────┴────────┴─────┴──────┘
//
// A state without auctions is written as version 5, one whose orders do not end in slices as version 4, one without quote sets as version 3, and without data of mirrored
// instruments either as version 2, so that its bytes and hash stay those of earlier programs.
// Version 1 had no desk.
const (
	stateMagic   = "BDST"
	stateVersion = 6
	// stateVersion5 lacks auctions.
	stateVersion5 = 5
	// stateVersion4 lacks the flags.
	stateVersion4 = 4
	// stateVersion3 lacks quote sets.
	stateVersion3 = 3
	// stateVersion2 lacks mirrored instruments too.
	stateVersion2 = 2

	// flagInSlices: many orders end in slices (State rule 8).
	flagInSlices = 1

	stateHeaderSize       = 48
	instrumentHeaderSize  = 60
	orderSize             = 80
	limitsSize            = 32
	participantHeaderSize = 8
	deskHeaderSize        = 8
	piecesHeaderSize      = 4
	mirroredHeaderSize    = 32
)

// AppendSnapshot appends the encoding of s and returns the extended slice.
func (s *State) AppendSnapshot(dst []byte) []byte {
	le := binary.LittleEndian
	mirrored := s.mirroredCount()
	version, flags := uint16(stateVersion2), uint16(0)
	if s.inSlices {
		flags = flagInSlices
	}
	switch {
	case s.needsAuctions():
		version = stateVersion
	case s.inSlices:
		version = stateVersion5
	case s.quotes.Len() > 0:
		version = stateVersion4
	case mirrored > 0:
		version = stateVersion3
	}
	dst = slices.Grow(dst, s.booksSize())
	dst = append(dst, stateMagic...)
	dst = le.AppendUint16(dst, version)
	dst = le.AppendUint16(dst, uint16(len(s.instruments)))
	dst = le.AppendUint16(dst, uint16(s.participantCount))
	dst = le.AppendUint16(dst, flags)
	dst = le.AppendUint32(dst, uint32(s.maxOrders))
	dst = le.AppendUint64(dst, s.seq)
	dst = le.AppendUint64(dst, uint64(s.at))
	dst = le.AppendUint64(dst, s.epoch)
	dst = le.AppendUint64(dst, uint64(s.trades))
	for i := range s.instruments {
		dst = appendInstrument(dst, &s.instruments[i])
	}
	for i := range s.participants {
		if s.participants[i].status != 0 {
			dst = appendParticipant(dst, market.ParticipantID(i), &s.participants[i])
		}
	}
	dst = s.appendDesk(dst)
	if version >= stateVersion3 {
		dst = s.appendMirrored(dst, mirrored)
	}
	if version >= stateVersion4 {
		dst = s.quotes.AppendSnapshot(dst)
	}
	if version >= stateVersion {
		dst = s.appendAuctions(dst)
	}
	return dst
}

// booksSize returns the size of the header and the books in a snapshot, without the symbols.
func (s *State) booksSize() int {
	n := stateHeaderSize + len(s.instruments)*instrumentHeaderSize
	for i := range s.instruments {
		n += s.instruments[i].book.stored().OrderCount() * orderSize
	}
	return n
}

func (s *State) appendDesk(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = le.AppendUint64(dst, 0)
	dst = s.desk.AppendSnapshot(dst)
	le.PutUint64(dst[start:], uint64(len(dst)-start-deskHeaderSize))
	pieces := s.assembler.pending(s.seq + 1)
	dst = le.AppendUint32(dst, uint32(len(pieces)))
	return append(dst, pieces...)
}

// Hash returns the SHA-256 of the snapshot: equal states have equal hashes, whatever the book
// implementation.
func (s *State) Hash() [32]byte { return sha256.Sum256(s.AppendSnapshot(nil)) }

// BookHash returns the SHA-256 of what the market sees: owner, side, prices, quantities,
// type and priority of every live order, every mirrored level and every last trade, by
// instrument. Unlike Hash it leaves out ids, times and sequence numbers, so two runs of the
// same orders have the same BookHash despite different clocks, epochs and restarts. It
// allocates, and is not for the order path.
func (s *State) BookHash() [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for _, in := range s.Instruments() {
		b = binary.LittleEndian.AppendUint16(b[:0], uint16(in.ID))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.instruments[in.ID].book.lastTrade()))
		h.Write(b)
		s.Orders(in.ID, func(r book.LiveOrder) {
			b = binary.LittleEndian.AppendUint16(b[:0], uint16(r.Participant))
			waiting := byte(0)
			if r.Waiting {
				waiting = 1
			}
			b = append(b, byte(r.Side), byte(r.Type), byte(r.TIF), byte(r.Flags), byte(r.STP), waiting)
			for _, p := range []market.Price{r.Price, r.Stop} {
				b = binary.LittleEndian.AppendUint64(b, uint64(p))
			}
			for _, q := range []market.Qty{r.Open, r.Shown, r.Display} {
				b = binary.LittleEndian.AppendUint64(b, uint64(q))
			}
			h.Write(b)
		})
		if m := s.instruments[in.ID].mirror; m != nil {
			b = binary.LittleEndian.AppendUint16(b[:0], uint16(len(m.bids)))
			h.Write(appendLevels(appendLevels(b, m.bids), m.asks))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func appendInstrument(dst []byte, in *instrument) []byte {
	le := binary.LittleEndian
	d := &in.def
	dst = append(dst, uint8(len(d.Symbol)), d.PriceDecimals, d.QtyDecimals, uint8(d.Source), in.status, 0, 0, 0)
	dst = le.AppendUint64(dst, d.Tick)
	dst = le.AppendUint64(dst, d.Lot)
	dst = le.AppendUint64(dst, uint64(d.MinQty))
	dst = le.AppendUint64(dst, uint64(d.MaxQty))
	dst = le.AppendUint64(dst, uint64(d.MaxPrice))
	dst = le.AppendUint64(dst, uint64(in.book.lastTrade()))
	dst = le.AppendUint32(dst, uint32(in.book.stored().OrderCount()))
	dst = append(dst, d.Symbol...)
	in.book.stored().Export(func(r book.LiveOrder) { dst = appendOrder(dst, &r) })
	return dst
}

func appendOrder(dst []byte, r *book.LiveOrder) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(r.ID))
	dst = le.AppendUint64(dst, uint64(r.Price))
	dst = le.AppendUint64(dst, uint64(r.Stop))
	dst = le.AppendUint64(dst, uint64(r.Qty))
	dst = le.AppendUint64(dst, uint64(r.Display))
	dst = le.AppendUint64(dst, uint64(r.ExpireAt))
	dst = le.AppendUint64(dst, uint64(r.Open))
	dst = le.AppendUint64(dst, uint64(r.Shown))
	dst = le.AppendUint64(dst, r.EnteredSeq)
	dst = le.AppendUint16(dst, uint16(r.Participant))
	var waiting uint8
	if r.Waiting {
		waiting = 1
	}
	return append(dst, uint8(r.Side), uint8(r.Type), uint8(r.TIF), uint8(r.Flags), uint8(r.STP), waiting)
}

func appendParticipant(dst []byte, number market.ParticipantID, p *participant) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, uint16(number))
	dst = append(dst, p.status, 0)
	dst = le.AppendUint16(dst, uint16(len(p.own)))
	dst = le.AppendUint16(dst, 0)
	dst = appendLimits(dst, &p.common)
	for i := range p.own {
		dst = appendLimits(dst, &p.own[i])
	}
	return dst
}

func appendLimits(dst []byte, l *limits) []byte {
	le := binary.LittleEndian
	p := l.export()
	dst = le.AppendUint64(dst, uint64(p.MaxQty))
	dst = le.AppendUint64(dst, p.MaxNotional.Hi)
	dst = le.AppendUint64(dst, p.MaxNotional.Lo)
	dst = le.AppendUint32(dst, uint32(p.MaxOpenOrders))
	dst = le.AppendUint16(dst, p.BandBps)
	return le.AppendUint16(dst, 0)
}
