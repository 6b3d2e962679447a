package fixgw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/persist/kv/kvtest"
)

// keep continues a session's numbers, and its orders when it goes.
func keep(sender, target int) func(*fixclient.Options) {
	return func(o *fixclient.Options) {
		o.KeepSequence, o.NextSender, o.NextTarget = true, sender, target
		o.LogonFields = "8013=N\x01"
	}
}

// leave logs out and returns the numbers to continue with.
func (k *client) leave() (sender, target int) {
	k.t.Helper()
	if err := k.c.Logout(); err != nil {
		k.t.Fatal(err)
	}
	await.Closed(k.t, "the answer to the Logout of "+k.compID, k.done)
	k.d.awaitFree(k.compID) // a client that is logged on gets the News of a stop
	return k.c.NextSequence()
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.ClosedRefs = 2 })
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "10", "1", "59=1|")
	first := mm.want("35=8 11=a 150=0 97=")
	again := func(want sessiontest.Message) {
		t.Helper()
		m := mm.want("35=8 97=Y")
		for _, tag := range []int{37, 11, 41, 17, 150, 39, 38, 151, 14, 6, 60} {
			if m.Get(tag) != want.Get(tag) {
				t.Errorf("tag %d of the answer again is %q, was %q", tag, m.Get(tag), want.Get(tag))
			}
		}
	}
	mm.order("a", "1", "10", "1", "59=1|")
	again(first)
	other := func() {
		t.Helper()
		mm.order("a", "2", "77", "2", "59=1|")
		mm.want("35=8 11=a 37=NONE 150=8 103=6 97=").Text(t, "DUPLICATE_CLORDID: ClOrdID (11)")
		mm.send("F", "11=a|41=a|55=SLUSD/USDC|54=1|"+now60)
		mm.want("35=9 11=a 434=1 102=6").Text(t, "DUPLICATE_CLORDID: ClOrdID (11)")
		mm.send("q", "11=a|530=7|"+now60)
		mm.want("35=r 11=a 530=7 531=0 532=99").Text(t, "DUPLICATE_CLORDID: ClOrdID (11)")
	}
	other()
	mm.send("G", "11=b|41=a|55=SLUSD/USDC|54=1|38=12|40=2|44=1|"+now60)
	replaced := mm.want("35=8 11=b 41=a 150=5")
	mm.send("G", "11=b|41=a|55=SLUSD/USDC|54=1|38=12|40=2|44=1|"+now60)
	again(replaced)
	mm.send("F", "11=c|41=b|55=SLUSD/USDC|54=1|38=12|"+now60)
	cancelled := mm.want("35=8 11=c 41=b 150=4")
	for i := range 6 { // pushes a, b, c out of memory
		mm.order(fmt.Sprint("x", i), "1", "1", "1", "59=3|")
		mm.want("150=0")
		mm.want("150=4")
	}
	mm.send("F", "11=c|41=b|55=SLUSD/USDC|54=1|38=12|"+now60)
	again(cancelled)
	mm.order("a", "1", "10", "1", "59=1|")
	again(first)
	other()
	mm.order("r", "1", "99999999", "1", "")
	refused := mm.want("35=8 11=r 150=8 39=8")
	mm.order("r", "1", "99999999", "1", "")
	again(refused)
	sender, target := mm.leave()
	d.stop()
	d.start()
	mm = d.dial("MM", keep(sender, target))
	mm.order("a", "1", "10", "1", "59=1|")
	again(first)
	mm.send("F", "11=z|41=a|55=SLUSD/USDC|54=1|38=12|"+now60)
	mm.want("35=9 11=z 41=a 102=0 39=4")
	if n := d.gateway.Stats().Duplicates; n != 1 {
		t.Errorf("%d duplicates since the restart, want 1", n)
	}
}

// TestPipelinedChange: an F and a G may follow their order before it is
// answered.
func TestPipelinedChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	mm.order("a", "1", "10", "1", "59=1|")
	mm.send("G", "11=b|41=a|55=SLUSD/USDC|54=1|38=9|40=2|44=1|"+now60)
	mm.send("G", "11=c|41=b|55=SLUSD/USDC|54=1|38=8|40=2|44=2|"+now60)
	mm.send("F", "11=d|41=c|55=SLUSD/USDC|54=1|38=8|"+now60)
	mm.want("11=a 150=0 39=0 38=10.00")
	mm.want("11=b 41=a 150=5 39=0 38=9.00")
	mm.want("11=c 41=b 150=5 39=0 38=8.00 44=2.0000")
	mm.want("11=d 41=c 150=4 39=4")
}

func TestChangeRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("a", "1", "10", "1", "59=1|")
	id := mm.want("150=0").Get(37)
	for _, c := range []struct{ msgType, body, want, text string }{
		{"G", "11=b|41=a|55=92C/SLUSD|54=1|38=9|40=2|44=1|", "434=2 102=99 39=0", `INVALID_FIELD: Symbol (55) "92C/SLUSD": not the order's`},
		{"G", "11=b|41=a|55=SLUSD/USDC|54=2|38=9|40=2|44=1|", "434=2 102=99", `INVALID_FIELD: Side (54) "2": not the order's`},
		{"G", "11=b|41=a|55=SLUSD/USDC|54=1|38=9|40=1|", "434=2 102=99", `UNSUPPORTED: OrdType (40) "1": the order type cannot be changed`},
		{"G", "11=b|41=a|55=SLUSD/USDC|54=1|38=9|40=2|", "434=2 102=99", `MISSING_FIELD: Price (44): required by this OrdType (40)`},
		{"G", "11=b|41=a|55=SLUSD/USDC|54=1|40=2|44=1|", "434=2 102=99", `MISSING_FIELD: OrderQty (38)`},
		{"G", "11=b|41=a|55=SLUSD/USDC|54=1|38=99999999|40=2|44=1|", "434=2 102=99 39=0", ""},
		{"F", "11=e|41=a|55=SLUSD/USDC|54=2|", "434=1 102=99", `INVALID_FIELD: Side (54) "2": not the order's`},
	} {
		mm.send(c.msgType, c.body+now60)
		m := mm.want("35=9 41=a 37=" + id + " " + c.want)
		if c.text != "" && m.Get(58) != c.text {
			t.Errorf("%s %s: %s, want %s", c.msgType, c.body, m.Get(58), c.text)
		}
	}
	// Another session's order is not to be had, by either name.
	tk.send("F", "11=x|41=a|37="+id+"|55=SLUSD/USDC|54=1|"+now60)
	tk.want("35=9 11=x 41=a 102=1 37=NONE 39=8")
	// By OrderID alone; the report names what was replaced.
	mm.send("F", "11=f|41=whatever|37="+id+"|55=SLUSD/USDC|54=1|"+now60)
	mm.want("35=8 11=f 41=a 150=4")
}

// TestChangeTooLate: an F and a G that reach the engine after the order has
// ended name its end, not an unknown order, whether it is in memory or not.
func TestChangeTooLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.ClosedRefs = 1 })
	mm := d.dial("MM", nil)
	for i, c := range []struct{ msgType, more string }{{"F", ""}, {"G", "40=2|44=1|"}} {
		id, change := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		mm.order(id, "1", "10", "1", "59=3|") // the session passes both on before it knows the end
		mm.send(c.msgType, "11="+change+"|41="+id+"|55=SLUSD/USDC|54=1|38=9|"+c.more+now60)
		order := mm.want("11=" + id + " 150=0").Get(37)
		mm.want("11=" + id + " 150=4 39=4")
		mm.want("35=9 11="+change+" 41="+id+" 37="+order+" 39=4 102=0").Want(t, "434="+fmt.Sprint(i+1))
	}
}

// TestNoEmptySymbol: an answer to a request without Symbol (55) has none; next
// holds it to the stock dictionary.
func TestNoEmptySymbol(t *testing.T) {
	t.Parallel()
	mm := newDesk(t, []string{"MM"}, nil).dial("MM", nil)
	mm.send("D", "11=a|54=1|38=1|40=2|44=1|"+now60)
	mm.want("35=8 11=a 150=8 103=1 55=")
	mm.send("H", "11=nope|54=1|")
	mm.want("35=8 11=nope 150=I 39=8 55=")
}

func TestMassCancelAndStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("a", "1", "10", "1", "59=1|")
	mm.order("b", "2", "10", "3", "59=1|")
	mm.send("D", "11=c|55=92C/SLUSD|54=1|38=3|40=2|44=5|59=1|"+now60)
	id := ""
	for range 3 {
		m := mm.want("35=8 150=0")
		if m.Get(11) == "a" {
			id = m.Get(37)
		}
	}
	tk.order("x", "2", "4", "1", "59=3|")
	tk.want("150=0")
	tk.want("150=F")
	mm.want("11=a 150=F")
	mm.send("H", "11=a|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=a 150=I 39=1 38=10.00 151=6.00 14=4.00 6=1.0000 44=1.0000 37=" + id)
	mm.send("H", "11=nope|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=nope 150=I 39=8 103=5 37=NONE")
	mm.send("q", "11=q0|530=5|"+now60)
	mm.want("35=r 11=q0 531=0 532=0")
	mm.send("q", "11=q1|530=1|55=X/Y|"+now60)
	mm.want("35=r 11=q1 531=0 532=1")
	mm.send("q", "11=q2|530=1|55=SLUSD/USDC|54=2|"+now60)
	mm.want("35=8 11=b 41= 150=4 39=4 58=mass_cancel")
	mm.want("35=r 11=q2 530=1 531=1 533=1 55=SLUSD/USDC 54=2")
	mm.send("q", "11=q3|530=7|"+now60)
	cancelled := []string{mm.want("35=8 150=4").Get(11), mm.want("35=8 150=4").Get(11)}
	slices.Sort(cancelled)
	if strings.Join(cancelled, ",") != "a,c" {
		t.Errorf("cancelled %v", cancelled)
	}
	mm.want("35=r 11=q3 530=7 531=7 533=2")
	mm.send("q", "11=q3|530=7|"+now60)
	mm.want("35=r 11=q3 530=7 531=7 533=2 97=Y")
	mm.send("H", "11=a|55=SLUSD/USDC|54=1|")
	mm.want("35=8 11=a 150=I 39=4 151=0.00 14=4.00 37=" + id)
}

func TestOrderKinds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	// Iceberg: the market data shows 2 of 10.
	mm.order("ice", "2", "10", "2", "59=1|111=2|")
	mm.want("11=ice 150=0 151=10.00")
	tk.send("V", "262=s|263=0|264=5|267=2|269=0|269=1|146=1|55=SLUSD/USDC|")
	waitMD(t, tk, "s", "268=1", "271=2.00")
	// Post-only that would take.
	tk.order("post", "1", "1", "2", "59=1|18=6|")
	tk.want("11=post 150=8 39=8")
	// FOK.
	tk.order("fok", "1", "11", "2", "59=4|")
	tk.want("11=fok 150=8 39=8")
	tk.order("fok2", "1", "3", "2", "59=4|")
	tk.want("11=fok2 150=0")
	for cum := 0; cum < 3; {
		m := tk.want("11=fok2 150=F")
		mm.want("11=ice 150=F")
		cum = int(m.Get(14)[0] - '0')
	}
	// A stop waits and is triggered by a trade.
	tk.send("D", "11=stop|55=SLUSD/USDC|54=2|38=1|40=3|99=1.5|59=1|"+now60)
	tk.want("11=stop 150=0 39=0 40=3")
	mm.order("bid", "1", "5", "1.5", "59=1|")
	mm.want("11=bid 150=0")
	tk.order("hit", "2", "1", "1.5", "59=3|")
	tk.want("11=hit 150=0")
	tk.want("11=hit 150=F 39=2 851=2")
	tk.want("11=stop 150=D 39=0 40=3 99=1.5000 378=99 58=triggered")
	tk.want("11=stop 150=F 39=2 31=1.5000")
	mm.want("11=bid 150=F")
	mm.want("11=bid 150=F 151=3.00")
	// Market against an empty side.
	tk.send("D", "11=mkt|55=92C/SLUSD|54=1|38=1|40=1|"+now60)
	tk.want("11=mkt 150=0 40=1")
	tk.want("11=mkt 150=4 39=4 58=ioc_remainder")
	// GTD in the past.
	tk.order("old", "1", "1", "1", "59=6|126=20200101-00:00:00|")
	tk.want("11=old 150=8 39=8 58=invalid_expiry")
	// GTD that ends.
	end := time.Now().Add(time.Hour).UTC().Format("20060102-15:04:05.000")
	tk.order("gtd", "1", "1", "1", "59=6|126="+end+"|")
	tk.want("11=gtd 150=0 59=6")
	d.later(time.Hour)
	tk.want("11=gtd 150=C 39=C 151=0.00 58=expired")
	// Self-trade: the newest goes.
	mm.order("self", "2", "1", "1.5", "59=1|")
	mm.want("11=self 150=0")
	mm.want("11=self 150=4 58=self_trade")
}

