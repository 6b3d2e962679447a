package fixgw

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv/kvtest"
)

// runAllClaimStates takes two sessions through all states that a claim's reports can have, and
// stops the desk.
func runAllClaimStates(t *testing.T) *harness {
	d := newShop(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", keep(1, 1))
	quote := mm.quoted("r2", "48=T1/T1-1|22=8|54=1|152=1000|")
	settled, lost := tk.claimed("settled").Get(37), tk.claimed("lost").Get(37)
	end := time.Now().Add(testClaimTTL / 2).UTC().Format("20060102-15:04:05.000")
	mm.order("gtd", "1", "1", "1", "59=6|126="+end+"|") // ends in a command of the desk's
	mm.wantNext("11=gtd 150=0")
	mm.take("full", quote) // 500 dollars are left
	mm.wantNext("35=8 11=full 150=8 103=3").Text(t, "CAPACITY_EXHAUSTED: capacity_exhausted: ")
	quote = mm.quoted("r3", "152=250|15=SOL|")
	mm.send("AJ", "693=aj|117="+quote.Get(117)+"|694=1|55=SLUSD/USDC|")
	late := mm.wantNext("35=8 693=aj 150=A").Get(37)
	d.pay(settled, 1, 250_000_000)
	tk.wantNext("11=settled 150=0")
	d.pay(settled, 2, 7)
	tk.wantNext("11=settled 150=I")
	d.deliver(settled)
	tk.wantNext("11=settled 150=F")
	d.pay(lost, 3, 250_000_000)
	tk.wantNext("11=lost 150=0")
	d.ahead.Add(int64(testClaimTTL))
	d.submitDesk(&rfq.AbandonDelivery{Claim: claimID(t, lost)})
	mm.wantNext("11=gtd 150=C")
	if m := mm.wantNext("35=AI 297=7"); m.Get(131) != "r2" { // r3 was used
		t.Errorf("%s", m)
	}
	mm.wantNext("693=aj 150=C 39=C")
	tk.wantNext("11=lost 150=4 39=4")
	d.submitDesk(&rfq.WithdrawTicket{Ticket: 1})
	d.submitDesk(&rfq.ProvePayment{Claim: claimID(t, late), Rail: 2, Signature: [64]byte{9}, Payer: testAccount(1), Amount: 1e12, Slot: 5})
	mm.wantNext("693=aj 150=4 39=4").Text(t, "REFUND_DUE: late_payment")
	mm.leave()
	tk.leave()
	d.stop()
	return d
}

// deskRecords returns what the store has of quotes and claims.
func deskRecords(s *kvtest.Memory) map[string]string {
	records := map[string]string{}
	for _, kind := range [...]byte{'q', 'd', 'e', 'f'} {
		s.Scan([]byte{kind}, []byte{kind + 1}, func(key, value []byte) bool {
			records[string(key)] = string(value)
			return true
		})
	}
	return records
}

// allReports returns every execution report in the message stores, by session and
// ExecID. A report that is there twice must say the same.
func allReports(t *testing.T, g *Gateway) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, s := range g.All() {
		seen := map[string]string{}
		all[s.CompID()] = seen
		err := session.Hooks{Server: g.Server}.Session(s.CompID()).EachMessage(func(raw []byte) error {
			m := sessiontest.Message(raw)
			if m.Get(35) != "8" || m.Get(17)[0] == 'G' {
				return nil
			}
			text := m.Pick(11, 693, 37, 150, 39, 48, 38, 44, 32, 31, 151, 14, 6, 60, 58, 103)
			if was, ok := seen[m.Get(17)]; ok && was != text {
				t.Errorf("ExecID %s was %q, now %q", m.Get(17), was, text)
			}
			seen[m.Get(17)] = text
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// reopened is a gateway on what a crash has left, brought up to the journal.
func (d *harness) reopened(store *kvtest.Memory, commands []engine.Command) *Gateway {
	d.t.Helper()
	o := d.options
	o.KeepMessages = 1 << 20
	g, err := New(o, nil, store, Dependencies{Desk: d.offers, Settlement: d.bank}, d.set)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { g.Close() })
	cursor := g.Cursor()
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	for i := range commands {
		replica.Apply(&commands[i], func(events []event.Event) {
			if commands[i].Seq > cursor {
				if err := g.Replay(events); err != nil {
					d.t.Fatal(err)
				}
			}
		})
	}
	if err := g.follower.Commit(false); err != nil {
		d.t.Fatal(err)
	}
	return g
}

// TestDeskCrashAtEveryCommit: whatever prefix of its commits the store has kept,
// the reports of claims are all there under their ExecIDs, and quotes and claims
// are as if nothing had happened.
func TestDeskCrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	d := runAllClaimStates(t)
	commands := d.journal.commands
	whole := d.store
	wantReports := allReports(t, d.reopened(whole.Prefix(whole.Commits()), commands))
	wantRecords := deskRecords(whole)
	if n := len(wantReports["TK"]) + len(wantReports["MM"]); n != 13 {
		t.Fatalf("%d reports: %v", n, wantReports)
	}
	first := 1 // the facts are synced
	for len(whole.Prefix(first).Keys("f")) == 0 {
		first++
	}
	for n := first; n <= whole.Commits(); n++ {
		store := whole.Prefix(n)
		g := d.reopened(store, commands)
		if got := allReports(t, g); !maps.EqualFunc(got, wantReports, maps.Equal[map[string]string]) {
			t.Fatalf("after %d of %d commits:\n%v\nwant\n%v", n, whole.Commits(), got, wantReports)
		}
		if got := deskRecords(store); !maps.Equal(got, wantRecords) {
			t.Fatalf("after %d of %d commits: %d records, want %d", n, whole.Commits(), len(got), len(wantRecords))
		}
		g.Close()
	}
}

// TestDeskCrashInsideRecords: the same where a commit comes after every single
// event, so that positions lie between the pieces of a record.
func TestDeskCrashInsideRecords(t *testing.T) {
	t.Parallel()
	d := runAllClaimStates(t)
	commands := d.journal.commands
	store := kvtest.New()
	for i, id := range []string{"MM", "TK"} {
		store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
			set(sessionNumberKey(id), []byte{0, byte(i + 1)})
		}, true)
	}
	g := d.reopened(store, nil)
	var ends []int // commits of the store after each event
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	for i := range commands {
		replica.Apply(&commands[i], func(events []event.Event) {
			for j := range events {
				if err := g.Replay(events[j : j+1]); err != nil {
					t.Fatal(err)
				}
				if err := g.follower.Commit(false); err != nil {
					t.Fatal(err)
				}
				ends = append(ends, store.Commits())
			}
		})
	}
	wantReports, wantRecords := allReports(t, g), deskRecords(store)
	if online := allReports(t, d.reopened(d.store, nil)); !maps.EqualFunc(online, wantReports, maps.Equal[map[string]string]) {
		t.Errorf("replayed:\n%v\nas it happened:\n%v", wantReports, online)
	}
	const step = 5 // every gateway parses the dictionary; records have 1 to 6 pieces
	for i := 0; i < len(ends); i += step {
		n := ends[i]
		left := store.Prefix(n)
		again := d.reopened(left, commands)
		if got := allReports(t, again); !maps.EqualFunc(got, wantReports, maps.Equal[map[string]string]) {
			t.Fatalf("after %d commits:\n%v\nwant\n%v", n, got, wantReports)
		}
		if got := deskRecords(left); !maps.Equal(got, wantRecords) {
			t.Fatalf("after %d commits: the records differ", n)
		}
		// An answered request is answered again.
		for _, key := range []string{"settled", wire.QuoteReqPrefix + "r2", wire.QuoteRespPrefix + "aj", "full"} {
			s := handlerOf(again.SessionNamed("MM")).requests
			if key == "settled" {
				s = handlerOf(again.SessionNamed("TK")).requests
			}
			if r, known := s.Find(key); !known || r.Pending() {
				if _, ok, err := s.StoredID([]byte(key)); !ok || err != nil {
					t.Fatalf("after %d commits: %q has no answer: %v", n, key, err)
				}
			}
		}
		again.Close()
	}
}

