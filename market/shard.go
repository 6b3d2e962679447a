package market

import "maps"

// Shard is where another group's instruments are served. Empty = it is not told.
type Shard struct {
	Name string // its name: lower case letters, digits and dashes
	// Base, API and WS are URLs without a slash at the end, FIX is host:port.
	Base, API, WS, FIX string
}

// WithOtherShards returns the same set that knows, by symbol, where instruments
// are served that are not in it. A symbol of the set itself is left out.
func (s *Instruments) WithOtherShards(places map[string]*Shard) *Instruments {
	out := *s
	out.otherShards = maps.Clone(places)
	for symbol := range s.bySymbol {
		delete(out.otherShards, symbol)
	}
	return &out
}

// OtherShard returns where an instrument that is not in the set is served, nil
// where that is not known. The caller must not change it. It does not allocate
// and does not keep symbol.
func (s *Instruments) OtherShard(symbol []byte) *Shard { return s.otherShards[string(symbol)] }