// waitMD asks for snapshots until one has these fields: views come a moment
// after reports.
func waitMD(t testing.TB, k *client, reqID string, fields ...string) sessiontest.Message {
	t.Helper()
	first := true
	return await.Value(t, fmt.Sprintf("a snapshot with %v", fields), func() sessiontest.Message {
		if !first {
			k.send("V", "262="+reqID+"|263=0|264=5|267=3|269=0|269=1|269=2|146=1|55=SLUSD/USDC|")
		}
		first = false
		return k.want("35=W 262=" + reqID)
	}, func(m sessiontest.Message) bool {
		text := "|" + m.String()
		return !slices.ContainsFunc(fields, func(f string) bool { return !strings.Contains(text, "|"+f+"|") })
	})
}

// TestOfflineReportsAreDelivered: what happens while a client is away comes when
// it asks for what it has missed.
func TestOfflineReportsAreDelivered(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", nil)
	mm.order("a", "1", "10", "1", "59=1|")
	mm.want("11=a 150=0")
	sender, target := mm.leave()
	for i := range 3 {
		tk.order(fmt.Sprint("x", i), "2", "1", "1", "59=3|")
		tk.want("150=0")
		tk.want("150=F")
	}
	await.True(t, "the reports of 3 fills", func() bool { return d.gateway.SessionNamed("MM").Messages.NextSenderMsgSeqNum() >= target+3 })
	mm = d.dial("MM", keep(sender, target))
	for _, cum := range []string{"1.00", "2.00", "3.00"} {
		mm.want("35=8 11=a 150=F 43=Y 14=" + cum)
	}
	mm.none()
	// A restart changes nothing of it.
	sender, _ = mm.leave()
	d.stop()
	d.start()
	mm = d.dial("MM", keep(sender, target))
	for _, cum := range []string{"1.00", "2.00", "3.00"} {
		mm.want("35=8 11=a 150=F 43=Y 14=" + cum)
	}
}

// TestResendIsBounded: of many messages the newest Options.MaxReplay are
// replayed, the rest gap filled.
func TestResendIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.MaxReplay = 10 })
	mm := d.dial("MM", keep(1, 1))
	for i := range 30 {
		mm.order(fmt.Sprint("o", i), "1", "1", "1", "59=1|")
		mm.want("150=0")
	}
	sender, target := mm.leave()
	mm = d.dial("MM", keep(sender, 2)) // has seen nothing but the Logon
	for i := 20; i < 30; i++ {
		mm.want("35=8 43=Y 150=0 11=" + fmt.Sprint("o", i))
	}
	mm.none()
	if _, next := mm.leave(); next <= target {
		t.Errorf("the gap was filled up to %d only, of %d", next, target)
	}
}

// TestCrash: after an unclean stop that loses a part of the store's commits, every report
// of every durable command reaches its client, under its ExecID, and no number that a
// client has seen is used again.
func TestCrash(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	r := rand.New(rand.NewPCG(7, 7))
	seen := map[string]map[string]string{"MM": {}, "TK": {}} // by CompID and ExecID
	numbers := map[string][2]int{"MM": {1, 1}, "TK": {1, 1}}
	for life := range 6 {
		clients := map[string]*client{}
		for _, id := range []string{"MM", "TK"} {
			clients[id] = d.dial(id, keep(numbers[id][0], numbers[id][1]))
			catchUp(t, clients[id], seen[id])
		}
		const orders = 40
		before := clients["MM"].got.Load()
		for i := range orders {
			d.deskRequest(uint64(1 + life*orders + i)) // of no concern to a session
			mm := fmt.Sprintf("m%d-%d", life, i)
			clients["MM"].order(mm, "1", "5", "1", "59=1|")
			if i%4 == 0 { // two sides of one entry, and a refused one
				clients["MM"].quote("q"+mm, "9772=Y|5617=2|5619=60000|", "296=1|302=1|304=2|295=2|299=1|"+quoteSymbol+
					"132=1.01|134=3|133=2|135=3|299=2|55=92C/SLUSD|132=5|134=1|133=5|135=1|")
			}
			clients["TK"].order(fmt.Sprintf("t%d-%d", life, i), "2", fmt.Sprint(1+r.IntN(9)), "1", "59=1|")
		}
		clients["MM"].awaitMessages(before, r.IntN(orders+1)) // each order is answered
		crashed := d.crash(r)
		for _, id := range []string{"MM", "TK"} {
			clients[id].c.Close()
			<-clients[id].done
			note(t, clients[id], seen[id])
			sender, target := clients[id].c.NextSequence()
			numbers[id] = [2]int{sender, target}
		}
		d.store = crashed
		d.start()
	}
	clients := map[string]*client{}
	for _, id := range []string{"MM", "TK"} {
		clients[id] = d.dial(id, keep(numbers[id][0], numbers[id][1]))
		catchUp(t, clients[id], seen[id])
	}
	want := d.expected(t)
	for id, reports := range want {
		// The question does not wait for the reports that the gateway still replays.
		await.True(t, "every report of "+id, func() bool {
			take(t, clients[id], seen[id])
			for execID := range reports {
				if _, ok := seen[id][execID]; !ok {
					return false
				}
			}
			return true
		})
		for execID, text := range reports {
			if seen[id][execID] != text {
				t.Errorf("%s: report %s is %q, want %q", id, execID, seen[id][execID], text)
			}
		}
		for execID := range seen[id] {
			if _, ok := reports[execID]; !ok && !strings.HasPrefix(execID, "G") {
				t.Errorf("%s: report %s is of nothing durable", id, execID)
			}
		}
	}
}

