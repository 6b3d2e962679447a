package market

import "testing"

func TestOtherShard(t *testing.T) {
	set, err := NewInstruments([]Instrument{{
		Symbol: "A/B", Base: "A", Quote: "B", Source: Matched, Tick: 1, Lot: 1, MinQty: 1, MaxQty: 10, MaxPrice: 10,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if set.OtherShard([]byte("C/D")) != nil {
		t.Error("a set without shards knows one")
	}
	us := &Shard{Name: "us"}
	wide := set.WithOtherShards(map[string]*Shard{"A/B": us, "C/D": us})
	switch {
	case wide.OtherShard([]byte("C/D")) != us:
		t.Error("the shard of C/D is not found")
	case wide.OtherShard([]byte("A/B")) != nil:
		t.Error("a symbol of the set has another shard")
	case wide.OtherShard([]byte("c/d")) != nil, wide.OtherShard(nil) != nil:
		t.Error("an unknown symbol has a shard")
	case wide.Lookup([]byte("A/B")) == nil || wide.Lookup([]byte("C/D")) != nil:
		t.Error("WithOtherShards changed Lookup")
	case set.OtherShard([]byte("C/D")) != nil:
		t.Error("WithOtherShards changed its receiver")
	}
}
