package mirror

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// Errors of answers that are insufficient or refused. They may be wrapped with the slot
// and time.
var (
	errNoUpstream   = errors.New("mirror: no node gave a current answer")
	errContradicted = errors.New("mirror: the nodes contradict each other")
	errUnconfirmed  = errors.New("mirror: no majority of the nodes agrees")
	errFuture       = errors.New("mirror: the node is ahead of the others")
	errPast         = errors.New("mirror: the node is behind the others")
	errClock        = errors.New("the chain's clock and this machine's differ too much")
)

// slotTime is the shortest slot duration that is planned for the chain.
const slotTime = 100 * time.Millisecond

// reading is one plausible node's answer: accounts as of a slot.
type reading struct {
	upstream string
	at       Clock
	digest   [sha256.Size]byte
	// accounts does not include the clock account; nil for an answer of an earlier
	// round.
	accounts []*rpc.Account
}

// quorum collects the nodes' answers to one request in one cycle until a majority of the
// plausible nodes agrees. A single plausible node is believed.
//
// Invariants:
//  1. The result is returned by more than half of the plausible nodes.
//  2. More than half of them have reached its slot, so one node that reports a slot
//     too high cannot advance it.
type quorum struct {
	o *Options
	// lastAgreed is the clock of the last result, and lastAgreedAt when we got it;
	// zero = never.
	lastAgreed   Clock
	lastAgreedAt time.Time
	readings     []reading
	answered     map[string]bool
	// refused has the error for each node's last answer; nil if it was accepted.
	refused map[string]error
}

func newQuorum(o *Options, lastAgreed Clock, at time.Time) *quorum {
	return &quorum{o: o, lastAgreed: lastAgreed, lastAgreedAt: at, answered: map[string]bool{}, refused: map[string]error{}}
}

// add adds a round of answers. The first account of each is the clock account.
func (q *quorum) add(views []rpc.NodeAccounts, now time.Time) {
	for i := range q.readings {
		q.readings[i].accounts = nil // the digest is enough: a result also has an answer of the last round
	}
	for i := range views {
		v := &views[i]
		at, err := q.check(v, now)
		q.refused[v.Upstream] = err
		if err != nil {
			continue
		}
		q.answered[v.Upstream] = true
		q.readings = append(q.readings, reading{v.Upstream, at, fingerprint(v.Accounts[1:]), v.Accounts[1:]})
	}
}

// check returns an answer's clock and refuses an implausible one.
func (q *quorum) check(v *rpc.NodeAccounts, now time.Time) (Clock, error) {
	if v.Err != nil {
		return Clock{}, v.Err
	}
	at, err := ParseClock(v.Accounts[0], v.Slot)
	if err != nil {
		return Clock{}, err
	}
	switch t := time.Unix(at.Unix, 0); {
	case t.After(now.Add(q.o.MaxAhead)):
		return Clock{}, fmt.Errorf("%w: %w: time %d of slot %d", errFuture, errClock, at.Unix, at.Slot)
	case t.Before(now.Add(-q.o.MaxBehind)):
		return Clock{}, fmt.Errorf("%w: %w: time %d of slot %d", errPast, errClock, at.Unix, at.Slot)
	case q.lastAgreed.Slot > 0 && at.Slot > q.lastAgreed.Slot+q.o.MaxSpread+uint64(max(now.Sub(q.lastAgreedAt), 0)/slotTime):
		return Clock{}, fmt.Errorf("%w: it is at slot %d, the last agreed slot is %d", errFuture, at.Slot, q.lastAgreed.Slot)
	case at.Slot < q.lastAgreed.Slot:
		return Clock{}, fmt.Errorf("%w: it is at slot %d, the last agreed slot is %d", errPast, at.Slot, q.lastAgreed.Slot)
	}
	return at, nil
}

// result returns the newest reading of a majority and the number of nodes that agree.
// Errors: errNoUpstream, errFuture if there is no other refusal, errContradicted,
// errUnconfirmed.
func (q *quorum) result() (reading, int, error) {
	if len(q.answered) == 0 {
		if q.anyRefusedFor(errFuture) {
			return reading{}, 0, errFuture
		}
		return reading{}, 0, fmt.Errorf("%w: %w", errNoUpstream, q.firstRefusal())
	}
	var best reading
	agreeing := 0
	for i := range q.readings {
		r := &q.readings[i]
		accounts, nodes := q.support(r)
		if accounts != nil && 2*nodes > len(q.answered) && (agreeing == 0 || r.at.Slot > best.at.Slot) {
			best, agreeing = *r, nodes
			best.accounts = accounts
		}
	}
	switch {
	case agreeing > 0:
		return best, agreeing, nil
	case q.conflict():
		return reading{}, 0, errContradicted
	default:
		return reading{}, 0, errUnconfirmed
	}
}

// support returns the number of nodes that return the same accounts as r, at its slot or
// at most MaxSpread later, and the accounts.
func (q *quorum) support(r *reading) (accounts []*rpc.Account, nodes int) {
	seen := map[string]bool{}
	for i := range q.readings {
		o := &q.readings[i]
		if o.digest != r.digest || o.at.Slot < r.at.Slot || o.at.Slot-r.at.Slot > q.o.MaxSpread {
			continue
		}
		seen[o.upstream] = true
		if o.accounts != nil {
			accounts = o.accounts
		}
	}
	return accounts, len(seen)
}

// conflict reports whether two answers contradict each other.
func (q *quorum) conflict() bool {
	for i := range q.readings {
		for j := range q.readings[:i] {
			a, b := &q.readings[i], &q.readings[j]
			apart := max(a.at.Slot, b.at.Slot) - min(a.at.Slot, b.at.Slot)
			if apart > q.o.MaxSpread || apart == 0 && (a.digest != b.digest || a.at.Unix != b.at.Unix) {
				return true
			}
		}
	}
	return false
}

func (q *quorum) anyRefusedFor(why error) bool {
	for _, err := range q.refused {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// firstRefusal returns the refusal of the node whose name comes first, so that one state
// always has one text.
func (q *quorum) firstRefusal() (err error) {
	first := ""
	for name, why := range q.refused {
		if why != nil && (err == nil || name < first) {
			first, err = name, why
		}
	}
	return err
}

// warnings returns errors about a minority of the nodes.
func (q *quorum) warnings() (err error) {
	if q.conflict() {
		err = errContradicted
	}
	if q.anyRefusedFor(errFuture) {
		err = errors.Join(err, errFuture)
	}
	return err
}

// fingerprint is the SHA-256 of the accounts' owners and data. Lamports do not matter to
// a market.
func fingerprint(accounts []*rpc.Account) (sum [sha256.Size]byte) {
	h := sha256.New()
	var head [1 + len(solana.Address{}) + 8]byte
	for _, a := range accounts {
		clear(head[:])
		if a != nil {
			head[0] = 1
			copy(head[1:], a.Owner[:])
			binary.LittleEndian.PutUint64(head[1+len(a.Owner):], uint64(len(a.Data)))
		}
		h.Write(head[:])
		if a != nil {
			h.Write(a.Data)
		}
	}
	h.Sum(sum[:0])
	return sum
}
