package ladder

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"blockdesk/engine/auction"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// check checks the invariants of the package documentation.
func (b *Book) check() error {
	seen := map[int32]bool{}
	if err := b.checkPages(seen); err != nil {
		return err
	}
	far := 0
	for p, li := b.far.min(); li != none; p, li = b.far.ceil(p + 1) {
		far++
		if b.near(market.Price(p)) || int64(b.levels[li].price) != p || b.levels[li].head == 0 {
			return fmt.Errorf("far level %d of price %d: %+v, base %d", li, p, b.levels[li], b.base)
		}
		if err := b.checkQueue(li, market.Price(p), seen); err != nil {
			return err
		}
	}
	if far != b.far.size {
		return fmt.Errorf("%d far levels, counted %d", far, b.far.size)
	}
	if err := b.checkStops(seen); err != nil {
		return err
	}
	return b.checkSlab(seen)
}

// checkPages checks the page table and the levels of the window.
func (b *Book) checkPages(seen map[int32]bool) error {
	t := &b.pages
	used := 0
	for n, first := range t.first {
		if present := t.summary[n>>6]>>(n&63)&1 == 1; present != (first != 0) || present != (t.used[first>>pageBits] != 0) {
			return fmt.Errorf("page %d at %d: present %v, used %b", n, first, present, t.used[first>>pageBits])
		}
		if marked := t.top>>(n>>6)&1 == 1; marked != (t.summary[n>>6] != 0) {
			return fmt.Errorf("summary %d: marked %v", n>>6, marked)
		}
		for i := range int32(pagePrices) {
			lv := &b.levels[first+i]
			set := t.used[first>>pageBits]>>i&1 == 1
			if set != (lv.head != 0) {
				return fmt.Errorf("level %d of page %d: bit %v, head %d", i, n, set, lv.head)
			}
			if !set {
				if (*lv != level{price: lv.price}) {
					return fmt.Errorf("unused level %d of page %d: %+v", i, n, *lv)
				}
				continue
			}
			used++
			if !b.near(lv.price) || int(lv.price&ringMask) != n<<pageBits+int(i) {
				return fmt.Errorf("level %d of page %d has price %d, base %d", i, n, lv.price, b.base)
			}
			if err := b.checkQueue(first+i, lv.price, seen); err != nil {
				return err
			}
		}
	}
	if used != t.count || b.width > window || b.width == window && b.base != b.target {
		return fmt.Errorf("%d levels in use, counted %d; base %d, width %d, target %d", used, t.count, b.base, b.width, b.target)
	}
	return nil
}

// checkQueue walks a level's queue and checks links, sums and sides.
func (b *Book) checkQueue(li int32, p market.Price, seen map[int32]bool) error {
	lv := &b.levels[li]
	var shown, hidden market.Qty
	last := int32(0)
	for slot := lv.head; slot != 0; slot = b.orders[slot].next {
		x := &b.orders[slot]
		if seen[slot] || x.prev != last || x.price() != p || x.qty() == 0 || x.state&flagWaiting != 0 {
			return fmt.Errorf("slot %d in level %d: %+v", slot, li, *x)
		}
		if key := sign(x.side()) * int64(p); key > b.best[x.side()] || key+b.best[x.side().Opposite()] >= 0 {
			return fmt.Errorf("slot %d at %d against best %v", slot, p, b.best)
		}
		seen[slot] = true
		shown += x.qty()
		hidden += b.hidden(slot)
		last = slot
	}
	if lv.tail != last || lv.shown != shown || lv.hidden != hidden || shown+hidden > book.MaxLevelQty {
		return fmt.Errorf("level %d: %+v, should be shown %d, hidden %d, tail %d", li, *lv, shown, hidden, last)
	}
	return nil
}

func (b *Book) checkStops(seen map[int32]bool) error {
	waiting := 0
	var gathered [4]market.Qty
	for _, list := range waitingLists {
		for stop, li := b.firstStop(list); li != none; stop, li = b.nextStop(list, stop) {
			last := int32(0)
			var sum market.Qty
			for slot := b.levels[li].head; slot != 0; slot = b.orders[slot].next {
				x := &b.orders[slot]
				key := int64(b.cold[slot].stop)
				if key == 0 {
					key = int64(x.price())
					sum += x.qty()
				} else {
					waiting++
				}
				if seen[slot] || x.prev != last || x.state&flagWaiting == 0 || x.side() != sideOfList(list) || key != stop {
					return fmt.Errorf("slot %d at trigger %d: %+v", slot, stop, *x)
				}
				seen[slot] = true
				last = slot
			}
			if last == 0 || last != b.levels[li].tail || b.levels[li].shown != sum {
				return fmt.Errorf("trigger %d: last %d, %+v, sum %d", stop, last, b.levels[li], sum)
			}
			gathered[sideOfList(list)] += sum
		}
	}
	if gathered != b.gathered {
		return fmt.Errorf("gathered %v, counted %v", gathered, b.gathered)
	}
	if waiting != b.waiting || b.elected != (queue{}) {
		return fmt.Errorf("%d stops wait, counted %d; elected %+v", waiting, b.waiting, b.elected)
	}
	return nil
}

