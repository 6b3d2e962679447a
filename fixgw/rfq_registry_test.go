package fixgw

import (
	"fmt"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
)

// TestQuotesOfRemovedSession: quotes that ended while their CompID was not configured do not
// count towards its limit when it is added again.
func TestQuotesOfRemovedSession(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"MM", "TK"}, func(o *Options) { o.MaxQuotes = 1 })
	tk := d.dial("TK", nil)
	tk.quoted("r1", "")
	tk.leave()
	d.stop()
	all := d.options.Participants
	d.options.Participants = without(all, "TK")
	d.start()
	d.later(testQuoteTTL + time.Second)
	d.stop()
	d.options.Participants = all
	d.start()
	d.dial("TK", nil).quoted("r2", "")
}

// TestClaimKeepsItsParticipant: when a CompID is given to another participant, its claims
// stay with the first one.
func TestClaimKeepsItsParticipant(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"MM", "TK"}, nil)
	tk := d.dial("TK", nil)
	claim := tk.claimed("c1").Get(37)
	over := tk.claimed("c2").Get(37)
	d.pay(over, 1, 250_000_000)
	d.deliver(over)
	tk.wantNext("35=8 11=c2 150=0")
	tk.wantNext("35=8 11=c2 150=F")
	tk.leave()
	d.stop()
	list := d.options.Participants[:1:1]
	list[0].CompIDs = []string{"MM", "TK"}
	d.options.Participants = list
	d.start()
	mm := d.dial("TK", func(o *fixclient.Options) { o.Username = "mm" })
	for i, id := range []string{claim, over} {
		mm.send("H", fmt.Sprintf("11=h%d|37=%s|55=SLUSD/USDC|54=1|", i, id))
		mm.wantNext("35=8 150=I 39=8 103=5")
	}
	d.pay(claim, 2, 250_000_000)
	mm.wantNoMessage()
}
