package market

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// FuzzDepthQuery compares the query parser with net/url: one known symbol and one
// number in range is served with that many levels; all else is one of four codes.
func FuzzDepthQuery(f *testing.F) {
	for _, seed := range []string{
		"symbol=SLUSD/USDC", "symbol=SLUSD%2fUSDC&limit=100", "limit=101&symbol=92C/SLUSD", "symbol=%", "symbol=%4", "&&=&",
		"symbol=92C%2FSLUSD&limit=007", "symbol=a&symbol=b", "limit", "symbol=SLUSD/USDC&limit=+5", "symbol=SLUSD/USDC&limit=1;",
	} {
		f.Add([]byte(seed))
	}
	b := gatewaytest.NewBooks(f)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	f.Fuzz(func(t *testing.T, query []byte) {
		p, bad := m.serveDepth(query)
		if bad != nil {
			switch bad.Code {
			case wire.CodeMissingField, wire.CodeInvalidField, wire.CodeUnknownSymbol, wire.CodeInvalidLimit:
			default:
				t.Fatalf("code %s", bad.Code)
			}
			id := wire.RequestID([]byte("0123456789012345678"))
			if !json.Valid(bad.Append(nil, &id)) || bad.Status != 400 {
				t.Fatalf("problem %+v", bad)
			}
			return
		}
		values, err := url.ParseQuery(string(query))
		if err != nil && len(values["symbol"]) != 1 {
			t.Fatalf("served %q, of which net/url says %v", query, err)
		}
		var d depthAnswer
		if err := json.Unmarshal(p.Body, &d); err != nil {
			t.Fatal(err)
		}
		if values.Get("symbol") != d.Symbol {
			t.Fatalf("served %s for %q", d.Symbol, values.Get("symbol"))
		}
		// The limit stands last in the ETag.
		limit, err := strconv.Atoi(string(bytes.Trim(p.ETag[bytes.LastIndexByte(p.ETag, '-')+1:], `"`)))
		if len(d.Bids) > marketdata.MaxDepth || err != nil || limit < 1 || limit > MaxDepth {
			t.Fatalf("limit %d of %s", limit, p.ETag)
		}
	})
}

// BenchmarkRenderDepth is a cache miss with 50 levels per side.
func BenchmarkRenderDepth(b *testing.B) {
	books := gatewaytest.NewBooks(b)
	in, v := books.Set.Get(0), gatewaytest.FullView(0, 1)
	buf := make([]byte, 0, 1<<14)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendDepth(buf[:0], in, v, 50)
	}
	b.SetBytes(int64(len(buf)))
}
