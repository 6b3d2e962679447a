package feed

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"blockdesk/market"
)

func parseQuery(t testing.TB, query string, most int, desk bool) (*request, *refusal) {
	t.Helper()
	set, err := market.NewInstruments(instruments())
	if err != nil {
		t.Fatal(err)
	}
	args := &fasthttp.Args{}
	args.Parse(query)
	return parseStream(args, set, most, otherChannels{tickets: desk, sales: desk})
}

func TestStreamQuery(t *testing.T) {
	all := "SLUSD/USDC 92C/SLUSD AAA/BBB "
	for query, want := range map[string]string{
		"":                                  "ticker l2@50 trades of " + all,
		"other=1&heartbeat=false":           "ticker l2@50 trades of " + all,
		"depth=100&channels=l2":             "l2@100 of " + all,
		"symbol=AAA/BBB":                    "ticker l2@50 trades of AAA/BBB ",
		"symbols=AAA%2FBBB,SLUSD%2fUSDC":    "ticker l2@50 trades of AAA/BBB SLUSD/USDC ",
		"symbols=AAA/BBB,AAA/BBB&depth=10":  "ticker l2@10 trades of AAA/BBB ",
		"channels=trades,l2,trades,tickets": "trades l2@50 tickets of " + all,
	} {
		r, bad := parseQuery(t, query, 300, true)
		if bad != nil {
			t.Errorf("%q: %+v", query, bad)
			continue
		}
		var kinds, symbols string
		for _, ref := range r.topics {
			if ref.in == r.topics[0].in {
				kinds += ref.kind.channel()
				if ref.kind < trades {
					kinds += map[int]string{10: "@10", 50: "@50", 100: "@100"}[depths[ref.kind]]
				}
				kinds += " "
			}
			if ref.kind == r.topics[0].kind {
				symbols += ref.in.Symbol + " "
			}
		}
		if got := kinds + "of " + symbols; got != want || r.action != subscribe || !*r.heartbeat {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	if r, bad := parseQuery(t, "", 9, false); bad != nil || len(r.topics) != 9 {
		t.Errorf("as many as may be: %+v", bad)
	}
}

func TestStreamQueryRefused(t *testing.T) {
	list := func(n int) string { return strings.Repeat("SLUSD/USDC,", n-1) + "SLUSD/USDC" }
	for query, want := range map[string]refusal{
		"symbols=":                           {"MISSING_FIELD", "", "empty", "symbols"},
		"symbol":                             {"MISSING_FIELD", "", "empty", "symbol"},
		"channels=":                          {"MISSING_FIELD", "", "empty", "channels"},
		"symbol=A/B":                         {"UNKNOWN_SYMBOL", "Unknown symbol: A/B. /api/v1/market/symbols lists all symbols.", "unknown_symbol", "symbol"},
		"symbols=A/B,AAA/BBB,,%3Cb%3E,slusd": {"UNKNOWN_SYMBOL", "Unknown symbol: A/B, (not a name), (not a name), slusd. /api/v1/market/symbols lists all symbols.", "unknown_symbol", "symbols"},
		"symbols=" + strings.Repeat("A", maxText):          {"UNKNOWN_SYMBOL", "Unknown symbol: " + strings.Repeat("A", maxText) + ". /api/v1/market/symbols lists all symbols.", "unknown_symbol", "symbols"},
		"symbols=" + strings.Repeat("A", maxText+1):        {"UNKNOWN_SYMBOL", "Unknown symbol: (not a name). /api/v1/market/symbols lists all symbols.", "unknown_symbol", "symbols"},
		"symbol=AAA/BBB&symbols=AAA/BBB":                   {"INVALID_FIELD", "", "repeated", "symbols"},
		"symbols=AAA/BBB&symbols=AAA/BBB":                  {"INVALID_FIELD", "", "repeated", "symbols"},
		"channels=l3,l2,book":                              {"INVALID_FIELD", "No such channel: l3, book.", "unknown_channel", "channels"},
		"channels=tickets":                                 {"INVALID_FIELD", "No such channel: tickets.", "unknown_channel", "channels"},
		"channels=l2&channels=l2":                          {"INVALID_FIELD", "", "repeated", "channels"},
		"depth=20":                                         {"INVALID_FIELD", "", "unknown_depth", "depth"},
		"depth=":                                           {"INVALID_FIELD", "", "unknown_depth", "depth"},
		"depth=10&depth=10":                                {"INVALID_FIELD", "", "repeated", "depth"},
		"symbols=" + list(maxSymbols+1):                    {"INVALID_FIELD", "", "too_many", "symbols"},
		"channels=l2" + strings.Repeat(",l2", maxChannels): {"INVALID_FIELD", "", "too_many", "channels"},
	} {
		_, bad := parseQuery(t, query, 300, false)
		if bad == nil {
			t.Errorf("%.80q is accepted", query)
			continue
		}
		if want.text == "" {
			want.text = bad.text
		}
		if *bad != want {
			t.Errorf("%.80q: %+v, want %+v", query, *bad, want)
		}
	}
	for _, query := range []string{"symbols=" + list(maxSymbols), "channels=l2" + strings.Repeat(",l2", maxChannels-1)} {
		if _, bad := parseQuery(t, query, 300, false); bad != nil {
			t.Errorf("%.80q: %+v", query, *bad)
		}
	}
	if _, bad := parseQuery(t, "", 8, false); bad == nil || bad.reason != "too_many" {
		t.Errorf("one too many: %+v", bad)
	}
}

// Every query is parsed or refused with texts that need no escapes in JSON.
func FuzzStreamQuery(f *testing.F) {
	f.Add("symbols=SLUSD/USDC,92C%2FSLUSD&channels=l2,tickets&depth=100")
	f.Add("symbol=%00\"\\,<&channels=%ff&depth=1e9&symbols")
	f.Fuzz(func(t *testing.T, query string) {
		r, bad := parseQuery(t, query, 8, true)
		switch {
		case bad != nil:
			if !json.Valid([]byte(`["` + bad.code + `","` + bad.text + `","` + bad.reason + `","` + bad.field + `"]`)) {
				t.Errorf("%q: %+v", query, bad)
			}
		case len(r.topics) == 0 || len(r.topics) > 8:
			t.Errorf("%q: %d topics", query, len(r.topics))
		}
	})
}
