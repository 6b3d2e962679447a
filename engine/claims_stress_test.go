package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// defaultClaims is how many claims `go test` asks for; BLOCKDESK_CLAIMS asks for
// another number, 1000000 for the full run. Fewer than minClaims do not show all
// that is asked for.
const (
	defaultClaims = 100_000
	minClaims     = 50_000
)

func claimsWanted(t *testing.T) int {
	text := os.Getenv("BLOCKDESK_CLAIMS")
	if text == "" {
		return defaultClaims
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < minClaims {
		t.Fatalf("BLOCKDESK_CLAIMS=%q: must be a number of claims, at least %d", text, minClaims)
	}
	return n
}

const (
	rushProducers = 8
	rushTickets   = 8 // one after the other, two at a time
	// rushWindow is how many requests a reservation outlives: the clock moves
	// with them, not with the machine that the test runs on.
	rushWindow = 8_000
)

// rush is a run of the engine in which many goroutines claim more than there is.
type rush struct {
	*running
	requests atomic.Int64 // submitted, or about to be: they make the time
	granted  chan rfq.Claim
	over     chan struct{} // closed once no more is granted
}

func (r *rush) clock() int64 { return second + r.requests.Load()*(second/rushWindow) }

// send submits a request until it is accepted.
func (r *rush) send(cs *[]Command, request rfq.Request) error {
	request.Head().RequestID = uint64(r.OrderIDs().Next())
	var err error
	if *cs, err = DeskCommands((*cs)[:0], request); err != nil {
		return err
	}
	r.requests.Add(1)
	return r.sendWhole(*cs)
}

// sendWhole submits cs in one frame, as soon as the ring has room: the producers keep it full.
func (r *rush) sendWhole(cs []Command) error {
	for {
		if err := r.SubmitAll(cs); !errors.Is(err, ErrFull) {
			return err
		}
		time.Sleep(10 * time.Microsecond) // sleep: the pace of a producer that finds the ring full
	}
}

// setUp defines the pair and posts the tickets. Those with an even number expire, each at
// its time.
func (r *rush) setUp(claims int) error {
	policy := testPolicy(second, second)
	policy.WalletClaims = 24
	requests := []rfq.Request{
		&rfq.SetPolicy{Policy: policy}, &rfq.SetPair{Pair: testPair(0)},
		&rfq.SetAnchor{Price: 1_000_000_000},
		&rfq.SetInventory{Atoms: 1 << 50},
		&rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000},
	}
	for n := range rushTickets {
		post := &rfq.PostTicket{Label: fmt.Sprint("rush ", n), Capacities: []market.USD{
			140_000_000_000, 900_000_000_000, 490_250_000_000, 400_000_000,
		}}
		if n%2 == 1 {
			post.ExpiresAt = r.clock() + int64(n+1)*int64(claims)/rushTickets*(second/rushWindow)
		}
		requests = append(requests, post)
	}
	var cs []Command
	for _, request := range requests {
		if err := r.send(&cs, request); err != nil {
			return err
		}
	}
	return nil
}

