package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// A log that is followed shows what comes, over the end of a file.
func TestFIXLogFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := func(seq int) string {
		return fmt.Sprintf("2026-03-04T05:06:07.000000008Z in MM 35=0|34=%d|112=x|\n", seq)
	}
	add := func(file, text string) {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, second := "fix-20260304-00000001.log", "fix-20260304-00000002.log"
	add(first, line(1)+line(2)[:20])
	out := &programtest.Buffer{}
	p, err := (&fixLogFlags{}).printer(out, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx, dir, true) }()
	shows := func(seq int) {
		t.Helper()
		await.True(t, fmt.Sprintf("message %d", seq), func() bool {
			return strings.Contains(out.String(), fmt.Sprintf("#%d Heartbeat (0) TestReqID=x", seq))
		})
	}
	shows(1)
	if strings.Contains(out.String(), "#2") {
		t.Error("half a line was shown")
	}
	add(first, line(2)[20:])
	shows(2)
	add(second, line(3)+"2026-03-04T05:06:07.000000008Z lost 4\n")
	shows(3)
	await.True(t, "what is missing", func() bool { return strings.Contains(out.String(), "4 messages are missing") })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines:\n%s", got, out)
	}
	add(second, "nonsense\n")
	if err := p.run(context.Background(), dir, false); err == nil || !strings.Contains(err.Error(), second+":3") {
		t.Errorf("nonsense: %v", err)
	}
}
