package main

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

// screen shows reports: as lines, as JSON, or, live, above a prompt with the
// order book redrawn in its place. Any goroutine.
type screen struct {
	out  io.Writer
	json bool
	raw  bool // messages too
	live bool // somebody sits there

	mu       sync.Mutex
	ladder   string // symbol of the book that stands right above the prompt; "" = none does
	rungs    int    // its lines
	from, to int    // sequence numbers that were asked for again; from 0 = none
}

// prompt shows that a command is waited for.
func (s *screen) prompt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
		s.write([]byte(clearLine + promptText))
	}
}

// entered says that somebody has pressed return: nothing stands right above the
// cursor any more.
func (s *screen) entered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ladder = ""
}

// say shows a line of our own.
func (s *screen) say(event, text string) {
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

// appendLadder draws a book: over the one that stands there, or anew. What is
// being typed stays.
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

// expect lets messages from one sequence number to another be shown again; to 0
// is the newest.
func (s *screen) expect(from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.to = from, to
}

// trace shows a message with its secrets hidden, where that is wanted, and what
// has been asked for again.
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
		s.say("gap", fmt.Sprintf("%d to %d are not sent again", seq, m.Int(36)-1))
		return
	}
	for _, r := range fixterm.Again(m) {
		s.report(&r)
	}
}

// write shows bytes. A screen that is gone ends nothing: the orders are not on
// it.
func (s *screen) write(b []byte) {
	_, _ = s.out.Write(b)
}
