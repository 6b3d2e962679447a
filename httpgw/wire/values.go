package wire

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/market"
)

// A value has the same form on every surface: money and prices with all their decimals,
// so that columns line up, addresses in base58, and times in milliseconds. Times are
// rounded down, so that no deadline is published later than it is.

// AppendUSD appends dollars as a JSON string with six decimals.
func AppendUSD(dst []byte, n market.USD) []byte {
	dst = append(dst, '"')
	dst = market.AppendDecimal(dst, uint64(n), market.USDDecimals)
	return append(dst, '"')
}

// AppendUSDPrice appends a price as a JSON string with nine decimals; 0 is null.
func AppendUSDPrice(dst []byte, n market.USDPrice) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = market.AppendDecimal(dst, uint64(n), market.USDPriceDecimals)
	return append(dst, '"')
}

// AppendAddress appends an address in base58 as a JSON string; the zero address is null.
func AppendAddress(dst []byte, a market.Address) []byte {
	if a == (market.Address{}) {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = append(dst, base58.Encode(a[:])...)
	return append(dst, '"')
}

// AddressText returns an address in base58.
func AddressText(a market.Address) string { return base58.Encode(a[:]) }

// AppendText appends any text as a JSON string. It escapes quotes, backslashes and
// control bytes, and replaces invalid UTF-8 by U+FFFD.
func AppendText(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// AppendMillis appends Unix nanoseconds as an RFC 3339 JSON string with milliseconds;
// 0 is null.
func AppendMillis(dst []byte, ns int64) []byte {
	if ns == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = time.Unix(0, ns).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	return append(dst, '"')
}

// AppendRails appends a set of rails as a JSON array in the order of rail_priority.
func AppendRails(dst []byte, set market.Rails) []byte {
	dst = append(dst, '[')
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if !set.Has(r) {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, r.String()...)
		dst = append(dst, '"')
	}
	return append(dst, ']')
}

// The same values as types for encoding/json, for documents off the hot path.
type (
	// USD is dollars, with six decimals.
	USD market.USD
	// Price is a price in dollars, with nine decimals; 0 = null.
	Price market.USDPrice
	// Address is in base58; zero = null.
	Address market.Address
	// Rails is a list of words.
	Rails market.Rails
	// Time is in Unix nanoseconds; 0 = null.
	Time int64
	// Units counts 10^-Decimals of something.
	Units struct {
		N        uint64
		Decimals uint8
	}
)

// MarshalJSON writes dollars.
func (n USD) MarshalJSON() ([]byte, error) { return AppendUSD(nil, market.USD(n)), nil }

// MarshalJSON writes a price or null.
func (n Price) MarshalJSON() ([]byte, error) {
	return AppendUSDPrice(nil, market.USDPrice(n)), nil
}

// MarshalJSON writes an address or null.
func (a Address) MarshalJSON() ([]byte, error) {
	return AppendAddress(nil, market.Address(a)), nil
}

// MarshalJSON writes a list of words.
func (s Rails) MarshalJSON() ([]byte, error) { return AppendRails(nil, market.Rails(s)), nil }

// MarshalJSON writes a time or null.
func (t Time) MarshalJSON() ([]byte, error) { return AppendMillis(nil, int64(t)), nil }

// MarshalJSON writes a decimal.
func (u Units) MarshalJSON() ([]byte, error) {
	dst := market.AppendDecimal([]byte{'"'}, u.N, int(u.Decimals))
	return append(dst, '"'), nil
}

// Encode renders a document with encoding/json. It does not escape <, > and &, so that
// the manifest's command lines stay readable; bodies are never parsed as HTML.
func Encode(document any) []byte {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		panic("httpgw: a document that cannot be encoded: " + err.Error())
	}
	return bytes.TrimRight(body.Bytes(), "\n")
}

// NullIfEmpty returns a pointer to text, or nil (JSON null) for "".
func NullIfEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// NullIfZero returns a pointer to n, or nil (JSON null) for 0.
func NullIfZero(n uint64) *uint64 {
	if n == 0 {
		return nil
	}
	return &n
}