// checkSlab checks ids, open counts, expiry buckets and the free list against the seen orders.
func (b *Book) checkSlab(seen map[int32]bool) error {
	entries, expiring := 0, 0
	for _, e := range b.ids.entries {
		if e != 0 {
			entries++
		}
	}
	if err := b.checkGrowth(seen); err != nil {
		return err
	}
	open, ending := map[market.ParticipantID]int32{}, map[market.ParticipantID]int32{}
	for slot := range seen {
		x := &b.orders[slot]
		if found, _ := b.find(x.id, hashOf(x.id)); found != slot {
			return fmt.Errorf("id %d of slot %d found in slot %d", x.id, slot, found)
		}
		if b.isMassCancelled(x) {
			ending[x.participant()]++
		} else {
			open[x.participant()]++
		}
		if x.state&expires != 0 {
			expiring++
		}
	}
	all := 0
	for participant, a := range b.accounts {
		n, m := a.open[0]+a.open[1], a.ending[0]+a.ending[1]
		all += int(m)
		if n != open[market.ParticipantID(participant)] || m != ending[market.ParticipantID(participant)] {
			return fmt.Errorf("participant %d: %d open, counted %d", participant, open[market.ParticipantID(participant)], n)
		}
	}
	if all != b.ending || b.unswept() && !b.sweeping {
		return fmt.Errorf("%d orders are ending, counted %d, sweeping %v", all, b.ending, b.sweeping)
	}
	first, hung := int64(0), 0
	for at, li := b.expiries.min(); li != none; at, li = b.expiries.ceil(at + 1) {
		if first == 0 {
			first = at
		}
		last := int32(0)
		for slot := b.levels[li].head; slot != 0; slot = b.cold[slot].laterExpiry {
			d := &b.cold[slot]
			if !seen[slot] || d.expireAt != at || d.bucket != li || d.earlierExpiry != last {
				return fmt.Errorf("slot %d in the bucket of %d: %+v", slot, at, *d)
			}
			last = slot
			hung++
		}
	}
	if b.live != len(seen) || entries != b.live || hung != expiring || first != b.next {
		return fmt.Errorf("%d live, counted %d, %d ids; %d expire, %d in buckets; next %d, kept %d",
			len(seen), b.live, entries, expiring, hung, first, b.next)
	}
	levels := pagePrices + b.far.size + b.expiries.size
	for _, list := range waitingLists {
		levels += b.stops[list].size
	}
	for li := b.freeLevels; li != 0; li = b.levels[li].tail {
		levels++
	}
	for first := b.freePages; first != 0; first = b.levels[first].tail {
		levels += pagePrices
	}
	for _, first := range b.pages.first {
		if first != 0 {
			levels += pagePrices
		}
	}
	if levels != len(b.levels) || len(b.pages.used) != levels/pagePrices {
		return fmt.Errorf("%d levels in use or free of %d", levels, len(b.levels))
	}
	free := 0
	for slot := b.free; slot != 0; slot = b.orders[slot].next {
		free++
	}
	if free+b.live+1 != len(b.orders) || len(b.orders) != len(b.cold) {
		return fmt.Errorf("%d free + %d live of %d slots", free, b.live, len(b.orders))
	}
	return nil
}

// checkGrowth checks that a table that grows has the live orders of the slots that it has
// reached, and nothing else.
func (b *Book) checkGrowth(seen map[int32]bool) error {
	if b.general != (b.sweeping || b.growing != nil) {
		return fmt.Errorf("general path %v, sweeping %v", b.general, b.sweeping)
	}
	g := b.growing
	if g == nil {
		return nil
	}
	moved := map[int32]bool{}
	for _, e := range g.entries {
		slot := int32(e & slotMask)
		if e == 0 {
			continue
		}
		if h := hashOf(b.orders[slot].id); moved[slot] || !seen[slot] || slot >= g.next || e != h&^slotMask|uint64(slot) {
			return fmt.Errorf("entry of slot %d in the table that grows, next %d", slot, g.next)
		}
		moved[slot] = true
	}
	for slot := range seen {
		if slot < g.next && !moved[slot] {
			return fmt.Errorf("slot %d is missing in the table that grows, next %d", slot, g.next)
		}
	}
	return nil
}