// TestDeskEventsHaveNoTime: read as a time, their bytes would put what is stored with the
// next report on another day.
func TestDeskEventsHaveNoTime(t *testing.T) {
	g, err := New(Options{Options: session.Options{Address: "127.0.0.1:0"}}, nil, kvtest.New(), Dependencies{}, wiretest.Instruments(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.reporter.At = 5
	var e event.Event
	e.SetDesk(3, event.DeskChunk{Count: 1, Data: []byte(strings.Repeat("~", event.MaxDeskChunk))})
	if err := g.Replay([]event.Event{e, e}); err != nil || g.reporter.At != 5 || g.reporter.Index() != 2 {
		t.Errorf("at %d, index %d: %v", g.reporter.At, g.reporter.Index(), err)
	}
}

// deskRequest lets the engine answer a request of the service to its RFQ desk,
// which shows as events without a time.
func (d *harness) deskRequest(token uint64) {
	d.t.Helper()
	r := &rfq.SetOperator{Of: rfq.Operator{ID: 1, Name: strings.Repeat("~", rfq.MaxText)}}
	r.RequestID = token
	commands, err := engine.DeskCommands(nil, r)
	if err == nil {
		err = d.engine.SubmitAll(commands)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// catchUp takes everything up to the answer of a question. The question is put
// again and again: the client answers a request for what the gateway has lost by
// a gap fill, which may swallow it.
func catchUp(t testing.TB, k *client, seen map[string]string) {
	t.Helper()
	turns, next := 0, 1
	await.True(t, "an answer to "+k.compID, func() bool {
		if turns++; turns == next { // more and more seldom: each answer ahead of a gap costs a ResendRequest
			next *= 2
			k.send("H", "11=question|55=SLUSD/USDC|54=1|")
		}
		return take(t, k, seen)
	})
}

// take records the reports that have arrived, up to the answer of a question; it reports
// whether that was among them.
func take(t testing.TB, k *client, seen map[string]string) (answered bool) {
	t.Helper()
	for {
		select {
		case raw := <-k.in:
			if err := k.checker.Check(raw); err != nil {
				t.Fatalf("%v\n%s", err, wiretest.Show(raw))
			}
			if sessiontest.Message(raw).Get(11) == "question" {
				return true
			}
			record(t, sessiontest.Message(raw), seen)
		default:
			return false
		}
	}
}

// awaitMessages waits until n messages have come since from, the value of k.got then.
func (k *client) awaitMessages(from int64, n int) {
	k.t.Helper()
	await.True(k.t, fmt.Sprintf("%d messages to %s", n, k.compID), func() bool { return k.got.Load() >= from+int64(n) })
}

// note takes what has arrived.
func note(t testing.TB, k *client, seen map[string]string) {
	t.Helper()
	for {
		select {
		case raw := <-k.in:
			record(t, sessiontest.Message(raw), seen)
		default:
			return
		}
	}
}

// record notes a report; one that comes again must say the same.
func record(t testing.TB, m sessiontest.Message, seen map[string]string) {
	t.Helper()
	id, text := m.Get(17), m.Pick(11, 150, 39, 37, 32, 151, 14, 6, 60, 583)
	switch {
	case m.Get(35) == "b": // its QuoteID is used once
		id, text = m.Get(117), m.Pick(297, 300, 296, 302, 295, 299, 55, 368, 58)
	case m.Get(35) != "8" || m.Get(150) == "I":
		return
	}
	if was, ok := seen[id]; ok && was != text {
		t.Errorf("report %s was %q, now %q", id, was, text)
	}
	seen[id] = text
}

// crash stops everything at once and returns what is left of the store.
func (d *harness) crash(r *rand.Rand) *kvtest.Memory {
	left := d.store.CrashAnywhere(r)
	d.store.FailCommits(kvtest.ErrBroken) // nothing more reaches the disk
	d.stopped = true
	d.cancel()
	for range 3 {
		<-d.done
	}
	return left
}

// expected follows the whole journal with a gateway of its own and returns every
// report that it makes.
func (d *harness) expected(t testing.TB) map[string]map[string]string {
	t.Helper()
	o := d.options
	o.KeepMessages = 1 << 20
	fresh := kvtest.New()
	fresh.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(sessionNumberKey("MM"), []byte{0, 1})
		set(sessionNumberKey("TK"), []byte{0, 2})
	}, true)
	g, err := New(o, nil, fresh, Dependencies{MarketData: d.views}, d.set)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	d.journal.mu.Lock()
	commands := slices.Clone(d.journal.commands)
	d.journal.mu.Unlock()
	for i := range commands {
		replica.Apply(&commands[i], func(events []event.Event) { g.Replay(events) })
	}
	all := map[string]map[string]string{}
	for _, s := range g.All() {
		id := s.CompID()
		all[id] = map[string]string{}
		session.Hooks{Server: g.Server}.Session(id).EachMessage(func(m []byte) error {
			record(t, m, all[id])
			return nil
		})
	}
	return all
}

func TestCancelOnDisconnect(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK", "NO"}, func(o *Options) { o.RestartGrace = time.Hour })
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	no := d.dial("NO", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
	mm.order("a", "1", "10", "1", "59=1|")
	mm.order("b", "1", "10", "2", "59=1|")
	mm.want("11=a 150=0")
	mm.want("11=b 150=0")
	no.order("n", "1", "10", "3", "59=1|")
	no.want("11=n 150=0")
	mm.c.Close()
	no.c.Close()
	d.awaitOrders(1)
	tk.order("x", "2", "30", "1", "59=3|")
	tk.want("150=0")
	tk.want("150=F 32=10.00 31=3.0000")
	tk.want("150=4")
	// The reports of the cancels wait for the client.
	mm = d.dial("MM", keep(4, 4))
	got := []string{mm.want("150=4 41= 58=cancel_on_disconnect").Get(11), mm.want("150=4 58=cancel_on_disconnect").Get(11)}
	slices.Sort(got)
	if strings.Join(got, ",") != "a,b" {
		t.Errorf("cancelled %v", got)
	}
	// Our own stop cancels nothing; staying away afterwards does.
	tk.order("y", "2", "5", "9", "59=1|")
	tk.want("11=y 150=0")
	d.stop()
	d.start()
	if n := d.gateway.Stats().LiveOrders; n != 1 {
		t.Errorf("%d orders live after a restart, want 1", n)
	}
	d.stop()
	d.options.RestartGrace = time.Millisecond
	d.start()
	d.awaitOrders(0)
}

// TestStoreFailureStopsTheGateway: of what cannot be stored at most the last batch
// has been said, which the next start says again.
func TestStoreFailureStopsTheGateway(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.DrainTimeout = time.Millisecond }) // the engine goes on
	mm := d.dial("MM", nil)
	mm.order("a", "1", "1", "1", "59=1|")
	mm.want("11=a 150=0")
	d.store.FailCommits(kvtest.ErrBroken)
	mm.order("b", "1", "1", "1", "59=1|")
	if err := await.Receive(t, "the end of Run", d.done); err == nil || !strings.Contains(err.Error(), kvtest.ErrBroken.Error()) {
		t.Errorf("Run returned %v", err)
	}
	d.stopped = true
	d.cancel()
	<-d.done
	<-d.done
	await.Closed(t, "the end of the connection", mm.done)
	for len(mm.in) > 0 {
		if m := sessiontest.Message(<-mm.in); m.Get(35) != "B" { // the service says that it stops
			m.Want(t, "35=8 11=b 150=0")
		}
	}
}
