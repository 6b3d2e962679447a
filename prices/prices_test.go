package prices

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/market"
)

const second = int64(1e9)

func dollars(n uint64) market.USDPrice { return market.USDPrice(n * 1e9) }

// TestJudge: each rule at its limit and one beyond it.
func TestJudge(t *testing.T) {
	now := 1_000 * second
	rule := Rule{Sources: []Source{Pyth, Pool, Operator}, MaxAge: 30 * second, MaxSpreadBps: 100, MaxConfidenceBps: 50}
	at := func(s Source, price market.USDPrice, age int64) Observation {
		return Observation{Source: s, Price: price, At: now - age}
	}
	unsure := func(o Observation, confidence market.USDPrice) Observation { o.Confidence = confidence; return o }
	for name, c := range map[string]struct {
		observed []Observation
		price    market.USDPrice
		source   Source
		fault    Fault
	}{
		"nothing":                   {nil, 0, 0, Missing},
		"the preferred one":         {[]Observation{at(Operator, dollars(151), 0), at(Pyth, dollars(150), 0)}, dollars(150), Pyth, 0},
		"as old as allowed":         {[]Observation{at(Pyth, dollars(150), 30*second)}, dollars(150), Pyth, 0},
		"older":                     {[]Observation{at(Pyth, dollars(150), 30*second+1)}, 0, 0, TooOld},
		"old, and another":          {[]Observation{at(Pyth, dollars(150), 31*second), at(Pool, dollars(140), 0)}, dollars(140), Pool, 0},
		"as far ahead as allowed":   {[]Observation{at(Pyth, dollars(150), -MaxAhead)}, dollars(150), Pyth, 0},
		"further ahead":             {[]Observation{at(Pyth, dollars(150), -MaxAhead-1)}, 0, 0, FromFuture},
		"as unsure as allowed":      {[]Observation{unsure(at(Pyth, dollars(200), 0), dollars(1))}, dollars(200), Pyth, 0},
		"less sure":                 {[]Observation{unsure(at(Pyth, dollars(200), 0), dollars(1)+1)}, 0, 0, TooUncertain},
		"as far apart as allowed":   {[]Observation{at(Pyth, dollars(100), 0), at(Pool, dollars(101), 0)}, dollars(100), Pyth, 0},
		"further apart":             {[]Observation{at(Pyth, dollars(100), 0), at(Pool, dollars(101)+1, 0)}, 0, 0, Disagree},
		"further apart, below":      {[]Observation{at(Pyth, dollars(101)+1, 0), at(Pool, dollars(100), 0)}, 0, 0, Disagree},
		"the third is apart":        {[]Observation{at(Pyth, dollars(100), 0), at(Pool, dollars(100), 0), at(Operator, dollars(90), 0)}, 0, 0, Disagree},
		"what is apart is old":      {[]Observation{at(Pyth, dollars(100), 0), at(Pool, dollars(50), 31*second)}, dollars(100), Pyth, 0},
		"old, of too few nodes":     {[]Observation{{Source: Pyth, Price: dollars(150), At: now - 31*second, NoQuorum: true}}, 0, 0, NoQuorum},
		"fresh, of too few nodes":   {[]Observation{{Source: Pyth, Price: dollars(150), At: now, NoQuorum: true}}, dollars(150), Pyth, 0},
		"none, of too few nodes":    {[]Observation{{Source: Pyth, NoQuorum: true}}, 0, 0, NoQuorum},
		"a price that none may be":  {[]Observation{at(Pyth, market.MaxUSDPrice+1, 0)}, 0, 0, Missing},
		"the largest price, unsure": {[]Observation{unsure(at(Pyth, market.MaxUSDPrice, 0), 1<<63)}, 0, 0, TooUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			j := rule.Judge(now, c.observed)
			if j.Price != c.price || j.Source != c.source || j.Fault != c.fault {
				t.Errorf("%d by %v, %v; want %d by %v, %v", j.Price, j.Source, j.Fault, c.price, c.source, c.fault)
			}
		})
	}
	if j := rule.Judge(now, []Observation{at(Pool, dollars(1), 0)}); j.Faults != [3]Fault{Missing, NoFault, Missing} {
		t.Errorf("the sources' faults: %v", j.Faults)
	}
	narrow := Rule{Sources: []Source{Pool}, MaxAge: second, MaxSpreadBps: 1, MaxConfidenceBps: 1}
	if j := narrow.Judge(now, []Observation{at(Pyth, dollars(150), 0)}); j.Fault != Missing {
		t.Errorf("a source that the rule does not name gives %v", j)
	}
}

