package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// barEvery is how often a bar is drawn anew, lineEvery how often a line is
	// written where there is no terminal.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	// maxBar is how wide the bar itself gets, in columns; below minBar it is left out.
	maxBar, minBar = 30, 8
)

// measure is what long work counts.
type measure uint8

const (
	inCommands measure = iota + 1
	inBytes
	inSteps
	inTime // no more is known than that it goes on
)

// bar tells a person how far long work has come: on a terminal by a line that is
// drawn anew, elsewhere by a line now and then. It writes to standard error, never
// to the answer. Its methods may be called by several goroutines.
type bar struct {
	out     io.Writer
	label   string
	measure measure
	width   func() int // columns of the terminal; nil: there is none
	now     func() time.Time
	began   time.Time

	mu          sync.Mutex // guards what follows
	done, total uint64
	told        time.Time // when it was last drawn or written
	drawn       bool      // there is something of it on the terminal
}

// newBar makes a bar; with --json it writes lines.
func (s *settings) newBar(w io.Writer, label string, m measure) *bar {
	b := &bar{out: w, label: label, measure: m, now: time.Now}
	b.began = b.now()
	b.told = b.began
	if file, ok := w.(*os.File); ok && !s.json && term.IsTerminal(int(file.Fd())) {
		b.width = func() int {
			columns, _, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return helpColumns
			}
			return columns
		}
	}
	return b
}

// quietOn draws nothing where the answer goes to the same terminal, line by line.
func (b *bar) quietOn(answer io.Writer) *bar {
	if file, ok := answer.(*os.File); ok && b.width != nil && term.IsTerminal(int(file.Fd())) {
		b.out, b.width = io.Discard, nil
	}
	return b
}

// set says how far the work is, and shows it where it is time to. It returns the
// error of ctx, which ends the work.
func (b *bar) set(ctx context.Context, done, total uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
	if done < total {
		b.show()
	} else {
		b.clear()
	}
	return ctx.Err()
}

// progress is set as a callback of the rooms.
func (b *bar) progress(ctx context.Context) func(done, total uint64) error {
	return func(done, total uint64) error { return b.set(ctx, done, total) }
}

// show draws or writes where it is time to.
func (b *bar) show() {
	now := b.now()
	every := lineEvery
	if b.width != nil {
		every = barEvery
	}
	if now.Sub(b.told) < every {
		return
	}
	b.told = now
	if b.width == nil {
		fmt.Fprintln(b.out, b.line(0))
		return
	}
	fmt.Fprint(b.out, "\r"+b.line(b.width())+"\x1b[K")
	b.drawn = true
}

// end takes the bar off the terminal.
func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

func (b *bar) clear() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}

// run does work and shows that time passes meanwhile, whether it says how far it is
// or not. It returns when both have ended.
func (b *bar) run(work func() error) error {
	stop := make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() {
		tick := time.NewTicker(barEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				b.mu.Lock()
				b.show()
				b.mu.Unlock()
			}
		}
	})
	defer b.end()
	defer joined.Wait()
	defer close(stop)
	return work()
}

// line is what is shown, in at most columns where that is not 0: what says least is
// left out first.
func (b *bar) line(columns int) string {
	elapsed := b.now().Sub(b.began)
	percent, amount, left := "", "", shortSpan(elapsed)
	if b.total > 0 && b.measure != inTime {
		share := min(float64(b.done)/float64(b.total), 1)
		percent = fmt.Sprintf("%3.0f %%", 100*share)
		amount = b.measure.text(b.done) + " of " + b.measure.text(b.total)
		if b.done > 0 && elapsed > 0 {
			rate := float64(b.done) / elapsed.Seconds()
			if b.measure != inSteps {
				amount += ", " + b.measure.text(uint64(rate)) + "/s"
			}
			left = shortSpan(time.Duration(float64(b.total-min(b.done, b.total))/rate*float64(time.Second))) + " left"
		}
	}
	parts := []string{b.label, percent, amount, left}
	join := func() string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }
	if columns == 0 {
		return join()
	}
	columns-- // the last column wraps on some terminals
	if room := min(columns-len(join())-3, maxBar); percent != "" && room >= minBar {
		full := int(float64(room) * min(float64(b.done)/float64(b.total), 1))
		parts[0] += " [" + strings.Repeat("#", full) + strings.Repeat(".", room-full) + "]"
	}
	for _, drop := range []int{2, 3, 0} {
		if len(join()) > columns {
			parts[drop] = ""
		}
	}
	text := join()
	return text[:min(len(text), max(columns, 0))]
}

// text is an amount in the measure's units.
func (m measure) text(n uint64) string {
	if m == inBytes {
		value, unit := float64(n), 0
		for value >= 1000 && unit < 4 {
			value, unit = value/1000, unit+1
		}
		if unit == 0 {
			return fmt.Sprintf("%d B", n)
		}
		return fmt.Sprintf("%.1f %cB", value, " kMGT"[unit])
	}
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.2fM", float64(n)/1e6)
}

// shortSpan is a time without fractions of a second.
func shortSpan(d time.Duration) string { return d.Round(time.Second).String() }
