package fixgw

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/await"
	"blockdesk/market"
)

const (
	slTerms  = "tick_size=0.0001 lot_size=0.01 min_qty=0.01 max_qty=10000000.00 max_price=100000.0000 book_source=matched"
	mirTerms = "tick_size=0.01 lot_size=0.01 min_qty=0.01 max_qty=10000.00 max_price=10000.00 book_source=mirrored"
)

func TestSecurityList(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	mm.send("x", "320=one|559=0|55=SLUSD/USDC|")
	m := mm.want("35=y 320=one 560=0 393=1 893=Y 146=1 55=SLUSD/USDC 460=12 167=NONE 15=USDC 561=0.01 562=0.01")
	if m.Get(322) == "" || m.Get(107) != "SLUSD priced in USDC" || m.Get(58) != slTerms {
		t.Errorf("%s", m)
	}
	for _, more := range []string{"", "263=0|", "263=1|"} {
		mm.send("x", "320=all|559=4|"+more)
		m = mm.want("35=y 320=all 560=0 393=3 893=Y 146=3")
		if text := m.String(); strings.Count(text, "|55=") != 3 || !strings.Contains(text, "|55=MIR/USDC|460=12|167=NONE|107=MIR priced in USDC|15=USDC|561=0.01|562=0.01|58="+mirTerms) {
			t.Errorf("%s", m)
		}
	}
	for _, c := range []struct{ body, result string }{
		{"559=0|55=NO/PE|", "2"},
		{"559=0|", "1"},
		{"559=1|461=XXXXXX|", "1"},
		{"559=2|460=12|", "1"},
		{"559=3|336=X|", "1"},
	} {
		mm.send("x", "320=r|"+c.body)
		if m := mm.want("35=y 320=r 560=" + c.result); m.Get(146) != "" {
			t.Errorf("a refusal lists instruments: %s", m)
		}
	}
	mm.send("x", "320=all|559=4|263=2|") // there is nothing to end, and no answer
	long := strings.Repeat("r", wire.MaxRequestID)
	mm.send("x", "320="+long+"|559=4|")
	mm.want("35=y 320=" + long)
	mm.send("x", "320="+long+"r|559=4|")
	if m := mm.want("35=j 372=x 380=0 379=" + long); m.Get(58) != "INVALID_FIELD: SecurityReqID (320): at most 64 bytes" {
		t.Errorf("%s", m)
	}
}

// TestSecurityListFragments: a list of more instruments than one message takes comes in
// several, and the last one is marked as such.
func TestSecurityListFragments(t *testing.T) {
	t.Parallel()
	var list []market.Instrument
	for i := range 2*50 + 1 {
		base := fmt.Sprint("T", i)
		list = append(list, market.Instrument{
			ID: market.InstrumentID(i), Symbol: base + "/USDC", Base: base, Quote: "USDC", Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1, MaxPrice: 1, Source: market.Mirrored,
		})
	}
	set, err := market.NewInstruments(list)
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, []string{"MM"}, nil)
	d.gateway.securities.Instruments = set // before any client
	mm := d.dial("MM", nil)
	mm.send("x", "320=all|559=4|")
	seen := 0
	for _, want := range []string{"893=N 146=50", "893=N 146=50", "893=Y 146=1"} {
		m := mm.want("35=y 320=all 560=0 393=101 " + want)
		wire.EachField(m, func(tag int, value []byte) {
			if tag == 55 {
				if string(value) != list[seen].Symbol {
					t.Errorf("symbol %d is %s", seen, value)
				}
				seen++
			}
		})
	}
	if seen != len(list) {
		t.Errorf("%d instruments", seen)
	}
	mm.send("x", "320=last|559=0|55=T100/USDC|")
	mm.want("35=y 893=Y 393=1 55=T100/USDC")
	mm.send("x", "320=first|559=0|55=T0/USDC|")
	mm.want("35=y 893=Y 393=1 55=T0/USDC")
}

