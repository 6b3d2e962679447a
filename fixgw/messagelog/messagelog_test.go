package messagelog

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/fixgw/wire"
)

// openLog opens a log in dir.
func openLog(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drain writes what waits, as Run does at its end.
func drain(t *testing.T, l *Log) {
	t.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Run(ended); err != nil {
		t.Fatal(err)
	}
}

// logLines returns all lines of a folder's files, and how many files there are.
func logLines(t *testing.T, dir string) (lines []string, files []string) {
	t.Helper()
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return lines, files
}

// framed makes a whole message of fields written with '|'.
func framed(msgType, fields string) []byte {
	return wire.AppendMessage(nil, wire.Header{MsgType: msgType, Sender: "MM", Target: "DESK", Seq: 7, At: time.Unix(0, 0)},
		[]byte(strings.ReplaceAll(strings.TrimSuffix(fields, "|"), "|", "\x01")))
}

var logDay = time.Date(2026, 3, 4, 23, 59, 59, 999_999_999, time.UTC)

// Whatever a message looks like, what a Logon proves and every password stay out.
func TestMessageLogHidesSecrets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z][!-<>-~]{2,39}`).Draw(t, "secret") + "=S3CRET"
		field := rapid.SampledFrom([]string{
			"554=%s", "0554=%s", "925=%s", "96=%s", "95=3\x0196=a\x01%s", "-554=%s", "554 =%s", "%s",
			"96=\x01%s", "91=%s", "89=%s", "1402=%s", "999999999999=%s", "x=%s",
		}).Draw(t, "field")
		plain := rapid.SampledFrom([]string{"11=id", "55=A/B", "98=0", "8013=N", "35=D", "95=40"})
		var body strings.Builder
		body.WriteString("35=" + rapid.SampledFrom([]string{"A", "BE", "A", ""}).Draw(t, "type") + "\x01")
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			body.WriteString(plain.Draw(t, "field") + "\x01")
		}
		fmt.Fprintf(&body, field+"\x01", secret)
		for range rapid.IntRange(0, 3).Draw(t, "after") {
			body.WriteString(plain.Draw(t, "field") + "\x01")
		}
		if got := string(wire.AppendLogText(nil, []byte(body.String()))); strings.Contains(got, "S3CRET") {
			t.Fatalf("%q is shown as %s", body.String(), got)
		}
	})
	for _, tag := range []string{"554", "925", "91", "89", "1400", "1404"} {
		if got := string(wire.AppendLogText(nil, framed("D", "11=a|"+tag+"=S3CRET|"))); strings.Contains(got, "S3CRET") {
			t.Errorf("tag %s of an order: %s", tag, got)
		}
	}
}

// Text that is no secret comes back byte for byte.
func TestMessageLogLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 0, 30).Filter(func(b []byte) bool { return bytes.IndexByte(b, wire.SOH) < 0 })
		var message []byte
		var want []wire.LogField
		for range rapid.IntRange(1, 5).Draw(t, "fields") {
			v := value.Draw(t, "value")
			message = append(append(append(message, "58="...), v...), wire.SOH)
			want = append(want, wire.LogField{Tag: 58, Value: string(v)})
		}
		message = append([]byte("35=D\x01"), message...)
		line := string(wire.AppendLogLine(nil, logDay, wire.Sent, []byte("MM"), message))
		if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("no one line: %q", line)
		}
		e, err := wire.ParseLogLine(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if !e.At.Equal(logDay) || !e.Out || e.CompID != "MM" || len(e.Fields) != len(want)+1 {
			t.Fatalf("%+v", e)
		}
		for i, f := range want {
			if e.Fields[i+1] != f {
				t.Fatalf("%+v became %+v", f, e.Fields[i+1])
			}
		}
	})
}

// A file ends by size and by day, the oldest go, and a later start goes on.
func TestMessageLogRotates(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "fix-notes.log") // not the log's, and stays
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, FileBytes: 64 << 10, KeepFiles: 3}
	l := openLog(t, o)
	big := framed("D", "58="+strings.Repeat("x", 40<<10)+"|")
	small := framed("0", "")
	for range 6 { // two fill a file
		l.Record(wire.Received, "MM", logDay, big)
	}
	l.Record(wire.Received, "MM", logDay.Add(time.Nanosecond), small)    // the next day
	l.Record(wire.Received, "MM", logDay.Add(-2*time.Nanosecond), small) // a late message does not reopen the old day
	drain(t, l)
	l = openLog(t, o)
	l.Record(wire.Sent, "MM", logDay.Add(time.Hour), small)
	drain(t, l)

	_, files := logLines(t, dir)
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	want := "fix-20260304-00000003.log fix-20260305-00000004.log fix-20260305-00000005.log"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if text, err := os.ReadFile(files[1]); err != nil || bytes.Count(text, []byte("\n")) != 2 {
		t.Errorf("the new day's file: %q, %v", text, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() < 80<<10 || info.Size() > 90<<10 {
		t.Errorf("a full file: %v, %v", info.Size(), err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// A message that does not fit into the queue is lost, and the file has the number of them.
func TestMessageLogQueueIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir, QueueBytes: 4 << 10})
	m := framed("0", "")
	room := (4 << 10) / (entryHead + len("MM") + len(m))
	for range room {
		l.Record(wire.Received, "MM", logDay, m)
	}
	if n := l.Lost(); n != 0 {
		t.Fatalf("%d lost below the limit", n)
	}
	for range 3 {
		l.Record(wire.Received, "MM", logDay, m)
	}
	drain(t, l)
	l.Record(wire.Received, "MM", logDay, m) // there is room again
	drain(t, l)
	lines, _ := logLines(t, dir)
	if len(lines) != room+2 || l.Lost() != 3 {
		t.Fatalf("%d lines for %d messages, %d lost", len(lines), room+1, l.Lost())
	}
	if e, err := wire.ParseLogLine(lines[room]); err != nil || e.Lost != 3 || !e.At.Equal(logDay) {
		t.Errorf("%+v, %v: %s", e, err, lines[room])
	}
}

// A failing disk loses messages, is logged once, and is tried again.
func TestMessageLogSurvivesItsDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	var logged bytes.Buffer
	l := openLog(t, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	m := framed("0", "")
	for range 3 {
		l.Record(wire.Received, "MM", logDay, m)
		drain(t, l)
	}
	if l.Lost() != 3 || strings.Count(logged.String(), "ERROR") != 1 {
		t.Errorf("%d lost, logged: %s", l.Lost(), &logged)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l.retryAt = time.Time{}
	l.Record(wire.Received, "MM", logDay, m)
	drain(t, l)
	if lines, _ := logLines(t, dir); len(lines) != 1 || l.Lost() != 3 {
		t.Errorf("%d lines, %d lost", len(lines), l.Lost())
	}
}

func TestMessageLogOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no folder":      {},
		"small file":     {Dir: "x", FileBytes: 64<<10 - 1},
		"large file":     {Dir: "x", FileBytes: 4<<30 + 1},
		"no file":        {Dir: "x", KeepFiles: -1},
		"too many files": {Dir: "x", KeepFiles: 10_001},
		"small queue":    {Dir: "x", QueueBytes: 4<<10 - 1},
		"large queue":    {Dir: "x", QueueBytes: 1<<30 + 1},
	} {
		if _, err := Open(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := (Options{Dir: "x"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestPause: a log that is paused loses messages, and says how many.
func TestPause(t *testing.T) {
	(*Log)(nil).Pause(true)
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir})
	at := time.Unix(1_790_000_000, 0)
	for n := range 5 {
		l.Pause(n == 1 || n == 2)
		l.Record(wire.Received, "MM", at, framed("D", fmt.Sprintf("11=%d|", n)))
	}
	drain(t, l)
	lines, _ := logLines(t, dir)
	if l.Lost() != 2 || len(lines) != 4 || !strings.Contains(strings.Join(lines, " "), "lost 2") {
		t.Errorf("%d lost: %q", l.Lost(), lines)
	}
}
