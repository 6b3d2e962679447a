package market

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// listOf returns n valid instruments with symbols T0/USDC, T1/USDC, …
func listOf(n int) []Instrument {
	list := make([]Instrument, n)
	for i := range list {
		list[i] = slusd()
		list[i].ID = InstrumentID(i)
		list[i].Base = fmt.Sprintf("T%d", i)
		list[i].Symbol = list[i].Base + "/USDC"
	}
	return list
}

func TestInstruments(t *testing.T) {
	list := listOf(3)
	set, err := NewInstruments(list)
	if err != nil {
		t.Fatal(err)
	}
	list[1].Symbol = "changed" // the set has a copy
	if set.Len() != 3 {
		t.Errorf("Len = %d", set.Len())
	}
	for id := range InstrumentID(3) {
		in := set.Get(id)
		if in.ID != id || in.Symbol != fmt.Sprintf("T%d/USDC", id) {
			t.Errorf("Get(%d) = %d %s", id, in.ID, in.Symbol)
		}
		if set.Lookup([]byte(in.Symbol)) != in {
			t.Errorf("Lookup(%s) is not Get(%d)", in.Symbol, id)
		}
	}
	if in := set.Get(3); in != nil {
		t.Errorf("Get past the end = %v", in)
	}
	for _, symbol := range []string{"", "t1/usdc", "T1", "T1/USDC ", "X/Y", strings.Repeat("x", 1<<16)} {
		if in := set.Lookup([]byte(symbol)); in != nil {
			t.Errorf("Lookup(%.40q) = %v", symbol, in)
		}
	}
}

func TestInstrumentsLimit(t *testing.T) {
	if set, err := NewInstruments(listOf(MaxInstruments)); err != nil || set.Len() != MaxInstruments {
		t.Fatalf("at the limit: %v", err)
	}
	if _, err := NewInstruments(listOf(MaxInstruments + 1)); !errors.Is(err, ErrTooManyInstruments) {
		t.Fatalf("limit + 1: %v", err)
	}
	if _, err := NewInstruments(nil); !errors.Is(err, ErrNoInstruments) {
		t.Fatalf("none: %v", err)
	}
}

func TestInstrumentsRefuses(t *testing.T) {
	for _, c := range []struct {
		mend  func([]Instrument)
		wants string
	}{
		{func(l []Instrument) { l[2].ID = 1 }, "instrument 2: T2/USDC: id 1: must be its index"},
		{func(l []Instrument) { l[2].Base, l[2].Symbol = "T0", "T0/USDC" }, "instrument 2: T0/USDC: symbol is taken by instrument 0"},
		{func(l []Instrument) { l[1].Tick = 0 }, "instrument 1: T1/USDC: tick must be greater than zero"},
	} {
		list := listOf(3)
		c.mend(list)
		if _, err := NewInstruments(list); err == nil || err.Error() != c.wants {
			t.Errorf("%v; want %s", err, c.wants)
		}
	}
}
