package desk

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
)

// settle brings a new claim of a wallet to its end and returns its id.
func (r *rig) settle(ticket market.TicketID, wallet byte) market.ClaimID {
	r.t.Helper()
	id := r.must(take(ticket, wallet)).Claim.ID
	r.must(&rfq.ProvePayment{Claim: id, Signature: [64]byte{wallet, byte(id), byte(id >> 8)}, Rail: market.RailUSDC, Amount: 250_000_000})
	proof := [32]byte{wallet}
	r.must(&rfq.BeginDelivery{Claim: id, Proof: proof})
	r.must(&rfq.SettleClaim{Claim: id, Proof: proof})
	r.must(&rfq.SettleClaim{Claim: id, Proof: proof}) // a repeated step is no sale again
	return id
}

func (r *rig) sales(before uint64, limit int) []Sale {
	r.t.Helper()
	all, err := r.Sales(pair, before, limit)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// TestSales: the settled claims of an instrument are numbered, with totals, newest first,
// also after a restart, and in a store that was written before there were sales.
func TestSales(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var mu sync.Mutex
	var published []Sale
	r.o.OnSales = func(all []Sale) {
		mu.Lock()
		defer mu.Unlock()
		published = append(published, all...)
	}
	r.start()
	ticket := r.open(1_000_000).ID
	if got := r.sales(0, MaxSales); len(got) != 0 {
		t.Fatalf("sales of a new desk: %+v", got)
	}
	open := r.must(take(ticket, 9)).Claim.ID
	var want []market.ClaimID
	for wallet := byte(1); wallet <= 3; wallet++ {
		want = append(want, r.settle(ticket, wallet))
	}
	r.restart()
	want = append(want, r.settle(ticket, 4))

	all := r.sales(0, MaxSales)
	if len(all) != len(want) {
		t.Fatalf("%d sales; want %d", len(all), len(want))
	}
	for i := range all {
		s, number := &all[i], uint64(len(want)-i)
		if s.Number != number || s.Claim.ID != want[number-1] || s.Claim.State != rfq.ClaimSettled {
			t.Errorf("sale %d: %+v; want claim %d", number, s, want[number-1])
		}
		// A dollar's fill of 250 has a fee of 10 basis points.
		if totals := (SalesTotals{number, market.USD(number * 250_000_000), market.USD(number * 250_000)}); s.Totals != totals {
			t.Errorf("sale %d: totals %+v; want %+v", number, s.Totals, totals)
		}
	}
	if page := r.sales(3, 1); len(page) != 1 || !reflect.DeepEqual(page[0], all[2]) {
		t.Errorf("the sale before 3: %+v", page)
	}
	if page := r.sales(1, 1); len(page) != 0 {
		t.Errorf("the sale before the first one: %+v", page)
	}
	for n, s := range all {
		_, since, err := r.SalesSummary(pair, s.Claim.ChangedAt-1)
		if want := uint64(n + 1); err != nil || since.Count != want || since.VolumeUSD != market.USD(want*250_000_000) {
			t.Errorf("since sale %d: %+v, %v", s.Number, since, err)
		}
	}
	for _, limit := range []int{0, MaxSales + 1} {
		if _, err := r.Sales(pair, 0, limit); !errors.Is(err, ErrLimit) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if h, _, err := r.Claim(open); err != nil || h.Claim.State == rfq.ClaimSettled {
		t.Errorf("the open claim: %+v, %v", h, err)
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(published) != len(want) {
		t.Errorf("%d sales published; want %d, each once", len(published), len(want))
	}

	// As version 0.1.0 left it.
	store := r.store.(*kvtest.Memory)
	err := store.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange([]byte{keySale}, []byte{keySale + 1})
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	if again := r.sales(0, MaxSales); !reflect.DeepEqual(again, all) {
		t.Errorf("from the histories\n got %+v\nwant %+v", again, all)
	}
}

// TestSalesReconcile: sales that the journal has lost are taken out, and their numbers used
// again.
func TestSalesReconcile(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000).ID
	durable := r.settle(ticket, 1)
	cut := len(r.journal.durable())
	r.settle(ticket, 2)
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	r.journal.commands = r.journal.commands[:cut]
	replica := r.recover()
	if err := r.Reconcile(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
		t.Fatal(err)
	}
	r.run()
	next := r.settle(ticket, 3)
	all := r.sales(0, MaxSales)
	if len(all) != 2 || all[1].Claim.ID != durable || all[0].Claim.ID != next || all[0].Number != 2 {
		t.Errorf("sales %+v; want claims %d and %d", all, durable, next)
	}
}
