package market

import (
	"slices"
	"sync/atomic"
	"testing"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// TestHeartbeatIsOfTheFacts: the heartbeat has the reasons of the documents and those
// of its views.
func TestHeartbeatIsOfTheFacts(t *testing.T) {
	facts := gatewaytest.Facts()
	b := gatewaytest.NewBooks(t)
	halted := *gatewaytest.FullView(1, 7)
	halted.Status = engine.StatusHalted
	b.Views[1].Store(&halted)
	o := &oraclePages{market: newPages(&Options{Instruments: b.Set, Views: b}), now: func() int64 { return 1 }, facts: func() *catalog.Facts { return facts }}
	_, h := readHeartbeat(t, o)
	for i, beyond := range [][]string{nil, {"trading_halted"}} {
		want := append(facts.Reasons(h.Pairs[i].Symbol), beyond...)
		if got := h.Pairs[i].Degradation.Reasons; !slices.Equal(got, want) {
			t.Errorf("%s is degraded by %v, want %v", h.Pairs[i].Symbol, got, want)
		}
	}
	if facts.Reasons("A/B") != nil || (*catalog.Facts)(nil).Reasons("SLUSD/USDC") != nil {
		t.Error("there are reasons without a pair")
	}
}

// TestCatalogPages: facts are rendered once, and unchanged documents keep their page.
func TestCatalogPages(t *testing.T) {
	first, second := gatewaytest.Facts(), gatewaytest.Facts()
	second.At += nanosPerSecond
	var now atomic.Pointer[catalog.Facts]
	now.Store(first)
	c := &catalogPages{facts: now.Load, caches: make([]wire.PageCache[*catalog.Facts], 2)}
	renders := 0
	render := func(f *catalog.Facts) any {
		renders++
		return catalog.Status(f, "s")
	}
	still := func(f *catalog.Facts) any { return catalog.Metadata(f, "s") }
	p, unchanged := c.get(0, render), c.get(1, still)
	if c.get(0, render) != p || renders != 1 {
		t.Errorf("rendered %d times", renders)
	}
	now.Store(second)
	if c.get(0, render) == p || renders != 2 {
		t.Errorf("the next cycle's page is the last one's; rendered %d times", renders)
	}
	if c.get(1, still) != unchanged {
		t.Error("what has not changed is another page")
	}
}

// TestHeartbeatIsDescribed: the heartbeat of any facts conforms to the specification.
func TestHeartbeatIsDescribed(t *testing.T) {
	d, b := gatewaytest.OpenAPI(t), gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	for name, facts := range map[string]*catalog.Facts{"nothing": {}, "test": gatewaytest.Facts()} {
		o := &oraclePages{market: m, service: "s", now: func() int64 { return 1 }, facts: func() *catalog.Facts { return facts }}
		p, _ := o.serve(nil)
		if err := d.ValidateAs("OracleHeartbeat", p.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
