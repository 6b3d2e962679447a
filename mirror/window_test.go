package mirror_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// epoch is the start of the tests' histories, in Unix seconds.
const epoch = 1_700_000_000

func newWindows(t rapid.TB, o mirror.WindowOptions) *mirror.Windows {
	t.Helper()
	w, err := mirror.NewWindows(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// read returns a transaction with swap number n.
func read(kind mirror.ProgressKind, n byte, slot uint64, at int64, base, quote int64) *mirror.Progress {
	delta := func(v int64) mirror.Delta {
		if v < 0 {
			return mirror.Delta{Atoms: market.Amount(-v), Out: true}
		}
		return mirror.Delta{Atoms: market.Amount(v)}
	}
	s := solana.Signature{n}
	return &mirror.Progress{Kind: kind, Trace: mirror.Trace{
		Signature: s, Slot: slot, Time: at,
		Movements: []mirror.Movement{{Key: mirror.MovementKey{Signature: s}, Kind: mirror.Swap, Calls: 1, Base: delta(base), Quote: delta(quote)}},
	}}
}

// held sets the quote vault's balance.
func held(p *mirror.Progress, before, after market.Amount) *mirror.Progress {
	p.Trace.Quote = mirror.Balance{Named: true, Before: before, After: after}
	return p
}

func created(p *mirror.Progress) *mirror.Progress {
	p.Trace.Base.Named, p.Trace.Base.Created = true, true
	return p
}

func failing(p *mirror.Progress) *mirror.Progress {
	p.Trace.Movements, p.Err = nil, mirror.ErrUnbalanced
	return p
}

func asOf(seconds int64) *mirror.Progress { return &mirror.Progress{AsOf: time.Unix(seconds, 0)} }

const (
	day  = 24 * 60 * 60
	week = 7 * day
)

// TestWindowStatus: the status of a window, whose figures are zero unless proven.
func TestWindowStatus(t *testing.T) {
	const newer, older = mirror.ReadNewer, mirror.ReadOlder
	swap := func(kind mirror.ProgressKind, n byte, slot uint64, at int64) *mirror.Progress {
		return read(kind, n, slot, at, -1, 10)
	}
	at := int64(epoch + 30*day) // now
	for name, c := range map[string]struct {
		published []*mirror.Progress
		day, week string // status and number of swaps
	}{
		"nothing read":   {nil, "not_synced_to_chain 0", "not_synced_to_chain 0"},
		"nothing there":  {[]*mirror.Progress{asOf(at)}, "history_not_indexed_to_24h_start 0", "history_not_indexed_to_7d_start 0"},
		"since creation": {[]*mirror.Progress{created(swap(newer, 1, 1, at-9)), asOf(at)}, "exact_from_decoded_swaps 1", "exact_from_decoded_swaps 1"},
		"long ago":       {[]*mirror.Progress{created(swap(newer, 1, 1, at-8*day)), asOf(at)}, "no_indexed_swaps_in_24h_window 0", "no_indexed_swaps_in_7d_window 0"},
		"two days back": {
			[]*mirror.Progress{swap(newer, 9, 9, at-5), swap(older, 8, 8, at-2*day), asOf(at)},
			"exact_from_decoded_swaps 1", "history_not_indexed_to_7d_start 0",
		},
		"to the second": {
			[]*mirror.Progress{swap(newer, 9, 9, at-day+1), swap(older, 8, 8, at-day), asOf(at)},
			"exact_from_decoded_swaps 1", "history_not_indexed_to_7d_start 0",
		},
		"a second short": {[]*mirror.Progress{swap(newer, 9, 9, at-day+1), asOf(at)}, "history_not_indexed_to_24h_start 0", "history_not_indexed_to_7d_start 0"},
		"a minute old":   {[]*mirror.Progress{created(swap(newer, 1, 1, at-90)), asOf(at - 60)}, "exact_from_decoded_swaps 1", "exact_from_decoded_swaps 1"},
		"older":          {[]*mirror.Progress{created(swap(newer, 1, 1, at-90)), asOf(at - 61)}, "not_synced_to_chain 0", "not_synced_to_chain 0"},
		"undecoded": {
			[]*mirror.Progress{created(swap(newer, 1, 1, at-3*day)), failing(swap(newer, 2, 2, at-2*day)), swap(newer, 3, 3, at-5), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"undecoded, older": {
			[]*mirror.Progress{swap(newer, 9, 9, at-5), failing(swap(older, 3, 3, at-2*day)), created(swap(older, 1, 1, at-3*day)), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"without a time": {
			[]*mirror.Progress{created(swap(newer, 1, 1, at-3*day)), swap(newer, 2, 2, 0), asOf(at)},
			"undecoded_transaction_in_24h_window 0", "undecoded_transaction_in_7d_window 0",
		},
		"without a time, then one with": {
			[]*mirror.Progress{created(swap(newer, 1, 1, at-3*day)), swap(newer, 2, 2, 0), swap(newer, 3, 3, at-2*day), swap(newer, 4, 4, at-5), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"time runs back": {
			[]*mirror.Progress{created(swap(newer, 1, 1, at-3*day)), swap(newer, 2, 2, at-4*day), swap(newer, 3, 3, at-2*day), asOf(at)},
			"no_indexed_swaps_in_24h_window 0", "undecoded_transaction_in_7d_window 0",
		},
		"begun without a time": {
			[]*mirror.Progress{swap(newer, 9, 9, 0), swap(older, 8, 8, at-2*day), asOf(at)},
			"undecoded_transaction_in_24h_window 0", "history_not_indexed_to_7d_start 0",
		},
		"an older one without a time": {
			[]*mirror.Progress{swap(newer, 9, 9, at-2*day), swap(older, 8, 8, 0), swap(older, 7, 7, at-8*day), asOf(at)},
			"no_indexed_swaps_in_24h_window 0", "undecoded_transaction_in_7d_window 0",
		},
		"ahead": {[]*mirror.Progress{created(swap(newer, 1, 1, at+61)), asOf(at)}, "chain_time_ahead_of_clock 0", "chain_time_ahead_of_clock 0"},
		"missing, newer": {
			[]*mirror.Progress{created(held(swap(newer, 1, 1, at-3*day), 0, 100)), held(swap(newer, 2, 2, at-2*day), 99, 109), held(swap(newer, 3, 3, at-5), 109, 119), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"missing, older": {
			[]*mirror.Progress{held(swap(newer, 9, 9, at-5), 109, 119), held(swap(older, 3, 3, at-2*day), 99, 109), created(held(swap(older, 1, 1, at-3*day), 0, 100)), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"a gift in between": {
			[]*mirror.Progress{created(held(swap(newer, 1, 1, at-3*day), 0, 100)), held(swap(newer, 2, 2, at-5), 101, 111), asOf(at)},
			"exact_from_decoded_swaps 1", "exact_from_decoded_swaps 2",
		},
		"joined after an undecoded one": {
			[]*mirror.Progress{created(held(swap(newer, 1, 1, at-3*day), 0, 100)), failing(swap(newer, 2, 2, at-2*day)), held(swap(newer, 3, 3, at-5), 50, 60), asOf(at)},
			"exact_from_decoded_swaps 1", "undecoded_transaction_in_7d_window 0",
		},
		"begun anew": {
			[]*mirror.Progress{created(swap(newer, 1, 1, at-3*day)), asOf(at), {Kind: mirror.Restarted}},
			"not_synced_to_chain 0", "not_synced_to_chain 0",
		},
	} {
		w := newWindows(t, mirror.WindowOptions{})
		for _, p := range c.published {
			if _, err := w.Apply(p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		r := w.At(time.Unix(at, 0))
		for _, o := range []struct {
			name string
			mirror.Window
			want string
		}{{"24h", r.Day, c.day}, {"7d", r.Week, c.week}} {
			if got := fmt.Sprint(o.Status.Word(o.name), " ", o.Swaps); got != o.want {
				t.Errorf("%s: %s, want %s", name, got, o.want)
			}
			if want := (mirror.Window{Status: o.Status}); !o.Status.Proven() && o.Window != want {
				t.Errorf("%s: %s reports %+v", name, o.name, o.Window)
			}
		}
	}
}

// TestWindowOrder: a repeated transaction counts once, and one out of order is refused.
func TestWindowOrder(t *testing.T) {
	w := newWindows(t, mirror.WindowOptions{})
	for i, c := range []struct {
		p       *mirror.Progress
		counted bool
		err     error
	}{
		{read(mirror.ReadNewer, 10, 10, epoch, 1, -1), true, nil},
		{read(mirror.ReadNewer, 10, 10, epoch, 1, -1), false, nil},
		{read(mirror.ReadOlder, 10, 10, epoch, 1, -1), false, nil},
		{read(mirror.ReadOlder, 9, 10, epoch, 1, -1), true, nil},
		{read(mirror.ReadNewer, 9, 10, epoch, 1, -1), false, nil},
		{read(mirror.ReadNewer, 12, 12, epoch, 1, -1), true, nil},
		{read(mirror.ReadNewer, 10, 10, epoch, 1, -1), false, nil}, // at the old end
		{read(mirror.ReadNewer, 11, 11, epoch, 1, -1), false, nil}, // within
		{read(mirror.ReadNewer, 8, 9, epoch, 1, -1), false, mirror.ErrOrder},
		{read(mirror.ReadOlder, 14, 13, epoch, 1, -1), false, mirror.ErrOrder},
		{read(mirror.ReadOlder, 13, 12, epoch, 1, -1), false, mirror.ErrOrder},
		{asOf(epoch), false, nil},
	} {
		if counted, err := w.Apply(c.p); counted != c.counted || !errors.Is(err, c.err) {
			t.Errorf("%d: %t, %v", i, counted, err)
		}
	}
	r := w.At(time.Unix(epoch, 0))
	if r.Totals.Swaps != 3 || r.Last.Key.Signature != (solana.Signature{12}) || r.Last.Side != market.Sell {
		t.Errorf("%+v", r)
	}
}

// TestWindowDelta: the change from the reference price to the last, in millionths.
func TestWindowDelta(t *testing.T) {
	fill := func(base, quote market.Amount) mirror.CountedSwap {
		return mirror.CountedSwap{Base: base, Quote: quote}
	}
	for _, c := range []struct {
		first, last mirror.CountedSwap
		swaps       int
		want        int64
		ok          bool
	}{
		{fill(10, 70), fill(10, 70), 1, 0, true},
		{fill(10, 100), fill(10, 105), 2, 50_000, true},
		{fill(10, 100), fill(20, 100), 2, -500_000, true},
		{fill(1, 3), fill(1, 2), 2, -333_333, true}, // towards zero
		{fill(1, math.MaxUint64), fill(math.MaxUint64, 1), 2, -999_999, true},
		{fill(math.MaxUint64, 1), fill(1, math.MaxUint64), 2, 0, false},
		{fill(10, 70), mirror.CountedSwap{}, 0, 0, false},
		{mirror.CountedSwap{}, fill(10, 70), 1, 0, false},
	} {
		w := mirror.Window{Swaps: c.swaps, Reference: c.first, Last: c.last}
		if got, ok := w.Delta(); ok != c.ok || ok && got != c.want {
			t.Errorf("%v to %v: %d, %t", c.first, c.last, got, ok)
		}
	}
}

// TestWindowLimit: with one swap more than the limit, at either end, the week is not
// proven; the newest swaps are kept.
func TestWindowLimit(t *testing.T) {
	const most = 4
	for kind, step := range map[mirror.ProgressKind]int64{mirror.ReadNewer: 1, mirror.ReadOlder: -1} {
		w := newWindows(t, mirror.WindowOptions{MaxSwaps: most})
		for i := range int64(most + 1) {
			p := read(kind, byte(i+1), uint64(100+step*i), epoch+1000+step*i, 1, -2)
			if i == 0 {
				p = created(p)
			}
			if _, err := w.Apply(p); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Apply(asOf(epoch + 2000)); err != nil {
				t.Fatal(err)
			}
			r := w.At(time.Unix(epoch+2000, 0))
			switch i {
			case most - 1:
				if r.Week.Status != mirror.Exact || r.Week.Swaps != most || r.Week.Quote != (market.Uint128{Lo: 2 * most}) {
					t.Errorf("%v: at the limit: %+v", kind, r.Week)
				}
			case most:
				if r.Week.Status != mirror.Partial || r.Totals.Swaps != most+1 || r.Last.Time != max(epoch+1000, epoch+1000+step*i) {
					t.Errorf("%v: beyond it: %+v", kind, r)
				}
				// A window that begins after the dropped swaps is proven.
				at := epoch + 1000 + min(0, step*i) + week
				if _, err := w.Apply(asOf(at)); err != nil {
					t.Fatal(err)
				}
				if r := w.At(time.Unix(at, 0)); r.Week.Status != mirror.Exact || r.Week.Swaps != most {
					t.Errorf("%v: a week later: %+v", kind, r.Week)
				}
			}
		}
	}
	for _, o := range []mirror.WindowOptions{{MaxSwaps: -1}, {MaxAge: -1}, {MaxAhead: -1}} {
		if _, err := mirror.NewWindows(o); !errors.Is(err, mirror.ErrWindowOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestWindowProperty applies a random history from a random point outwards, with
// repetitions, and compares proven figures with a plain sum.
func TestWindowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "transactions")
		at, slot := int64(epoch), uint64(5)
		var history []*mirror.Progress
		for i := range n {
			at += rapid.SampledFrom([]int64{0, 1, 3600, day, 3 * day}).Draw(t, "after")
			slot += rapid.SampledFrom([]uint64{0, 1, 1000}).Draw(t, "slots")
			history = append(history, read(mirror.ReadNewer, byte(i+1), slot, at, rapid.SampledFrom([]int64{-3, 5}).Draw(t, "base"), 7))
		}
		w := newWindows(t, mirror.WindowOptions{})
		first := rapid.IntRange(0, n-1).Draw(t, "first")
		lo, hi := first, first-1
		for lo > 0 || hi < n-1 {
			var i int
			kind := mirror.ReadNewer
			if hi < n-1 && (lo == 0 || rapid.Bool().Draw(t, "newer")) {
				hi++
				i = hi
			} else {
				lo--
				i, kind = lo, mirror.ReadOlder
			}
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				p := *history[i]
				p.Kind = kind
				if _, err := w.Apply(&p); err != nil {
					t.Fatal(err)
				}
			}
		}
		now := at + rapid.SampledFrom([]int64{0, 1, 3600, day, 8 * day}).Draw(t, "now")
		if _, err := w.Apply(asOf(now)); err != nil {
			t.Fatal(err)
		}
		r := w.At(time.Unix(now, 0))
		if r.Totals.Swaps != uint64(n) || r.Last.Key.Signature != history[n-1].Trace.Signature {
			t.Fatalf("%d swaps, the last %v", r.Totals.Swaps, r.Last)
		}
		for length, got := range map[int64]mirror.Window{day: r.Day, week: r.Week} {
			want, reference := mirror.Window{Status: mirror.Empty}, mirror.CountedSwap{}
			for _, p := range history {
				m := &p.Trace.Movements[0]
				f := mirror.CountedSwap{Key: m.Key, Slot: p.Trace.Slot, Time: p.Trace.Time, Side: m.Side(), Calls: 1, Base: m.Base.Atoms, Quote: 7}
				if p.Trace.Time <= now-length {
					reference = f
				} else {
					want.Status, want.Last = mirror.Exact, f
					want.Swaps++
					want.Base.Lo += uint64(m.Base.Atoms)
					want.Quote.Lo += 7
				}
			}
			if want.Swaps > 0 {
				want.Reference = reference
			}
			if history[0].Trace.Time > now-length {
				want = mirror.Window{Status: mirror.Partial}
			}
			if got != want {
				t.Fatalf("%d s: %+v\nwant %+v", length, got, want)
			}
		}
	})
}
