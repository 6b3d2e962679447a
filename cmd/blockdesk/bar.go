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
	// barEvery is the time between two drawings of a bar, lineEvery between two lines if
	// there is no terminal.
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	// maxBar is the largest width of the bar itself, in columns; below minBar it is omitted.
	maxBar, minBar = 30, 8
)

// measure is the unit of progress.
type measure uint8

const (
	inCommands measure = iota + 1
	inBytes
	inSteps
	inTime // elapsed time only
)

// bar shows the progress of long work: on a terminal as a line that is redrawn, elsewhere as
// a line every 10 seconds. It writes to standard error, never to the answer. Safe for
// concurrent use.
type bar struct {
	out     io.Writer
	label   string
	measure measure
	width   func() int // columns of the terminal; nil: no terminal
	now     func() time.Time
	began   time.Time

	mu          sync.Mutex // guards the fields below
	done, total uint64
	shown       time.Time // last time
	drawn       bool      // the terminal shows it
}

// newBar returns a bar; with --json it writes lines.
func (s *settings) newBar(w io.Writer, label string, m measure) *bar {
	b := &bar{out: w, label: label, measure: m, now: time.Now}
	b.began = b.now()
	b.shown = b.began
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

// quietOn disables the bar if the answer goes to the same terminal, line by line.
func (b *bar) quietOn(answer io.Writer) *bar {
	if file, ok := answer.(*os.File); ok && b.width != nil && term.IsTerminal(int(file.Fd())) {
		b.out, b.width = io.Discard, nil
	}
	return b
}

// set sets the progress and shows it if it is time. It returns the error of ctx, which ends
// the work.
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

// progress returns set as a callback.
func (b *bar) progress(ctx context.Context) func(done, total uint64) error {
	return func(done, total uint64) error { return b.set(ctx, done, total) }
}

// show draws or writes if it is time.
func (b *bar) show() {
	now := b.now()
	every := lineEvery
	if b.width != nil {
		every = barEvery
	}
	if now.Sub(b.shown) < every {
		return
	}
	b.shown = now
	if b.width == nil {
		fmt.Fprintln(b.out, b.line(0))
		return
	}
	fmt.Fprint(b.out, "\r"+b.line(b.width())+"\x1b[K")
	b.drawn = true
}

// end removes the bar from the terminal.
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

// run runs work and shows the bar meanwhile.
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

// line returns the text, in at most columns if that is not 0; the least useful part is
// dropped first.
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

// text returns an amount in the measure's unit.
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

// shortSpan returns a duration without fractions of a second.
func shortSpan(d time.Duration) string { return d.Round(time.Second).String() }
