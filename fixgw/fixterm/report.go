package fixterm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// Report is one thing to show.
type Report struct {
	// Event is what has happened, in a word or two: accepted, filled, refused.
	Event string
	// Time is a UTCTimestamp as FIX writes it; "" = not of a moment.
	Time string
	// Refused reports that a request of this side was refused.
	Refused bool
	// Again reports that the message is a repetition (43=Y or 97=Y).
	Again bool
	// Code is the machine-readable code at the front of Text; "" = none.
	Code string
	Text string // the message's own words, with the code
	// Values are the facts, by name, in a fixed order.
	Values []Value
	// Lines follow the report's own line.
	Lines []string
	// Ladder reports that Lines is a book, which replaces the one before.
	Ladder bool

	sentence string // for a person; without Text
}

// Value is one fact of a report.
type Value struct{ Name, Text string }

// add adds a fact, unless text is empty.
func (r *Report) add(name, text string) {
	if text != "" {
		r.Values = append(r.Values, Value{name, text})
	}
}

// String returns the report's own line, without Lines.
func (r *Report) String() string {
	var b strings.Builder
	if r.Time != "" {
		_, clock, _ := strings.Cut(r.Time, "-")
		fmt.Fprintf(&b, "%-12s ", clock)
	}
	fmt.Fprintf(&b, "%-10s", r.Event)
	if r.sentence != "" {
		b.WriteString(" " + r.sentence)
	}
	if r.Text != "" {
		b.WriteString(" " + r.Text)
	}
	if r.Again {
		b.WriteString(" [again]")
	}
	return strings.TrimRight(b.String(), " ")
}

// AppendJSON appends the report as one object, without a newline: event, time,
// refused, again, code and text where they are, the facts, lines.
func (r *Report) AppendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"event":`...), r.Event)
	member := func(name, value string) {
		if value != "" {
			dst = appendString(append(appendString(append(dst, ','), name), ':'), value)
		}
	}
	member("time", r.Time)
	if r.Refused {
		dst = append(dst, `,"refused":true`...)
	}
	if r.Again {
		dst = append(dst, `,"again":true`...)
	}
	member("code", r.Code)
	member("text", r.Text)
	for _, v := range r.Values {
		member(v.Name, v.Text)
	}
	if len(r.Lines) > 0 {
		dst = append(dst, `,"lines":[`...)
		for i, line := range r.Lines {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, line)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // a string always has a form
		return append(dst, `""`...)
	}
	return append(dst, text...)
}

// codeOf returns the code at the front of a text: it stands alone or before a colon.
func codeOf(text string) string {
	word, _, _ := strings.Cut(text, ":")
	if strings.ContainsAny(word, " ,.()'") {
		return ""
	}
	return word
}

// begin returns the report of a message, with its text.
func begin(m message, event string) Report {
	text := m.get(58)
	at := m.get(60)
	if at == "" {
		at = m.get(52)
	}
	r := Report{
		Event: event, Time: at, Text: text, Code: codeOf(text),
		Again: m.get(43) == "Y" || m.get(97) == "Y",
	}
	r.add("msg_type", m.typ())
	return r
}

func sideWord(side string) string {
	return cmp.Or(map[string]string{
		"1": "buy", "2": "sell",
	}[side], "side "+side)
}

func tifWord(tif string) string {
	return map[string]string{
		"0": "day", "1": "gtc", "3": "ioc", "4": "fok", "6": "gtd",
	}[tif]
}

// statusWord returns OrdStatus (39) in words.
func statusWord(status string) string {
	return cmp.Or(map[string]string{
		"0": "open", "1": "partly filled", "2": "filled", "4": "cancelled", "6": "being cancelled",
		"8": "refused", "A": "pending", "C": "expired", "E": "being amended",
	}[status], "status "+status)
}

func one(r Report) []Report { return []Report{r} }

func atPrice(price string) string {
	if price == "" {
		return ""
	}
	return " at " + short(price)
}

// short returns a decimal without trailing zeros, for display. The Values keep them.
func short(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}

// clock returns the time of day of a UTCTimestamp.
func clock(stamp string) string {
	if _, after, ok := strings.Cut(stamp, "-"); ok {
		return after
	}
	return stamp
}
