package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Definition is the command that defined an instrument. A zero Seq means that it came before
// the archive stored definitions, or in a gap.
type Definition struct {
	Seq uint64
	At  int64 // Unix nanoseconds
}

// definitions are those of all instruments. The follower adds to them, and any goroutine may
// read.
type definitions struct {
	mu  sync.Mutex
	all map[market.InstrumentID]Definition
	// followed: the store has seen every definition since it was made, or all that it has not
	// seen are stored with a zero Seq.
	followed bool
}

func (d *definitions) get(in market.InstrumentID) (Definition, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.all[in]
	return at, ok
}

func (d *definitions) set(in market.InstrumentID, at Definition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = make(map[market.InstrumentID]Definition)
	}
	d.all[in] = at
}

// Definition returns when an instrument was defined; ok is false if that is unknown.
func (a *Archive) Definition(in market.InstrumentID) (d Definition, ok bool) {
	d, _ = a.follower.definitions.get(in)
	return d, d.Seq > 0
}

// Know records that the first count instruments have been defined, for those whose definition
// the store has missed, so that a later change of theirs is not taken for it. It is called
// before Start, Skip or Reconcile, which commit it.
func (a *Archive) Know(count int) {
	f := &a.follower
	for in := range market.InstrumentID(count) {
		if _, known := f.definitions.get(in); !known {
			f.putDefinition(in, Definition{})
		}
	}
	f.follow()
}

// follow makes the store take the next event of an unknown instrument for its definition.
func (f *follower) follow() {
	f.definitions.followed = true
	f.batch.Set([]byte{keyFollowed}, []byte{1})
}

// addDefinition stores the first event of an instrument as its definition.
func (f *follower) addDefinition(e *event.Event) {
	if _, known := f.definitions.get(e.Instrument); !known && f.definitions.followed {
		f.putDefinition(e.Instrument, Definition{e.Seq, e.At})
	}
}

func (f *follower) putDefinition(in market.InstrumentID, d Definition) {
	f.definitions.set(in, d)
	f.key = definitionKey(f.key[:0], in)
	f.value = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(f.value[:0], d.Seq), uint64(d.At))
	f.batch.Set(f.key, f.value)
}

// forgetDefinitions removes those after seq, which the journal has lost.
func (f *follower) forgetDefinitions(seq uint64) {
	d := &f.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	for in, at := range d.all {
		if at.Seq > seq {
			delete(d.all, in)
			f.batch.Delete(definitionKey(nil, in))
		}
	}
}

// loadDefinitions reads the stored definitions. A store without a record has seen nothing yet,
// and follows from the beginning; an older version's does so from Know on.
func (a *Archive) loadDefinitions() error {
	f := &a.follower
	switch value, stored, err := a.store.Get([]byte{keyFollowed}); {
	case err != nil:
		return err
	case stored && !bytes.Equal(value, []byte{1}):
		return fmt.Errorf("%w: definitions followed: %x", ErrLayout, value)
	case stored:
		f.definitions.followed = true
	case f.cursor == cursor{}:
		f.follow()
	}
	return kv.Each(a.store, []byte{keyDefinition}, []byte{keyDefinition + 1}, func(key, value []byte) error {
		be := binary.BigEndian
		if len(key) != definitionKeySize || len(value) != definitionSize || int64(be.Uint64(value[8:])) < 0 {
			return fmt.Errorf("%w: definition: key of %d bytes, value %x", ErrLayout, len(key), value)
		}
		f.definitions.set(market.InstrumentID(be.Uint16(key[1:])), Definition{be.Uint64(value), int64(be.Uint64(value[8:]))})
		return nil
	})
}
