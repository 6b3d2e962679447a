package market

import (
	"errors"
	"fmt"
	"slices"
)

// MaxInstruments is the most instruments of one engine (our choice).
const MaxInstruments = 10_000

// Errors of NewInstruments about the set as a whole.
var (
	ErrNoInstruments      = errors.New("the list of instruments is empty")
	ErrTooManyInstruments = fmt.Errorf("more than %d instruments", MaxInstruments)
)

// Instruments is the set of instruments of one engine, ordered by ID. It is immutable:
// any number of goroutines may read it.
type Instruments struct {
	list        []Instrument
	bySymbol    map[string]*Instrument
	otherShards map[string]*Shard // by symbol; nil = none known
}

// NewInstruments copies and checks list: every instrument must be valid, have its
// index as ID, and a unique symbol. Errors: ErrNoInstruments, ErrTooManyInstruments,
// or an error that names the instrument and the rule.
func NewInstruments(list []Instrument) (*Instruments, error) {
	switch {
	case len(list) == 0:
		return nil, ErrNoInstruments
	case len(list) > MaxInstruments:
		return nil, fmt.Errorf("%w: %d", ErrTooManyInstruments, len(list))
	}
	set := &Instruments{
		list:     slices.Clone(list),
		bySymbol: make(map[string]*Instrument, len(list)),
	}
	for i := range set.list {
		in := &set.list[i]
		if err := in.Validate(); err != nil {
			return nil, fmt.Errorf("instrument %d: %w", i, err)
		}
		if int(in.ID) != i {
			return nil, fmt.Errorf("instrument %d: %s: id %d: must be its index", i, in.Symbol, in.ID)
		}
		if first, taken := set.bySymbol[in.Symbol]; taken {
			return nil, fmt.Errorf("instrument %d: %s: symbol is taken by instrument %d", i, in.Symbol, first.ID)
		}
		set.bySymbol[in.Symbol] = in
	}
	return set, nil
}

// Len returns the number of instruments; IDs are 0..Len()-1.
func (s *Instruments) Len() int { return len(s.list) }

// Get returns the instrument with that ID, or nil. The caller must not change it.
func (s *Instruments) Get(id InstrumentID) *Instrument {
	if int(id) >= len(s.list) {
		return nil
	}
	return &s.list[id]
}

// Lookup returns the instrument with that symbol (case-sensitive), or nil. The caller
// must not change it. Lookup does not allocate and does not keep symbol.
func (s *Instruments) Lookup(symbol []byte) *Instrument { return s.bySymbol[string(symbol)] }
