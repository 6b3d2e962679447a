package settle

import (
	"context"
	"errors"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/search"
)

// inventor lists a transaction that no node returns.
type inventor struct{ Node }

func (inventor) SignaturePageFromEach(context.Context, solana.Address, rpc.Page, rpc.Commitment) ([]rpc.NodeSignatures, error) {
	return []rpc.NodeSignatures{{List: []rpc.SignatureInfo{{Signature: solana.Signature{9}}}}}, nil
}

func (inventor) TransactionFromEach(context.Context, solana.Signature, rpc.Commitment) ([]rpc.NodeTransaction, error) {
	return make([]rpc.NodeTransaction, 1), nil
}

// paidOnce knows a claim with one payment.
type paidOnce struct{ Desk }

func (paidOnce) Claim(id market.ClaimID) (*desk.History, bool, error) {
	return &desk.History{Claim: rfq.Claim{ID: id}, Payments: []rfq.Payment{{Claim: id}}}, true, nil
}

// TestListedNotFound: a transaction that is listed and that no node returns is a
// failure of the chain, after which the claim's job waits: it is not errLater, which
// would repeat it forty times a second.
func TestListedNotFound(t *testing.T) {
	s := &deliverySearch{env: &env{node: inventor{}, desk: paidOnce{}}}
	if _, err := s.unrecordedDelivery(t.Context(), &rfq.Claim{ID: 1}, nil); !errors.Is(err, ErrChain) || errors.Is(err, errLater) {
		t.Errorf("%v", err)
	}
}

// TestLanded: what a majority of the configured nodes reports counts; errors are not votes.
func TestLanded(t *testing.T) {
	const lastValid = 100
	node := func(height uint64, x rpc.Status) rpc.NodeStatuses {
		return rpc.NodeStatuses{Finalized: rpc.Position{Slot: height, Height: height}, Slot: height, Statuses: []rpc.Status{{}, x}}
	}
	has := node(101, rpc.Status{Known: true, Level: rpc.Confirmed, Slot: 50})
	processed := node(101, rpc.Status{Known: true, Level: rpc.Processed, Slot: 50})
	failed := node(101, rpc.Status{Known: true, Failed: true, Level: rpc.Finalized, Slot: 50})
	hides, early, down := node(101, rpc.Status{}), node(100, rpc.Status{}), rpc.NodeStatuses{Err: errAny}
	old := hides
	old.Slot = 99
	// The other transaction lives to 60, with blocks from 20 on, if a blockhash lives for 40.
	young, whole := hides, hides
	young.First, whole.First = rpc.FirstBlock{Slot: 10, Height: 21}, rpc.FirstBlock{Slot: 50, Height: 20}
	for name, x := range map[string]struct {
		views []rpc.NodeStatuses
		at    int
		err   error
	}{
		"one":                          {[]rpc.NodeStatuses{has}, 1, nil},
		"two of three":                 {[]rpc.NodeStatuses{hides, has, has}, 1, nil},
		"two of three, one is down":    {[]rpc.NodeStatuses{down, has, has}, 1, nil},
		"one of three, two are down":   {[]rpc.NodeStatuses{down, has, down}, -1, search.ErrNodes},
		"hidden, two are down":         {[]rpc.NodeStatuses{down, hides, down}, -1, search.ErrNodes},
		"invented or hidden":           {[]rpc.NodeStatuses{has, hides, hides}, -1, errDisagree},
		"nowhere":                      {[]rpc.NodeStatuses{hides, hides, down}, -1, nil},
		"failed":                       {[]rpc.NodeStatuses{failed, failed, hides}, -1, nil},
		"not final yet":                {[]rpc.NodeStatuses{processed, processed, processed}, -1, nil},
		"it may land":                  {[]rpc.NodeStatuses{hides, early, early}, -1, errMayLand},
		"statuses before the position": {[]rpc.NodeStatuses{old, old, hides}, -1, errMayLand},
		"begun from a snapshot":        {[]rpc.NodeStatuses{young, young, hides}, -1, search.ErrHistory},
		"one begun from a snapshot":    {[]rpc.NodeStatuses{whole, young, hides}, -1, nil},
		"found in spite of snapshots":  {[]rpc.NodeStatuses{has, has, young}, 1, nil},
	} {
		at, slot, err := landed(x.views, []uint64{60, lastValid}, 40)
		if at != x.at || !errors.Is(err, x.err) || at >= 0 && slot != 50 {
			t.Errorf("%s: %d in slot %d, %v", name, at, slot, err)
		}
	}
}

// TestFirstPaid: a delivery follows the payment that is applied.
func TestFirstPaid(t *testing.T) {
	due := func(slot uint64) rfq.Payment {
		return rfq.Payment{State: rfq.PaymentRefundDue, Slot: slot, Amount: 1, Due: 1}
	}
	applied := func(slot uint64) rfq.Payment { return rfq.Payment{State: rfq.PaymentApplied, Slot: slot, Applied: 1} }
	for _, x := range []struct {
		list []rfq.Payment
		want uint64
	}{
		{[]rfq.Payment{due(9), due(7), due(8)}, 7},
		{[]rfq.Payment{due(3), applied(9), due(5)}, 9},
		{[]rfq.Payment{applied(9), due(3), applied(8)}, 8},
		{[]rfq.Payment{due(3), {State: rfq.PaymentRefundDue, Slot: 6, Applied: 4, Due: 1}}, 6}, // a surplus is due
	} {
		if got := firstPaid(x.list); got != x.want {
			t.Errorf("%+v: %d, want %d", x.list, got, x.want)
		}
	}
}
