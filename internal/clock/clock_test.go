package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

const (
	second = int64(time.Second)
	hour   = 3600 * second
)

// machine is a computer whose wall clock can be set.
type machine struct{ wallTime, steadyTime int64 }

func (m *machine) wall() int64   { return m.wallTime }
func (m *machine) steady() int64 { return m.steadyTime }

// pass lets time pass, a comparison every tenth of a second.
func (m *machine) pass(c *Clock, seconds int64) {
	for range seconds * ticksPerSecond {
		m.wallTime += second / ticksPerSecond
		m.steadyTime += second / ticksPerSecond
		c.compare()
	}
}

func started(last int64) (*machine, *Clock) {
	m := &machine{wallTime: 1000 * hour, steadyTime: 7}
	return m, newClock(last, m.wall, m.steady)
}

// near checks how far the time is ahead of the wall clock.
func near(t *testing.T, m *machine, c *Clock, want int64) {
	t.Helper()
	if got := c.Now() - m.wallTime; got < want-second/10 || got > want+second/10 {
		t.Errorf("%v ahead of the wall clock, want %v", time.Duration(got), time.Duration(want))
	}
}

// TestDrift: a wall clock that is corrected little by little is followed, and is no jump.
func TestDrift(t *testing.T) {
	m, c := started(0)
	near(t, m, c, 0)
	m.wallTime += MaxStep
	before := c.Now()
	c.compare()
	m.steadyTime += second / ticksPerSecond
	m.wallTime += second / ticksPerSecond
	if step := c.Now() - before - second/ticksPerSecond; c.Jump() != 0 || step != SlowRate/ticksPerSecond {
		t.Errorf("a step of %d, jump %v", step, c.Jump())
	}
	if m.pass(c, 2001); c.Now() != m.wallTime || c.Jump() != 0 {
		t.Errorf("%d ns behind after half an hour", m.wallTime-c.Now())
	}
	m.wallTime -= MaxStep / 2
	if m.pass(c, 1001); c.Now() != m.wallTime {
		t.Errorf("%d ns ahead", c.Now()-m.wallTime)
	}
}

// TestJumps: a wall clock that is set, ahead or back, is reported, moves no deadline by
// more than a half, and the time never stands still.
func TestJumps(t *testing.T) {
	for _, by := range []int64{hour, -hour, MaxStep + 1, -MaxStep - 1} {
		m, c := started(0)
		m.wallTime += by
		before := c.Now()
		m.pass(c, 60)
		if passed := c.Now() - before; passed < 30*second-second/10 || passed > 90*second+second/10 {
			t.Errorf("set by %v: %v pass in a minute", time.Duration(by), time.Duration(passed))
		}
		if by == hour || by == -hour {
			near(t, m, c, -by+by/hour*30*second)
			if got := int64(c.Jump()); got < 0 != (by < 0) || max(got, -got) < hour-31*second {
				t.Errorf("set by %v: jump %v", time.Duration(by), time.Duration(got))
			}
		}
		m.wallTime -= by // right again
		if c.compare(); max(by, -by) > 31*second && c.Jump() == 0 {
			t.Errorf("set by %v and back: the time has moved meanwhile, and agrees", time.Duration(by))
		}
		if m.pass(c, 100); c.Jump() != 0 {
			t.Errorf("set by %v and back: jump %v after 100 s", time.Duration(by), c.Jump())
		}
	}
}

// TestJournalAhead: the time goes on from a journal that was written while the clock was
// ahead, and closes up with the wall clock.
func TestJournalAhead(t *testing.T) {
	m, c := started(1000*hour + 60*second)
	near(t, m, c, 60*second)
	if c.Jump() >= 0 || c.Jumps() != 1 || len(c.Changed()) != 1 {
		t.Errorf("jump %v, %d jumps", c.Jump(), c.Jumps())
	}
	<-c.Changed()
	before := c.Now()
	if m.pass(c, 10); c.Now()-before < 4*second {
		t.Errorf("only %v pass in 10 s", time.Duration(c.Now()-before))
	}
	if m.pass(c, 600); c.Jump() != 0 || c.Jumps() != 1 || len(c.Changed()) != 1 {
		t.Errorf("jump %v after ten minutes, %d jumps", c.Jump(), c.Jumps())
	}
	m, c = started(900 * hour) // a service that was off
	near(t, m, c, 0)
}

// TestNeverBack: whatever is done to the wall clock, and whenever it is compared, the time
// goes on, at half to one and a half times the speed of the monotonic clock.
func TestNeverBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, c := started(0)
		last, lastSteady := c.Now(), m.steadyTime
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			passed := rapid.Int64Range(0, 5*second).Draw(t, "passed")
			m.steadyTime += passed
			m.wallTime += passed
			if rapid.Bool().Draw(t, "set") {
				m.wallTime += rapid.Int64Range(-hour, hour).Draw(t, "by")
			}
			if rapid.Bool().Draw(t, "compare") {
				c.compare()
			}
			now := c.Now()
			steady := m.steadyTime - lastSteady
			if went := now - last; went < 0 || went < steady/2-1 || went > steady+steady/2+1 {
				t.Fatalf("%d ns of %d", went, steady)
			}
			last, lastSteady = now, m.steadyTime
		}
	})
}

// TestMachine: the machine's own clocks, on virtual time.
func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(0)
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		time.Sleep(time.Minute) // sleep: virtual time
		synctest.Wait()
		if got := c.Now(); got != time.Now().UnixNano() || c.Jump() != 0 {
			t.Errorf("%d, want %d", got, time.Now().UnixNano())
		}
		stop()
		synctest.Wait()
		if n := testing.AllocsPerRun(100, func() { c.Now() }); n != 0 {
			t.Errorf("Now allocates %v times", n)
		}
	})
}
