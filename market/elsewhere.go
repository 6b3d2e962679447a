package market

import "maps"

// Place is where another group's instruments are served. Empty = it is not told.
type Place struct {
	Group string // its name: lower case letters, digits and dashes
	// Base, API and WS are URLs without a slash at the end, FIX is host:port.
	Base, API, WS, FIX string
}

// WithElsewhere returns the same set that knows, by symbol, where instruments
// are served that are not in it. A symbol of the set itself is left out.
func (s *Instruments) WithElsewhere(places map[string]*Place) *Instruments {
	out := *s
	out.elsewhere = maps.Clone(places)
	for symbol := range s.bySymbol {
		delete(out.elsewhere, symbol)
	}
	return &out
}

// Elsewhere returns where an instrument that is not in the set is served, nil
// where that is not known. The caller must not change it. It does not allocate
// and does not keep symbol.
func (s *Instruments) Elsewhere(symbol []byte) *Place { return s.elsewhere[string(symbol)] }
