package settle

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/persist"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// answeringDesk gives prepared answers in their order, and keeps the requests.
type answeringDesk struct {
	Desk
	answers []any // an error, an Outcome, or a Result
	asked   []rfq.RequestKind
	proofs  [][32]byte
}

func (d *answeringDesk) Do(r rfq.Request) (*desk.Result, error) {
	d.asked = append(d.asked, r.Kind())
	switch r := r.(type) {
	case *rfq.SettleClaim:
		d.proofs = append(d.proofs, r.Proof)
	case *rfq.BeginDelivery:
		d.proofs = append(d.proofs, r.Proof)
	case *rfq.ExpireDelivery:
		d.proofs = append(d.proofs, r.Proof)
	}
	answer := d.answers[0]
	d.answers = d.answers[1:]
	switch answer := answer.(type) {
	case error:
		return nil, answer
	case desk.Result:
		return &answer, nil
	}
	return &desk.Result{Outcome: answer.(rfq.Outcome)}, nil
}

// TestOutcomesCounted: an end counts where it has changed the claim, and not where the desk
// repeats an earlier answer.
func TestOutcomesCounted(t *testing.T) {
	changed := desk.Result{Outcome: rfq.Outcome{At: 9}, Claim: &rfq.Claim{ChangedAt: 9}}
	repeated := desk.Result{Outcome: rfq.Outcome{At: 9}, Claim: &rfq.Claim{ChangedAt: 5}}
	e := &env{log: slog.New(slog.DiscardHandler), clock: time.Now}
	o := &outcomes{env: e, jobs: newJobs(time.Second, time.Minute)}
	for _, c := range []struct {
		kind  cosign.Kind
		end   broadcast.End
		count *counter
	}{
		{cosign.Deliver, broadcast.Finalized, &e.counts.settled},
		{cosign.Cosign, broadcast.Finalized, &e.counts.settled},
		{cosign.Deliver, broadcast.Expired, &e.counts.expired},
		{cosign.Cosign, broadcast.Expired, &e.counts.released},
	} {
		e.desk = &answeringDesk{answers: []any{repeated, changed, repeated}}
		before := c.count.Load()
		for range 3 {
			r := broadcast.Result{Claim: 7, Kind: c.kind, Hash: solana.Hash{1, 2}, Signature: solana.Signature{3}, End: c.end, Slot: 5}
			if err := o.record(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
		if n := c.count.Load() - before; n != 1 {
			t.Errorf("%v %v: counted %d times", c.kind, c.end, n)
		}
	}
}

// TestOutcomes: each end is booked by its request with the message's hash, again
// after an error; a settlement that the desk cannot book becomes an unmatched payment.
func TestOutcomes(t *testing.T) {
	done, away := rfq.Outcome{}, errAny
	in := func(state rfq.ClaimState) rfq.Outcome {
		return rfq.Outcome{Reason: event.ReasonClaimState, Limit: int64(state)}
	}
	settle, begin, expire, release := rfq.KindSettleClaim, rfq.KindBeginDelivery, rfq.KindExpireDelivery, rfq.KindReleaseClaim
	for name, c := range map[string]struct {
		kind      cosign.Kind
		end       broadcast.End
		answers   []any
		asked     []rfq.RequestKind
		err       error
		unmatched bool
	}{
		"delivered":             {cosign.Deliver, broadcast.Finalized, []any{done}, []rfq.RequestKind{settle}, nil, false},
		"exchanged":             {cosign.Cosign, broadcast.Finalized, []any{done}, []rfq.RequestKind{settle}, nil, false},
		"delivery expired":      {cosign.Deliver, broadcast.Expired, []any{done}, []rfq.RequestKind{expire}, nil, false},
		"delivery failed":       {cosign.Deliver, broadcast.Failed, []any{done}, []rfq.RequestKind{expire}, nil, false},
		"exchange expired":      {cosign.Cosign, broadcast.Expired, []any{done}, []rfq.RequestKind{release}, nil, false},
		"exchange failed":       {cosign.Cosign, broadcast.Failed, []any{done}, []rfq.RequestKind{release}, nil, false},
		"the desk is away":      {cosign.Deliver, broadcast.Finalized, []any{away}, []rfq.RequestKind{settle}, errAny, false},
		"away for an expiry":    {cosign.Deliver, broadcast.Expired, []any{away}, []rfq.RequestKind{expire}, errAny, false},
		"expired before":        {cosign.Deliver, broadcast.Expired, []any{in(rfq.ClaimPaid)}, []rfq.RequestKind{expire}, nil, false},
		"the beginning is lost": {cosign.Deliver, broadcast.Finalized, []any{in(rfq.ClaimPaid), done, done}, []rfq.RequestKind{settle, begin, settle}, nil, false},
		"lost, away in between": {cosign.Deliver, broadcast.Finalized, []any{in(rfq.ClaimPaid), away}, []rfq.RequestKind{settle, begin}, errAny, false},
		"lost, away at the end": {cosign.Deliver, broadcast.Finalized, []any{in(rfq.ClaimPaid), done, away}, []rfq.RequestKind{settle, begin, settle}, errAny, false},
		"delivered by another":  {cosign.Deliver, broadcast.Finalized, []any{in(rfq.ClaimSettled)}, []rfq.RequestKind{settle}, nil, true},
		"released before":       {cosign.Cosign, broadcast.Finalized, []any{in(rfq.ClaimReleased)}, []rfq.RequestKind{settle}, nil, true},
		"forgotten":             {cosign.Cosign, broadcast.Finalized, []any{rfq.Outcome{Reason: event.ReasonUnknownClaim}}, []rfq.RequestKind{settle}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			kv, err := persist.OpenKV("kv", vfs.NewMem(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer kv.Close()
			st, err := store.Open(kv)
			if err != nil {
				t.Fatal(err)
			}
			d := &answeringDesk{answers: c.answers}
			e := &env{desk: d, store: st, log: slog.New(slog.DiscardHandler), clock: time.Now}
			o := &outcomes{env: e, jobs: newJobs(time.Second, time.Minute)}
			o.jobs.set(claimIn(7, rfq.ClaimDelivering, 1), 1)
			r := broadcast.Result{Claim: 7, Kind: c.kind, Hash: solana.Hash{1, 2}, Signature: solana.Signature{3}, End: c.end, Slot: 5}
			if err := o.record(t.Context(), r); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if !slices.Equal(d.asked, c.asked) {
				t.Errorf("asked %v, want %v", d.asked, c.asked)
			}
			for _, proof := range d.proofs {
				if proof != r.Hash {
					t.Errorf("proof %x", proof)
				}
			}
			if expired := slices.Contains(c.asked, expire); o.jobs.hasEnded(7, r.Hash) != expired {
				t.Errorf("seen to end: %v", !expired)
			}
			unmatched, err := st.UnmatchedPayments(solana.Signature{}, 2)
			if err != nil || (len(unmatched) == 1) != c.unmatched {
				t.Fatalf("unmatched %+v, %v", unmatched, err)
			}
			if c.unmatched && (unmatched[0].Signature != r.Signature || unmatched[0].Reason != reasonUnrecorded || unmatched[0].Claim != 7) {
				t.Errorf("%+v", unmatched[0])
			}
		})
	}
}
