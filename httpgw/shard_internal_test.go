package httpgw

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/shardwire"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// internalRoutes are the routes of one shard at a time.
func internalRoutes(own market.ShardID, now time.Time) *shardRouter {
	return &shardRouter{own: own, macs: newMACs(groupSecret), now: now.UnixNano}
}

func forwardedRequest(target, key, body string) *fasthttp.Request {
	r := &fasthttp.Request{}
	r.Header.SetMethod(fasthttp.MethodPost)
	r.Header.SetRequestURI(target)
	if key != "" {
		r.Header.Set(wire.IdempotencyHeader, key)
	}
	r.SetBodyString(body)
	return r
}

// TestInternalHeader: a signature is valid for one request, at one shard, for a
// limited time.
func TestInternalHeader(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	header := internalRequest{from: 1, client: netip.MustParseAddr("2001:db8::1"), taker: takerKey()}
	from := internalRoutes(1, now)
	line := from.appendInternalHeader(nil, &header, 2, []byte("/a?b=c"), forwardedRequest("/a?b=c", "k", "body"))
	if len(line) > maxInternalHeader {
		t.Fatalf("%d bytes", len(line))
	}
	for name, c := range map[string]struct {
		at    *shardRouter
		of    *fasthttp.Request
		taken bool
	}{
		"as it is":       {internalRoutes(2, now), forwardedRequest("/a?b=c", "k", "body"), true},
		"late":           {internalRoutes(2, now.Add(internalLifetime)), forwardedRequest("/a?b=c", "k", "body"), true},
		"too late":       {internalRoutes(2, now.Add(internalLifetime+time.Millisecond)), forwardedRequest("/a?b=c", "k", "body"), false},
		"too early":      {internalRoutes(2, now.Add(-internalLifetime-time.Millisecond)), forwardedRequest("/a?b=c", "k", "body"), false},
		"another group":  {internalRoutes(3, now), forwardedRequest("/a?b=c", "k", "body"), false},
		"another target": {internalRoutes(2, now), forwardedRequest("/a?b=d", "k", "body"), false},
		"another key":    {internalRoutes(2, now), forwardedRequest("/a?b=c", "l", "body"), false},
		"another body":   {internalRoutes(2, now), forwardedRequest("/a?b=c", "k", "bodY"), false},
		"another secret": {&shardRouter{own: 2, macs: newMACs(bytes.Repeat([]byte{8}, 32)), now: now.UnixNano}, forwardedRequest("/a?b=c", "k", "body"), false},
	} {
		got, ok := c.at.verify([][]byte{line}, c.of)
		if ok != c.taken || ok && *got != header {
			t.Errorf("%s: %v %+v", name, ok, got)
		}
	}
	for i := range line {
		forged := bytes.Clone(line)
		forged[i] ^= 1
		if got, ok := internalRoutes(2, now).verify([][]byte{forged}, forwardedRequest("/a?b=c", "k", "body")); ok {
			t.Errorf("byte %d of %q is not signed: %+v", i, forged, got)
		}
	}
	if _, ok := internalRoutes(2, now).verify([][]byte{line, line}, forwardedRequest("/a?b=c", "k", "body")); ok {
		t.Error("it is taken twice")
	}
}

// FuzzInternalHeader: any header is refused or, if it is signed, decoded to what was signed;
// nothing panics.
func FuzzInternalHeader(f *testing.F) {
	f.Add([]byte("v1 1 2 1 192.0.2.1 -"), true)
	f.Add([]byte("v1 1 2 1 192.0.2.1 - 00"), false)
	f.Add([]byte("v9 256 2 -1 nobody 1"), true)
	f.Fuzz(func(t *testing.T, header []byte, sign bool) {
		r, request := internalRoutes(2, time.UnixMilli(1)), forwardedRequest("/", "", "")
		line := header
		if sign {
			line = from(r, header, request)
		}
		if h, ok := r.verify([][]byte{line}, request); ok && (!sign || !h.client.IsValid()) {
			t.Errorf("%q is taken: %+v", line, h)
		}
	})
}

// from signs any text.
func from(r *shardRouter, header []byte, request *fasthttp.Request) []byte {
	const digits = "0123456789abcdef"
	line := append(bytes.Clone(header), ' ')
	for _, b := range r.sign(header, request.Header.RequestURI(), request) {
		line = append(line, digits[b>>4], digits[b&15])
	}
	return line
}

// testPartialDesk returns a shard's desk with three books.
func testPartialDesk(v *rfq.View) *shardwire.Desk {
	return &shardwire.Desk{Enabled: true, At: v.At, Pairs: v.Pairs, Locks: v.Locks, Tickets: v.Tickets, Books: make([]shardwire.Book, 3)}
}

// TestPartialDeskIsChecked: a partial response that names an instrument which the
// shard does not have is refused.
func TestPartialDeskIsChecked(t *testing.T) {
	part := func(change func(p *shardwire.Desk)) []byte {
		p := testPartialDesk(gatewaytest.FixedView())
		change(p)
		return shardwire.AppendDesk(nil, p)
	}
	p, err := decodePartialDesk(part(func(*shardwire.Desk) {}), 5, 3)
	if err != nil || p.Pairs[1].Instrument != 6 || p.Tickets[0].Instrument != 5 || rfq.Sellable(p.Tickets) != p.Tickets[0] || len(p.tops) != 3 {
		t.Fatalf("%+v %v", p, err)
	}
	for name, raw := range map[string][]byte{
		"nothing":            {},
		"no part":            []byte("desk"),
		"fewer instruments":  part(func(p *shardwire.Desk) { p.Books = p.Books[:2] }),
		"a foreign pair":     part(func(p *shardwire.Desk) { p.Pairs[1].Instrument = 3 }),
		"via a foreign pair": part(func(p *shardwire.Desk) { p.Pairs[1].Via = 3 }),
		"a foreign ticket":   part(func(p *shardwire.Desk) { p.Tickets[2].Instrument = 900 }),
		"a foreign lock": part(func(p *shardwire.Desk) {
			p.Locks = append(p.Locks, rfq.Lock{Scope: rfq.LockPair, Instrument: 4})
		}),
		"a ticket of many": part(func(p *shardwire.Desk) { p.Tickets[0].Tranches = make([]rfq.Tranche, rfq.MaxTranches+1) }),
	} {
		if p, err := decodePartialDesk(raw, 5, 3); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// FuzzPartialDesk: no bytes of another shard break the merged lists.
func FuzzPartialDesk(f *testing.F) {
	f.Add(shardwire.AppendDesk(nil, testPartialDesk(gatewaytest.FixedView())))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := decodePartialDesk(raw, 3, 3)
		if err != nil {
			return
		}
		b := gatewaytest.NewBooks(t)
		documents := rfqapi.New(rfqapi.Options{
			Backend: terms.Backend{Desk: gatewaytest.NewViewDesk(mergeDesks(gatewaytest.FixedView(), []*partialDesk{p, nil})), Instruments: b.Set},
			Books:   b, About: &wire.Description{}, Now: gatewaytest.NewDeskClock().Now, Network: func() string { return "" },
		})
		for _, r := range documents.Routes() {
			if r.Read != nil {
				_, _ = r.Read(nil)
			}
		}
	})
}
