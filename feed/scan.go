package feed

import (
	"unicode/utf16"
	"unicode/utf8"
)

// scanner parses a client's JSON strictly by RFC 8259: nothing outside of the grammar,
// valid UTF-8, at most maxDepthJSON levels. Its methods return false at the first error,
// after which the position is undefined. They do not allocate, and their results alias
// data.
type scanner struct {
	data []byte
	pos  int
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, after white space.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.pos >= len(s.data) {
		return false
	}
	s.pos++
	return true
}

// text consumes a string and returns it with its quotes.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	start := s.pos - 1
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.data[start:s.pos], true
		case c == '\\':
			if !s.escape() {
				return nil, false
			}
		case c < ' ':
			return nil, false
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, false
			}
			s.pos += size
		}
	}
	return nil, false
}

func (s *scanner) escape() bool {
	if s.pos+1 >= len(s.data) {
		return false
	}
	switch s.data[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return true
	case 'u':
		if s.pos+6 > len(s.data) {
			return false
		}
		_, ok := hex4(s.data[s.pos+2 : s.pos+6])
		s.pos += 6
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

// number consumes a number and returns it.
func (s *scanner) number() ([]byte, bool) {
	s.peek()
	start := s.pos
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
	return s.data[start:s.pos], true
}

func (s *scanner) accept(c byte) bool {
	if s.pos >= len(s.data) || s.data[s.pos] != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) word(w string) bool {
	s.peek()
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// skip consumes any value of at most depth levels.
func (s *scanner) skip(depth int) bool {
	switch c := s.peek(); c {
	case '{':
		return depth > 0 && s.object(func([]byte) bool { return s.skip(depth - 1) })
	case '[':
		return depth > 0 && s.array(func() bool { return s.skip(depth - 1) })
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		_, ok := s.number()
		return ok
	}
}

// object consumes an object. It calls value with each name in quotes; value must consume
// the member's value.
func (s *scanner) object(value func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		name, ok := s.text()
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

// array consumes an array; value must consume each element.
func (s *scanner) array(value func() bool) bool {
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

// end reports whether only white space is left.
func (s *scanner) end() bool { s.peek(); return s.pos == len(s.data) }

// unquote appends the value of a JSON string to dst. A lone surrogate becomes U+FFFD.
func unquote(dst, text []byte) []byte {
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
