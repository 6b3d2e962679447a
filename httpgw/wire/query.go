package wire

import (
	"bytes"
	"slices"
	"strconv"

	"blockdesk/market"
)

// MaxQueryValue is the longest accepted value of a query parameter, in bytes as sent: a
// symbol with every byte escaped.
const MaxQueryValue = 3 * 32

// Param returns the first value of the parameter name in a raw query string, and how
// often the parameter occurs. A parameter without "=" has an empty value. value
// aliases query and is not decoded.
func Param(query []byte, name string) (value []byte, count int) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, v, _ := bytes.Cut(pair, []byte{'='})
		if string(key) == name {
			if count == 0 {
				value = v
			}
			count++
		}
	}
	return value, count
}

// CutPretty removes the parameter pretty from a raw query string, and reports whether it
// was there. Every route takes it: it indents the answer. Only a query that has it is
// copied.
func CutPretty(query []byte) (rest []byte, pretty bool) {
	const name = "pretty"
	if !bytes.Contains(query, []byte(name)) {
		return query, false
	}
	pairs := bytes.Split(query, []byte{'&'})
	remaining := slices.DeleteFunc(pairs, func(pair []byte) bool {
		key, _, _ := bytes.Cut(pair, []byte{'='})
		pretty = pretty || string(key) == name
		return string(key) == name
	})
	if !pretty {
		return query, false
	}
	return bytes.Join(remaining, []byte{'&'}), true
}

// AppendUnescaped appends raw with %XX and + decoded as in a form. It reports false if
// an escape is invalid or raw is longer than MaxQueryValue.
func AppendUnescaped(dst, raw []byte) ([]byte, bool) {
	if len(raw) > MaxQueryValue {
		return dst, false
	}
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch c {
		case '+':
			c = ' '
		case '%':
			if i+2 >= len(raw) {
				return dst, false
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi > 15 || lo > 15 {
				return dst, false
			}
			c = hi<<4 | lo
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// Decoded returns a query value with its escapes decoded, or the value itself if it has
// none or cannot be decoded, which its parser then refuses. It appends to buf[:0].
func Decoded(buf, raw []byte) []byte {
	if bytes.IndexByte(raw, '%') < 0 {
		return raw
	}
	text, ok := AppendUnescaped(buf[:0], raw)
	if !ok {
		return raw
	}
	return text
}

// prettyParam is a parameter of every route.
const prettyParam = "pretty"

// CheckParams refuses a query with a parameter whose name is not in known, so that a
// misspelt one is not ignored silently.
func CheckParams(query []byte, known []string) *Problem {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, _, _ := bytes.Cut(pair, []byte{'='})
		if len(name) > 0 && string(name) != prettyParam && !slices.Contains(known, string(name)) {
			return UnknownParameter(name)
		}
	}
	return nil
}

// unhex returns the value of a hexadecimal digit, 255 for anything else.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	default:
		return 255
	}
}

// LimitParam parses the parameter limit: decimal digits only, 1..most; absent means
// byDefault. A larger value is refused, not clamped.
func LimitParam(query []byte, byDefault, most int) (int, *Problem) {
	return LimitParamFrom(query, 1, byDefault, most)
}

// LimitParamFrom is LimitParam with the range least..most. It is for formats in which a
// limit of 0 has a meaning.
func LimitParamFrom(query []byte, least, byDefault, most int) (int, *Problem) {
	text, count := Param(query, "limit")
	switch {
	case count == 0:
		return byDefault, nil
	case count > 1:
		return 0, RepeatedField(CodeInvalidLimit, "limit")
	}
	var buf [MaxQueryValue]byte
	if text = Decoded(buf[:], text); len(text) == 0 || len(text) > 9 {
		return 0, invalidLimit(least, most)
	}
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, invalidLimit(least, most)
		}
		n = 10*n + int(c-'0')
	}
	if n < least || n > most {
		return 0, invalidLimit(least, most)
	}
	return n, nil
}

// Symbol returns the instrument that the required parameter symbol names.
func Symbol(query []byte, set *market.Instruments) (*market.Instrument, *Problem) {
	raw, count := Param(query, "symbol")
	switch {
	case count == 0 || len(raw) == 0:
		return nil, MissingField("symbol")
	case count > 1:
		return nil, RepeatedField(CodeInvalidField, "symbol")
	}
	var buf [MaxQueryValue]byte
	symbol, ok := AppendUnescaped(buf[:0], raw)
	if !ok {
		return nil, UnknownSymbol()
	}
	in := set.Lookup(symbol)
	if in == nil {
		return nil, UnknownSymbol()
	}
	return in, nil
}

// CursorParam parses a whole number from 1 to most; absent means 0.
func CursorParam(query []byte, name string, most uint64) (uint64, *Problem) {
	text, count := Param(query, name)
	switch {
	case count == 0:
		return 0, nil
	case count > 1:
		return 0, RepeatedField(CodeInvalidField, name)
	}
	var buf [MaxQueryValue]byte
	text = Decoded(buf[:], text)
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil || n < 1 || n > most || text[0] == '+' {
		return 0, &Problem{
			Status: 400, Code: CodeInvalidField, Field: name, Reason: "not_a_cursor",
			Text: name + " must be a whole number from an earlier answer.",
		}
	}
	return n, nil
}
