package fixgw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/persist/kv/kvtest"
)

// withCopies gives each participant a second session: X has XC.
func withCopies(o *Options) {
	for i := range o.Participants {
		p := &o.Participants[i]
		p.CompIDs = append(p.CompIDs, p.CompIDs[0]+"C")
	}
}

// copying logs on for a drop copy, beside what change asks for.
func copying(change func(*fixclient.Options)) func(*fixclient.Options) {
	return func(o *fixclient.Options) {
		if change != nil {
			change(o)
		}
		o.LogonFields += "9406=Y\x01"
		o.Username = strings.ToLower(strings.TrimSuffix(o.SenderCompID, "C"))
	}
}

// TestDropCopy: a session that has asked for drop copies gets every fill of its
// participant, whichever session the order came from, and no other participant's.
func TestDropCopy(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	mm, tk := d.dial("MM", nil), d.dial("TK", copying(nil))
	mmc, tkc := d.dial("MMC", copying(nil)), d.dial("TKC", copying(nil))
	mm.order("a", "1", "10", "1.5", "59=1|")
	resting := mm.want("35=8 11=a 150=0")
	tk.order("x", "2", "4", "1.5", "59=3|")
	tk.want("35=8 11=x 150=0")

	// The taker has asked for copies on the session that trades, too: they follow
	// their reports.
	fill := tk.want("35=8 11=x 150=F 39=2")
	copied := tk.want("35=AE 487=0 856=0 570=N 150=F 39=2 55=SLUSD/USDC 32=4.00 31=1.5000 552=1 54=2 11=x 453=1 448=TK 447=D 452=36")
	for _, tag := range []int{17, 37, 60} {
		if copied.Get(tag) != fill.Get(tag) {
			t.Errorf("tag %d is %q, of the report %q", tag, copied.Get(tag), fill.Get(tag))
		}
	}
	if copied.Get(571) != fill.Get(17) || copied.Get(75) != fill.Get(60)[:8] || copied.Get(880) == "" {
		t.Errorf("571, 75 or 880 of %s", copied)
	}
	if again := tkc.want("35=AE 448=TK 11=x"); again.Pick(571, 17, 880) != copied.Pick(571, 17, 880) {
		t.Errorf("two sessions received one fill: %s and %s", copied, again)
	}
	other := mmc.want("35=AE 39=1 32=4.00 31=1.5000 54=1 11=a 448=MM 37=" + resting.Get(37))
	if other.Get(880) != copied.Get(880) || other.Get(571) == copied.Get(571) {
		t.Errorf("sides of one trade: %s and %s", copied, other)
	}
	mm.want("35=8 11=a 150=F 39=1")

	// An amended order goes by its new name.
	mm.send("G", "11=b|41=a|55=SLUSD/USDC|54=1|38=8|40=2|44=1.5|"+now60)
	mm.want("35=8 11=b 150=5")
	tkc.order("y", "2", "1", "1.5", "59=3|")
	tkc.want("35=8 11=y 150=0")
	tkc.want("35=8 11=y 150=F")
	tkc.want("35=AE 11=y 448=TKC")
	tk.want("35=AE 11=y 448=TKC")
	mmc.want("35=AE 11=b 448=MM 32=1.00")
	mm.want("35=8 11=b 150=F")
	for _, k := range []*client{mm, mmc, tk, tkc} {
		k.none()
	}
}

// trade has MM and TK log on, trade one lot under a ClOrdID, and leave.
func (d *harness) trade(id string) {
	d.t.Helper()
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order(id, "1", "1", "1", "59=1|")
	mm.want("35=8 150=0 11=" + id)
	tk.order(id, "2", "1", "1", "59=3|")
	mm.want("35=8 150=F 11=" + id)
	mm.leave()
	tk.leave()
}

// TestDropCopyWhileAway: copies wait for their session, over a restart too, until
// it logs on without asking for them.
func TestDropCopyWhileAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	mmc := d.dial("MMC", copying(keep(1, 1)))
	sender, target := mmc.leave()
	d.trade("a")
	d.stop()
	d.start()
	d.trade("b")
	mmc = d.dial("MMC", copying(keep(sender, target)))
	mmc.want("35=AE 43=Y 11=a")
	mmc.want("35=AE 43=Y 11=b")
	mmc.leave()
	plain := d.dial("MMC", func(o *fixclient.Options) { o.Username = "mm" })
	d.trade("c")
	plain.none()
}

// TestDropCopyIsRemembered: a crash that takes everything that was not synced does
// not take the wish for copies.
func TestDropCopyIsRemembered(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	mmc := d.dial("MMC", copying(keep(1, 1)))
	left := d.store.Crash(kvtest.All) // what comes later is not synced before the crash
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("a", "1", "1", "1", "59=1|")
	mm.want("35=8 150=0")
	tk.order("x", "2", "1", "1", "59=3|")
	first := mmc.want("35=AE 11=a")
	d.crash(rand.New(rand.NewPCG(1, 1)))
	<-mmc.done
	sender, target := mmc.c.NextSequence()
	d.store = left
	d.start()
	mmc = d.dial("MMC", copying(keep(sender, target-1))) // as if it had lost the last message
	mmc.want("35=AE 11=a 97=Y 571=" + first.Get(571))
}

