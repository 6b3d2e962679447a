package wire

import (
	"bytes"
	"unicode/utf8"
)

const (
	MaxMembers     = 8                            // members of a table
	MaxMemberValue = 96                           // bytes of a value: a base58 signature has 88
	MaxLongValue   = (MaxTransaction + 2) / 3 * 4 // bytes of a LongMember: a transaction in base64
	// maxNesting bounds the nesting of a body. The object itself is level 1; a valid
	// body has no level 2.
	maxNesting = 16
)

// memberKind is the JSON type of a member's value.
type memberKind uint8

const (
	TextMember    memberKind = iota + 1 // a string
	IntegerMember                       // a string, or a whole number without sign
	LongMember                          // a string of up to MaxLongValue bytes; at most one per table
)

// Member describes one member of a body.
type Member struct {
	Name     string
	Kind     memberKind
	MaxLen   int // bytes of the value once decoded, at most MaxMemberValue; of a LongMember, at most MaxLongValue
	Optional bool
	// EmptyIsAbsent: "" counts as not sent; otherwise it is an error.
	EmptyIsAbsent bool
}

// Members are the decoded values of one body, in the order of its member table.
// Decoding allocates only for a LongMember.
type Members struct {
	text [MaxMembers][MaxMemberValue]byte
	long []byte          // value of the table's LongMember
	size [MaxMembers]int // 0 = absent
	seen [MaxMembers]bool
	kind [MaxMembers]memberKind // of the members that were seen
}

// Get returns a value, or nil if it is absent. It aliases m.
func (m *Members) Get(i int) []byte {
	switch {
	case m.size[i] == 0:
		return nil
	case m.kind[i] == LongMember:
		return m.long[:m.size[i]]
	default:
		return m.text[i][:m.size[i]]
	}
}

// buffer returns the memory for the value of a member.
func (m *Members) buffer(i int, of *Member) []byte {
	if m.kind[i] = of.Kind; of.Kind != LongMember {
		return m.text[i][:]
	}
	m.long = make([]byte, of.MaxLen)
	return m.long
}

// DecodeObject decodes a body that must be a single flat JSON object in UTF-8 with
// members of the table, each at most once. It is stricter than encoding/json, so that
// all parsers agree on the values of an accepted body. A null member counts as absent.
//
// Time is linear in the body; memory does not depend on it. A body that is not JSON is
// INVALID_JSON. Otherwise the first invalid member decides, then the first missing one.
// m must be the zero value.
func DecodeObject(body []byte, table []Member, m *Members) *Problem {
	s := scanner{rest: body}
	if reason := s.object(table, m); reason != "" {
		return invalidJSON(reason)
	}
	if s.wrong != nil {
		return s.wrong
	}
	for i := range table {
		if m.size[i] == 0 && !table[i].Optional {
			return MissingMember(table[i].Name)
		}
	}
	return nil
}

// PeekObject reads the members of the table from a body and ignores all others. It reports
// whether the body is a JSON object, as DecodeObject, which refuses the wrong members later.
func PeekObject(body []byte, table []Member, m *Members) bool {
	s := scanner{rest: body, peeks: true}
	return s.object(table, m) == ""
}

// Reasons of INVALID_JSON.
const (
	EmptyBody     = "empty_body"
	ByteOrderMark = "byte_order_mark"
	NotAnObject   = "not_an_object"
	BadSyntax     = "syntax"
	TooDeep       = "too_deep"
	InvalidUTF8   = "invalid_utf8"
	LoneSurrogate = "lone_surrogate"
	TrailingData  = "trailing_data"
)

// scanner reads JSON from the left. Its methods return the reason why the text is not
// JSON, or "".
type scanner struct {
	rest  []byte
	wrong *Problem // the first invalid member; nil = none so far
	peeks bool     // wrong is not recorded, because the caller does not read it
}

// flag records an invalid member.
func (s *scanner) flag(name, reason string) {
	if s.wrong == nil && !s.peeks {
		s.wrong = InvalidMember(name, reason)
	}
}

// space drops white space and returns the byte after it, 0 at the end.
func (s *scanner) space() byte {
	for i, c := range s.rest {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.rest = s.rest[i:]
			return c
		}
	}
	s.rest = nil
	return 0
}

