package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/atomicfile"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// firm is a session that a test reads to its end.
type firm struct {
	t      *testing.T
	client *fixclient.Client
	in     chan *fixclient.Message
	ended  chan error
}

func newFirm(t *testing.T, address, name string) (*firm, error) {
	t.Helper()
	client, err := fixclient.Dial(t.Context(), fixclient.Options{
		Addr: address, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: testPassword, Timeout: runtest.Patience,
	})
	if err != nil {
		return nil, err
	}
	f := &firm{t: t, client: client, in: make(chan *fixclient.Message, 100), ended: make(chan error, 1)}
	go func() {
		f.ended <- client.Run(context.Background(), func(m *fixclient.Message) error {
			f.in <- fixclient.AsMessage(bytes.Clone(m.Raw())) // the client reuses its buffer
			return nil
		})
	}()
	t.Cleanup(func() { _ = client.Close() })
	return f, nil
}

// order sends a GTC buy of one and returns ExecType and text of the answer.
func (f *firm) order(clOrdID string) string {
	f.t.Helper()
	body := fmt.Sprintf("11=%s|55=%s|54=1|38=1|40=2|44=1|59=1|60=20260101-00:00:00|", clOrdID, testSymbol)
	if err := f.client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		f.t.Fatal(err)
	}
	m := f.next()
	return fmt.Sprintf("%s %s", m.Get(150), m.Get(58))
}

func (f *firm) next() *fixclient.Message {
	f.t.Helper()
	select {
	case m := <-f.in:
		return m
	case err := <-f.ended:
		f.t.Fatalf("ended: %v", err)
	case <-time.After(runtest.Patience):
		f.t.Fatal("no message")
	}
	return nil
}

func (f *firm) loggedOut() string {
	f.t.Helper()
	select {
	case err := <-f.ended:
		if !errors.Is(err, fixclient.ErrLogout) {
			f.t.Fatalf("ended with %v", err)
		}
		return err.Error()
	case <-time.After(runtest.Patience):
		f.t.Fatal("not logged out")
	}
	return ""
}

// TestParticipantsReload: firms come and go with the participants file while the
// program runs, with their limits; a file that is wrong changes nothing. What
// operators see and do of it goes through the command line.
func TestParticipantsReload(t *testing.T) {
	t.Parallel()
	config := testConfig(t, "rfq:\n  enabled: false\n")
	file := strings.Split(config, `"`)[1]
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := servicetest.PasswordHash()
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := atomicfile.Write(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s := startProgram(t, config)
	fix := func(args ...string) string {
		t.Helper()
		out, err := run(t, "", nil, append(append([]string{"fix"}, args...), "--data", s.DataDir())...)
		if err != nil {
			t.Fatalf("fix %v: %v: %s", args, err, out)
		}
		return out
	}
	aa, err := newFirm(t, s.Addresses.FIX, traderA)
	if err != nil {
		t.Fatal(err)
	}

	const more = `  - {name: CC, number: 3, comp_ids: [CC], password_hash: %q, limits: [{symbol: "*", max_open_orders: 1}]}` + "\n"
	write(string(was) + fmt.Sprintf(more, hash))
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var cc *firm
	await.True(t, "CC to log on", func() bool {
		cc, err = newFirm(t, s.Addresses.FIX, "CC")
		return err == nil
	})
	if got := cc.order("a"); got != "0 " {
		t.Errorf("CC's first order: %s", got)
	}
	if got := cc.order("b"); !strings.HasPrefix(got, "8 ") {
		t.Errorf("CC's second order, past its limit: %s", got)
	}

	// Nobody tells the program about these: it looks itself.
	write(strings.Replace(string(was), "number: 2", "number: 9", 1))
	await.True(t, "the file to be refused", func() bool {
		return strings.Contains(get(t, s.Addresses.Admin+"/metrics"), "\nblockdesk_fix_participants_refused 1\n")
	})
	if out := fix("sessions"); !strings.Contains(out, `"BB" has the number 2, not 9`) || !strings.Contains(out, "CC ") {
		t.Errorf("sessions after a refused file: %s", out)
	}
	write(string(was))
	if text := cc.loggedOut(); !strings.Contains(text, "SESSION_REMOVED") {
		t.Errorf("CC was logged out with %s", text)
	}
	var answer struct {
		Participants struct{ Refused string }
		Sessions     []struct {
			State      string
			LiveOrders int `json:"live_orders"`
		}
	}
	await.True(t, "CC's order to go with it", func() bool {
		if err := json.Unmarshal([]byte(fix("sessions", "--json")), &answer); err != nil {
			t.Fatal(err)
		}
		return len(answer.Sessions) == 4 && answer.Sessions[3].LiveOrders == 0
	})
	if answer.Participants.Refused != "" || answer.Sessions[0].State != "logged_on" || answer.Sessions[3].State != "removed" {
		t.Errorf("%+v", answer)
	}

	if out := fix("announce", "back at 18:00"); !strings.Contains(out, "sent to 1 sessions") {
		t.Errorf("announce: %s", out)
	}
	if m := aa.next(); m.Type() != "B" || string(m.Get(148)) != "MAINTENANCE: back at 18:00" {
		t.Errorf("AA got %s", m.Raw())
	}
	if out, err := run(t, "", nil, "fix", "reset-seq", traderA, "--data", s.DataDir()); err == nil || !strings.Contains(out, "SESSION_STATE (logged_on)") {
		t.Errorf("reset of one that is logged on: %v: %s", err, out)
	}
	fix("kick", traderA, "--text", "go away")
	if text := aa.loggedOut(); !strings.Contains(text, "LOGGED_OUT: go away") {
		t.Errorf("AA was logged out with %s", text)
	}
	if out := fix("reset-seq", traderA, "--force"); !strings.Contains(out, traderA+" starts at 1") {
		t.Errorf("reset: %s", out)
	}
}
