package settle

import (
	"testing"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/build"
	"blockdesk/settle/store"
)

// settlementAt is a settlement whose clock stands still.
func settlementAt(t *testing.T, now time.Time) *Settlement {
	t.Helper()
	st, err := store.Open(emptyKV{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{
		Budget: build.Budget{Units: 1}, Now: func() time.Time { return now }, Payments: Payments{ClockTolerance: time.Minute},
	}, nil, nil, st, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSince: the watch of an account without a cursor begins before the oldest claim
// whose payment may be unseen, at most a day back, and without such a claim at the
// start; in each case earlier by the tolerance for the chain's clock.
func TestSince(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	claim := func(state rfq.ClaimState, way rfq.SettlementMode, age time.Duration) rfq.Claim {
		return rfq.Claim{ID: 1, Mode: way, State: state, ReservedAt: now.Add(-age).UnixNano()}
	}
	for name, c := range map[string]struct {
		claim rfq.Claim
		paid  []rfq.Payment
		want  time.Duration
	}{
		"reserved":            {claim(rfq.ClaimReserved, rfq.Modular, time.Hour), nil, time.Hour + time.Minute},
		"expired":             {claim(rfq.ClaimExpired, rfq.Modular, time.Hour), nil, time.Hour + time.Minute},
		"too long ago":        {claim(rfq.ClaimExpired, rfq.Modular, 100*time.Hour), nil, maxLookBack},
		"atomic":              {claim(rfq.ClaimReserved, rfq.Atomic, time.Hour), nil, time.Minute},
		"paid":                {claim(rfq.ClaimPaid, rfq.Modular, time.Hour), nil, time.Minute},
		"its payment is seen": {claim(rfq.ClaimExpired, rfq.Modular, time.Hour), []rfq.Payment{{Claim: 1}}, time.Minute},
	} {
		s := settlementAt(t, now)
		s.Start(func(yield func(*rfq.Claim, []rfq.Payment) bool) { yield(&c.claim, c.paid) }, time.Time{})
		if o := s.payments.proofOptions(&rails{}); !o.Since.Equal(now.Add(-c.want)) {
			t.Errorf("%s: %v before the start, not %v", name, now.Sub(o.Since), c.want)
		}
	}
}

// TestSinceLost: if the journal has lost its end, the watch begins before that,
// however long ago.
func TestSinceLost(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := settlementAt(t, now)
	s.Start(func(func(*rfq.Claim, []rfq.Payment) bool) {}, now.Add(-100*time.Hour))
	if o := s.payments.proofOptions(&rails{}); !o.Rewind || !o.Since.Equal(now.Add(-100*time.Hour-time.Minute)) {
		t.Errorf("rewinds: %v, to %v", o.Rewind, o.Since)
	}
	s.Start(func(func(*rfq.Claim, []rfq.Payment) bool) {}, time.Time{})
	if o := s.payments.proofOptions(&rails{}); o.Rewind || !o.Since.Equal(now.Add(-time.Minute)) {
		t.Errorf("nothing is lost; rewinds: %v, to %v", o.Rewind, o.Since)
	}
}
