package flow

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/klauspost/compress/zstd"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// The arena is a public benchmark's order flow: new orders, cancels and modifies
// of one instrument, and the reports that a correct price-time book gives, as a
// SHA-256 of their text. Little-endian:
//
//	 0        8        12       16
//	+--------+--------+--------+--  then count records of 40 bytes:
//	| magic  |version | count  |
//	+--------+--------+--------+--
//	 0    1    2   3   4       8        16       24       32       40
//	+----+----+---+---+-------+--------+--------+--------+--------+
//	|type|side|ioc| 0 |  qty  |  seq   |   id   | price  |   0    |
//	+----+----+---+---+-------+--------+--------+--------+--------+
const (
	arenaMagic   = 0x4d4542575f303031
	arenaVersion = 1
	arenaHeader  = 16
	arenaRecord  = 40

	// MaxArena is the largest number of records that ReadArena takes.
	MaxArena = 1 << 25
)

// ErrArena is wrapped by every error about the bytes of an arena file.
var ErrArena = errors.New("not an arena flow")

// ArenaKind is the kind of request of an ArenaRecord.
type ArenaKind uint8

const (
	ArenaNew    ArenaKind = 0
	ArenaCancel ArenaKind = 1
	ArenaModify ArenaKind = 2
)

// ArenaRecord is one message of an arena flow. Price is in ticks. The Seq of a
// flow grows from record to record.
type ArenaRecord struct {
	Seq   uint64
	ID    uint64
	Price int64
	Qty   uint32
	Kind  ArenaKind
	Side  market.Side
	IOC   bool
}

// OpenArena reads a flow file compressed with zstd.
func OpenArena(path string) ([]ArenaRecord, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<28))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return ReadArena(z)
}

// ReadArena reads an unpacked flow, every byte of it. Errors: ErrArena with the
// record at fault, and the reader's.
func ReadArena(from io.Reader) ([]ArenaRecord, error) {
	r := bufio.NewReaderSize(from, 1<<16)
	var head [arenaHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("header: %w", arenaEnd(err))
	}
	count := int(binary.LittleEndian.Uint32(head[12:]))
	switch {
	case binary.LittleEndian.Uint64(head[:]) != arenaMagic:
		return nil, fmt.Errorf("magic: %w", ErrArena)
	case binary.LittleEndian.Uint32(head[8:]) != arenaVersion:
		return nil, fmt.Errorf("version: %w", ErrArena)
	case count > MaxArena:
		return nil, fmt.Errorf("%d records, at most %d: %w", count, MaxArena, ErrArena)
	}
	records := make([]ArenaRecord, 0, min(count, 1<<12)) // grows with what is really there
	for i := range count {
		var raw [arenaRecord]byte
		if _, err := io.ReadFull(r, raw[:]); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, arenaEnd(err))
		}
		rec, ok := decodeArena(&raw)
		if !ok || i > 0 && rec.Seq <= records[i-1].Seq {
			return nil, fmt.Errorf("record %d: %w", i, ErrArena)
		}
		records = append(records, rec)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("bytes after the last record: %w", ErrArena)
	}
	return records, nil
}

func arenaEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("ends too early: %w", ErrArena)
	}
	return err
}

// decodeArena reads one record; ok is false when a field is out of its range.
func decodeArena(raw *[arenaRecord]byte) (rec ArenaRecord, ok bool) {
	rec = ArenaRecord{
		Kind: ArenaKind(raw[0]), Side: market.Buy + market.Side(raw[1]&1), IOC: raw[2] == 1,
		Qty: binary.LittleEndian.Uint32(raw[4:]), Seq: binary.LittleEndian.Uint64(raw[8:]),
		ID: binary.LittleEndian.Uint64(raw[16:]), Price: int64(binary.LittleEndian.Uint64(raw[24:])),
	}
	ok = rec.Kind <= ArenaModify && raw[1] <= 1 && raw[2] <= 1 && raw[3] == 0 && binary.LittleEndian.Uint64(raw[32:]) == 0
	if rec.Kind != ArenaCancel {
		ok = ok && rec.Qty > 0 && rec.Price > 0 && rec.Price <= int64(market.MaxPrice)
	}
	return rec, ok && rec.ID < 1<<63
}

// OrderID is the book's id of the record's order: the flow's own may be 0.
func (r *ArenaRecord) OrderID() market.OrderID { return market.OrderID(r.ID + 1) }

// Order is the record as the order of a Submit (ArenaNew) or an Amend
// (ArenaModify); of an ArenaCancel its ID and Participant count. Buyers are
// participant 1 and sellers 2, so that no participant trades with itself.
func (r *ArenaRecord) Order() book.Order {
	o := book.Order{ID: r.OrderID(), Side: r.Side, Participant: market.ParticipantID(r.Side)}
	if r.Kind == ArenaCancel {
		return o
	}
	o.Price, o.Qty = market.Price(r.Price), market.Qty(r.Qty)
	if r.Kind == ArenaModify {
		o.Flags = book.FlagOpenQty
		return o
	}
	o.Type, o.TIF, o.STP = book.Limit, book.GTC, book.STPCancelNewest
	if r.IOC {
		o.TIF = book.IOC
	}
	return o
}

// NewArena generates a flow in the arena's form: a mid price that wanders, orders near
// it, and cancels and modifies of orders that may no longer rest. Same seed, same flow.
func NewArena(seed uint64, records int) []ArenaRecord {
	const recent = 4096 // orders that cancels and modifies choose from
	rng := rand.New(rand.NewPCG(seed, 0x6172656e61))
	var placed []ArenaRecord
	flow := make([]ArenaRecord, 0, records)
	middle := int64(33_504)
	for seq := uint64(1); len(flow) < records; seq++ {
		if rng.IntN(20) == 0 {
			middle += int64(rng.IntN(5)) - 2
		}
		r := ArenaRecord{Seq: seq, Side: market.Side(1 + rng.IntN(2)), Qty: 1 + uint32(rng.IntN(200))}
		away := int64(rng.ExpFloat64()*12) - 1
		r.IOC = rng.IntN(12) == 0
		if r.IOC {
			away = -int64(rng.IntN(6))
		}
		r.Price = middle + away*(2*int64(r.Side)-3)
		if roll := rng.IntN(100); roll < 48 || len(placed) < 100 {
			r.ID = uint64(len(placed))
			placed = append(placed, r)
		} else {
			old := &placed[max(0, len(placed)-1-rng.IntN(recent))]
			r.ID, r.Side, r.IOC, r.Kind = old.ID, old.Side, false, ArenaCancel
			if roll >= 90 {
				r.Kind, r.Price = ArenaModify, old.Price+int64(rng.IntN(2)*2-1)
				old.Price = r.Price
			}
		}
		flow = append(flow, r)
	}
	return flow
}
