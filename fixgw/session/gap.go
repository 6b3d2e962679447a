package session

import (
	"errors"
	"fmt"
	"time"
)

// codeMessageMissing begins the text of a Logout because of a gap.
const codeMessageMissing = "MESSAGE_MISSING"

var errMissing = errors.New(codeMessageMissing)

// gap watches the message that quickfix waits for. quickfix requests it once: if the
// request or its answer is lost, the session looks alive but answers nothing. So the
// session ends if the message does not come within Options.GapTimeout, and the next logon
// requests it again. The reader's goroutine only.
type gap struct {
	missing uint64    // the number that was expected last
	since   time.Time // when a later message came; zero = none has
}

// follow checks a message for quickfix against the expected number. An error ends the
// session.
func (g *gap) follow(expected, seq uint64, msgType string, now time.Time, most time.Duration) error {
	if expected != g.missing || msgType == "A" {
		*g = gap{missing: expected}
	}
	switch {
	case seq <= expected || msgType == "2" || msgType == "4" || msgType == "5" || msgType == "A":
		// Expected, or handled regardless of its number: quickfix requests nothing.
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= most:
		return g.missed(most)
	}
	return nil
}

// expired is follow where no message came in time; highest is the highest number that has
// come. If another message is missing by now, it gets its time.
func (g *gap) expired(expected, highest uint64, now time.Time, most time.Duration) error {
	if expected == g.missing && !g.since.IsZero() {
		return g.missed(most)
	}
	*g = gap{missing: expected}
	if expected <= highest {
		g.since = now
	}
	return nil
}

func (g *gap) missed(most time.Duration) error {
	return fmt.Errorf("%w: message %d has not arrived within %v", errMissing, g.missing, most)
}
