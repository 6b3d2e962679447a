package fixgw

import "testing"

// TestDropCopyJoinsByReload: a CompID that asked for copies, was taken out and is
// in the file again gets none before its reload is through: until then quickfix
// has no session that could take them.
func TestDropCopyJoinsByReload(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	sender, target := d.dial("MMC", copying(keep(1, 1))).leave()
	d.stop()
	all := d.options.Participants
	d.options.Participants = testParticipants("MM", "TK")
	d.start()

	trade := func(id string) {
		t.Helper()
		mm, tk := d.dial("MM", nil), d.dial("TK", nil)
		mm.order(id, "1", "1", "1", "59=1|")
		mm.want("35=8 150=0 11=" + id)
		tk.order(id, "2", "1", "1", "59=3|")
		mm.want("35=8 150=F 11=" + id)
		mm.leave()
		tk.leave()
	}
	// A reload that comes to nothing after this leaves nothing behind.
	if _, err := d.gateway.enlist(d.gateway.roster.Load(), all); err != nil {
		t.Fatal(err)
	}
	trade("a")
	d.reload(all)
	trade("b")
	mmc := d.dial("MMC", copying(keep(sender, target)))
	mmc.want("35=AE 43=Y 11=b")
}