// TestNeverOld: whatever is observed, a price is of a source of the rule, young enough,
// and no usable source lies further from it than the spread.
func TestNeverOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{
			Sources: rapid.Permutation([]Source{Pyth, Pool, Operator}).Draw(t, "sources")[:rapid.IntRange(1, 3).Draw(t, "n")],
			MaxAge:  rapid.Int64Range(1, 100).Draw(t, "age"), MaxSpreadBps: uint16(rapid.IntRange(1, 9999).Draw(t, "spread")), MaxConfidenceBps: 100,
		}
		if err := rule.Validate(); err != nil {
			t.Fatal(err)
		}
		now := rapid.Int64Range(1000, 2000).Draw(t, "now")
		var observed []Observation
		for s := Pyth; s <= Operator; s++ {
			if rapid.Bool().Draw(t, "there") {
				observed = append(observed, Observation{Source: s, Price: market.USDPrice(rapid.Uint64Range(0, 1000).Draw(t, "price")), At: rapid.Int64Range(0, 2000).Draw(t, "at")})
			}
		}
		j := rule.Judge(now, observed)
		if (j.Price == 0) == (j.Fault == NoFault) {
			t.Fatalf("%+v", j)
		}
		if j.Price == 0 {
			return
		}
		if now-j.At > rule.MaxAge {
			t.Fatalf("a price of %d at %d", j.At, now)
		}
		for i, s := range rule.Sources {
			for _, o := range observed {
				if o.Source == s && j.Faults[i] == NoFault {
					low, high := min(o.Price, j.Price), max(o.Price, j.Price)
					if uint64(high-low)*market.MaxBps > uint64(low)*uint64(rule.MaxSpreadBps) {
						t.Fatalf("%v says %d beside %d", s, o.Price, j.Price)
					}
				}
			}
		}
	})
}

