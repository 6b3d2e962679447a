package fixgw

import (
	"testing"

	"blockdesk/fixgw/session/sessiontest"
)

// TestDropCopyJoinsByReload: a CompID that asked for copies, was taken out and is
// in the file again gets none before its reload is through: until then quickfix
// has no session that could take them.
func TestDropCopyJoinsByReload(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	sender, target := d.dial("MMC", copying(keep(1, 1))).leave()
	d.awaitFree("MMC") // a client that is logged on gets the News of the stop
	d.stop()
	all := d.options.Participants
	d.options.Participants = sessiontest.Participants("MM", "TK")
	d.start()

	// A reload that comes to nothing after this leaves nothing behind.
	if err := d.hooks.Prepare(all); err != nil {
		t.Fatal(err)
	}
	d.trade("a")
	d.reload(all)
	d.trade("b")
	mmc := d.dial("MMC", copying(keep(sender, target)))
	mmc.want("35=AE 43=Y 11=b")
}