// TestDropCopyCrash: whatever of the store a crash leaves, every fill is copied, a
// copy that comes twice says the same, and nothing is copied that did not happen.
func TestDropCopyCrash(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, withCopies)
	r := rand.New(rand.NewPCG(11, 11))
	fills, copies := map[string]string{}, map[string]string{}
	sender, target := 1, 1
	for life := range 5 {
		mmc := d.dial("MMC", copying(keep(sender, target)))
		mm, tk := d.dial("MM", nil), d.dial("TK", nil)
		const trades = 30
		for i := range trades {
			mm.order(fmt.Sprintf("m%d-%d", life, i), "1", "5", "1", "59=1|")
			tk.order(fmt.Sprintf("t%d-%d", life, i), "2", fmt.Sprint(1+r.IntN(9)), "1", "59=1|")
		}
		mm.awaitMessages(0, r.IntN(trades+1))
		crashed := d.crash(r)
		mmc.c.Close()
		<-mmc.done
		recordCopies(t, mmc, copies)
		sender, target = mmc.c.NextSequence()
		d.store = crashed
		d.start()
	}
	mmc := d.dial("MMC", copying(keep(sender, target)))
	collectFills(t, d, fills)
	await.True(t, "a copy of every fill", func() bool {
		recordCopies(t, mmc, copies)
		return len(copies) >= len(fills)
	})
	for id, text := range fills {
		if copies[id] != text {
			t.Errorf("copy %s is %q, the fill %q", id, copies[id], text)
		}
	}
	for id := range copies {
		if fills[id] == "" {
			t.Errorf("copy %s is of no durable fill", id)
		}
	}
}

// recordCopies notes the copies that have come by their TradeReportID.
func recordCopies(t *testing.T, k *client, copies map[string]string) {
	t.Helper()
	for {
		select {
		case raw := <-k.in:
			if err := k.checker.Check(raw); err != nil {
				t.Fatalf("%v\n%s", err, wiretest.Show(raw))
			}
			m := sessiontest.Message(raw)
			if m.Get(35) == "B" { // the service says that it stops
				continue
			}
			text := m.Pick(11, 32, 31, 37, 60)
			if was, ok := copies[m.Get(571)]; m.Get(35) != "AE" || ok && was != text {
				t.Errorf("%s, before it was %q", m, was)
			}
			copies[m.Get(571)] = text
		default:
			return
		}
	}
}

// collectFills notes every fill of MM's that the journal makes, by its ExecID.
func collectFills(t *testing.T, d *harness, fills map[string]string) {
	t.Helper()
	g, err := New(d.options, nil, kvtest.New(), Dependencies{MarketData: d.views}, d.set)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	d.journal.mu.Lock()
	commands := slices.Clone(d.journal.commands)
	d.journal.mu.Unlock()
	for i := range commands {
		replica.Apply(&commands[i], func(events []event.Event) {
			if err := g.Replay(events); err != nil {
				t.Fatal(err)
			}
		})
	}
	err = session.Hooks{Server: g.Server}.Session("MM").EachMessage(func(m []byte) error {
		if sessiontest.Message(m).Get(150) == "F" {
			fills[sessiontest.Message(m).Get(17)] = sessiontest.Message(m).Pick(11, 32, 31, 37, 60)
		}
		return nil
	})
	if err != nil || len(fills) == 0 {
		t.Fatalf("%d fills: %v", len(fills), err)
	}
}

// TestClaimCapture: a settled claim is captured for the session that took it, and
// for the drop copies of its participant, once each.
func TestClaimCapture(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK", "MM"}, withCopies)
	tk, tkc := d.dial("TK", nil), d.dial("TKC", copying(func(o *fixclient.Options) { o.LogonFields = "5600=Y\x01" }))
	mmc := d.dial("MMC", copying(nil))
	report := tk.claimed("c1")
	settle := func(claim string, signature byte) sessiontest.Message {
		t.Helper()
		d.pay(claim, signature, 250_000_000)
		tk.wantNext("35=8 150=0 37=" + claim)
		d.deliver(claim)
		return tk.wantNext("35=8 150=F 37=" + claim)
	}
	claim := report.Get(37)
	fill := settle(claim, 1)
	const same = "487=0 570=N 150=F 39=2 55=SLUSD/USDC 48=T1/T1-1 32=252.525252 31=0.990000000 552=1 54=1 448=TK "
	captured := tk.await("35=AE 37=" + claim)
	captured.Want(t, same+"11=c1 571="+fill.Get(17)+" 17="+fill.Get(17)+" 60="+fill.Get(60)+" 198="+report.Get(198))
	tkc.await("35=AE 37="+claim).Want(t, same+"11=c1 5612=settled 571="+fill.Get(17))

	// A quote that was accepted by AJ has no ClOrdID; a session that has asked for copies
	// gets one of its own.
	quote := tkc.quoted("r2", "")
	tkc.send("AJ", "693=a1|117="+quote.Get(117)+"|694=1|55=SLUSD/USDC|")
	claim = tkc.wantNext("35=8 693=a1 150=A").Get(37)
	d.pay(claim, 2, 250_000_000)
	tkc.wantNext("35=8 150=0")
	d.deliver(claim)
	tkc.wantNext("35=8 150=F")
	tkc.await("35=AE 448=TKC 11= 37=" + claim)
	tkc.without("AE")
	tk.without("AE")
	mmc.none()
}

// without is none for the messages of a type; others may come, a claim's package among
// them, which is sent when it is made.
func (k *client) without(kind string) {
	k.t.Helper()
	k.pass(func(m sessiontest.Message) bool { return m.Get(35) != kind })
}

// await takes messages up to the first of the type that fields begin with.
func (k *client) await(fields string) sessiontest.Message {
	k.t.Helper()
	kind, _, _ := strings.Cut(fields, " ")
	for {
		if m := k.next(); "35="+m.Get(35) == kind {
			m.Want(k.t, fields)
			return m
		}
	}
}