func TestRules(t *testing.T) {
	good := Rule{Sources: []Source{Pyth}, MaxAge: 1, MaxSpreadBps: 1, MaxConfidenceBps: 9999}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Rule){
		"no source":         func(r *Rule) { r.Sources = nil },
		"a source twice":    func(r *Rule) { r.Sources = []Source{Pool, Pool} },
		"an unknown source": func(r *Rule) { r.Sources = []Source{4} },
		"four sources":      func(r *Rule) { r.Sources = []Source{1, 2, 3, 1} },
		"no age":            func(r *Rule) { r.MaxAge = 0 },
		"no spread":         func(r *Rule) { r.MaxSpreadBps = 0 },
		"the whole":         func(r *Rule) { r.MaxConfidenceBps = 10_000 },
	} {
		r := good
		if change(&r); r.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for s := Pyth; s <= Operator; s++ {
		if got, err := ParseSource(s.String()); got != s || err != nil {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if _, err := ParseSource(""); err == nil {
		t.Error("the empty source is accepted")
	}
}

// TestAverage: a price counts for as long as it stood within the window.
func TestAverage(t *testing.T) {
	a := NewAverage(100, 1000)
	if _, _, ok := a.Price(0); ok {
		t.Error("an average of nothing")
	}
	a.Add(0, 100)
	a.Add(0, 99) // not newer
	if _, _, ok := a.Price(89); ok {
		t.Error("an average of less than nine tenths of the window")
	}
	check := func(now int64, want market.USDPrice, wantAt int64) {
		t.Helper()
		if got, at, ok := a.Price(now); !ok || got != want || at != wantAt {
			t.Errorf("at %d: %d of %d, %v; want %d of %d", now, got, at, ok, want, wantAt)
		}
	}
	check(90, 100, 0)
	a.Add(100, 110)
	check(100, 100, 100) // the new one has not stood yet
	check(150, 105, 100)
	a.Add(150, 0) // no price
	check(199, 109, 100)
	check(1000, 110, 100)
	a.Add(1101, 500) // after a gap
	if _, _, ok := a.Price(1101); ok {
		t.Error("an average across a gap")
	}
	check(1201, 500, 1101)
}

// TestAverageStep: a sample counts as at most a tenth away from the one before, and
// prices can still reach any value.
func TestAverageStep(t *testing.T) {
	for _, c := range []struct{ last, price, want market.USDPrice }{
		{1000, 1100, 1100},
		{1000, 1101, 1100},
		{1000, 900, 900},
		{1000, 899, 900},
		{1, 50, 2},
		{5, 1, 4},
		{1, 1, 1},
		{market.MaxUSDPrice, 1, market.MaxUSDPrice - market.MaxUSDPrice/10},
		{1, market.MaxUSDPrice, 2},
	} {
		if got := bounded(c.price, c.last); got != c.want {
			t.Errorf("%d after %d counts as %d, want %d", c.price, c.last, got, c.want)
		}
	}
}

// TestAverageOfAMoment: a price that stands for one reading of thirty moves the average by
// a thirtieth of a tenth, however far away it is.
func TestAverageOfAMoment(t *testing.T) {
	a := NewAverage(300*second, 60*second)
	for at := int64(0); at <= 300; at += 10 {
		price := dollars(100)
		if at == 290 {
			price = dollars(10_000)
		}
		a.Add(at*second, price)
	}
	if got, _, ok := a.Price(300 * second); !ok || got != dollars(100)+dollars(10)/30 {
		t.Errorf("%d, %v", got, ok)
	}
}

// TestAverageIsExact: against rationals, over random samples, and within the bound on memory.
func TestAverageIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 1<<40).Draw(t, "window")
		a := NewAverage(window, 1<<41)
		var samples []sample
		at, price := int64(0), market.USDPrice(rapid.Uint64Range(1e9, uint64(market.MaxUSDPrice)).Draw(t, "first"))
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			at += rapid.Int64Range(1, window).Draw(t, "gap")
			moved, err := market.MulDivFloor(uint64(price), rapid.Uint64Range(9_001, 10_999).Draw(t, "move"), 10_000)
			if err != nil {
				t.Fatal(err)
			}
			price = min(market.USDPrice(moved), market.MaxUSDPrice)
			s := sample{at, price}
			a.Add(s.at, s.price)
			samples = append(samples, s)
		}
		now := at + rapid.Int64Range(0, 2*window).Draw(t, "later")
		from := max(samples[0].at, now-window)
		sum := new(big.Int)
		for i, s := range samples {
			until := now
			if i+1 < len(samples) {
				until = samples[i+1].at
			}
			if stood := until - max(s.at, from); stood > 0 {
				sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(uint64(s.price)), big.NewInt(stood)))
			}
		}
		got, _, ok := a.Price(now)
		if covered := now - from; ok {
			if want := sum.Div(sum, big.NewInt(covered)); uint64(got) != want.Uint64() {
				t.Fatalf("%d, want %v", got, want)
			}
		} else if covered > 0 && covered >= window/10*9 {
			t.Fatal("no average of a window that is covered")
		}
	})
	full := NewAverage(1<<40, 1<<40)
	for at := range int64(3 * MaxSamples) {
		full.Add(at, 1)
	}
	if len(full.samples) > MaxSamples {
		t.Errorf("%d samples", len(full.samples))
	}
}
