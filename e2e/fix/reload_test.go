package fix

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/atomicfile"
	"blockdesk/internal/await"
	"blockdesk/service/servicetest"
)

// TestParticipantsReload: firms come and go with the participants file while the
// program runs, with their limits; a file that is wrong changes nothing.
// Operators see and change it through the command line.
func TestParticipantsReload(t *testing.T) {
	t.Parallel()
	config := programtest.Config(t, "rfq:\n  enabled: false\n")
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
	s := programtest.Start(t, config)
	fix := func(args ...string) string {
		t.Helper()
		out, err := programtest.Run(t, "", nil, append(append([]string{"fix"}, args...), "--data", s.DataDir())...)
		if err != nil {
			t.Fatalf("fix %v: %v: %s", args, err, out)
		}
		return out
	}
	aa, err := fixtest.NewFirm(t, s.Addresses.FIX, programtest.FirmA)
	if err != nil {
		t.Fatal(err)
	}

	const more = `  - {name: CC, number: 3, comp_ids: [CC], password_hash: %q, limits: [{symbol: "*", max_open_orders: 1}]}` + "\n"
	write(string(was) + fmt.Sprintf(more, hash))
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	var cc *fixtest.Firm
	await.True(t, "CC to log on", func() bool {
		cc, err = fixtest.NewFirm(t, s.Addresses.FIX, "CC")
		return err == nil
	})
	if got := cc.Order("a"); got != "0 " {
		t.Errorf("CC's first order: %s", got)
	}
	if got := cc.Order("b"); !strings.HasPrefix(got, "8 ") {
		t.Errorf("CC's second order, past its limit: %s", got)
	}

	// The program finds these changes by itself.
	write(strings.Replace(string(was), "number: 2", "number: 9", 1))
	await.True(t, "the file to be refused", func() bool {
		return strings.Contains(programtest.Get(t, s.Addresses.Admin+"/metrics"), "\nblockdesk_fix_participants_refused 1\n")
	})
	if out := fix("sessions"); !strings.Contains(out, `"BB" has the number 2, not 9`) || !strings.Contains(out, "CC ") {
		t.Errorf("sessions after a refused file: %s", out)
	}
	write(string(was))
	if text := cc.LoggedOut(); !strings.Contains(text, "SESSION_REMOVED") {
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
	if m := aa.Next(); m.Type() != "B" || string(m.Get(148)) != "MAINTENANCE: back at 18:00" {
		t.Errorf("AA got %s", m.Raw())
	}
	if out, err := programtest.Run(t, "", nil, "fix", "reset-seq", programtest.FirmA, "--data", s.DataDir()); err == nil || !strings.Contains(out, "SESSION_STATE (logged_on)") {
		t.Errorf("reset of one that is logged on: %v: %s", err, out)
	}
	fix("kick", programtest.FirmA, "--text", "go away")
	if text := aa.LoggedOut(); !strings.Contains(text, "LOGGED_OUT: go away") {
		t.Errorf("AA was logged out with %s", text)
	}
	if out := fix("reset-seq", programtest.FirmA, "--force"); !strings.Contains(out, programtest.FirmA+" starts at 1") {
		t.Errorf("reset: %s", out)
	}
}