// TestInvariants checks the whole book after each of some thousand commands whose prices
// wander and jump.
func TestInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 13))
	b := New(book.Options{MaxOrders: 2000})
	out := event.NewGrowingSink(64)
	middle := market.Price(1 << 20)
	slides, grown := 0, 0
	for seq := uint64(1); seq <= 4000; seq++ {
		if rng.IntN(80) == 0 {
			middle = 1<<20 + market.Price(rng.IntN(4)*window)
		}
		base, table := b.base, len(b.ids.entries)
		out.Reset()
		if seq%500 < 40 {
			gatherCommand(rng, b, middle, seq, out)
		} else {
			randomCommand(rng, b, middle, seq, out)
		}
		if b.base != base {
			slides++
		}
		if len(b.ids.entries) != table {
			grown++
		}
		if seq%8 != 0 {
			continue
		}
		if err := b.check(); err != nil {
			t.Fatalf("after command %d: %v", seq, err)
		}
	}
	if slides < 5 || grown < 2 || b.live < 300 {
		t.Fatalf("the flow is too tame: %d slides, table grown %d times, %d live", slides, grown, b.live)
	}
	b.MassCancel(0, 0, event.ReasonMassCancel, 0, 5000, out)
	if err := b.check(); err != nil || b.live != 0 || b.pages.count != 0 || b.far.size != 0 {
		t.Fatalf("after a mass cancel: %v, %d live, %d + %d levels", err, b.live, b.pages.count, b.far.size)
	}
}

// gatherCommand takes a step of a call of 40 commands: 34 that gather, then slices of the
// uncrossing and of the release, the last of which takes all that is left.
func gatherCommand(rng *rand.Rand, b *Book, middle market.Price, seq uint64, out *event.Sink) {
	step := seq % 500
	switch {
	case step < 34:
		o := book.Order{
			ID: 10_000 + market.OrderID(rng.IntN(3000)), Participant: market.ParticipantID(rng.IntN(6)), Side: market.Side(1 + rng.IntN(2)),
			Qty: 1 + market.Qty(rng.IntN(50)), Price: middle + market.Price(rng.IntN(200)-100), Type: book.Limit, TIF: book.GTC, STP: book.STP(1 + rng.IntN(4)),
		}
		if rng.IntN(4) == 0 {
			o.Participant = 0
			b.AmendGathered(&o, int64(seq), seq, out)
			return
		}
		b.Gather(&o, int64(seq), seq, out)
	case step == 34:
		b.Uncross(middle, 3, int64(seq), seq, out)
	case step == 35:
		for r := auction.Find(b, 0); r.Volume > 0; r = auction.Find(b, 0) {
			b.Uncross(r.Price, 1<<20, int64(seq), seq, out)
		}
	case step < 39:
		b.Release(2, int64(seq), seq, out)
	default:
		b.Release(1<<20, int64(seq), seq, out)
		b.Elect(int64(seq), seq, out)
	}
}

func randomCommand(rng *rand.Rand, b *Book, middle market.Price, seq uint64, out *event.Sink) {
	o := book.Order{
		ID: 1 + market.OrderID(rng.IntN(3000)), Participant: market.ParticipantID(rng.IntN(6)),
		Side: market.Side(1 + rng.IntN(2)), Qty: 1 + market.Qty(rng.IntN(50)), Type: book.Limit, TIF: book.GTC,
		STP: book.STP(1 + rng.IntN(4)),
	}
	away := market.Price(rng.IntN(400) - 40)
	if rng.IntN(10) == 0 {
		away = market.Price(rng.IntN(window))
	}
	o.Price = middle + away*market.Price(2*int64(o.Side)-3)
	switch roll := rng.IntN(100); {
	case roll < 50:
		if rng.IntN(3) == 0 {
			o.TIF, o.ExpireAt = book.GTD, int64(seq)+int64(rng.IntN(3000))
		}
		if rng.IntN(5) == 0 {
			o.Display = 1 + o.Qty/3
		}
		if rng.IntN(8) == 0 {
			o.Type, o.Stop = book.StopLimit, o.Price-4*(o.Price-middle)
		}
		b.Submit(&o, int64(seq), seq, out)
	case roll < 65:
		b.Submit(&book.Order{ID: 1 << 40, Side: o.Side, Qty: o.Qty, Type: book.Market, TIF: book.IOC, STP: o.STP}, int64(seq), seq, out)
	case roll < 80:
		o.Participant = 0
		b.Amend(&o, int64(seq), seq, out)
	case roll < 97:
		b.Cancel(o.ID, 0, int64(seq), seq, out)
	default:
		b.Expire(int64(seq), seq, out)
	}
}

