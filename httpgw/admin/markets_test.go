package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// scriptedMarkets are books whose statuses are set at once.
type scriptedMarkets struct {
	*gatewaytest.Books
	calls []string
	err   error
}

func (m *scriptedMarkets) SetStatus(_ context.Context, by market.OperatorID, in market.InstrumentID, status uint8, gather time.Duration) error {
	m.calls = append(m.calls, fmt.Sprintf("operator %d instrument %d status %d call %v", by, in, status, gather))
	if m.err != nil {
		return m.err
	}
	v := *m.Views[in].Load()
	v.Status = status
	if v.Auction = (marketdata.Auction{}); status == engine.StatusAuction {
		v.Auction = marketdata.Auction{Price: 10_000, Volume: 4, Until: gatewaytest.ViewTime}
	}
	m.Views[in].Store(&v)
	return nil
}

func newMarketRig(t *testing.T) (*operatorRig, *scriptedMarkets) {
	t.Helper()
	rig := newOperatorRig(t)
	books := &scriptedMarkets{Books: gatewaytest.NewBooks(t)}
	o := rig.options(t)
	o.Markets, o.Instruments = books, books.Set
	rig.mux = http.NewServeMux()
	rig.op = newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler))
	rig.op.register(rig.mux)
	return rig, books
}

// TestMarkets: an operator halts a market, calls an auction and resumes it, and the answer has
// what is published then.
func TestMarkets(t *testing.T) {
	t.Parallel()
	rig, books := newMarketRig(t)
	for _, step := range []struct{ body, call, status string }{
		{`{"pair":"SLUSD/USDC","status":"halted"}`, "operator 1 instrument 0 status 2 call 0s", "halted"},
		{`{"pair":"SLUSD/USDC","status":"auction","call_s":300}`, "operator 1 instrument 0 status 3 call 5m0s", "auction"},
		{`{"pair":"SLUSD/USDC","status":"trading"}`, "operator 1 instrument 0 status 1 call 0s", "trading"},
	} {
		w := rig.send("POST", "/desk/markets", step.body, annToken)
		var a struct {
			Markets []struct{ Status string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &a); w.Code != 200 || err != nil || len(a.Markets) != 1 || a.Markets[0].Status != step.status {
			t.Errorf("%s: %d %s (%v), want %s", step.body, w.Code, w.Body, err, step.status)
		}
		if got := books.calls[len(books.calls)-1]; got != step.call {
			t.Errorf("%s: %s, want %s", step.body, got, step.call)
		}
		if a := strings.Contains(w.Body.String(), `"auction":{"indicative_price":"1.000000","indicative_volume":"2.000000","ends_at":"2`); a != (step.status == "auction") {
			t.Errorf("%s: %s", step.body, w.Body)
		}
	}
	w := rig.send("GET", "/desk/markets", "", bobToken)
	for _, part := range []string{
		`{"pair":"SLUSD/USDC","book_source":"matched","status":"trading","auction":null}`,
		`{"pair":"92C/SLUSD","book_source":"mirrored","status":"trading","auction":null}`,
		`{"pair":"EMPTY/USDC","book_source":"matched","status":"unknown","auction":null}`,
	} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("the list lacks %s: %s", part, w.Body)
		}
	}
}

// TestMarketsRefused: what is refused sends no command, except what the engine refuses.
func TestMarketsRefused(t *testing.T) {
	t.Parallel()
	rig, books := newMarketRig(t)
	uncrossing := *books.Views[0].Load()
	uncrossing.Status, uncrossing.Auction.Uncrossing = engine.StatusAuction, true
	books.Views[0].Store(&uncrossing)
	for _, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"status":"halted"}`, 400, wire.CodeMissingField},
		{`{"pair":"X/Y","status":"halted"}`, 400, wire.CodeUnknownSymbol},
		{`{"pair":"SLUSD/USDC","status":"closed"}`, 400, wire.CodeInvalidField},
		{`{"pair":"SLUSD/USDC","status":"halted","call_s":1}`, 400, wire.CodeInvalidField},
		{`{"pair":"SLUSD/USDC","status":"auction","call_s":-1}`, 400, wire.CodeInvalidField},
		{`{"pair":"SLUSD/USDC","status":"auction","call_s":86401}`, 400, wire.CodeInvalidField},
		{`{"pair":"92C/SLUSD","status":"auction"}`, 409, codeMarketState},
		{`{"pair":"SLUSD/USDC","status":"auction","call_s":86400}`, 409, codeMarketState},
	} {
		w := rig.send("POST", "/desk/markets", c.body, annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != c.status || e.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.body, w.Code, w.Body, c.status, c.code)
		}
	}
	if len(books.calls) != 0 {
		t.Errorf("refused requests sent %v", books.calls)
	}
	for _, c := range []struct {
		err  error
		code string
	}{
		{rfq.ErrNotFinalized, wire.CodeReadOnly},
		{desk.ErrReadOnly, wire.CodeReadOnly},
		{desk.ErrBusy, wire.CodeOverloaded},
		{desk.ErrUnknown, wire.CodeOverloaded},
	} {
		books.err = fmt.Errorf("engine: %w", c.err)
		w := rig.send("POST", "/desk/markets", `{"pair":"SLUSD/USDC","status":"halted"}`, annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 503 || e.Code != c.code {
			t.Errorf("%v: %d %s, want 503 %s", c.err, w.Code, w.Body, c.code)
		}
	}
}
