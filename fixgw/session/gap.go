package session

import (
	"errors"
	"fmt"
	"time"
)

// codeMissing begins the text of a Logout because of a gap.
const codeMissing = "MESSAGE_MISSING"

var errMissing = errors.New(codeMissing)

// gap watches the message that quickfix waits for. quickfix asks for it once: where
// the request or its answer is lost, the session would answer nothing any more and
// look alive. So it ends when it does not get on for Options.GapTimeout; the next
// logon asks anew. The reader's goroutine only.
type gap struct {
	missing uint64    // the number that was expected last
	since   time.Time // when a later message came; zero = none has
}

// follow is told of a message for quickfix, and of the number that is expected.
func (g *gap) follow(expected, seq uint64, msgType string, now time.Time, most time.Duration) error {
	switch {
	case expected != g.missing || msgType == "A":
		*g = gap{missing: expected}
	case seq <= expected || msgType == "2" || msgType == "4" || msgType == "5":
		// In turn, or handled out of turn: quickfix asks for nothing.
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= most:
		return fmt.Errorf("%w: message %d has not come for %v", errMissing, expected, most)
	}
	return nil
}
