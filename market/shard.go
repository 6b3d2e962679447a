package market

import "maps"

// Shard holds the public addresses of a shard: the processes that serve some of the
// instruments. An empty address is not configured.
type Shard struct {
	Name string // lower case letters, digits and dashes
	// Base, API and WS are URLs without a trailing slash; FIX is host:port.
	Base, API, WS, FIX string
}

// WithOtherShards returns a copy of the set that also maps the symbols in shards to the
// shards that serve them. Symbols of the set itself are ignored.
func (s *Instruments) WithOtherShards(shards map[string]*Shard) *Instruments {
	out := *s
	out.otherShards = maps.Clone(shards)
	for symbol := range s.bySymbol {
		delete(out.otherShards, symbol)
	}
	return &out
}

// OtherShard returns the shard that serves symbol, or nil if the set serves it or no
// shard is known to. The caller must not change the result. OtherShard does not
// allocate and does not keep symbol.
func (s *Instruments) OtherShard(symbol []byte) *Shard { return s.otherShards[string(symbol)] }
