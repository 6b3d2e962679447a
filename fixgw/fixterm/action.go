package fixterm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Action has the steps that the caller must take for a command.
type Action struct {
	// MsgType and Body are the message to send, in fixclient's form; "" = none. Call
	// Sent afterwards.
	MsgType string
	Body    []byte
	// Reports are shown at once.
	Reports []Report
	Quit    bool
	// From and To are the sequence numbers to request again; From 0 = none, To 0 = the
	// newest.
	From, To int
	// Pause is the wait before the next command.
	Pause time.Duration

	request *pendingRequest
}

// ErrUsage is wrapped in the error of a malformed command.
var ErrUsage = errors.New("invalid command")

// decimal reports whether text is a plain positive decimal.
func decimal(text string) bool {
	digits := false
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c != '.' || strings.Contains(text[i+1:], "."):
			return false
		}
	}
	return digits && len(text) <= 40
}

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}

// unknownSymbol is FIX's Symbol for an unknown one.
const unknownSymbol = "[N/A]"

// Sent records the MsgSeqNum of an Action's message.
func (t *Terminal) Sent(a *Action, seq int) {
	if a.request != nil {
		a.request.seq = seq
		t.pending = append(t.pending, a.request)
	}
}
