package fixgw

import (
	"testing"

	"blockdesk/engine"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/persist/kv/kvtest"
)

// TestJournalBehindStore: the journal has lost its last commands, of which the
// store has reports. Orders that are gone are reported as cancelled, those that
// the two know differently are cancelled, and the commands that take the lost
// Seqs are reported, under ExecIDs that were never used.
func TestJournalBehindStore(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", keep(1, 1))
	seen := map[string]bool{}
	note := func(m sessiontest.Message) sessiontest.Message {
		if id := m.Get(17); seen[id] {
			t.Errorf("ExecID %s comes twice", id)
		} else {
			seen[id] = true
		}
		return m
	}
	mm.order("same", "1", "10", "1", "59=1|")
	note(mm.want("11=same 150=0"))
	mm.order("filled", "1", "10", "2", "59=1|")
	note(mm.want("11=filled 150=0"))
	mm.order("gone", "1", "10", "1", "59=1|")
	note(mm.want("11=gone 150=0"))
	d.journal.mu.Lock()
	kept := len(d.journal.commands)
	d.journal.mu.Unlock()

	tk.order("x", "2", "3", "2", "59=3|")
	note(tk.want("11=x 150=0"))
	note(tk.want("11=x 150=F"))
	note(mm.want("11=filled 150=F 151=7.00"))
	mm.send("F", "11=away|41=gone|55=SLUSD/USDC|54=1|38=10|"+now60)
	note(mm.want("41=gone 150=4"))
	for _, id := range []string{"lost1", "lost2", "lost3", "lost4"} {
		mm.order(id, "1", "5", "1", "59=1|")
		note(mm.want("150=0 11=" + id))
	}
	mmSender, mmTarget := mm.leave()
	tkSender, tkTarget := tk.leave()
	d.stop()
	d.journal.commands = d.journal.commands[:kept]
	// A crash in the middle of it: the cancels and their mark are not there yet.
	d.start()
	if d.stop(); d.gateway.reporter.Unfinished() {
		t.Error("still unfinished after a clean stop")
	}
	for kept < len(d.journal.commands) && d.journal.commands[kept].Kind != engine.CancelOrder {
		kept++
	}
	d.journal.commands = d.journal.commands[:kept]
	d.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte{'p'}, nil) }, true)
	d.start()

	mm, tk = d.dial("MM", keep(mmSender, mmTarget)), d.dial("TK", keep(tkSender, tkTarget))
	ended := map[string]string{}
	for range 5 {
		m := note(mm.want("150=4 39=4 151=0.00"))
		ended[m.Get(11)] = m.Get(14)
		if m.Get(11) != "filled" && m.Get(58) != lostText {
			t.Errorf("%s", m)
		}
	}
	for _, id := range []string{"lost1", "lost2", "lost3", "lost4", "filled"} {
		want := "0.00"
		if id == "filled" {
			want = "3.00"
		}
		if ended[id] != want {
			t.Errorf("%s ended with CumQty %q, want %s", id, ended[id], want)
		}
	}
	// Of the book only "same" is left, and what comes now is answered.
	tk.order("y", "2", "30", "1", "59=3|")
	note(tk.want("11=y 150=0"))
	note(tk.want("11=y 150=F 32=10.00"))
	note(tk.want("11=y 150=4"))
	note(mm.want("11=same 150=F 39=2"))
}

// TestStoreOfAnotherNumbering: after the loss of the store, sessions get new numbers,
// perhaps in another order. No participant gets the reports of another one.
func TestStoreOfAnotherNumbering(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "10", "1", "59=1|")
	mm.want("11=a 150=0")
	mm.leave()
	d.stop()
	d.store = kvtest.New()
	p := d.options.Participants
	p[0], p[1] = p[1], p[0]
	d.start()
	if n := d.gateway.Stats().LiveOrders; n != 0 {
		t.Errorf("%d orders went to another participant", n)
	}
	tk := d.dial("TK", keep(1, 1))
	tk.order("b", "1", "1", "1", "59=3|")
	tk.want("11=b 150=0")
	tk.want("11=b 150=4")
	d.awaitOrders(0)
}
