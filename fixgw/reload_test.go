package fixgw

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/participants/participantstest"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/internal/await"
)

// reload sets the risk of list's participants in the engine and makes list the gateway's.
func (d *harness) reload(list []participants.Participant) session.Reloaded {
	d.t.Helper()
	for i := range list {
		c, err := engine.SetRiskCommand(list[i].Number, engine.AllInstruments, engine.Limits{})
		d.submit(c, err)
	}
	done, err := d.gateway.Reload(list)
	if err != nil {
		d.t.Fatal(err)
	}
	return done
}

// without leaves the CompIDs out.
func without(list []participants.Participant, compIDs ...string) []participants.Participant {
	return slices.DeleteFunc(slices.Clone(list), func(p participants.Participant) bool { return slices.Contains(compIDs, p.CompIDs[0]) })
}

// refused logs on and returns why that is refused.
func (d *harness) refused(compID string, change func(*fixclient.Options)) string {
	d.t.Helper()
	o := fixclient.Options{
		Addr: d.addr(), SenderCompID: compID, TargetCompID: d.options.CompID,
		Username: strings.ToLower(compID), Password: sessiontest.Password, Timeout: wait,
	}
	if change != nil {
		change(&o)
	}
	c, err := fixclient.Dial(d.t.Context(), o)
	if err == nil {
		c.Close()
		d.t.Fatalf("%s is logged on", compID)
	}
	if !errors.Is(err, fixclient.ErrLogout) {
		d.t.Fatalf("%s: %v, want a Logout", compID, err)
	}
	return err.Error()
}

// loggedOut waits for the Logout that ends k's session and returns its text.
func (k *client) loggedOut() string {
	k.t.Helper()
	err := await.Receive(k.t, "the end of the session of "+k.compID, k.done)
	if !errors.Is(err, fixclient.ErrLogout) {
		k.t.Fatalf("ended with %v, want a Logout", err)
	}
	return err.Error()
}

// TestReload is the life of CompIDs that come, go and come back, with what
// becomes of their orders.
func TestReload(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	list := sessiontest.Participants("MM", "TK", "NEW")
	mm := d.dial("MM", keep(1, 1)) // 8013=N
	tk := d.dial("TK", nil)
	mm.order("m", "1", "10", "1", "59=1|")
	mm.want("35=8 11=m 150=0")
	tk.order("t", "1", "10", "0.9", "59=1|")
	tk.want("35=8 11=t 150=0")
	if answer := d.refused("NEW", nil); !strings.Contains(answer, "LOGON_REFUSED: username, password or CompID is wrong") {
		t.Errorf("before it is there: %s", answer)
	}

	if done := d.reload(list); !slices.Equal(done.Added, []string{"NEW"}) || done.Removed != nil || done.Returned != nil {
		t.Errorf("%+v", done)
	}
	fresh := d.dial("NEW", func(o *fixclient.Options) { o.Timeout = wait })
	fresh.order("n", "2", "1", "1", "59=3|")
	fresh.want("35=8 11=n 150=0")
	fresh.want("35=8 11=n 150=F 39=2")
	mm.want("35=8 11=m 150=F 39=1")

	if done := d.reload(without(list, "MM", "TK")); !slices.Equal(done.Removed, []string{"MM", "TK"}) || done.Added != nil {
		t.Errorf("%+v", done)
	}
	for _, k := range []*client{mm, tk} {
		if text := k.loggedOut(); !strings.Contains(text, "SESSION_REMOVED: this CompID is not configured any more") {
			t.Errorf("removed with %s", text)
		}
	}
	if answer := d.refused("TK", nil); !strings.Contains(answer, "LOGON_REFUSED: username, password or CompID is wrong") {
		t.Errorf("after it was removed: %s", answer)
	}
	// TK's order went with it. MM's stays, trades, and its reports are only stored.
	d.awaitOrders(1)
	fresh.order("o", "2", "9", "0.9", "59=3|")
	fresh.want("35=8 11=o 150=0")
	fresh.want("35=8 11=o 150=F 32=9.00 31=1.0000")
	d.awaitOrders(0) // and the report is stored

	sender, target := mm.c.NextSequence()
	if done := d.reload(list); !slices.Equal(done.Returned, []string{"MM", "TK"}) || done.Added != nil {
		t.Errorf("%+v", done)
	}
	back := d.dial("MM", keep(sender, target))
	back.want("35=8 11=m 150=F 39=2 32=9.00 43=Y")
	d.dial("TK", nil)
	if n := d.hooks.Acceptors(); n != 2 {
		t.Errorf("%d acceptors of quickfix, want the first and NEW's", n)
	}
}

// TestReloadCredentials: a new password holds from the next logon on, and ends
// nothing that runs.
func TestReloadCredentials(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", keep(1, 1))
	list := sessiontest.Participants("MM")
	list[0].PasswordHash = participantstest.Hash("another")
	d.reload(list)
	mm.order("a", "1", "1", "1", "")
	mm.want("35=8 11=a 150=0")
	sender, target := mm.leave()
	d.awaitFree("MM")
	if answer := d.refused("MM", keep(sender, target)); !strings.Contains(answer, "LOGON_REFUSED") {
		t.Errorf("the old password: %s", answer)
	}
	d.dial("MM", func(o *fixclient.Options) { keep(sender, target)(o); o.Password = "another" })
	if st := d.gateway.Sessions()[0]; !strings.HasPrefix(st.Refusal, "LOGON_REFUSED") || st.LastRefusal == 0 {
		t.Errorf("the refusal is not remembered: %+v", st)
	}
}

