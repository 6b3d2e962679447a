package fanout

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotReady is why a follower should not be asked.
var ErrNotReady = errors.New("the follower is not level with the leader")

// Lag is how far a follower is behind.
type Lag struct {
	// Term is the leader's; 0 = none was heard.
	Term uint64
	// Seq is the last command applied, Leader the last that is durable at the
	// leader, as it said last.
	Seq, Leader uint64
	// Commands are those between.
	Commands uint64
	// Delay is the time from the newest applied command's stamp at the leader to
	// its application here. It compares two machines' clocks.
	Delay time.Duration
	// Stale is how long ago this follower last had all that the leader had said,
	// by its own clock; the time since Run began where it never had.
	Stale time.Duration
	// Silent is how long ago the leader was last heard.
	Silent time.Duration
}

// lagWatch is what a follower knows of its lag.
type lagWatch struct {
	clock func() time.Time

	mu         sync.Mutex
	running    bool
	lag        Lag // without Stale and Silent
	inSyncAt   time.Time
	lastHeard  time.Time
	everInSync bool
}

func (w *lagWatch) begin(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running, w.everInSync = true, false
	w.lag.Seq = seq
	w.inSyncAt, w.lastHeard = w.clock(), w.clock()
}

func (w *lagWatch) setTerm(term uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.Term = term
}

func (w *lagWatch) heard(durable uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.Leader, w.lastHeard = durable, w.clock()
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

// Lag returns how far the follower is behind. Any goroutine.
func (f *Follower) Lag() Lag {
	w := &f.lag
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := w.lag
	lag.Commands = lag.Leader - min(lag.Leader, lag.Seq)
	if w.running {
		now := w.clock()
		lag.Stale, lag.Silent = now.Sub(w.inSyncAt), now.Sub(w.lastHeard)
	}
	return lag
}

// Ready returns nil where the follower's views are fresh: it has been level with
// the leader, within MaxStale. Else an error that wraps ErrNotReady and says how
// far it is. Any goroutine.
func (f *Follower) Ready() error {
	lag := f.Lag()
	f.lag.mu.Lock()
	levelled := f.lag.everInSync
	f.lag.mu.Unlock()
	if levelled && lag.Stale <= f.o.MaxStale {
		return nil
	}
	return fmt.Errorf("%w: at seq %d of %d, not level for %v, nothing heard for %v",
		ErrNotReady, lag.Seq, lag.Leader, lag.Stale.Round(time.Millisecond), lag.Silent.Round(time.Millisecond))
}
