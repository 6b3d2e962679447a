package desk

import (
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestClaimsOverFIX: what a FIX participant quotes and claims, and is refused,
// shows here as everything else does, live and after a restart, and no answer of
// REST's is mistaken for another.
func TestClaimsOverFIX(t *testing.T) {
	t.Parallel()
	const participant = market.ParticipantID(7)
	r := newRig(t).start()
	ticket := r.open(1000).ID
	over := func(token uint64, req rfq.Request) {
		t.Helper()
		req.Head().RequestID, req.Head().Ref = token, "\x01Rclient's own"
		commands, err := engine.DeskCommands(nil, req)
		if err != nil {
			t.Fatal(err)
		}
		last := &commands[len(commands)-1]
		last.Origin, last.Order.Participant = 3, participant
		if err := r.eng.SubmitAll(commands); err != nil {
			t.Fatal(err)
		}
	}
	claim := take(ticket, 9)
	claim.Participant = participant
	over(500, claim) // not known yet: refused
	known, err := engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{})
	if err == nil {
		err = r.eng.Submit(&known)
	}
	if err != nil {
		t.Fatal(err)
	}
	over(501, quote(ticket))
	claim.Quote = 501
	over(502, claim)
	rest := r.must(keyed(take(ticket, 1), 1, 1))
	if rest.Claim.Participant != 0 || rest.Outcome.Reason != event.ReasonNone {
		t.Errorf("REST's answer is %+v", rest)
	}
	holds := func() {
		t.Helper()
		h, ok, err := r.Claim(502)
		if err != nil || !ok || h.Claim.Participant != participant || h.Claim.Quote != 501 || len(h.States) != 1 {
			t.Fatalf("the claim over FIX is %+v, %v, %v", h, ok, err)
		}
		if _, ok, err := r.Claim(500); ok || err != nil {
			t.Errorf("a refused claim is there: %v", err)
		}
		if tr := r.View().Ticket(ticket).Tranches[0]; tr.Reserved != 500_000_000 {
			t.Errorf("%d reserved", tr.Reserved)
		}
	}
	holds()
	r.restart()
	holds()
	sameAnswer(t, "REST's claim", r.must(keyed(take(ticket, 1), 1, 1)), rest)
}
