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

// Why nodes' answers are not enough, or not believed.
var (
	errNoUpstream   = errors.New("mirror: no node tells of now")
	errContradicted = errors.New("mirror: the nodes contradict each other")
	errUnconfirmed  = errors.New("mirror: no two nodes tell the same")
	errFuture       = errors.New("mirror: an answer from the future")
	errPast         = errors.New("mirror: an answer from the past")
	// errClock is that of which it is said: its time and ours are too far apart.
	errClock = errors.New("mirror: its clock is not ours")
)

// slotTime is the least that a slot takes, in any plan of the chain's.
const slotTime = 100 * time.Millisecond

// reading is what accounts hold as of a bank, by one node that can be right.
type reading struct {
	upstream string
	at       Clock
	digest   [sha256.Size]byte
	// accounts are without the clock's; nil for an answer of an earlier round.
	accounts []*rpc.Account
}

// quorum gathers what nodes answer to one question in one cycle, until a majority
// of those that can be right tell the same. A node alone is believed where it is
// the only one that can be.
//
// Invariants:
//  1. What is found is told by more than half of the nodes that can be right.
//  2. Its slot has been reached by as many: one that exaggerates moves nothing.
type quorum struct {
	o *Options
	// reached is what was found last, and lastAgreedAt when; zero for never.
	lastAgreed   Clock
	lastAgreedAt time.Time
	readings     []reading
	answered     map[string]bool
	// refused is what is wrong with each node's last answer.
	refused map[string]error
}

func newQuorum(o *Options, reached Clock, at time.Time) *quorum {
	return &quorum{o: o, lastAgreed: reached, lastAgreedAt: at, answered: map[string]bool{}, refused: map[string]error{}}
}

// add takes a round of answers, of which the first account is the clock's.
func (q *quorum) add(views []rpc.NodeAccounts, now time.Time) {
	for i := range q.readings {
		q.readings[i].accounts = nil // the print is enough: an answer that wins is of the last round too
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

// check reads when an answer is of, and refuses one of another time than ours.
func (q *quorum) check(v *rpc.NodeAccounts, now time.Time) (Clock, error) {
	if v.Err != nil {
		return Clock{}, v.Err
	}
	at, err := ParseClock(v.Accounts[0], v.Slot)
	if err != nil {
		return Clock{}, err
	}
	switch told := time.Unix(at.Unix, 0); {
	case told.After(now.Add(q.o.MaxAhead)):
		return Clock{}, fmt.Errorf("%w: %w: time %d of slot %d", errFuture, errClock, at.Unix, at.Slot)
	case told.Before(now.Add(-q.o.MaxBehind)):
		return Clock{}, fmt.Errorf("%w: %w: time %d of slot %d", errPast, errClock, at.Unix, at.Slot)
	case q.lastAgreed.Slot > 0 && at.Slot > q.lastAgreed.Slot+q.o.MaxSpread+uint64(max(now.Sub(q.lastAgreedAt), 0)/slotTime):
		return Clock{}, fmt.Errorf("%w: slot %d, after slot %d", errFuture, at.Slot, q.lastAgreed.Slot)
	case at.Slot < q.lastAgreed.Slot:
		return Clock{}, fmt.Errorf("%w: slot %d, after slot %d", errPast, at.Slot, q.lastAgreed.Slot)
	}
	return at, nil
}

// found returns the newest reading that a majority stands for, and how many nodes
// that are. Errors: errNoUpstream, errFuture where nothing else was told,
// errContradicted, errUnconfirmed.
func (q *quorum) result() (reading, int, error) {
	if len(q.answered) == 0 {
		if q.anyRefusedFor(errFuture) {
			return reading{}, 0, errFuture
		}
		return reading{}, 0, fmt.Errorf("%w: %w", errNoUpstream, q.firstRefusal())
	}
	var best reading
	witnesses := 0
	for i := range q.readings {
		r := &q.readings[i]
		accounts, voices := q.support(r)
		if accounts != nil && 2*voices > len(q.answered) && (witnesses == 0 || r.at.Slot > best.at.Slot) {
			best, witnesses = *r, voices
			best.accounts = accounts
		}
	}
	switch {
	case witnesses > 0:
		return best, witnesses, nil
	case q.conflict():
		return reading{}, 0, errContradicted
	default:
		return reading{}, 0, errUnconfirmed
	}
}

// support returns how many nodes tell the same as r at its slot or after it, and
// the accounts.
func (q *quorum) support(r *reading) (accounts []*rpc.Account, voices int) {
	told := map[string]bool{}
	for i := range q.readings {
		o := &q.readings[i]
		if o.digest != r.digest || o.at.Slot < r.at.Slot || o.at.Slot-r.at.Slot > q.o.MaxSpread {
			continue
		}
		told[o.upstream] = true
		if o.accounts != nil {
			accounts = o.accounts
		}
	}
	return accounts, len(told)
}

// conflict reports whether two answers cannot both be right.
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

// firstRefusal returns that of the node whose name comes first, so that one state
// of the nodes has one text.
func (q *quorum) firstRefusal() (err error) {
	first := ""
	for name, why := range q.refused {
		if why != nil && (err == nil || name < first) {
			first, err = name, why
		}
	}
	return err
}

// doubts returns what is wrong with some node though a majority was found.
func (q *quorum) warnings() (err error) {
	if q.conflict() {
		err = errContradicted
	}
	if q.anyRefusedFor(errFuture) {
		err = errors.Join(err, errFuture)
	}
	return err
}

// fingerprint is the SHA-256 of who owns the accounts and what they hold but for
// lamports, which are no part of a market.
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
