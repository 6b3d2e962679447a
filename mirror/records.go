package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// errStore wraps what the store fails with.
var errStore = errors.New("mirror: the store of swaps")

// ErrRecord means a record that this program has not written.
var ErrRecord = errors.New("mirror: an unknown record")

// The store, version 1. All of a pair is under its scope, the instrument's number
// and the account whose history is followed; numbers in keys have their most
// significant byte first, so that a scan sees them in their order.
//
//	v                              version, 1 byte
//	h scope                        head
//	t scope run u32 position u64   trace of a transaction
//	s scope ordinal u64            swap, as the engine is told
//	p scope payer                  somebody who has swapped
//	r scope time u64               recorded snapshot
//
// A value is the version u8 and the fields of the struct of the same name in their
// order, little-endian, without padding; a trace has its movements behind it.
const recordVersion = 1

const scopeSize = 2 + len(solana.Address{})

// scanBatch bounds the transactions of one scan.
const scanBatch = 256

// swapRef is a swap's place in the history.
type swapRef struct {
	Key  MovementKey
	Slot uint64
	Time int64
}

// head is where a pair's swaps stand.
type head struct {
	// Run numbers the backfill's runs: only the traces of this one count. They
	// have the positions from First to before Next; those before Given have got
	// their ordinals.
	Run                     uint32
	First, Next, NumberedTo int64
	Cursor                  Cursor
	Totals                  Totals
	// Numbered is the last ordinal given and Last its swap. Joining: the run may
	// begin before Last, so that swaps up to it have their ordinals.
	Numbered     uint64
	Last         swapRef
	Joining      bool
	OmittedSwaps uint64
	Traders      uint64
}

// traceRecord is a trace but for its movements.
type traceRecord struct {
	Signature   solana.Signature
	Slot        uint64
	Time        int64
	Payer       solana.Address
	Base, Quote Balance
	Failed      bool // it was not decoded
	Movements   uint16
}

// movementRecord is a movement but for its signature.
type movementRecord struct {
	Instruction, Inner uint16
	Kind               MovementKind
	Calls              uint32
	Base, Quote        Delta
}

// swapRecord is a swap with its ordinal.
type swapRecord struct {
	Ordinal     uint64
	Mark        swapRef
	Side        market.Side
	Price       market.Price
	Qty         market.Qty
	Base, Quote market.Amount
	Payer       solana.Address
}

// encode appends a record of fields of fixed size.
func encode(dst []byte, record any) []byte {
	dst, err := binary.Append(append(dst, recordVersion), binary.LittleEndian, record)
	if err != nil {
		panic(err) // a record of this package has no other fields
	}
	return dst
}

// decode reads one, and returns what follows it. Errors: [ErrRecord].
func decode(data []byte, record any) ([]byte, error) {
	if len(data) < 1 || data[0] != recordVersion {
		return nil, fmt.Errorf("%w: version", ErrRecord)
	}
	n, err := binary.Decode(data[1:], binary.LittleEndian, record)
	if err != nil {
		return nil, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	}
	return data[1+n:], nil
}

// whole refuses what follows a record.
func whole(rest []byte, err error) error {
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: %d bytes more", ErrRecord, len(rest))
	}
	return err
}

// encodeTrace writes what a transaction did, and whether it could be decoded.
func encodeTrace(t *Trace, failed bool) []byte {
	data := encode(nil, &traceRecord{t.Signature, t.Slot, t.Time, t.Payer, t.Base, t.Quote, failed, uint16(len(t.Movements))})
	for i := range t.Movements {
		m := &t.Movements[i]
		data = encode(data, &movementRecord{m.Key.Instruction, m.Key.Inner, m.Kind, uint32(m.Calls), m.Base, m.Quote})
	}
	return data
}

