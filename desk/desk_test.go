package desk

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestDo: each request comes back with its own records, and what it says is in
// the view and in the archive by then.
func TestDo(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1000, 500)
	if v := r.View(); v.Ticket(ticket.ID) == nil || v.Seq == 0 {
		t.Fatalf("the view does not show ticket %d: %+v", ticket.ID, v)
	}

	q := r.must(quote(ticket.ID))
	if q.Quote == nil || uint64(q.Quote.ID) != q.RequestID || q.Claim != nil || q.Payment != nil || q.Ticket == nil || q.Ticket.ID != ticket.ID {
		t.Fatalf("quote: %+v", q)
	}
	if q.Quote.Terms.Payment != 250_000_000 {
		t.Errorf("quote: payment %d", q.Quote.Terms.Payment)
	}

	claim := take(ticket.ID, 9)
	claim.Quote = q.Quote.ID
	c := r.must(claim)
	if c.Claim == nil || uint64(c.Claim.ID) != c.RequestID || c.Claim.State != rfq.ClaimReserved || c.Claim.Quote != q.Quote.ID {
		t.Fatalf("claim: %+v", c)
	}
	if got := c.Ticket.Tranches[0].Reserved; got != 250_000_000 {
		t.Errorf("the claim's ticket has %d reserved", got)
	}
	if got := r.View().Ticket(ticket.ID).Tranches[0].Reserved; got != 250_000_000 {
		t.Errorf("the view has %d reserved", got)
	}
	if ticket.Tranches[0].Reserved != 0 || q.Ticket.Tranches[0].Reserved != 0 {
		t.Error("an earlier result has changed")
	}
	h, ok, err := r.Claim(c.Claim.ID)
	if err != nil || !ok || h.Claim != *c.Claim || len(h.States) != 1 || len(h.Payments) != 0 {
		t.Fatalf("the claim's history: %+v, %v, %v", h, ok, err)
	}

	paid := r.must(&rfq.ProvePayment{
		Claim: c.Claim.ID, Signature: [64]byte{5}, Rail: market.RailUSDC, Payer: market.Address{9}, Amount: 250_000_000, Slot: 77,
	})
	if paid.Payment == nil || paid.Payment.State != rfq.PaymentApplied || paid.Claim == nil || paid.Claim.State != rfq.ClaimPaid {
		t.Fatalf("payment: %+v", paid)
	}
	r.must(&rfq.BeginDelivery{Claim: c.Claim.ID, Proof: [32]byte{1}})
	settled := r.must(&rfq.SettleClaim{Claim: c.Claim.ID, Proof: [32]byte{2}})
	if settled.Claim == nil || settled.Claim.State != rfq.ClaimSettled || settled.Ticket.Tranches[0].Filled != 250_000_000 {
		t.Fatalf("settled: %+v", settled)
	}
	r.must(&rfq.SettleClaim{Claim: c.Claim.ID, Proof: [32]byte{2}}) // the same step again

	h, _, err = r.Claim(c.Claim.ID)
	if err != nil {
		t.Fatal(err)
	}
	var states []rfq.ClaimState
	for _, s := range h.States {
		states = append(states, s.State)
	}
	want := []rfq.ClaimState{rfq.ClaimReserved, rfq.ClaimPaid, rfq.ClaimDelivering, rfq.ClaimSettled}
	if len(states) != len(want) || h.Claim != *settled.Claim || len(h.Payments) != 1 || h.Payments[0] != *paid.Payment {
		t.Fatalf("history %v, claim %+v, payments %+v", states, h.Claim, h.Payments)
	}
	for i := range want {
		if states[i] != want[i] || i > 0 && h.States[i].ChangedAt <= h.States[i-1].ChangedAt {
			t.Errorf("history %v", states)
		}
	}
	if _, ok, err := r.Claim(c.Claim.ID + 1); ok || err != nil {
		t.Errorf("a claim that never was: %v, %v", ok, err)
	}
	if got := r.Stats(); got.Waiting != 0 {
		t.Errorf("%d still waiting", got.Waiting)
	}
}

// TestRefusalsAreResults: what the rules refuse comes back with its reason.
func TestRefusalsAreResults(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(250)
	r.must(take(ticket.ID, 1))
	for _, c := range []struct {
		name   string
		req    rfq.Request
		reason event.Reason
	}{
		{"exhausted", take(ticket.ID, 1), event.ReasonCapacityExhausted},
		{"unknown ticket", quote(ticket.ID + 1), event.ReasonUnknownTicket},
		{"unknown claim", &rfq.ReleaseClaim{Claim: 12}, event.ReasonUnknownClaim},
	} {
		res, err := r.Do(c.req)
		if err != nil || res.Reason != c.reason || res.Claim != nil || res.Quote != nil {
			t.Errorf("%s: %+v, %v; want %s", c.name, res, err, c.reason)
		}
	}
}

// TestRequestThatCannotBeEncoded: it is an error and leaves nothing behind.
func TestRequestThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	for _, key := range []uint32{0, 4} {
		req := &rfq.SetOperator{Of: rfq.Operator{ID: 1, Name: string(make([]byte, rfq.MaxText+1))}}
		if key != 0 {
			keyed(req, key, 1)
		}
		_, err := r.Do(req)
		wantErr(t, "a name past the limit", err, rfq.ErrRequest)
		req.Of.Name = "ann"
		r.must(req)
	}
	if n := r.Stats().Waiting; n != 0 {
		t.Errorf("%d still waiting", n)
	}
}

// TestOwnRecords: a command may expire other claims before its own effect; the
// result has its own claim and no other's.
func TestOwnRecords(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(100_000)
	for i, withKey := range []bool{false, true} {
		for j, quoting := range []bool{false, true} {
			mine := r.must(take(ticket.ID, 1)).Claim.ID
			r.must(&rfq.ProvePayment{Claim: mine, Signature: [64]byte{byte(i), byte(j), 1}, Rail: market.RailUSDC, Amount: 250_000_000})
			other := r.must(take(ticket.ID, 2)).Claim.ID
			var req rfq.Request = &rfq.BeginDelivery{Claim: mine, Proof: [32]byte{1}}
			if quoting {
				req = quote(ticket.ID)
			}
			if withKey {
				req = keyed(req, uint32(10*i+j+1), 1)
			}
			r.clock.Add(61e9) // the engine's own tick is up to a second away
			res := r.must(req)
			switch {
			case quoting && (res.Quote == nil || res.Claim != nil):
				t.Errorf("key %v: a quote with claim %+v", withKey, res.Claim)
			case !quoting && (res.Claim == nil || res.Claim.ID != mine):
				t.Errorf("key %v: delivery of %d: claim %+v", withKey, mine, res.Claim)
			}
			h, ok, err := r.Claim(other)
			if err != nil || !ok || h.Claim.State != rfq.ClaimExpired || len(h.States) != 2 {
				t.Errorf("the other claim: %+v, %v, %v", h, ok, err)
			}
		}
	}
}