// TestQuoteOutlivesARestart: a quote may be taken after it, and ends by its time
// there.
func TestQuoteOutlivesARestart(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", keep(1, 1))
	first, second := tk.quoted("r1", ""), tk.quoted("r2", "")
	claim := tk.claimed("before").Get(37)
	sender, target := tk.leave()
	d.stop()
	d.start()
	tk = d.dial("TK", keep(sender, target))
	tk.rfq("r1", "")
	tk.wantNext("35=S 97=Y 131=r1 117=" + first.Get(117))
	tk.take("c1", first)
	tk.wantNext("35=8 11=c1 150=A 198=" + first.Get(117))
	tk.take("before", second)
	tk.wantNext("35=8 11=before 150=8 103=6 37=NONE").Text(t, "DUPLICATE_CLORDID: ")
	tk.send("H", "11=before|55=SLUSD/USDC|54=1|")
	tk.wantNext("35=8 11=before 150=I 37=" + claim)
	d.later(testQuoteTTL)
	tk.wantNext("35=AI 297=7 117=" + second.Get(117))
	tk.send("H", "11=before|55=SLUSD/USDC|54=1|")
	tk.wantNext("35=8 11=before 150=I 39=A 37=" + claim)
	tk.wantNoMessage()
}

// TestClaimsAfterALostJournal: the store knows of claims what the journal has
// lost.
func TestClaimsAfterALostJournal(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", keep(1, 1))
	kept := tk.claimed("kept").Get(37)
	d.journal.mu.Lock()
	n := len(d.journal.commands)
	d.journal.mu.Unlock()
	d.pay(kept, 1, 250_000_000)
	tk.wantNext("11=kept 150=0")
	tk.claimed("gone")
	over := tk.claimed("over").Get(37)
	d.pay(over, 2, 250_000_000)
	tk.wantNext("11=over 150=0")
	d.deliver(over)
	tk.wantNext("11=over 150=F")
	quote := tk.quoted("r", "")
	sender, target := tk.leave()
	d.stop()
	d.journal.commands = d.journal.commands[:n]
	d.start()
	tk = d.dial("TK", keep(sender, target))
	for range 2 {
		if m := tk.wantNext("35=8"); m.Get(58) != lostText {
			t.Errorf("%s", m)
		} else if m.Get(11) == "kept" {
			m.Want(t, "150=D 39=A 37="+kept)
		} else {
			m.Want(t, "11=gone 150=4 39=4 151=0.000000")
		}
	}
	tk.take("c1", quote)
	tk.wantNext("35=8 11=c1 150=8 103=4")
	tk.send("H", fmt.Sprintf("11=x|37=%s|55=SLUSD/USDC|54=1|", over))
	tk.wantNext("35=8 11=x 150=I 39=8 103=5")
	d.pay(kept, 1, 250_000_000)
	tk.wantNext("11=kept 150=0 39=0")
	if n := len(deskRecords(d.store)); n != 2 { // kept, and the facts
		t.Errorf("%d records", n)
	}
}
