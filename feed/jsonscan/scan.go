// Package jsonscan reads JSON of clients without allocation, for requests on the
// WebSocket, where encoding/json would allocate for each message.
//
// A Scanner walks the text once and calls back for members and elements. It accepts
// exactly the grammar of RFC 8259 and only valid UTF-8. It does not bound what it reads:
// the caller limits the size of the text, passes a depth to Skip, and decides about
// repeated names. After the first false the position is undefined. Results alias the text.
// Not for concurrent use.
package jsonscan

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner parses a client's JSON strictly by RFC 8259: nothing outside of the grammar, and
// valid UTF-8. Its methods return false at the first error,
// after which the position is undefined. They do not allocate, and their results alias
// data.
type Scanner struct {
	data []byte
	Pos  int // may be set back to where it was
}

// New returns a scanner of data.
func New(data []byte) *Scanner { return &Scanner{data: data} }

// Peek skips white space and returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.Pos < len(s.data) {
		switch c := s.data[s.Pos]; c {
		case ' ', '\t', '\n', '\r':
			s.Pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, after white space.
func (s *Scanner) take(c byte) bool {
	if s.Peek() != c || s.Pos >= len(s.data) {
		return false
	}
	s.Pos++
	return true
}

// Text consumes a string and returns it with its quotes.
func (s *Scanner) Text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	start := s.Pos - 1
	for s.Pos < len(s.data) {
		switch c := s.data[s.Pos]; {
		case c == '"':
			s.Pos++
			return s.data[start:s.Pos], true
		case c == '\\':
			if !s.escape() {
				return nil, false
			}
		case c < ' ':
			return nil, false
		case c < utf8.RuneSelf:
			s.Pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.Pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, false
			}
			s.Pos += size
		}
	}
	return nil, false
}

func (s *Scanner) escape() bool {
	if s.Pos+1 >= len(s.data) {
		return false
	}
	switch s.data[s.Pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.Pos += 2
		return true
	case 'u':
		if s.Pos+6 > len(s.data) {
			return false
		}
		_, ok := hex4(s.data[s.Pos+2 : s.Pos+6])
		s.Pos += 6
		return ok
	default:
		return false
	}
}

func hex4(digits []byte) (rune, bool) {
	var r rune
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// Number consumes a number and returns it.
func (s *Scanner) Number() ([]byte, bool) {
	s.Peek()
	start := s.Pos
	s.accept('-')
	switch {
	case s.accept('0'):
	case s.digits():
	default:
		return nil, false
	}
	if s.accept('.') && !s.digits() {
		return nil, false
	}
	if s.accept('e') || s.accept('E') {
		if !s.accept('+') {
			s.accept('-')
		}
		if !s.digits() {
			return nil, false
		}
	}
	return s.data[start:s.Pos], true
}

func (s *Scanner) accept(c byte) bool {
	if s.Pos >= len(s.data) || s.data[s.Pos] != c {
		return false
	}
	s.Pos++
	return true
}

func (s *Scanner) digits() bool {
	start := s.Pos
	for s.Pos < len(s.data) && s.data[s.Pos] >= '0' && s.data[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos > start
}

// Word consumes a literal.
func (s *Scanner) Word(w string) bool {
	s.Peek()
	if len(s.data)-s.Pos < len(w) || string(s.data[s.Pos:s.Pos+len(w)]) != w {
		return false
	}
	s.Pos += len(w)
	return true
}

// Skip consumes any value of at most depth levels.
func (s *Scanner) Skip(depth int) bool {
	switch c := s.Peek(); c {
	case '{':
		return depth > 0 && s.Object(func([]byte) bool { return s.Skip(depth - 1) })
	case '[':
		return depth > 0 && s.Array(func() bool { return s.Skip(depth - 1) })
	case '"':
		_, ok := s.Text()
		return ok
	case 't':
		return s.Word("true")
	case 'f':
		return s.Word("false")
	case 'n':
		return s.Word("null")
	default:
		_, ok := s.Number()
		return ok
	}
}

// Object consumes an object. It calls value with each name in quotes; value must consume
// the member's value.
func (s *Scanner) Object(value func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		name, ok := s.Text()
		if !ok || !s.take(':') || !value(name) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// Array consumes an array; value must consume each element.
func (s *Scanner) Array(value func() bool) bool {
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		return true
	}
	for {
		if !value() {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// End reports whether only white space is left.
func (s *Scanner) End() bool { s.Peek(); return s.Pos == len(s.data) }

// Unquote appends the value of a JSON string to dst. A lone surrogate becomes U+FFFD.
func Unquote(dst, text []byte) []byte {
	body := text[1 : len(text)-1]
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			dst = append(dst, body[i])
			continue
		}
		i++
		switch c := body[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(body[i+1 : i+5])
			i += 4
			if utf16.IsSurrogate(r) {
				r, i = surrogatePair(body, r, i)
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// surrogatePair decodes high, whose escape ends at body[i], with the low surrogate that
// may follow it.
func surrogatePair(body []byte, high rune, i int) (rune, int) {
	if i+6 < len(body) && body[i+1] == '\\' && body[i+2] == 'u' {
		low, _ := hex4(body[i+3 : i+7])
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, i + 6
		}
	}
	return utf8.RuneError, i
}