func TestSecurityDefinition(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	mm.send("c", "320=one|321=0|55=MIR/USDC|")
	if m := mm.want("35=d 320=one 323=1 55=MIR/USDC 460=12 167=NONE 15=USDC 561=0.01 562=0.01"); m.Get(322) == "" || m.Get(58) != mirTerms {
		t.Errorf("%s", m)
	}
	for _, c := range []struct{ body, response, text string }{
		{"321=0|55=NO/PE|", "6", `UNKNOWN_SYMBOL: Symbol (55) "NO/PE"`},
		{"321=0|", "5", "MISSING_FIELD: Symbol (55)"},
		{"321=1|55=SLUSD/USDC|", "5", `UNSUPPORTED: SecurityRequestType (321) "1": only 0; SecurityListRequest (x) lists all`},
		{"321=2|", "5", `UNSUPPORTED: SecurityRequestType (321) "2": only 0; SecurityListRequest (x) lists all`},
		{"321=3|", "5", `UNSUPPORTED: SecurityRequestType (321) "3": only 0; SecurityListRequest (x) lists all`},
	} {
		mm.send("c", "320=r|"+c.body)
		if m := mm.want("35=d 320=r 323=" + c.response); m.Get(58) != c.text {
			t.Errorf("%s: %s", c.body, m)
		}
	}
	mm.send("c", "320="+strings.Repeat("r", wire.MaxRequestID+1)+"|321=0|55=SLUSD/USDC|")
	mm.want("35=j 372=c 380=0")
}

// setStatus halts or opens an instrument.
func (d *harness) setStatus(in market.InstrumentID, status uint8) {
	d.t.Helper()
	d.submit(engine.Command{Kind: engine.SetInstrument, Instrument: in, Status: status}, nil)
}

func TestSecurityStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, func(o *Options) { o.MaxSubscriptions = 2 })
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	d.awaitView(2, "a view", func(*marketdata.View) bool { return true })
	mm.send("e", "324=now|55=SLUSD/USDC|263=0|")
	if m := mm.want("35=f 324=now 55=SLUSD/USDC 325=N 326=17"); m.Get(60) == "" {
		t.Errorf("%s", m)
	}
	mm.send("e", "324=mir|55=MIR/USDC|263=0|")
	mm.want("35=f 324=mir 325=N 326=18")
	mm.send("e", "324=no|55=NO/PE|263=1|")
	if m := mm.want("35=f 324=no 55=NO/PE 325=N 326=20"); m.Get(58) != `UNKNOWN_SYMBOL: Symbol (55) "NO/PE"` {
		t.Errorf("%s", m)
	}
	mm.send("e", "324=a|55=SLUSD/USDC|263=1|")
	mm.want("35=f 324=a 325=N 326=17")
	tk.send("e", "324=a|55=92C/SLUSD|263=1|")
	tk.want("35=f 324=a 325=N 326=17")
	d.setStatus(0, engine.StatusHalted)
	mm.want("35=f 324=a 55=SLUSD/USDC 325=Y 326=2")
	d.setStatus(0, engine.StatusHalted) // no change, no message
	d.setStatus(0, engine.StatusTrading)
	mm.want("35=f 324=a 325=Y 326=17")
	d.setStatus(1, engine.StatusHalted)
	tk.want("35=f 324=a 55=92C/SLUSD 325=Y 326=2")
	for _, c := range []struct{ body, fields, text string }{
		{"324=a|55=SLUSD/USDC|263=1|", "380=0 379=a", "INVALID_FIELD: SecurityStatusReqID (324) is in use"},
		{"324=a|55=SLUSD/USDC|263=0|", "380=0 379=a", "INVALID_FIELD: SecurityStatusReqID (324) is in use"},
		{"324=b|263=0|", "380=5 379=b", "MISSING_FIELD: Symbol (55)"},
		{"324=b|55=SLUSD/USDC|263=2|", "380=1 379=b", "UNKNOWN_SUBSCRIPTION: SecurityStatusReqID (324)"},
	} {
		mm.send("e", c.body)
		if m := mm.want("35=j 372=e " + c.fields); m.Get(58) != c.text {
			t.Errorf("%s: %s", c.body, m)
		}
	}
	mm.send("e", "324=b|55=SLUSD/USDC|263=1|")
	mm.want("35=f 324=b 326=17")
	mm.send("e", "324=c|55=SLUSD/USDC|263=1|")
	if m := mm.want("35=j 372=e 380=4 379=c"); m.Get(58) != "OVERLOADED: more than 2 subscriptions of a session" {
		t.Errorf("%s", m)
	}
	mm.send("e", "324=c|55=SLUSD/USDC|263=0|") // one answer is no subscription
	mm.want("35=f 324=c 326=17")
	mm.send("e", "324=a|55=SLUSD/USDC|263=2|")
	mm.send("e", "324=a|55=SLUSD/USDC|263=2|")
	mm.want("35=j 380=1 379=a")
	d.setStatus(0, engine.StatusHalted)
	mm.want("35=f 324=b 326=2")
	mm.c.Close()
	await.Equal(t, "subscriptions", 1, d.gateway.statuses.Count)
}

