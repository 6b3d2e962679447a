package fixgw

import (
	"testing"

	"blockdesk/fixgw/fixclient"
)

// TestCompIDGivenAway: a participant that gets another participant's CompID over a
// restart gets neither its messages nor its orders.
func TestCompIDGivenAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "10", "1.5", "59=1|")
	id := mm.want("35=8 11=a 150=0").Get(37)
	mm.leave()
	d.stop()
	list := d.options.Participants
	list[0].CompIDs, list[1].CompIDs = []string{"MM2"}, []string{"TK", "MM"}
	d.start()
	heir := d.dial("MM", func(o *fixclient.Options) {
		keep(1, 1)(o)
		o.Username = "tk"
	})
	heir.send("F", "11=f|41=a|37="+id+"|55=SLUSD/USDC|54=1|38=10|"+now60)
	heir.want("35=9 11=f 102=1 39=8 37=NONE")
	heir.order("a", "2", "10", "1.5", "59=3|") // his name for it was never used
	heir.want("35=8 11=a 150=0")
	heir.want("35=8 11=a 150=F 39=2 54=2")
	heir.none()
}