// take requests the producer's share of the claims, mostly on tickets that are on sale.
func (r *rush) take(producer, claims int) error {
	rng := rand.New(rand.NewPCG(uint64(producer), 11))
	var cs []Command
	for n := range claims {
		on := n*rushTickets/claims + 1
		request := &rfq.TakeClaim{
			Ticket: market.TicketID(min(on+rng.IntN(2), rushTickets)), Tranche: market.TrancheID(1 + rng.IntN(4)),
			Fill: 1, Rail: market.Rail(1 + rng.IntN(2)), Mode: rfq.Modular, Wallet: testAddress(byte(rng.IntN(64))),
		}
		switch roll := rng.IntN(100); {
		case roll < 20:
			request.Fill = 2
		case roll < 25:
			request.Fill = 3
		}
		if rng.IntN(3) == 0 { // two pieces
			request.Ref = "a-reference-of-the-usual-length"
		}
		if err := r.send(&cs, request); err != nil {
			return err
		}
		if producer == 0 && n%(claims/rushTickets+1) == claims/rushTickets && on%2 == 1 {
			if err := r.send(&cs, &rfq.WithdrawTicket{Ticket: market.TicketID(on)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle pays some of the granted claims and delivers them.
func (r *rush) settle() error {
	var cs []Command
	for slot := uint64(1); ; slot++ {
		var c rfq.Claim
		select {
		case c = <-r.granted:
		case <-r.over:
			return nil
		}
		proof := &rfq.ProvePayment{Claim: c.ID, Rail: c.Terms.Rail, Payer: c.Wallet, Amount: c.Terms.Payment, Slot: slot}
		for i := range 8 {
			proof.Signature[i] = byte(slot >> (8 * i))
		}
		for _, request := range []rfq.Request{
			proof, &rfq.BeginDelivery{Claim: c.ID, Proof: [32]byte{1}}, &rfq.SettleClaim{Claim: c.ID, Proof: [32]byte{1}},
		} {
			if err := r.send(&cs, request); err != nil {
				return err
			}
		}
	}
}

// ledger is the consumer's own account of what was sold, from the records of claims only.
type ledger struct {
	claims   map[market.ClaimID]rfq.Claim
	tranches map[[2]uint64]rfq.Tranche // as the desk publishes them
	board    rfq.ReadModel
	outcomes map[event.Reason]int // of TakeClaim
	states   map[rfq.ClaimState]int
}

// follow reads c until it ends.
func (l *ledger) follow(c *Consumer, granted chan<- rfq.Claim) error {
	var desk rfq.Reader
	_, err := drain(c, 0, func(e *event.Event) error {
		if e.Kind == event.Rejected {
			return fmt.Errorf("seq %d: a request was incomplete", e.Seq)
		}
		record, seq, ok := desk.Add(e)
		if !ok {
			return nil
		}
		l.board.Apply(record, seq)
		switch r := record.(type) {
		case *rfq.TicketTranche:
			if r.Reserved+r.Filled > r.Capacity {
				return fmt.Errorf("seq %d: sold above capacity: %+v", seq, *r)
			}
			l.tranches[[2]uint64{uint64(r.Ticket), uint64(r.ID)}] = r.Tranche
		case *rfq.Pair:
			if r.Reserved+r.Sold > r.Inventory {
				return fmt.Errorf("seq %d: sold above inventory: %+v", seq, *r)
			}
		case *rfq.Claim:
			l.claims[r.ID] = *r
			l.states[r.State]++
			if r.State == rfq.ClaimReserved && r.ID%5 == 0 {
				select {
				case granted <- *r:
				default: // it is busy
				}
			}
		case *rfq.Outcome:
			if r.Kind == rfq.KindTakeClaim {
				l.outcomes[r.Reason]++
			}
		}
		return nil
	})
	return err
}

// check compares the desk's tranches and pair with the claims.
func (l *ledger) check(desk *rfq.Machine) error {
	sold := map[[2]uint64]rfq.Tranche{}
	var reserved, delivered uint64
	for _, c := range l.claims {
		key := [2]uint64{uint64(c.Terms.Ticket), uint64(c.Terms.Tranche)}
		t := sold[key]
		switch {
		case c.State.Live():
			t.Reserved += c.Terms.Fill.USD()
			reserved += c.Terms.Base
		case c.State == rfq.ClaimSettled:
			t.Filled += c.Terms.Fill.USD()
			delivered += c.Terms.Base
		}
		sold[key] = t
	}
	for key, t := range l.tranches {
		if t.Reserved != sold[key].Reserved || t.Filled != sold[key].Filled || t.Reserved+t.Filled > t.Capacity {
			return fmt.Errorf("tranche %v: %+v, its claims make %+v", key, t, sold[key])
		}
	}
	for _, view := range []*rfq.View{desk.ReadModel().View(), l.board.View()} {
		p := view.Pair(0)
		if p.Reserved != reserved || p.Sold != delivered {
			return fmt.Errorf("pair: reserved %d, sold %d; the claims make %d, %d", p.Reserved, p.Sold, reserved, delivered)
		}
		if len(view.Tickets) != rushTickets {
			return fmt.Errorf("%d tickets", len(view.Tickets))
		}
		for _, ticket := range view.Tickets {
			for _, t := range ticket.Tranches {
				if t != l.tranches[[2]uint64{uint64(ticket.ID), uint64(t.ID)}] {
					return fmt.Errorf("ticket %d: tranche %+v differs from its records", ticket.ID, t)
				}
			}
		}
	}
	return nil
}

// TestClaimsRush: many goroutines race for more than there is, while claims expire, are
// paid and delivered, and tickets end and are withdrawn. Sales are exact to the last cent,
// nothing is sold twice, and every request has its outcome. The full run is
// BLOCKDESK_CLAIMS=1000000.
func TestClaimsRush(t *testing.T) {
	wanted := claimsWanted(t)
	r := &rush{granted: make(chan rfq.Claim, 256), over: make(chan struct{})}
	j := &slowJournal{}
	// Small rings: what is granted is to be seen before its time is over.
	r.running = newEngine(t, Options{Clock: r.clock, Journal: j, IngressSize: 1 << 10, EgressSize: 1 << 13})
	c := r.Consumer("ledger")
	r.mustSubmit(t, head()...)
	r.start(t)
	l := &ledger{
		claims: map[market.ClaimID]rfq.Claim{}, tranches: map[[2]uint64]rfq.Tranche{},
		outcomes: map[event.Reason]int{}, states: map[rfq.ClaimState]int{},
	}
	followed := make(chan error, 1)
	go func() { followed <- l.follow(c, r.granted) }()
	if err := r.setUp(wanted); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	r.race(t, wanted)
	elapsed := time.Since(start)
	if err := r.finish(t); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	l.report(t, wanted, elapsed)
	if err := l.check(r.replica.State.Desk()); err != nil {
		t.Error(err)
	}
	again, err := j.replay(StateOptions{})
	if err != nil || again.Digest != r.replica.Digest || again.State.Hash() != r.replica.State.Hash() {
		t.Errorf("the journal replays to something else: %v", err)
	}
}

// race lets the producers request all claims, settles some of them meanwhile, and lets the
// rest expire.
func (r *rush) race(t *testing.T, wanted int) {
	settled := make(chan error, 1)
	go func() { settled <- r.settle() }()
	var wg sync.WaitGroup
	for p := range rushProducers {
		share := wanted / rushProducers
		if p == 0 {
			share += wanted % rushProducers
		}
		wg.Go(func() {
			if err := r.take(p, share); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	await.True(t, "the last to be settled", func() bool { return len(r.granted) == 0 })
	close(r.over)
	if err := <-settled; err != nil {
		t.Error(err)
	}
	r.requests.Add(2 * rushWindow)
	if err := r.sendWhole([]Command{{Kind: Tick}}); err != nil {
		t.Error(err)
	}
}

// report counts the outcomes and checks that every kind occurred.
func (l *ledger) report(t *testing.T, wanted int, elapsed time.Duration) {
	total := 0
	for _, n := range l.outcomes {
		total += n
	}
	done := l.outcomes[event.ReasonNone]
	if total != wanted || done != len(l.claims) {
		t.Errorf("%d answers to %d requests, %d granted, %d claims", total, wanted, done, len(l.claims))
	}
	for _, why := range []event.Reason{event.ReasonNone, event.ReasonCapacityExhausted, event.ReasonTicketWithdrawn, event.ReasonTicketExpired, event.ReasonWalletClaims} {
		if l.outcomes[why] == 0 {
			t.Errorf("no answer was %v: %v", why, l.outcomes)
		}
	}
	for _, state := range []rfq.ClaimState{rfq.ClaimReserved, rfq.ClaimExpired, rfq.ClaimSettled} {
		if l.states[state] == 0 {
			t.Errorf("no claim was in state %d: %v", state, l.states)
		}
	}
	live := 0
	for _, c := range l.claims {
		if c.State == rfq.ClaimReserved {
			live++
		}
	}
	if live != 0 {
		t.Errorf("%d claims are reserved after their time", live)
	}
	t.Logf("%d claims in %v (%.0f a second): answers %v, claims by state they came into %v; the full run is BLOCKDESK_CLAIMS=1000000",
		wanted, elapsed.Round(time.Millisecond), float64(wanted)/elapsed.Seconds(), l.outcomes, l.states)
}