// TestTradingSession: it is open while one instrument takes orders, and says when that
// changes.
func TestTradingSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, func(o *Options) { o.MaxSubscriptions = 2 })
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	d.awaitView(2, "a view", func(*marketdata.View) bool { return true })
	mm.send("g", "335=now|263=0|")
	mm.want("35=h 335=now 336=CONTINUOUS 338=1 325=N 340=2")
	mm.send("g", "335=no|336=EVENING|263=1|")
	if m := mm.want("35=h 335=no 336=EVENING 325=N 340=6 567=1"); m.Get(58) != "INVALID_FIELD: TradingSessionID (336): must be CONTINUOUS" {
		t.Errorf("%s", m)
	}
	mm.send("g", "335=a|336=CONTINUOUS|263=1|")
	mm.want("35=h 335=a 325=N 340=2")
	d.setStatus(0, engine.StatusHalted) // the other one trades
	d.setStatus(1, engine.StatusHalted)
	mm.want("35=h 335=a 336=CONTINUOUS 325=Y 340=1")
	tk.send("g", "335=b|263=0|")
	tk.want("35=h 335=b 325=N 340=1")
	d.setStatus(1, engine.StatusHalted) // no change, no message
	d.setStatus(1, engine.StatusTrading)
	mm.want("35=h 335=a 325=Y 340=2")
	for _, c := range []struct{ body, fields, text string }{
		{"335=a|263=1|", "380=0 379=a", "INVALID_FIELD: TradSesReqID (335) is in use"},
		{"335=b|263=2|", "380=1 379=b", "UNKNOWN_SUBSCRIPTION: TradSesReqID (335)"},
	} {
		mm.send("g", c.body)
		if m := mm.want("35=j 372=g " + c.fields); m.Get(58) != c.text {
			t.Errorf("%s: %s", c.body, m)
		}
	}
	mm.send("e", "324=a|55=SLUSD/USDC|263=1|")
	mm.want("35=f 324=a 326=2")
	mm.send("g", "335=c|263=1|")
	if m := mm.want("35=j 372=g 380=4 379=c"); m.Get(58) != "OVERLOADED: more than 2 subscriptions of a session" {
		t.Errorf("%s", m)
	}
	mm.send("g", "335=a|263=2|")
	mm.send("g", "335=a|263=1|")
	mm.want("35=h 335=a 340=2")
	mm.c.Close()
	await.Equal(t, "subscriptions", 0, d.gateway.statuses.Count)
}

// TestTradingSessionAfterRestart: what was set before the gateway's first event counts.
func TestTradingSessionAfterRestart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	halted := func(v *marketdata.View) bool { return v.Status == engine.StatusHalted }
	for in := range market.InstrumentID(2) {
		d.setStatus(in, engine.StatusHalted)
		d.awaitView(in, "a halted instrument", halted)
	}
	d.stop()
	d.start()
	for in := range market.InstrumentID(2) {
		d.awaitView(in, "a halted instrument", halted)
	}
	mm := d.dial("MM", nil)
	mm.send("g", "335=a|263=1|")
	mm.want("35=h 335=a 340=1")
	d.setStatus(0, engine.StatusTrading)
	mm.want("35=h 335=a 325=Y 340=2")
}

// TestSecurityStatusAfterRestart: what was set before the gateway's first event
// is known from the view.
func TestSecurityStatusAfterRestart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	d.setStatus(0, engine.StatusHalted)
	d.awaitView(0, "a halted instrument", func(v *marketdata.View) bool { return v.Status == engine.StatusHalted })
	d.stop()
	d.start()
	d.awaitView(0, "a view", func(*marketdata.View) bool { return true })
	mm := d.dial("MM", nil)
	mm.send("e", "324=a|55=SLUSD/USDC|263=1|")
	mm.want("35=f 324=a 326=2")
	d.setStatus(0, engine.StatusTrading)
	mm.want("35=f 324=a 325=Y 326=17")
}
