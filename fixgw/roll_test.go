package fixgw

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/internal/await"
)

// TestRollSequences: at the configured time of day each session is logged out with a text and
// begins at 1, once, also if the service did not run then. Orders stay, and numbers of the old
// day cannot be asked for.
func TestRollSequences(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	at := time.Now().UTC().Add(time.Hour)
	d := newDesk(t, []string{"MM", "TK"}, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.RollAt = max(at.Sub(at.Truncate(24*time.Hour)), time.Nanosecond)
	})
	numbers := func(compID string) string {
		m := d.gateway.SessionNamed(compID).Messages
		return fmt.Sprint(m.NextSenderMsgSeqNum(), m.NextTargetMsgSeqNum())
	}
	mm := d.dial("MM", keep(1, 1))
	for i := range 3 {
		mm.order(fmt.Sprint("o", i), "1", "1", "1", "59=1|")
		mm.want("35=8 150=0")
	}
	ahead.Store(int64(2 * time.Hour))
	if text := mm.loggedOut(); !strings.Contains(text, "LOGGED_OUT: a new day: both sides begin at MsgSeqNum 1") {
		t.Errorf("logged out with %s", text)
	}
	await.Equal(t, "the numbers of a new day", "1 1", func() string { return numbers("MM") })
	d.awaitFree("MM")
	mm = d.dial("MM", keep(1, 1))
	mm.send("H", "11=o1|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=o1 39=0 34=2")
	if err := mm.c.Resend(5, 0); err != nil {
		t.Fatal(err)
	}
	mm.want("35=3 371=7 372=2 373=5").Text(t, "INVALID_FIELD: BeginSeqNo (7) 5: our last number is 2: earlier days cannot be resent")
	sender, target := mm.leave()
	d.stop()
	d.start()
	mm = d.dial("MM", keep(sender, target)) // not rolled again
	mm.send("H", "11=o1|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=o1 39=0")
	mm.leave()
	d.stop()
	ahead.Store(int64(26 * time.Hour))
	d.start()
	await.Equal(t, "the roll that the service has missed", "1 1", func() string { return numbers("MM") })
	if n := d.gateway.Stats().LiveOrders; n != 3 {
		t.Errorf("%d live orders, want 3", n)
	}
}
