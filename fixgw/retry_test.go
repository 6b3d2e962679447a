package fixgw

import (
	"fmt"
	"testing"

	"blockdesk/desk"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// TestRetryAtOnce: a client that repeats a request as soon as it has the answer gets the
// answer again, whatever the request was and whichever part has answered it.
func TestRetryAtOnce(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	s, hooks := d.handler("TK").requests, d.hooks.Session("TK")
	ordered, hit := tk.quoted("q1", ""), tk.quoted("q2", "")
	const order = "55=SLUSD/USDC|54=1|" + now60
	const ask = "146=1|55=SLUSD/USDC|48=T1/T1-1|22=8|152="
	for _, c := range []struct{ msgType, key, id, body, answer string }{
		{"D", "new", "11=new", order + "38=1|40=2|44=0.5|59=1|", "35=8 150=0"},
		{"G", "amend", "11=amend", "41=new|" + order + "38=2|40=2|44=0.5|", "35=8 150=5"},
		{"F", "cancel", "11=cancel", "41=amend|" + order, "35=8 150=4"},
		{"q", "mass", "11=mass", "530=7|" + now60, "35=r"},
		{"R", wire.QuoteReqPrefix + "ask", "131=ask", ask + "250|", "35=S"},
		{"R", wire.QuoteReqPrefix + "much", "131=much", ask + "2500000|", "35=AG 658=3"},
		{"D", "take", "11=take", "40=D|152=250|117=" + ordered.Get(117) + "|" + order, "35=8 150=A"},
		{"AJ", wire.QuoteRespPrefix + "hit", "693=hit", "694=1|55=SLUSD/USDC|117=" + hit.Get(117) + "|", "35=8 150=A"},
	} {
		hooks.OnSend(c.id, func() {
			before := d.gateway.requests.Duplicates.Load()
			go func() {
				hooks.Lock()
				defer hooks.Unlock()
				first, _ := s.Find(c.key)
				if known, _, reject := s.Repeated([]byte(c.key), first.Content); !known || reject != nil {
					t.Errorf("%s repeated is new, or refused: %v", c.id, reject)
				}
			}()
			if err := await.Poll(t.Context(), "the repetition", func() bool { return d.gateway.requests.Duplicates.Load() > before }); err != nil {
				t.Error(err)
			}
		})
		tk.send(c.msgType, c.id+"|"+c.body)
		first := tk.wantNext(c.answer + " 97= " + c.id)
		tk.wantNext(fmt.Sprintf("%s 97=Y %s 17=%s", c.answer, c.id, first.Get(17)))
	}
}

// TestRetryTooEarly: a repetition before the first answer has gone out is answered by it,
// and by nothing before or after it.
func TestRetryTooEarly(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	d.stop()
	d.quickfixOnly = true // otherwise the client's reader sends the answer, and waits
	d.start()
	mm := d.dial("MM", nil)
	s := d.handler("MM").requests
	func() {
		defer d.hooks.Session("MM").HoldOutbound()()
		mm.order("a", "1", "1", "0.5", "")
		await.True(t, "the order in the session", func() bool {
			a, _ := s.Find("a")
			return a.Subject != nil
		})
		mm.order("a", "1", "1", "0.5", "")
		d.awaitStats("1 duplicates", func(s Stats) bool { return s.Duplicates == 1 })
	}()
	mm.want("35=8 11=a 150=0 97=")
	mm.send("H", "11=a|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=a 150=I")
}

// TestProofAgainAtOnce: a report of a payment that is sent again the moment its
// answer has come is looked into again. It has its place among those that wait, and
// its record until it is answered itself.
func TestProofAgainAtOnce(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, func(o *Options) { o.MaxSessionProofs = 1 })
	tk := d.dial("TK", nil)
	claim := tk.claimed("c1")
	signature, text := paidBy(1)
	s, p := d.handler("TK").quotes, d.gateway.payments
	held := make(chan struct{})
	bank.set(func() { bank.known[signature] = desk.Verdict{} })
	fields := reportFields(claim, "p1", text)
	again := wiretest.Message("35=AE|34=9|49=TK|56=" + d.options.CompID + "|" + wiretest.PaymentReportBody(fields))
	d.hooks.Session("TK").OnSend("571=p1", func() {
		bank.set(func() { bank.held = held })
		if reject := p.Report(s, again); reject != nil {
			t.Errorf("repeated: %+v", reject)
		}
	})
	tk.report(claim, "p1", text)
	tk.acked("939=0 571=p1")
	recorded := func() bool {
		_, ok, err := d.store.Get(append([]byte{'t', 0, byte(s.Number)}, "p1"...))
		return ok && err == nil
	}
	if !recorded() || p.Waiting() != 1 {
		t.Errorf("recorded: %v; %d wait", recorded(), p.Waiting())
	}
	close(held)
	tk.acked("939=0 571=p1")
	await.True(t, "the record to go", func() bool { return !recorded() })
}
