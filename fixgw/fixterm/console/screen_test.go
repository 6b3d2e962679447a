package console

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"blockdesk/fixgw/fixterm"
)

// A book is redrawn in its place, and the line that is being typed stays below it.
func TestScreenRedraws(t *testing.T) {
	out := &bytes.Buffer{}
	s := &screen{out: out, live: true}
	book := func(symbol string) *fixterm.Report {
		return &fixterm.Report{Event: "book", Ladder: true, Lines: []string{"ask", "bid"}, Values: []fixterm.Value{{Name: "symbol", Text: symbol}}}
	}
	s.prompt()
	s.report(book("A/B"))
	s.report(book("A/B")) // over the first
	s.show("accepted", "an order")
	s.report(book("A/B")) // anew: something stands between
	s.report(book("C/D")) // anew: another book
	s.entered()
	s.report(book("C/D")) // anew: a line was typed
	text := out.String()
	if n := strings.Count(text, fmt.Sprintf(lineUp, 3)); n != 1 {
		t.Errorf("drawn over %d times: %q", n, text)
	}
	if strings.Count(text, saveCursor) != 1 || strings.Count(text, restoreCursor) != 1 {
		t.Errorf("%q", text)
	}
	if !regexp.MustCompile(`accepted   an order\n> `).MatchString(text) {
		t.Errorf("no prompt after a report: %q", text)
	}
}