// TestReloadRefused: an invalid participants file changes nothing.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, func(o *Options) { o.MaxSessions = 3 })
	change := func(f func([]participants.Participant)) []participants.Participant {
		list := sessiontest.Participants("MM", "TK")
		f(list)
		return list
	}
	for _, c := range []struct {
		name     string
		list     []participants.Participant
		identity bool
		want     string
	}{
		{"another number", change(func(l []participants.Participant) { l[1].Number = 7 }), true, `"tk" has the number 2, not 7`},
		{"number of another", change(func(l []participants.Participant) { l[1].Name = "zz" }), true, `number 2 belongs to "tk", not to "zz"`},
		{"CompID of another", change(func(l []participants.Participant) { l[0].CompIDs, l[1].CompIDs = []string{"MM", "TK"}, []string{"T2"} }), true, `comp_id "TK" belongs to "tk", not to "mm"`},
		{"nobody", nil, false, "the list is empty"},
		{"too many", sessiontest.Participants("MM", "TK", "A", "B"), false, "4 comp_ids: at most 3 sessions"},
		{"no password", change(func(l []participants.Participant) { l[0].PasswordHash = "" }), false, "password_hash and ed25519 are empty"},
	} {
		_, err := d.gateway.Reload(c.list)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, session.ErrIdentity) != c.identity {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	d.reload(sessiontest.Participants("MM", "TK", "A")) // as many as there may be
	for _, compID := range []string{"MM", "TK", "A"} {
		d.dial(compID, func(o *fixclient.Options) { o.Timeout = wait })
	}
	// A removed participant's number stays its own.
	d.reload(sessiontest.Participants("MM", "TK"))
	list := sessiontest.Participants("MM", "TK", "A")
	list[2].Name = "other"
	if _, err := d.gateway.Reload(list); !errors.Is(err, session.ErrIdentity) {
		t.Errorf("a removed participant's number to another: %v", err)
	}
}

// TestReloadsUnderTraffic: a hundred reloads while one session trades and others
// log on and off. Nothing is lost, and no goroutine stays but quickfix's one for
// each CompID that was ever there and one for each reload that brought one. It
// runs alone, since it counts the process's goroutines.
func TestReloadsUnderTraffic(t *testing.T) {
	const reloads, guests = 100, 4
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.RefuseDelay = time.Millisecond })
	all := []string{"MM"}
	for i := range guests {
		all = append(all, fmt.Sprintf("G%d", i))
	}
	list := sessiontest.Participants(all...)
	mm := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
	for i := range guests {
		d.reload(list[:2+i]) // each brings one CompID
	}
	var wrong atomic.Pointer[error]
	visit := func(compID string) bool {
		c, err := fixclient.Dial(t.Context(), fixclient.Options{
			Addr: d.addr(), SenderCompID: compID, TargetCompID: d.options.CompID,
			Username: strings.ToLower(compID), Password: sessiontest.Password, Timeout: wait,
		})
		if err == nil {
			_ = c.Close()
		} else if !errors.Is(err, fixclient.ErrLogout) && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			wrong.Store(&err) // not the refusal of a CompID that is not in the list now
		}
		return err == nil
	}
	settled := func() {
		for _, compID := range all[1:] {
			await.True(t, compID+" to be let in", func() bool { return visit(compID) })
			d.awaitFree(compID)
		}
		d.awaitConnections(1)
	}
	settled()
	// The goroutines of a closed connection end soon after it: those that still run make
	// the count too high, never too low.
	before, since := runtime.NumGoroutine(), 0
	await.True(t, "the goroutines of the connections to end", func() bool {
		if now := runtime.NumGoroutine(); now < before {
			before, since = now, 0
		}
		since++
		return since > 50
	})

	var stop atomic.Bool
	var work sync.WaitGroup
	var visits atomic.Int64
	for _, compID := range all[1:] {
		work.Go(func() {
			for !stop.Load() {
				if visit(compID) {
					visits.Add(1)
				} else {
					// sleep: a refused client leaves the processor to the others.
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	for i := range reloads {
		there := i % (guests + 1)
		seen := visits.Load()
		d.reload(list[:1+there])
		await.True(t, "a visit", func() bool { return there == 0 || visits.Load() > seen })
		mm.order(fmt.Sprint("o", i), "1", "1", "1", "59=3|")
		mm.want("35=8 150=0")
		mm.want("35=8 150=4")
	}
	d.reload(list)
	stop.Store(true)
	work.Wait()
	if err := wrong.Load(); err != nil {
		t.Errorf("a visitor: %v", *err)
	}
	if n := d.hooks.Acceptors(); n != 1+guests {
		t.Errorf("%d acceptors, want one for each reload that brought a CompID", n)
	}
	settled()
	await.Value(t, fmt.Sprintf("%d goroutines, as before %d reloads and %d visits", before, reloads, visits.Load()),
		runtime.NumGoroutine, func(after int) bool { return after <= before })
}

// TestStockClientOfAReload: an unchanged quickfix initiator logs on as a CompID
// that came at run time, and trades.
func TestStockClientOfAReload(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	d.reload(sessiontest.Participants("MM", "QF"))
	i := d.initiate("QF", "session/FIX44.xml", nil)
	i.send(t, "D", "11=a", "55=SLUSD/USDC", "54=1", "38=10", "40=2", "44=1", "59=1", "60=20260101-00:00:00.000")
	i.want(t, "35=8 11=a 150=0 39=0")
}
