package market

import (
	"bytes"
	"strings"
)

// The text form of the desk's ids in every message (our choice):
//
//	ticket   "T7"             decimal number
//	tranche  "T7-1"           its ticket, "-", its number in the ticket
//	quote    "Q" + 13 digits  Crockford's base 32 in lower case, most significant first
//	claim    "C" + 13 digits  the same
//	build    "B" + 13 digits  the number of its claim, because a claim has one build
//
// The Parse functions accept exactly what the Append functions write, and no id 0. The
// Append functions allocate only if dst is full.

// crockford is the alphabet of Crockford's base 32.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// wordDigits is the length of a 64-bit id in base 32; the first digit has four bits.
const wordDigits = 13

// AppendTicketID appends "T" and the number.
func AppendTicketID(dst []byte, id TicketID) []byte {
	return AppendDecimal(append(dst, 'T'), uint64(id), 0)
}

// AppendTrancheID appends the ticket, "-" and the tranche's number.
func AppendTrancheID(dst []byte, ticket TicketID, id TrancheID) []byte {
	return AppendDecimal(append(AppendTicketID(dst, ticket), '-'), uint64(id), 0)
}

// AppendQuoteID appends "Q" and 13 digits.
func AppendQuoteID(dst []byte, id QuoteID) []byte { return appendWord(append(dst, 'Q'), uint64(id)) }

// AppendClaimID appends "C" and 13 digits.
func AppendClaimID(dst []byte, id ClaimID) []byte { return appendWord(append(dst, 'C'), uint64(id)) }

// AppendBuildID appends "B" and 13 digits: the build of claim id.
func AppendBuildID(dst []byte, id ClaimID) []byte { return appendWord(append(dst, 'B'), uint64(id)) }

// ParseTicketID parses the text of a ticket id.
func ParseTicketID(text []byte) (TicketID, bool) {
	if len(text) == 0 || text[0] != 'T' {
		return 0, false
	}
	n, ok := parseNumber(text[1:])
	return TicketID(n), ok
}

// ParseTrancheID parses the text of a tranche id.
func ParseTrancheID(text []byte) (TicketID, TrancheID, bool) {
	dash := bytes.IndexByte(text, '-')
	if dash < 0 {
		return 0, 0, false
	}
	ticket, ok := ParseTicketID(text[:dash])
	n, whole := parseNumber(text[dash+1:])
	if !ok || !whole || n > 1<<16-1 {
		return 0, 0, false
	}
	return ticket, TrancheID(n), true
}

// ParseQuoteID parses the text of a quote id.
func ParseQuoteID(text []byte) (QuoteID, bool) {
	id, ok := parseWord('Q', text)
	return QuoteID(id), ok
}

// ParseClaimID parses the text of a claim id.
func ParseClaimID(text []byte) (ClaimID, bool) {
	id, ok := parseWord('C', text)
	return ClaimID(id), ok
}

// ParseBuildID parses the text of a build id and returns the build's claim.
func ParseBuildID(text []byte) (ClaimID, bool) {
	id, ok := parseWord('B', text)
	return ClaimID(id), ok
}

// parseNumber parses decimal digits without a leading zero.
func parseNumber(text []byte) (uint64, bool) {
	if len(text) == 0 || text[0] == '0' || bytes.IndexByte(text, '.') >= 0 {
		return 0, false
	}
	n, err := ParseUint128(text, 0)
	return n.Lo, err == nil && n.Hi == 0
}

func appendWord(dst []byte, v uint64) []byte {
	for shift := 5 * (wordDigits - 1); shift >= 0; shift -= 5 {
		dst = append(dst, crockford[v>>shift&31])
	}
	return dst
}

func parseWord(prefix byte, text []byte) (uint64, bool) {
	if len(text) != 1+wordDigits || text[0] != prefix {
		return 0, false
	}
	var v uint64
	for i, c := range text[1:] {
		digit := strings.IndexByte(crockford, c)
		if digit < 0 || i == 0 && digit > 15 {
			return 0, false
		}
		v = v<<5 | uint64(digit)
	}
	return v, v != 0
}
