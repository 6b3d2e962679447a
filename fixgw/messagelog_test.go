package fixgw

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/messagelog"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/runtest"
)

// A session is in the log from its Logon to its Logout, both ways, without what
// it has proven itself by; a Logon that is refused is not.
func TestMessageLogOfASession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := messagelog.Open(messagelog.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, []string{"MM", "KEY"}, func(o *Options) {
		o.MessageLog = log
		o.Participants[1].Ed25519 = publicText(testKey("KEY"))
	})
	if _, err := fixclient.Dial(t.Context(), fixclient.Options{
		Addr: d.addr(), SenderCompID: "MM", TargetCompID: d.options.CompID, Username: "mm", Password: "mistyped secret",
		Timeout: runtest.HangTimeout,
	}); !errors.Is(err, fixclient.ErrLogout) {
		t.Fatalf("a wrong password: %v", err)
	}
	mm := d.dial("MM", nil)
	mm.order("a", "1", "1", "1.0", "")
	mm.next()
	key := d.dial("KEY", func(o *fixclient.Options) { o.Password, o.Key = "", testKey("KEY") })
	for _, k := range []*client{mm, key} {
		k.leave()
	}
	d.stop()

	files, err := messagelog.Files(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(string(content), "\n")
	lines := strings.Split(text, "\n")
	for _, secret := range []string{sessiontest.Password, "mistyped", "secret", "96=", "554=c"} {
		if i := strings.Index(text, secret); i >= 0 && !strings.HasPrefix(text[i:], "96="+wire.Redacted) {
			t.Errorf("%q is in the log:\n%s", secret, text)
		}
	}
	var seen []string
	for _, line := range lines {
		e, err := wire.ParseLogLine(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		way := "<"
		if e.Out {
			way = ">"
		}
		if e.Lost > 0 || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		if e.CompID == "MM" {
			seen = append(seen, way+e.Get(35))
			if id := e.Get(11); id != "" && id != "a" {
				t.Errorf("ClOrdID %q", id)
			}
		}
	}
	if got := strings.Join(seen, " "); got != "<A >A <D >8 <5 >5" {
		t.Errorf("MM's messages: %s", got)
	}
	if !strings.Contains(text, "554="+wire.Redacted) || !strings.Contains(text, "96="+wire.Redacted) {
		t.Errorf("nothing was hidden:\n%s", text)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, files[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if n := d.gateway.Stats().UnloggedMessages; n != 0 {
		t.Errorf("%d messages were lost", n)
	}
}
