package settle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
)

// The machine words for the problem of an ordered refund (our choice), beside those of a
// delivery.
const (
	problemLocked        = "locked"          // lock --deliveries stops refunds too
	problemPayer         = "payer_unknown"   // several wallets paid, or none that is known
	problemPayerOurs     = "payer_is_ours"   // one of our wallets
	problemPayerAccount  = "payer_account"   // the payer has no account for the asset any more
	problemRefundFunds   = "refund_funds"    // the desk's wallet has too little of the asset
	problemRefundedTwice = "refunded_before" // the chain or the store has another refund of it
)

// refundCheckEvery is the pause between two checks of the waiting orders.
const refundCheckEvery = time.Second

// refunder pays payments back on an operator's order: see "A refund" in the package
// documentation. One goroutine works on them, in batches of one rail.
type refunder struct {
	*refundOrders
	tracker  *broadcast.Tracker
	builder  *builder
	treasury []solana.Address
	key      *deskKey
	guard    *guard

	// open are transactions that the tracker does not have yet. Start fills it, then run
	// owns it.
	open []*store.RefundTransaction
	// orphans are payments that were being refunded at the start. Only run uses them.
	orphans []rfq.Payment
}

// refundOrders are the orders to pay back, with the problem and the next try of each. Safe
// for concurrent use.
type refundOrders struct {
	*env
	refunds              *refunds
	retryFirst, retryMax time.Duration
	wake                 chan struct{}

	mu     sync.Mutex
	orders map[solana.Signature]*refundOrder
}

// refundOrder is an operator's order to pay a payment back.
type refundOrder struct {
	store.Order
	problem  string
	failures int
	notUntil int64 // Unix ns
}

// start takes the orders and the open transactions of the store.
func (r *refunder) start() error {
	list, err := r.store.Refunds.Orders()
	if err != nil {
		return err
	}
	for i := range list {
		r.orders[list[i].Payment] = &refundOrder{Order: list[i]}
	}
	r.open, err = r.store.Refunds.Open()
	return err
}

// recovered enters a payment of the recovered state.
func (r *refunder) recovered(p *rfq.Payment) {
	if p.State == rfq.PaymentRefunding {
		r.orphans = append(r.orphans, *p)
	}
}

// Refund orders that payments be paid back, and returns those that it has ordered now. They
// are paid back in turn; Money follows them. An order is durable: it outlasts a restart.
// Errors: [desk.ErrNoRefundDue] if the selection names one payment that is not due;
// errors of the desk and of package store.
func (r *refunder) Refund(by desk.OperatorRequest, s *desk.RefundSelection) (out desk.RefundsOrdered, err error) {
	v := r.desk.View()
	if v == nil {
		return out, errNoView
	}
	now := r.now()
	var orders []store.Order
	for _, p := range r.refunds.list(rfq.PaymentRefundDue, solana.Signature{}, rfq.MaxRefunds) {
		r.mu.Lock()
		_, known := r.orders[p.Signature]
		r.mu.Unlock()
		switch {
		case !selects(s, v, &p):
		case known:
			out.Before++
		default:
			out.Count[p.Rail]++
			out.Atoms[p.Rail] += p.RefundAtoms()
			orders = append(orders, store.Order{Payment: p.Signature, Operator: by.Operator, By: by.Name, At: now})
		}
	}
	if len(orders) == 0 && out.Before == 0 && s.Payment != ([64]byte{}) {
		return out, fmt.Errorf("%w: %s", desk.ErrNoRefundDue, solana.Signature(s.Payment))
	}
	if s.DryRun || len(orders) == 0 {
		return out, nil
	}
	for part := range slices.Chunk(orders, maxOrdersAtOnce) {
		if err := r.store.Refunds.PutOrders(part); err != nil {
			return desk.RefundsOrdered{}, err
		}
		r.enter(part)
	}
	r.log.Warn("operator ordered refunds", "operator", by.Name, "count", len(orders),
		"usdc_atoms", out.Atoms[market.RailUSDC], "lamports", out.Atoms[market.RailSOL])
	return out, nil
}

// maxOrdersAtOnce bounds the orders of one commit.
const maxOrdersAtOnce = 4096

func (r *refundOrders) enter(list []store.Order) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		r.orders[list[i].Payment] = &refundOrder{Order: list[i]}
	}
	r.wakeUp()
}

