package console

import (
	"fmt"
	"io"
	"sync"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/fixterm"
	"blockdesk/fixgw/wire"
)

// Control sequences of a terminal (ECMA-48, and DEC's save and restore).
const (
	clearLine     = "\r\x1b[K"
	saveCursor    = "\x1b7"
	restoreCursor = "\x1b8"
	lineUp        = "\x1b[%dF" // to the first column
	promptText    = "> "
)

// screen shows reports as lines, as JSON, or, if live, above a prompt with the order
// book redrawn in its place. Safe for concurrent use.
type screen struct {
	out  io.Writer
	json bool
	raw  bool // messages too
	live bool // a person types below

	mu       sync.Mutex
	ladder   string // symbol of the book right above the prompt; "" = none
	rungs    int    // its lines
	from, to int    // sequence numbers that were requested again; from 0 = none
}

// prompt shows the prompt of a live screen.
func (s *screen) prompt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		s.write([]byte(clearLine + promptText))
	}
}

// entered notes that return was pressed: the book no longer stands right above the
// prompt.
func (s *screen) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ladder = ""
}

// show prints a line of the console itself.
func (s *screen) show(event, text string) {
	s.report(&fixterm.Report{Event: event, Text: text})
}

// report shows one report.
func (s *screen) report(r *fixterm.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b []byte
	switch {
	case s.json:
		b = append(r.AppendJSON(b), '\n')
	case s.live && r.Ladder:
		b = s.appendLadder(b, r)
	default:
		b = append(append(b, r.String()...), '\n')
		for _, line := range r.Lines {
			if !r.Ladder {
				b = append(append(append(b, "  "...), line...), '\n')
			}
		}
		if s.live {
			b = fmt.Appendf(nil, "%s%s%s", clearLine, b, promptText)
			s.ladder = ""
		}
	}
	s.write(b)
}

// appendLadder draws a book over the same book above the prompt, or below it as new.
// The line that is being typed stays.
func (s *screen) appendLadder(dst []byte, r *fixterm.Report) []byte {
	symbol := ""
	for _, v := range r.Values {
		if v.Name == "symbol" {
			symbol = v.Text
		}
	}
	over := s.ladder == symbol && s.rungs == len(r.Lines)+1
	if over {
		dst = fmt.Appendf(append(dst, saveCursor...), lineUp, s.rungs)
	} else {
		dst = append(dst, clearLine...)
	}
	for _, line := range append([]string{r.String()}, r.Lines...) {
		dst = append(append(append(dst, line...), "\x1b[K\n"...), '\r')
	}
	s.ladder, s.rungs = symbol, len(r.Lines)+1
	if over {
		return append(dst, restoreCursor...)
	}
	return append(dst, promptText...)
}

// expect shows resent messages from one sequence number to another; to 0 is the
// newest.
func (s *screen) expect(from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.to = from, to
}

// trace shows a raw message without its secrets, if raw, and messages that were
// requested again.
func (s *screen) trace(sent bool, message []byte) {
	if s.raw {
		r := fixterm.Report{Event: "<", Text: string(wire.AppendLogText(nil, message))}
		if sent {
			r.Event = ">"
		}
		s.report(&r)
	}
	if sent {
		return
	}
	m := fixclient.AsMessage(message)
	s.mu.Lock()
	seq := m.Int(34)
	wanted := s.from > 0 && string(m.Get(43)) == "Y" && seq >= s.from && (s.to == 0 || seq <= s.to)
	s.mu.Unlock()
	if !wanted {
		return
	}
	if m.Type() == "4" {
		s.show("gap", fmt.Sprintf("%d to %d are not sent again", seq, m.Int(36)-1))
		return
	}
	for _, r := range fixterm.Again(m) {
		s.report(&r)
	}
}

// write ignores errors: the session goes on without a screen.
func (s *screen) write(b []byte) {
	_, _ = s.out.Write(b)
}
