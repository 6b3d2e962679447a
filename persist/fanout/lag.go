package fanout

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotReady says that a follower's views are not fresh.
var ErrNotReady = errors.New("the follower is not in sync with the leader")

// Lag is how far a follower is behind.
type Lag struct {
	// Term is the term of the leader; 0: no message of a leader has arrived.
	Term uint64
	// Seq is the last command applied, Leader the last that is durable at the leader,
	// as of its last heartbeat.
	Seq, Leader uint64
	// Commands is the number of commands in between.
	Commands uint64
	// Delay is the time from the newest command's timestamp at the leader to its
	// application here. It compares two machines' clocks.
	Delay time.Duration
	// Stale is the time since this follower was last in sync, by its own clock, or
	// since Run began if it never was.
	Stale time.Duration
	// Silent is the time since the leader's last message.
	Silent time.Duration
}

// lagWatch measures a follower's lag.
type lagWatch struct {
	clock func() time.Time

	mu            sync.Mutex
	running       bool
	lag           Lag // without Stale and Silent
	inSyncAt      time.Time
	lastMessageAt time.Time
	everInSync    bool
}

func (w *lagWatch) begin(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.everInSync = true, false
	w.lag.Seq = seq
	w.inSyncAt, w.lastMessageAt = w.clock(), w.clock()
}

func (w *lagWatch) setTerm(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.Term = term
}

func (w *lagWatch) recordHeartbeat(durable uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.Leader, w.lastMessageAt = durable, w.clock()
}

func (w *lagWatch) applied(seq uint64, at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.Seq = seq
	w.lag.Delay = time.Duration(w.clock().UnixNano() - at)
}

func (w *lagWatch) setInSync() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inSyncAt, w.everInSync = w.clock(), true
}

// outOfSync returns how long the follower has not been in sync.
func (w *lagWatch) outOfSync() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock().Sub(w.inSyncAt)
}

// checkBehind returns ErrBehind if the follower, which serves, has been out of sync for longer
// than MaxBehind: what it applies from now on is past, and must not be published as new.
func (f *Follower) checkBehind() error {
	if f.o.MaxBehind == 0 || f.caughtUp != nil {
		return nil
	}
	if d := f.lag.outOfSync(); d > f.o.MaxBehind {
		return fmt.Errorf("%w: not in sync for %v, at most %v", ErrBehind, d.Round(time.Millisecond), f.o.MaxBehind)
	}
	return nil
}

// Lag returns how far the follower is behind. Any goroutine.
func (f *Follower) Lag() Lag {
	w := &f.lag
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := w.lag
	lag.Commands = lag.Leader - min(lag.Leader, lag.Seq)
	if w.running {
		now := w.clock()
		lag.Stale, lag.Silent = now.Sub(w.inSyncAt), now.Sub(w.lastMessageAt)
	}
	return lag
}

// Ready returns nil if the follower's views are fresh: it was in sync with the leader
// within MaxStale. Else the error wraps ErrNotReady and says how far it is behind. Any
// goroutine.
func (f *Follower) Ready() error {
	lag := f.Lag()
	f.lag.mu.Lock()
	everInSync := f.lag.everInSync
	f.lag.mu.Unlock()
	if everInSync && lag.Stale <= f.o.MaxStale {
		return nil
	}
	return fmt.Errorf("%w: at seq %d of %d, not in sync for %v, no message of the leader for %v",
		ErrNotReady, lag.Seq, lag.Leader, lag.Stale.Round(time.Millisecond), lag.Silent.Round(time.Millisecond))
}