// put adds a plain order of one lot and returns its id.
func put(b *Book, id market.OrderID, s market.Side, p market.Price) market.OrderID {
	b.Submit(&book.Order{ID: id, Side: s, Qty: 1, Price: p, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest},
		0, uint64(id), ring(64))
	return id
}

// TestWindowStays: quotes far behind the best price must not move the window.
func TestWindowStays(t *testing.T) {
	b := New(book.Options{})
	put(b, 1, market.Buy, 1_000_000)
	put(b, 2, market.Sell, 1_000_001)
	base := b.base
	for i := range market.Price(1000) {
		b.Cancel(put(b, 3, market.Buy, 500_000-i), 0, 0, 1, ring(2))
	}
	if b.base != base {
		t.Fatalf("far bids moved the window from %d to %d", base, b.base)
	}
	// Nor away from the other side's touch, when the spread is wider than it.
	b = New(book.Options{})
	put(b, 1, market.Buy, 1_000_000)
	put(b, 2, market.Sell, 9_000_000)
	base = b.base
	for i := range market.Price(1000) {
		b.Cancel(put(b, 3, market.Sell, 9_500_000+i), 0, 0, 1, ring(2))
	}
	if b.base != base {
		t.Fatalf("far asks moved the window from %d to %d", base, b.base)
	}
}

// TestWindowFollows: the window follows the best price after a jump, but only after about
// as many far operations as it has levels to move.
func TestWindowFollows(t *testing.T) {
	const levels = 200
	b := New(book.Options{})
	id := market.OrderID(0)
	for i := range market.Price(levels) {
		id++
		put(b, id, market.Sell, 1_000_001+i)
	}
	base, jumps := b.base, 0
	for ; b.base == base; jumps++ {
		if jumps > 2*levels {
			t.Fatal("the window never follows the touch")
		}
		id++
		put(b, id, market.Sell, 100_000+market.Price(jumps%10))
	}
	if jumps < levels/2 {
		t.Fatalf("the window moved %d levels after %d far orders", levels, jumps)
	}
	if err := b.check(); err != nil {
		t.Fatal(err)
	}
}

// TestTree compares the tree with a sorted map on random keys, and checks its height.
func TestTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tr := newTree()
	want := map[int64]int32{}
	for i := range int32(20_000) {
		key := rng.Int64N(500)
		if i < 2000 {
			key = int64(i) // ascending: the worst order for a plain tree
		}
		if v, ok := want[key]; ok {
			if tr.find(key) != v {
				t.Fatalf("find(%d) = %d, want %d", key, tr.find(key), v)
			}
			tr.remove(key)
			delete(want, key)
		} else {
			tr.insert(key, i)
			want[key] = i
		}
		if tr.size != len(want) || tr.nodes[0].height != 0 || int(tr.nodes[tr.root].height) > 12 {
			t.Fatalf("%d keys, want %d, height %d", tr.size, len(want), tr.nodes[tr.root].height)
		}
		ask := rng.Int64N(520) - 10
		up, down := int64(-1), int64(-1)
		for k := range int64(2000) {
			if _, ok := want[k]; ok && k >= ask && up < 0 {
				up = k
			}
			if _, ok := want[k]; ok && k <= ask {
				down = k
			}
			if up >= 0 && k > ask {
				break
			}
		}
		requireKey(t, "ceil", up)(tr.ceil(ask))
		requireKey(t, "floor", down)(tr.floor(ask))
	}
}

// requireKey checks a result of ceil or floor: key, or none if key is -1.
func requireKey(t *testing.T, what string, key int64) func(int64, int32) {
	return func(got int64, value int32) {
		t.Helper()
		if (value == none) != (key < 0) || key >= 0 && got != key {
			t.Fatalf("%s: %d (value %d), want %d", what, got, value, key)
		}
	}
}
