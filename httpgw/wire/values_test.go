package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"blockdesk/market"
)

// FuzzAppendText: any bytes become a JSON string with the same text, as far as it was
// UTF-8.
func FuzzAppendText(f *testing.F) {
	f.Add("plain")
	f.Add("\"\\\n\x00\x1f\x7f é \u2028 \xff\xc3")
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(AppendText(nil, text), &got); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, r := range text { // each bad byte is one U+FFFD
			want.WriteRune(r)
		}
		if got != want.String() || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// TestMoneyText: the exact text at the ends of the range.
func TestMoneyText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendUSD(nil, 0)), `"0.000000"`},
		{string(AppendUSD(nil, 1)), `"0.000001"`},
		{string(AppendUSD(nil, 1<<64-1)), `"18446744073709.551615"`},
		{string(AppendUSDPrice(nil, 0)), `null`},
		{string(AppendUSDPrice(nil, market.MaxUSDPrice)), `"1000000000.000000000"`},
		{string(AppendAddress(nil, market.Address{})), `null`},
		{string(AppendAddress(nil, market.Address{31: 1})), `"11111111111111111111111111111112"`},
		{string(AppendMillis(nil, 0)), `null`},
		{string(AppendMillis(nil, 1_999_999)), `"1970-01-01T00:00:00.001Z"`},
		{string(AppendRails(nil, 0)), `[]`},
		{string(AppendRails(nil, market.AllRails)), `["USDC","SOL"]`},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}
