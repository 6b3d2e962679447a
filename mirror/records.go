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

// errStore wraps the store's errors.
var errStore = errors.New("mirror: the store of swaps failed")

// ErrRecord means a record that this program has not written.
var ErrRecord = errors.New("mirror: record cannot be read")

// storeError wraps an error of the store; nil for nil.
func storeError(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", errStore, err)
	}
	return err
}

// The store, version 1. The records of a pair have its scope in their keys: the
// instrument's number and the account whose history is read. Numbers in keys are
// big-endian, so that a scan is in their order.
//
//	v                              version, 1 byte
//	h scope                        head
//	t scope run u32 position u64   trace of a transaction
//	s scope ordinal u64            swap, as published to the engine
//	p scope payer                  fee payer of a swap
//	r scope time u64               snapshot
//
// A value is the version u8 and the fields of the struct of the same name in their order,
// little-endian, without padding. A trace is followed by its movements.
const recordVersion = 1

const scopeSize = 2 + len(solana.Address{})

// scanBatch bounds the transactions of one scan.
const scanBatch = 256

// swapRef refers to a swap in the history.
type swapRef struct {
	Key  MovementKey
	Slot uint64
	Time int64
}

// head is the position of a pair's swaps.
type head struct {
	// Run counts the backfill's runs. Only the traces of the current one are stored. They
	// have the positions First to Next-1; those before NumberedTo have ordinals.
	Run                     uint32
	First, Next, NumberedTo int64
	Cursor                  Cursor
	Totals                  Totals
	// Numbered is the last ordinal and Last its swap. MayOverlap: the run may begin before
	// Last, so swaps up to it have ordinals already.
	Numbered     uint64
	Last         swapRef
	MayOverlap   bool
	OmittedSwaps uint64
	Traders      uint64
}

// traceRecord is a trace without its movements.
type traceRecord struct {
	Signature   solana.Signature
	Slot        uint64
	Time        int64
	Payer       solana.Address
	Base, Quote Balance
	Failed      bool // it could not be decoded
	Movements   uint16
}

// movementRecord is a movement without its signature.
type movementRecord struct {
	Instruction, Inner uint16
	Kind               MovementKind
	Calls              uint32
	Base, Quote        Delta
}

// swapRecord is a swap with its ordinal.
type swapRecord struct {
	Ordinal     uint64
	Ref         swapRef
	Side        market.Side
	Price       market.Price
	Qty         market.Qty
	Base, Quote market.Amount
	Payer       solana.Address
}

// encode appends a record, whose fields have fixed sizes.
func encode(dst []byte, record any) []byte {
	dst, err := binary.Append(append(dst, recordVersion), binary.LittleEndian, record)
	if err != nil {
		panic(err) // unreachable: all records have fixed sizes
	}
	return dst
}

// decode decodes a record and returns the bytes after it. Errors: [ErrRecord].
func decode(data []byte, record any) ([]byte, error) {
	if len(data) < 1 || data[0] != recordVersion {
		return nil, fmt.Errorf("%w: its version is unknown", ErrRecord)
	}
	n, err := binary.Decode(data[1:], binary.LittleEndian, record)
	if err != nil {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrRecord, len(data))
	}
	return data[1+n:], nil
}

// whole returns an error if bytes follow a decoded record.
func whole(rest []byte, err error) error {
	if err == nil && len(rest) != 0 {
		err = fmt.Errorf("%w: it has %d bytes too many", ErrRecord, len(rest))
	}
	return err
}

// encodeTrace encodes a trace; failed: it could not be decoded from its transaction.
func encodeTrace(t *Trace, failed bool) []byte {
	data := encode(nil, &traceRecord{t.Signature, t.Slot, t.Time, t.Payer, t.Base, t.Quote, failed, uint16(len(t.Movements))})
	for i := range t.Movements {
		m := &t.Movements[i]
		data = encode(data, &movementRecord{m.Key.Instruction, m.Key.Inner, m.Kind, uint32(m.Calls), m.Base, m.Quote})
	}
	return data
}

// decodeTrace decodes a trace. Errors: [ErrRecord].
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

// records are the stored records of a pair.
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

// number and position encode numbers in keys. A position may be negative.
func number(n uint64) []byte  { return binary.BigEndian.AppendUint64(nil, n) }
func position(n int64) []byte { return number(uint64(n) ^ 1<<63) }

func (r *records) traceKey(run uint32, at int64) []byte {
	return r.key('t', binary.BigEndian.AppendUint32(nil, run), position(at))
}

// checkVersion refuses a store of another layout, and initializes an empty one.
func checkVersion(store kv.Store) error {
	return storeError(kv.CheckLayout(store, 'v', recordVersion, ErrRecord))
}

func commit(kv kv.Store, sync bool, fill kv.Fill) error { return storeError(kv.Commit(fill, sync)) }

// get reads a record; ok is false if there is none.
func (r *records) get(key []byte, record any) (ok bool, err error) {
	data, ok, err := r.kv.Get(key)
	if err == nil && ok {
		err = whole(decode(data, record))
	}
	return ok && err == nil, storeError(err)
}

// traces calls f with the traces of a run from a position up to, not including, another,
// until f returns false. None of them may be missing.
func (r *records) traces(run uint32, from, to int64, f func(at int64, t *Trace, failed bool) bool) error {
	at, enough := from, false
	err := kv.Each(r.kv, r.traceKey(run, from), r.traceKey(run, to), func(key, value []byte) error {
		t, failed, err := decodeTrace(value)
		if err == nil && binary.BigEndian.Uint64(key[len(key)-8:])^1<<63 != uint64(at) {
			err = fmt.Errorf("%w: transaction %d of the run is missing", ErrRecord, at)
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
		err = fmt.Errorf("%w: transaction %d of the run is missing", ErrRecord, at)
	}
	return storeError(err)
}

// swaps calls f with the stored swaps of the ordinals from to to, in order.
func (r *records) swaps(from, to uint64, f func(s *swapRecord)) error {
	return storeError(kv.Each(r.kv, r.key('s', number(from)), kv.After(r.key('s', number(to))), func(key, value []byte) error {
		var s swapRecord
		err := whole(decode(value, &s))
		if err == nil && s.Ordinal != binary.BigEndian.Uint64(key[len(key)-8:]) {
			err = fmt.Errorf("%w: swap %d is stored under another key", ErrRecord, s.Ordinal)
		}
		if err == nil {
			f(&s)
		}
		return err
	}))
}

// snapshots reads the snapshots, newest first.
func (r *records) snapshots() (list []Snapshot, err error) {
	err = kv.Each(r.kv, r.key('r'), r.key('r', number(1<<64-1)), func(_, value []byte) error {
		var s Snapshot
		err := whole(decode(value, &s))
		list = append(list, s)
		return err
	})
	if err != nil {
		return nil, storeError(err)
	}
	slices.Reverse(list)
	return list, nil
}