// decodeTrace reads one. Errors: [ErrRecord].
func decodeTrace(data []byte) (t Trace, failed bool, err error) {
	var r traceRecord
	rest, err := decode(data, &r)
	t = Trace{Signature: r.Signature, Slot: r.Slot, Time: r.Time, Payer: r.Payer, Base: r.Base, Quote: r.Quote}
	for range r.Movements {
		var m movementRecord
		if rest, err = decode(rest, &m); err != nil {
			break
		}
		key := MovementKey{r.Signature, m.Instruction, m.Inner}
		t.Movements = append(t.Movements, Movement{key, m.Kind, int(m.Calls), m.Base, m.Quote})
	}
	return t, r.Failed, whole(rest, err)
}

// records are a pair's in the store.
type records struct {
	kv    kv.Store
	scope [scopeSize]byte
}

func newRecords(kv kv.Store, in market.InstrumentID, account solana.Address) *records {
	r := &records{kv: kv}
	binary.BigEndian.PutUint16(r.scope[:], uint16(in))
	copy(r.scope[2:], account[:])
	return r
}

func (r *records) key(kind byte, more ...[]byte) []byte {
	return slices.Concat([]byte{kind}, r.scope[:], slices.Concat(more...))
}

// number makes a key's part of a number: a position may be below 0.
func number(n uint64) []byte  { return binary.BigEndian.AppendUint64(nil, n) }
func position(n int64) []byte { return number(uint64(n) ^ 1<<63) }

func (r *records) traceKey(run uint32, at int64) []byte {
	return r.key('t', binary.BigEndian.AppendUint32(nil, run), position(at))
}

// checkVersion refuses a store of another layout, and marks one that is empty.
func checkVersion(store kv.Store) error {
	if err := kv.CheckLayout(store, 'v', recordVersion, ErrRecord); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

func commit(kv kv.Store, sync bool, fill kv.Fill) error {
	if err := kv.Commit(fill, sync); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// get reads a record; ok is false where there is none.
func (r *records) get(key []byte, record any) (ok bool, err error) {
	data, ok, err := r.kv.Get(key)
	if err == nil && ok {
		err = whole(decode(data, record))
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	return ok, nil
}

// traces reads the traces of a run from a position to before another, until f
// returns false. All of them must be there.
func (r *records) traces(run uint32, from, to int64, f func(at int64, t *Trace, failed bool) bool) error {
	at, enough := from, false
	err := kv.Each(r.kv, r.traceKey(run, from), r.traceKey(run, to), func(key, value []byte) error {
		t, failed, err := decodeTrace(value)
		if err == nil && binary.BigEndian.Uint64(key[len(key)-8:])^1<<63 != uint64(at) {
			err = fmt.Errorf("%w: trace %d is missing", ErrRecord, at)
		}
		if err != nil {
			return err
		}
		at++
		if enough = !f(at-1, &t, failed); enough {
			return kv.ErrStop
		}
		return nil
	})
	if err == nil && at < to && !enough {
		err = fmt.Errorf("%w: trace %d is missing", ErrRecord, at)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// swaps reads those that are there of the ordinals from one to another, both
// included, in their order.
func (r *records) swaps(from, to uint64, f func(s *swapRecord)) error {
	err := kv.Each(r.kv, r.key('s', number(from)), kv.After(r.key('s', number(to))), func(key, value []byte) error {
		var s swapRecord
		err := whole(decode(value, &s))
		if err == nil && s.Ordinal != binary.BigEndian.Uint64(key[len(key)-8:]) {
			err = fmt.Errorf("%w: swap %d in another's place", ErrRecord, s.Ordinal)
		}
		if err == nil {
			f(&s)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// recorded reads the snapshots, the newest first.
func (r *records) snapshots() (list []Snapshot, err error) {
	err = kv.Each(r.kv, r.key('r'), r.key('r', number(1<<64-1)), func(_, value []byte) error {
		var s Snapshot
		err := whole(decode(value, &s))
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errStore, err)
	}
	slices.Reverse(list)
	return list, nil
}
