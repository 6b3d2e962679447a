package market

import (
	"bytes"
	"strings"
)

// The texts of the desk's ids, as every surface shows them (our choice):
//
//	ticket   "T7"             the number in plain digits
//	tranche  "T7-1"           its ticket's, and its number there
//	quote    "Q" + 13 digits  Crockford's base 32 in lower case, most significant first
//	claim    "C" + 13 digits  the same
//	build    "B" + 13 digits  its claim's number: a claim has one build, for ever
//
// The Parse functions take exactly what the Append functions write, and no id 0.

// crockford are the digits of Crockford's base 32.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// wordDigits is how many of them a 64-bit word takes: the first has four bits.
const wordDigits = 13

// AppendTicketID appends "T" and the number. It allocates only when dst is full,
// as all Append functions here.
func AppendTicketID(dst []byte, id TicketID) []byte {
	return AppendDecimal(append(dst, 'T'), uint64(id), 0)
}

// AppendTrancheID appends the ticket's text, "-" and the tranche's number.
func AppendTrancheID(dst []byte, ticket TicketID, id TrancheID) []byte {
	return AppendDecimal(append(AppendTicketID(dst, ticket), '-'), uint64(id), 0)
}

// AppendQuoteID appends "Q" and 13 digits.
func AppendQuoteID(dst []byte, id QuoteID) []byte { return appendWord(append(dst, 'Q'), uint64(id)) }

// AppendClaimID appends "C" and 13 digits.
func AppendClaimID(dst []byte, id ClaimID) []byte { return appendWord(append(dst, 'C'), uint64(id)) }

// AppendBuildID appends "B" and 13 digits: the build of claim id.
func AppendBuildID(dst []byte, id ClaimID) []byte { return appendWord(append(dst, 'B'), uint64(id)) }

// ParseTicketID reads what AppendTicketID writes.
func ParseTicketID(text []byte) (TicketID, bool) {
	if len(text) == 0 || text[0] != 'T' {
		return 0, false
	}
	n, ok := parseNumber(text[1:])
	return TicketID(n), ok
}

// ParseTrancheID reads what AppendTrancheID writes.
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

// ParseQuoteID reads what AppendQuoteID writes.
func ParseQuoteID(text []byte) (QuoteID, bool) {
	id, ok := parseWord('Q', text)
	return QuoteID(id), ok
}

// ParseClaimID reads what AppendClaimID writes.
func ParseClaimID(text []byte) (ClaimID, bool) {
	id, ok := parseWord('C', text)
	return ClaimID(id), ok
}

// ParseBuildID reads what AppendBuildID writes, and returns the build's claim.
func ParseBuildID(text []byte) (ClaimID, bool) {
	id, ok := parseWord('B', text)
	return ClaimID(id), ok
}

// parseNumber reads plain digits without a leading zero.
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
