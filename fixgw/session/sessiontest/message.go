// Package sessiontest has what tests of FIX sessions share: messages, participants and
// connections in memory.
package sessiontest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// Message is a received message.
type Message []byte

// Get returns the value of the first field with this tag; empty if there is none.
func (m Message) Get(tag int) string {
	value := ""
	wire.EachField(m, func(t int, v []byte) {
		if t == tag && value == "" {
			value = string(v)
		}
	})
	return value
}

// Pick returns the named fields as "39=0 151=10.00".
func (m Message) Pick(tags ...int) string {
	var b strings.Builder
	for _, tag := range tags {
		fmt.Fprintf(&b, "%d=%s ", tag, m.Get(tag))
	}
	return strings.TrimSuffix(b.String(), " ")
}

func (m Message) String() string { return wiretest.Show(m) }

// Want fails the test unless the message has these fields, such as "39=0 151=10".
func (m Message) Want(t testing.TB, fields string) {
	t.Helper()
	for _, f := range strings.Fields(fields) {
		tag, value, _ := strings.Cut(f, "=")
		n, err := strconv.Atoi(tag)
		if err != nil {
			t.Fatalf("bad expectation %q", f)
		}
		if got := m.Get(n); got != value {
			t.Fatalf("tag %d is %q, want %q in %s", n, got, value, m)
		}
	}
}

// Lines returns the Texts (58) of a News, by their first word.
func (m Message) Lines() map[string]string {
	out := map[string]string{}
	wire.EachField(m, func(tag int, value []byte) {
		if tag == 58 {
			word, rest, _ := strings.Cut(string(value), " ")
			out[word] = rest
		}
	})
	return out
}

// Headline checks that the News is about a claim.
func (m Message) Headline(t testing.TB, claim string) {
	t.Helper()
	if got := m.Get(148); got != "CLAIM "+claim {
		t.Errorf("148=%s, want that of %s in %s", got, claim, m)
	}
}

// Text holds the beginning of Text (58).
func (m Message) Text(t testing.TB, prefix string) {
	t.Helper()
	if got := m.Get(58); len(got) < len(prefix) || got[:len(prefix)] != prefix {
		t.Errorf("58=%s, want %s… in %s", got, prefix, m)
	}
}