func (r *refundOrders) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// selects reports whether a selection has a payment. An amount in SOL counts at the desk's
// price, rounded up; without a price it is not below any amount.
func selects(s *desk.RefundSelection, v *rfq.View, p *rfq.Payment) bool {
	switch {
	case s.Payment != ([64]byte{}) && s.Payment != p.Signature,
		s.Claim != 0 && s.Claim != p.Claim,
		s.Rail != 0 && s.Rail != p.Rail:
		return false
	case s.Under == 0:
		return true
	}
	worth := p.RefundAtoms() // of USDC, an atom is 10^-6 dollars
	if p.Rail == market.RailSOL {
		at := slices.IndexFunc(v.RailPrices, func(x rfq.RailPrice) bool { return x.Rail == market.RailSOL })
		if at < 0 || v.RailPrices[at].Price == 0 {
			return false
		}
		var err error
		if worth, err = market.MulDivCeil(worth, uint64(v.RailPrices[at].Price), 1e12); err != nil {
			return false
		}
	}
	return worth < uint64(s.Under)
}

func (r *refunder) hasWork() bool { return r.count()+len(r.open)+len(r.orphans) > 0 }

// stopped returns why no refund is sent at all; empty if none is stopped.
func (r *refunder) stopped() string {
	v := r.desk.View()
	if v == nil {
		return problemNotReady
	}
	for i := range v.Locks {
		if l := &v.Locks[i]; l.Locked && l.Scope == rfq.LockDeliveries {
			return problemLocked
		}
	}
	return ""
}

// next returns the payments of the next batch: ordered, due, not failing lately, and on one
// rail. Orders whose payments are no longer due are dropped.
func (r *refunder) next() (list []rfq.Payment) {
	now := r.now()
	r.mu.Lock()
	waiting := make([]*refundOrder, 0, len(r.orders))
	for _, x := range r.orders {
		if x.notUntil <= now {
			waiting = append(waiting, x)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(waiting, func(a, b *refundOrder) int {
		return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.Payment[:], b.Payment[:]))
	})
	for _, x := range waiting {
		p, held, ok := r.refunds.find(x.Payment)
		switch {
		case !ok:
			r.done(x.Payment)
		case held || p.State != rfq.PaymentRefundDue:
		case len(list) == 0 || list[0].Rail == p.Rail:
			if list = append(list, p); len(list) == build.MaxRefunds {
				return list
			}
		}
	}
	return list
}

// done forgets the order of a payment that was paid back.
func (r *refundOrders) done(payment solana.Signature) {
	r.mu.Lock()
	_, ordered := r.orders[payment]
	delete(r.orders, payment)
	r.mu.Unlock()
	if !ordered {
		return
	}
	if err := r.store.Refunds.DropOrder(payment); err != nil {
		r.log.Warn("deleting an operator's order to pay back a payment failed", "payment", payment.String(), "error", err)
	}
}

// fail records why a payment is not paid back now, and makes it wait.
func (r *refundOrders) fail(payment solana.Signature, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.orders[payment]
	if x == nil {
		return
	}
	pause := r.retryFirst
	for range min(x.failures, 16) {
		pause = min(2*pause, r.retryMax)
	}
	x.failures++
	x.problem, x.notUntil = problem, r.now()+int64(pause)
}

// postpone makes a payment wait for an operation that is under way.
func (r *refundOrders) postpone(payment solana.Signature) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.orders[payment]; x != nil {
		x.notUntil = r.now() + int64(r.retryFirst)
	}
}

// order returns the order of a payment and its problem.
func (r *refundOrders) order(payment solana.Signature) (o refundOrder, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.orders[payment]; x != nil {
		return *x, true
	}
	return o, false
}

// count returns the number of orders.
func (r *refundOrders) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.orders)
}

// needed returns the atoms of each rail that the ordered refunds pay back.
func (r *refundOrders) needed() (atoms [market.RailCount]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for payment := range r.orders {
		if p, _, ok := r.refunds.find(payment); ok && p.State == rfq.PaymentRefundDue && p.Rail.Valid() {
			atoms[p.Rail] += p.RefundAtoms()
		}
	}
	return atoms
}

// errRefundPayer says why a payment cannot be paid back to its payer.
type errRefundPayer struct{ problem string }

func (e errRefundPayer) Error() string { return "settle: refund: " + e.problem }

// problemOfRefund returns the word for an error of a batch.
func problemOfRefund(err error) string {
	var payer errRefundPayer
	switch {
	case errors.As(err, &payer):
		return payer.problem
	case errors.Is(err, store.ErrConflict):
		return problemRefundedTwice
	case errors.Is(err, store.ErrFull):
		return problemAttempts
	}
	return problemOf(err)
}
