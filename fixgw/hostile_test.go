package fixgw

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestReaderEndsWithItsSession: who logs out and goes on talking leaves nothing
// behind: quickfix's reading goroutine once waited for ever at the channel of a
// session that had ended.
func TestReaderEndsWithItsSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	for life := range 3 {
		r := d.raw()
		out := fixMessage(d.logonText("MM", "108=30|141=Y|553=mm|554="+testPassword+"|"))
		for seq := 2; seq < 400; seq++ {
			msgType := "0"
			if seq == 20 {
				msgType = "5"
			}
			out = append(out, fixMessage(fmt.Sprintf("35=%s|34=%d|49=MM|52=%s|56=%s|", msgType, seq, stampNow(), d.options.CompID))...)
		}
		r.write(out)
		if answer := r.rest(); !strings.Contains(answer, "|35=5|") {
			t.Fatalf("life %d: answer %s", life, answer)
		}
		waitFor(t, func() bool { return d.gateway.Stats().Connections == 0 })
	}
	waitFor(t, func() bool { return stuckReaders() == 0 })
}

// stuckReaders counts quickfix's reading goroutines that wait for a session.
func stuckReaders() int {
	all := make([]byte, 8<<20)
	n := 0
	for _, stack := range bytes.Split(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if head, _, _ := bytes.Cut(stack, []byte("\n")); bytes.Contains(head, []byte("chan send")) && bytes.Contains(stack, []byte("quickfix.readLoop")) {
			n++
		}
	}
	return n
}
