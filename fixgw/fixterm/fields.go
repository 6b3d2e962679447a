package fixterm

import (
	"slices"
	"strconv"

	"blockdesk/fixgw/fixclient"
)

// message is a received message's fields, in order.
type message []field

type field struct {
	tag   int
	value string
}

func parse(m *fixclient.Message) message {
	var out message
	m.Fields(func(tag int, value []byte) bool {
		out = append(out, field{tag, printable(value)})
		return true
	})
	return out
}

// printable replaces bytes that could change the terminal's state.
func printable(value []byte) string {
	clean := slices.Clone(value)
	for i, c := range clean {
		if c < ' ' || c > '~' {
			clean[i] = '?'
		}
	}
	return string(clean)
}

// get returns the first value of a tag, or "".
func (m message) get(tag int) string {
	for i := range m {
		if m[i].tag == tag {
			return m[i].value
		}
	}
	return ""
}

func (m message) typ() string { return m.get(35) }

// num returns the first value of a tag as a number, 0 if it is none.
func (m message) num(tag int) int {
	n, err := strconv.Atoi(m.get(tag))
	if err != nil {
		return 0
	}
	return n
}

// names reports whether one of the message's id fields is one of the ids.
func (m message) names(ids []string) bool {
	for i := range m {
		switch m[i].tag {
		case 11, 37, 117, 131, 148, 262, 320, 324, 571, 572, 693:
			if slices.Contains(ids, m[i].value) {
				return true
			}
		}
	}
	return false
}

// groups returns the entries of a repeating group whose entries begin with first.
func (m message) groups(first int) []message {
	var out []message
	start := -1
	for i := range m {
		if m[i].tag != first {
			continue
		}
		if start >= 0 {
			out = append(out, m[start:i])
		}
		start = i
	}
	if start >= 0 {
		out = append(out, m[start:])
	}
	return out
}

// body is a message's fields.
type body []byte

func (b *body) add(tag int, value string) {
	*b = strconv.AppendInt(*b, int64(tag), 10)
	*b = append(append(append(*b, '='), value...), 1)
}
