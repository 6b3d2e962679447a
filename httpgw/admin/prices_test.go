package admin

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// ruledSOL is the price of SOL by its sources.
type ruledSOL struct {
	refusal error
	taken   int
}

func (r *ruledSOL) TryPrice(asset string, _ market.USDPrice) (func(), error) {
	if asset != "SOL" {
		return func() {}, nil
	}
	return func() { r.taken++ }, r.refusal
}

func (r *ruledSOL) AssetPrices() []desk.AssetPrice {
	return []desk.AssetPrice{{
		Asset: "SOL", Fault: "price_too_old", MaxAge: 60e9,
		Sources: []desk.PriceSource{{Name: "pyth", Price: 151_000_000_000, PublishedAt: 1e18, Fault: "price_too_old"}},
	}}
}

// TestNotSold: a fresh price at which nothing is sold names the reason, a stale one and one
// that is missing do not need it.
func TestNotSold(t *testing.T) {
	rig := newOperatorRig(t)
	o := rig.options(t)
	o.Status.Unpriced = func(in market.InstrumentID) string {
		if in == 1 {
			return "price_unavailable"
		}
		return ""
	}
	rig.mux = http.NewServeMux()
	newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler)).register(rig.mux)
	view := *rig.desk.Current
	view.Pairs = []rfq.Pair{
		{Instrument: 0, Anchor: 1_000_000_000, AnchorAt: rig.now, CorridorBps: 100},
		{Instrument: 1, Anchor: 350_000_000, AnchorAt: rig.now, CorridorBps: 100, Source: rfq.SourceBook},
	}
	rig.desk.Current = &view
	list := func() string {
		t.Helper()
		w := rig.send("GET", "/desk/prices", "", bobToken)
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	if got := list(); strings.Count(got, `"not_sold"`) != 1 || !strings.Contains(got, `"not_sold":"price_unavailable"`) {
		t.Errorf("fresh: %s", got)
	}
	stale := view
	stale.Pairs = []rfq.Pair{{Instrument: 1, Anchor: 350_000_000, AnchorAt: rig.now - 2e9, MaxAge: 1e9, CorridorBps: 100}, {Instrument: 2}}
	rig.desk.Current = &stale
	if got := list(); strings.Contains(got, `"not_sold"`) || !strings.Contains(got, `"stale":true`) {
		t.Errorf("stale: %s", got)
	}
}

// TestPriceSources: an operator's price that the sources do not allow is refused with the
// reason and does not reach the desk; the list names the sources.
func TestPriceSources(t *testing.T) {
	rig := newOperatorRig(t)
	rule := &ruledSOL{refusal: errors.New("the rule of this asset has no source operator")}
	o := rig.options(t)
	o.Prices = rule
	rig.mux = http.NewServeMux()
	newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler)).register(rig.mux)
	w := rig.send("POST", "/desk/prices", `{"rail":"SOL","price_usd":"150"}`, bobToken)
	if w.Code != 409 || !strings.Contains(w.Body.String(), codePriceSource) || !strings.Contains(w.Body.String(), "no source operator") || rule.taken != 0 || len(rig.desk.Requests) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	rule.refusal = nil
	if w := rig.send("POST", "/desk/prices", `{"rail":"SOL","price_usd":"150","max_age_s":5}`, bobToken); w.Code != 400 {
		t.Errorf("with an age: %d %s", w.Code, w.Body)
	}
	w = rig.send("POST", "/desk/prices", `{"rail":"SOL","price_usd":"150"}`, bobToken)
	if w.Code != 200 || rule.taken != 1 {
		t.Errorf("%d %s, taken %d times", w.Code, w.Body, rule.taken)
	}
	for _, want := range []string{`"fault":"price_too_old"`, `"name":"pyth"`, `"price_usd":"151.000000000"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is not in %s", want, w.Body)
		}
	}
	if w := rig.send("POST", "/desk/prices", `{"pair":"92C/SLUSD","price_usd":"1.5"}`, bobToken); w.Code != 200 || rule.taken != 1 {
		t.Errorf("an asset without a rule: %d %s", w.Code, w.Body)
	}
}
