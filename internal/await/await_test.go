package await

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/runtest"
)

// failing records the failure of a helper that ends the test.
type failing struct {
	testing.TB
	text string
}

type ended struct{}

func (f *failing) Helper()                   {}
func (f *failing) Fatal(args ...any)         { f.text = args[0].(string); panic(ended{}) }
func (f *failing) Fatalf(s string, a ...any) { f.text = fmt.Sprintf(s, a...); panic(ended{}) }

// failure returns what a helper says when it gives up, in virtual time.
func failure(t *testing.T, wait func(t testing.TB)) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{TB: t}
		defer func() {
			if _, ok := recover().(ended); ok {
				text = f.text
			}
		}()
		wait(f)
	})
	return text
}

// TestHang: a wait that hangs ends, and says what for, what was there, and how the
// test is run again.
func TestHang(t *testing.T) {
	never := func() bool { return false }
	for name, wait := range map[string]func(testing.TB){
		"True":    func(t testing.TB) { True(t, "the moon", never) },
		"Equal":   func(t testing.TB) { Equal(t, "the moon", 7, func() int { return 3 }) },
		"NoError": func(t testing.TB) { NoError(t, "the moon", func() error { return errors.New("3 days away") }) },
		"Receive": func(t testing.TB) { Receive(t, "the moon", make(chan int)) },
		"Closed":  func(t testing.TB) { Closed(t, "the moon", make(chan int)) },
	} {
		text := failure(t, wait)
		for _, want := range []string{"the moon", "4m0s", "go test ./internal/await", "^TestHang$"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q lacks %q", name, text, want)
			}
		}
		if (name == "Equal" || name == "NoError") && !strings.Contains(text, "3") {
			t.Errorf("%s does not show the last value: %q", name, text)
		}
	}
}

// TestHolds: a wait ends with its condition, not with its deadline.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		calls := 0
		True(t, "the third call", func() bool { calls++; return calls == 3 })
		if took := time.Since(start); calls != 3 || took > time.Millisecond {
			t.Errorf("%d calls in %v", calls, took)
		}
		ch := make(chan int, 1)
		ch <- 5
		if got := Receive(t, "five", ch); got != 5 {
			t.Errorf("received %d", got)
		}
		close(ch)
		Closed(t, "the end", ch)
	})
}

// TestPoll: a goroutine's wait ends with its context.
func TestPoll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Poll(ctx, "the moon", func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait without time: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := Poll(t.Context(), "the moon", func() bool { return false }); err == nil || time.Since(start) < runtest.HangTimeout {
			t.Errorf("a hang: %v after %v", err, time.Since(start))
		}
	})
}

// TestPass: virtual time passes in a bubble, and real time does not pass here.
func TestPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		VirtualSleep(t, time.Hour)
		if took := time.Since(start); took != time.Hour {
			t.Errorf("%v passed", took)
		}
	})
	f := &failing{TB: t}
	defer func() {
		if _, ok := recover().(ended); !ok || f.text == "" {
			t.Error("Pass slept outside of a bubble")
		}
	}()
	VirtualSleep(f, time.Nanosecond)
}