// take skips white space, and then the next byte if it is c.
func (s *scanner) take(c byte) bool {
	if s.space() != c || c == 0 {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// object reads the whole body.
func (s *scanner) object(table []Member, m *Members) string {
	if bytes.HasPrefix(s.rest, []byte("\xef\xbb\xbf")) {
		return ByteOrderMark
	}
	switch s.space(); {
	case len(s.rest) == 0:
		return EmptyBody
	case !s.take('{'):
		return NotAnObject
	}
	for more := !s.take('}'); more; {
		if reason := s.member(table, m); reason != "" {
			return reason
		}
		if more = s.take(','); !more && !s.take('}') {
			return BadSyntax
		}
	}
	if s.space(); len(s.rest) > 0 {
		return TrailingData
	}
	return ""
}

// member reads a name and its value.
func (s *scanner) member(table []Member, m *Members) string {
	var buf [MaxMemberValue]byte
	if s.space() != '"' {
		return BadSyntax
	}
	size, reason := s.text(buf[:])
	if reason != "" {
		return reason
	}
	if !s.take(':') {
		return BadSyntax
	}
	at := -1
	for i := range table {
		if size <= len(buf) && string(buf[:size]) == table[i].Name {
			at = i
		}
	}
	switch {
	case at < 0:
		if s.wrong == nil && !s.peeks {
			s.wrong = UnknownMember(buf[:min(size, len(buf))])
		}
		return s.skip()
	case m.seen[at]:
		s.flag(table[at].Name, "repeated")
		return s.skip()
	}
	m.seen[at] = true
	return s.value(&table[at], m.buffer(at, &table[at]), &m.size[at])
}

// value reads the value of a known member.
func (s *scanner) value(of *Member, dst []byte, size *int) string {
	switch c := s.space(); {
	case c == '"':
		n, reason := s.text(dst)
		switch {
		case reason != "":
			return reason
		case n == 0 && of.EmptyIsAbsent:
		case n == 0:
			s.flag(of.Name, "empty")
		case n > of.MaxLen:
			s.flag(of.Name, "too_long")
		default:
			*size = n
		}
		return ""
	case c == 'n':
		return s.literal("null")
	case of.Kind == IntegerMember && (c == '-' || c >= '0' && c <= '9'):
		digits := s.rest
		whole, reason := s.number()
		digits = digits[:len(digits)-len(s.rest)]
		switch {
		case reason != "":
			return reason
		case !whole:
			s.flag(of.Name, "not_whole")
		case len(digits) > of.MaxLen:
			s.flag(of.Name, "too_long")
		default:
			*size = copy(dst, digits)
		}
		return ""
	default:
		s.flag(of.Name, "wrong_type")
		return s.skip()
	}
}

// skip reads and discards the value of a member: a scalar, or a container of level 2.
func (s *scanner) skip() string {
	var objects uint32 // bit n: level n is an object
	const outside = 1
	for level := outside; ; {
		c := s.space()
		switch c {
		case '{', '[':
			if level++; level > maxNesting {
				return TooDeep
			}
			s.rest = s.rest[1:]
			objects &^= 1 << level
			if c == '{' {
				objects |= 1 << level
			}
			if s.take(c + 2) { // the closing brace or bracket
				level--
				break
			}
			if c == '{' {
				if reason := s.name(); reason != "" {
					return reason
				}
			}
			continue
		default:
			if reason := s.scalar(c); reason != "" {
				return reason
			}
		}
		// A value has ended; its containers may end too.
		for closed := true; closed; {
			if level == outside {
				return ""
			}
			isObject := objects&(1<<level) != 0
			switch {
			case s.take(','):
				closed = false
				if isObject {
					if reason := s.name(); reason != "" {
						return reason
					}
				}
			case isObject && s.take('}'), !isObject && s.take(']'):
				level--
			default:
				return BadSyntax
			}
		}
	}
}

// name reads and discards a member's name and its colon.
func (s *scanner) name() string {
	if s.space() != '"' {
		return BadSyntax
	}
	if _, reason := s.text(nil); reason != "" {
		return reason
	}
	if !s.take(':') {
		return BadSyntax
	}
	return ""
}

// scalar reads and discards a value that is no container and begins with c.
func (s *scanner) scalar(c byte) string {
	switch {
	case c == '"':
		_, reason := s.text(nil)
		return reason
	case c == '-' || c >= '0' && c <= '9':
		_, reason := s.number()
		return reason
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	default:
		return s.literal("null")
	}
}

func (s *scanner) literal(word string) string {
	if !bytes.HasPrefix(s.rest, []byte(word)) {
		return BadSyntax
	}
	s.rest = s.rest[len(word):]
	return ""
}

// digits skips decimal digits and returns their number.
func (s *scanner) digits() int {
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	s.rest = s.rest[n:]
	return n
}

// number reads a number. whole reports that it consists of digits only.
func (s *scanner) number() (whole bool, reason string) {
	whole = true
	if s.rest[0] == '-' {
		whole, s.rest = false, s.rest[1:]
	}
	zero := len(s.rest) > 0 && s.rest[0] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return false, BadSyntax
	}
	if len(s.rest) > 0 && s.rest[0] == '.' {
		whole, s.rest = false, s.rest[1:]
		if s.digits() == 0 {
			return false, BadSyntax
		}
	}
	if len(s.rest) > 0 && s.rest[0]|0x20 == 'e' {
		whole, s.rest = false, s.rest[1:]
		if len(s.rest) > 0 && (s.rest[0] == '+' || s.rest[0] == '-') {
			s.rest = s.rest[1:]
		}
		if s.digits() == 0 {
			return false, BadSyntax
		}
	}
	return whole, ""
}

// text reads the string that begins at the next byte into dst. size is its full
// length; bytes that do not fit into dst are discarded.
func (s *scanner) text(dst []byte) (size int, reason string) {
	s.rest = s.rest[1:]
	for len(s.rest) > 0 {
		c := s.rest[0]
		switch {
		case c == '"':
			s.rest = s.rest[1:]
			return size, ""
		case c == '\\':
			r, reason := s.escape()
			if reason != "" {
				return 0, reason
			}
			var utf [utf8.UTFMax]byte
			size = put(dst, size, utf[:utf8.EncodeRune(utf[:], r)])
		case c < ' ':
			return 0, BadSyntax
		case c < utf8.RuneSelf:
			if size < len(dst) {
				dst[size] = c
			}
			size++
			s.rest = s.rest[1:]
		default:
			r, n := utf8.DecodeRune(s.rest)
			if r == utf8.RuneError && n == 1 {
				return 0, InvalidUTF8
			}
			size = put(dst, size, s.rest[:n])
			s.rest = s.rest[n:]
		}
	}
	return 0, BadSyntax
}

// put copies what fits of text to dst[size:] and returns size + len(text).
func put(dst []byte, size int, text []byte) int {
	if size < len(dst) {
		copy(dst[size:], text)
	}
	return size + len(text)
}

// escape reads the escape that begins at the next byte.
func (s *scanner) escape() (rune, string) {
	if len(s.rest) < 2 {
		return 0, BadSyntax
	}
	c := s.rest[1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode()
	default:
		return 0, BadSyntax
	}
	s.rest = s.rest[2:]
	return rune(c), ""
}

// unicode reads \uXXXX, or two of them that are a surrogate pair.
func (s *scanner) unicode() (rune, string) {
	const first, low, end = 0xD800, 0xDC00, 0xE000 // of the surrogates
	r, ok := s.hex4()
	if !ok {
		return 0, BadSyntax
	}
	if r < first || r >= end {
		return r, ""
	}
	if r >= low || len(s.rest) < 2 || s.rest[0] != '\\' || s.rest[1] != 'u' {
		return 0, LoneSurrogate
	}
	r2, ok := s.hex4()
	if !ok {
		return 0, BadSyntax
	}
	if r2 < low || r2 >= end {
		return 0, LoneSurrogate
	}
	return 0x10000 + (r-first)<<10 + (r2 - low), ""
}

// hex4 reads \uXXXX; the caller has checked the first two bytes.
func (s *scanner) hex4() (r rune, ok bool) {
	if len(s.rest) < 6 {
		return 0, false
	}
	for _, c := range s.rest[2:6] {
		digit := unhex(c)
		if digit > 15 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	s.rest = s.rest[6:]
	return r, true
}

// MaxTransaction is the longest transaction that a Solana node takes, in bytes.
const MaxTransaction = 1232
