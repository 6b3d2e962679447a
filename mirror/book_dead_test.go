package mirror_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"blockdesk/market"
	"blockdesk/mirror"
)

// manyDead makes a Manifest book of dead orders with some live ones.
func manyDead(rng *rand.Rand, dead, live, behind int) []order {
	var list []order
	for i := range dead + live {
		o := order{bid: rng.IntN(2) == 0, size: 1 + rng.Uint64N(1000)}
		o.price.Lo = (100_000 + rng.Uint64N(20_000)) * 1_000_000_000_000
		if i < dead {
			switch rng.IntN(3) {
			case 0:
				o.size = 0
			default:
				o.last = uint32(1 + rng.Uint64N(999))
			}
		} else {
			o.last = []uint32{0, 1000, math.MaxUint32}[rng.IntN(3)]
			if rng.IntN(20) == 0 {
				o.size = math.MaxUint64 - rng.Uint64N(3) // two of a price are too many
			}
		}
		list = append(list, o)
	}
	for range behind { // live ones that all dead ones are better than
		list = append(list, order{bid: true, price: market.Uint128{Lo: 50_000e12 + rng.Uint64N(9)*1e12}, size: 1 + rng.Uint64N(9)})
	}
	return list
}

// TestBookOfTheDead: a book of mostly expired orders shows the same as its live orders
// alone, whichever way they are found.
func TestBookOfTheDead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ dead, live, behind int }{
		{2046, 0, 0}, {2050, 0, 0}, {5000, 0, 0}, {5000, 1, 0}, {5000, 40, 3}, {5000, 0, 1024}, {5000, 0, 1025}, {9000, 300, 900}, {3000, 3000, 0}, {4000, 0, 3000},
	} {
		for _, levels := range []int{7, mirror.MaxLevels} {
			orders := manyDead(rng, c.dead, c.live, c.behind)
			m := makeBook(mirror.Manifest, orders)
			m.listing.Levels = levels
			m.accounts[0].Data = scatter(m.accounts[0].Data)
			var got mirror.Depth
			if err := m.decode(&got, now); err != nil {
				t.Fatalf("%+v, %d levels: %v", c, levels, err)
			}
			if want := m.naive(orders, now); !sameDepth(&got, &want) {
				t.Errorf("%+v, %d levels: decoded %+v\nwant    %+v", c, levels, got, want)
			}
		}
	}
}

// TestBookOfTheDeadTorn: after dead orders a live one counts only if it is linked in the
// tree, and circular links end.
func TestBookOfTheDeadTorn(t *testing.T) {
	const header, node, none = 256, 80, math.MaxUint32
	orders := manyDead(rand.New(rand.NewPCG(3, 4)), 6000, 0, 5)
	at := func(data []byte, price uint64) int { // of a live order
		for i := header; i < len(data); i += node {
			if binary.LittleEndian.Uint64(data[i+16:]) == price && binary.LittleEndian.Uint64(data[i+32:]) != 0 {
				return i
			}
		}
		t.Fatal("no such order")
		return 0
	}
	for name, c := range map[string]struct {
		tear func(data []byte, live int)
		want error
	}{
		"whole":             {func([]byte, int) {}, nil},
		"no parent":         {func(d []byte, live int) { u32(d, live+8, none) }, mirror.ErrMalformed},
		"another's child":   {func(d []byte, live int) { u32(d, live+8, binary.LittleEndian.Uint32(d[156:])) }, mirror.ErrMalformed},
		"its own parent":    {func(d []byte, live int) { u32(d, live+8, uint32(live-header)); u32(d, live, uint32(live-header)) }, mirror.ErrMalformed},
		"outside":           {func(d []byte, live int) { u32(d, live+8, uint32(len(d))) }, mirror.ErrMalformed},
		"in between":        {func(d []byte, live int) { u32(d, live+8, 8) }, mirror.ErrMalformed},
		"a seat":            {func(d []byte, live int) { d[live+13] = 3 }, nil},
		"cut off from root": {func(d []byte, _ int) { u32(d, header+int(binary.LittleEndian.Uint32(d[156:])), none) }, mirror.ErrMalformed},
	} {
		m := makeBook(mirror.Manifest, orders)
		live := at(m.accounts[0].Data, slices.MinFunc(orders, func(a, b order) int { return a.price.Cmp(b.price) }).price.Lo)
		c.tear(m.accounts[0].Data, live)
		var d mirror.Depth
		if err := m.decode(&d, now); !errors.Is(err, c.want) || err != nil && len(d.Bids)+d.Orders != 0 {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
}
