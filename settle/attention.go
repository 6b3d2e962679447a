package settle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
)

// Stuck is a claim whose tokens or whose transaction's end do not come.
type Stuck struct {
	Claim rfq.Claim
	Since int64 // Unix ns: since when, as far as is known since the start
	// Problem is the last failure's machine word; empty if there was none.
	Problem string
	// Tries counts the deliveries that were signed, and Signature names the
	// newest of them.
	Tries     int
	Signature solana.Signature
}

// RefundsDue lists payments that cannot be served and are owed back, by their
// signature, from the first one after that one; at most limit. It sorts all that
// are due: for people.
func (s *Settlement) RefundsDue(from solana.Signature, limit int) []rfq.Payment {
	return s.refund.list(from, limit)
}

// Stuck lists claims whose work does not get through: MaxDeliveryAttempts have been
// signed, or Options.FailingAfter has passed since the payment or the promise. By
// their number, from the first one after that one; at most limit.
func (s *Settlement) Stuck(from market.ClaimID, limit int) []Stuck {
	return s.work.stuck(s.now(), s.options.FailingAfter, from, max(limit, 0))
}

// Strays lists money that the desk cannot book: store.Store.UnmatchedPayments.
func (s *Settlement) Strays(from solana.Signature, limit int) ([]store.UnmatchedPayment, error) {
	return s.store.UnmatchedPayments(from, limit)
}

// Refunded notes that a payment was paid back by a transaction. A refusal by the
// rules is a Result with a Reason. Errors: those of the desk.
func (s *Settlement) Refunded(by desk.OperatorRequest, payment, refund [64]byte) (*desk.Result, error) {
	return s.act(by, &rfq.RefundPayment{Signature: payment, Proof: sha256.Sum256(refund[:])})
}

// Abandon gives up a claim that is paid for and can never be delivered: its
// payment is due for refund. It is refused while a delivery is out. A refusal by
// the rules is a Result with a Reason. Errors: those of the desk.
func (s *Settlement) Abandon(by desk.OperatorRequest, id market.ClaimID) (*desk.Result, error) {
	return s.act(by, &rfq.AbandonDelivery{Claim: id})
}

func (s *Settlement) act(by desk.OperatorRequest, r rfq.Request) (*desk.Result, error) {
	head := r.Head()
	head.Operator, head.Key = by.Operator, by.Key
	result, err := s.desk.Do(r)
	if err != nil {
		return nil, fmt.Errorf("settle: operator %d: %w", by.Operator, err)
	}
	return result, nil
}

// ResolveUnmatched notes what a person has done about a stray. Where that was a
// delivery whose money is due for refund, the refund is listed from now on.
// The first note stands. Errors: [desk.ErrNotUnmatched], those of package store.
func (s *Settlement) ResolveUnmatched(by desk.OperatorRequest, stray [64]byte, note string) error {
	switch err := s.store.ResolveUnmatched(stray, by.Name, note, s.now()); {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %w", desk.ErrNotUnmatched, err)
	case errors.Is(err, store.ErrResolved):
		return nil
	case err != nil:
		return err
	}
	x, ok, err := s.store.UnmatchedPayment(stray)
	if err == nil && ok && (x.Reason == strayDelivered || x.Reason == strayUnbooked) {
		s.refund.unhold(x.Claim)
	}
	return err
}

// counter is a number that only grows.
type counter = atomic.Uint64

type counters struct{ built, refused, cosigned, delivered, settled, released, lapsed counter }

// Counts are what has happened since the start.
type Counts struct {
	Built     uint64 // packages made
	Refused   uint64 // submissions and packages refused by a guard
	Cosigned  uint64 // atomic transactions that the desk has signed
	Delivered uint64 // deliveries that the desk has signed
	Settled   uint64 // claims that were settled
	Released  uint64 // atomic claims that were given back
	Expired   uint64 // deliveries that ended without delivering
}

// Counts returns them, each read by itself.
func (s *Settlement) Counts() Counts {
	c := &s.counts
	return Counts{
		Built: c.built.Load(), Refused: c.refused.Load(), Cosigned: c.cosigned.Load(), Delivered: c.delivered.Load(),
		Settled: c.settled.Load(), Released: c.released.Load(), Expired: c.lapsed.Load(),
	}
}

// Health is how settlement and its nodes are.
type Health struct {
	// Desk is the wallet that delivers, co-signs and sponsors; zero if the
	// signer has not told it.
	Desk  solana.Address
	Nodes []rpc.UpstreamHealth
	// Blockhash is the newest; the zero value if there is none.
	Blockhash rpc.Blockhash
	// Working counts the claims whose transaction is out, or to be made.
	Working  int
	Tracker  broadcast.Stats
	Money    desk.MoneyCounts // what waits for an operator
	NotReady error            // Ready's
}

// Health returns a moment's figures. It does not block.
func (s *Settlement) Health() Health {
	h := Health{Desk: s.signer.Address(), Nodes: s.node.Health(), Working: s.work.count(), Tracker: s.tracker.Stats(), Money: s.MoneyCounts(), NotReady: s.Ready()}
	if b := s.newest.Load(); b != nil {
		h.Blockhash = *b
	}
	return h
}
