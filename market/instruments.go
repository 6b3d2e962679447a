package market

import (
	"errors"
	"fmt"
)

// MaxInstruments bounds one set: what one engine is meant to hold (our choice).
const MaxInstruments = 1000

// Errors of NewInstruments that concern the set, not one instrument.
var (
	ErrNoInstruments      = errors.New("no instruments")
	ErrTooManyInstruments = fmt.Errorf("more than %d instruments", MaxInstruments)
)

// Instruments is the set of instruments that one engine knows, in the order of
// their IDs. It never changes after NewInstruments, so any number of goroutines
// may read it.
type Instruments struct {
	list     []Instrument
	bySymbol map[string]*Instrument
	// elsewhere has what other groups serve; nil = nothing is known of any.
	otherShards map[string]*Shard
}

// NewInstruments copies list and checks it: every instrument is valid, has its
// index as ID, and a symbol of its own. Errors: ErrNoInstruments,
// ErrTooManyInstruments, or a text that names the instrument and the rule.
func NewInstruments(list []Instrument) (*Instruments, error) {
	switch {
	case len(list) == 0:
		return nil, ErrNoInstruments
	case len(list) > MaxInstruments:
		return nil, fmt.Errorf("%w: %d", ErrTooManyInstruments, len(list))
	}
	set := &Instruments{
		list:     append([]Instrument(nil), list...),
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

// Get returns the instrument with that ID, or nil. The caller must not change
// it.
func (s *Instruments) Get(id InstrumentID) *Instrument {
	if int(id) >= len(s.list) {
		return nil
	}
	return &s.list[id]
}

// Lookup returns the instrument with that symbol, or nil. The caller must not
// change it. Letter case counts. It does not allocate and does not keep symbol.
func (s *Instruments) Lookup(symbol []byte) *Instrument {
	return s.bySymbol[string(symbol)]
}
