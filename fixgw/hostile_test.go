package fixgw

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// TestReaderEndsWithItsSession: a client that sends messages after its Logout leaves no
// goroutine behind. quickfix's reading goroutine once waited forever at the channel of
// a session that had ended.
func TestReaderEndsWithItsSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	for life := range 3 {
		r := d.raw()
		out := wiretest.Message(d.logonText("MM", "108=60|141=Y|553=mm|554="+sessiontest.Password+"|"))
		for seq := 2; seq < 400; seq++ {
			msgType := "0"
			if seq == 20 {
				msgType = "5"
			}
			out = append(out, wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=MM|52=%s|56=%s|", msgType, seq, stampNow(), d.options.CompID))...)
		}
		r.write(out)
		if answer := r.rest(); !strings.Contains(answer, "|35=5|") {
			t.Fatalf("life %d: answer %s", life, answer)
		}
		d.awaitConnections(0)
	}
	await.Equal(t, "readers that are stuck", 0, stuckReaders)
}

// TestHalfALogonHoldsNoStop: a client that has sent only a part of a Logon gets no
// answer, and does not delay the stop.
func TestHalfALogonHoldsNoStop(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.FlushTimeout, o.LogonTimeout = time.Hour, time.Hour })
	r := d.raw()
	r.write([]byte("8=FIX.4.4\x019=100\x01"))
	d.awaitConnections(1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		d.stop()
	}()
	await.Closed(t, "the end of Run", stopped)
}

// stuckReaders counts the reading goroutines of quickfix's Acceptors that wait for a
// session. Those of its initiators, in other tests, may wait for one that has stopped.
func stuckReaders() int {
	all := make([]byte, 8<<20)
	n := 0
	for _, stack := range bytes.Split(all[:runtime.Stack(all, true)], []byte("\n\n")) {
		if head, _, _ := bytes.Cut(stack, []byte("\n")); bytes.Contains(head, []byte("chan send")) && bytes.Contains(stack, []byte("quickfix.readLoop")) &&
			bytes.Contains(stack, []byte("quickfix.(*Acceptor).handleConnection")) {
			n++
		}
	}
	return n
}
