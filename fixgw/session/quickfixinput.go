package session

import (
	"bytes"
	"time"

	"blockdesk/fixgw/wire"
)

// idleWait is how long a request waits for quickfix to be idle before it goes through
// quickfix too.
const idleWait = 20 * time.Millisecond

// quickfixInput records what a connection has given to quickfix. The reader's goroutine
// only.
type quickfixInput struct {
	highest uint64        // MsgSeqNum
	at      time.Time     // of the last message
	every   time.Duration // how often it must get one
	stuck   bool          // quickfix was not idle in time
	ending  bool          // a Logout was among them
}

// note records that frame goes to quickfix.
func (n *quickfixInput) note(frame []byte, seq uint64, now time.Time) {
	n.at = now
	switch wire.MsgType(frame) {
	case "A":
		n.highest = seq
	case "5":
		n.ending = true
	case "4":
		if !bytes.Contains(frame, []byte("\x01123=Y\x01")) {
			return // a reset is carried out at once, whatever its number
		}
	}
	n.highest = max(n.highest, seq)
}

// idle reports whether quickfix has nothing to do, so that seq is the next message of m's
// session. It waits for at most idleWait.
func (n *quickfixInput) idle(m *MessageStore, seq uint64, now time.Time) bool {
	if n.ending || now.Sub(n.at) >= n.every {
		return false
	}
	if next := m.target.Load(); next > n.highest {
		n.stuck = false
		return next == seq
	}
	if n.stuck || seq != n.highest+1 {
		return false
	}
	limit := time.NewTimer(idleWait)
	defer limit.Stop()
	for m.target.Load() < seq {
		select {
		case <-m.targetSet:
		case <-limit.C:
			n.stuck = true
			return false
		}
	}
	return m.target.Load() == seq
}
