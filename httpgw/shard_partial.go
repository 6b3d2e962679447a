package httpgw

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/shardwire"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Documents about all instruments merge the partial responses of the other shards. Each
// gateway polls the others, so that no reader waits for a shard and a shard that fails is
// noticed early.

const (
	deskEvery        = time.Second                   // interval of requests for another shard's desk and books
	factsEvery       = time.Duration(rfqapi.Refresh) // and for its facts, which are valid for one cycle
	partialTimeout   = 2 * time.Second               // timeout of one request
	deskStale        = 5 * time.Second               // age from which a desk is left out
	factsStale       = factsEvery + 2*deskStale      // and facts
	pathPartials     = "/group/"                     // no routes: only signed requests are answered
	pathPartialDesk  = pathPartials + "desk"
	pathPartialFacts = pathPartials + "facts"
)

// servePartial answers another gateway's request for a partial response and reports
// whether it did. For all others the path does not exist.
func (d *handler) servePartial(ctx *fasthttp.RequestCtx, id *wire.RequestID, path []byte) bool {
	g := d.g
	if !bytes.HasPrefix(path, []byte(pathPartials)) || !ctx.IsGet() {
		return false
	}
	from, bad := g.shards.internalRequestIn(ctx)
	if from == nil || bad != nil {
		return false
	}
	var out []byte
	var err error
	switch string(path) {
	case pathPartialDesk:
		out = shardwire.AppendDesk(nil, g.ownDesk())
	case pathPartialFacts:
		if g.merged.ownFacts == nil {
			return false
		}
		f := g.merged.ownFacts()
		out, err = shardwire.AppendFacts(nil, &shardwire.Facts{Pairs: f.Pairs, Tokens: f.Tokens, Desk: f.Desk})
	default:
		return false
	}
	if err != nil {
		g.fail(ctx, id, &wire.Problem{Status: fasthttp.StatusInternalServerError, Code: wire.CodeInternal, Text: "The partial response cannot be encoded.", Cause: err})
		return true
	}
	ctx.SetContentType("application/octet-stream")
	ctx.SetBody(out)
	return true
}

func (g *Gateway) ownDesk() *shardwire.Desk {
	p := &shardwire.Desk{Enabled: g.desk != nil, Books: make([]shardwire.Book, g.opts.Instruments.Len())}
	if p.Enabled {
		v := g.desk.View()
		if v == nil {
			v = &rfq.View{}
		}
		p.At, p.Pairs, p.Locks, p.Tickets = v.At, v.Pairs, v.Locks, v.Tickets
	}
	for i := range p.Books {
		v := g.market.View(market.InstrumentID(i))
		p.Books[i].Status = v.Status
		if len(v.Bids) > 0 {
			p.Books[i].Bid = v.Bids[0]
		}
		if len(v.Asks) > 0 {
			p.Books[i].Ask = v.Asks[0]
		}
	}
	return p
}

// decodePartialDesk decodes the desk of a shard with count instruments, and renumbers
// them from first.
func decodePartialDesk(raw []byte, first, count market.InstrumentID) (*partialDesk, error) {
	desk, err := shardwire.DecodeDesk(raw, int(count))
	if err != nil {
		return nil, fmt.Errorf("httpgw: decode the partial response of a group: %w", err)
	}
	p := &partialDesk{Desk: desk, raw: raw, tops: make([]marketdata.View, count)}
	for i := range p.Pairs {
		pair := &p.Pairs[i]
		if pair.Instrument += first; pair.Via != rfq.NoInstrument {
			pair.Via += first
		}
	}
	for i := range p.Locks {
		if l := &p.Locks[i]; l.Scope == rfq.LockPair {
			l.Instrument += first
		}
	}
	for _, t := range p.Tickets {
		t.Instrument += first
	}
	for i := range p.tops {
		v, b := &p.tops[i], &p.Books[i]
		v.Instrument, v.Status = first+market.InstrumentID(i), b.Status
		if b.Bid != (market.Level{}) {
			v.Bids = []market.Level{b.Bid}
		}
		if b.Ask != (market.Level{}) {
			v.Asks = []market.Level{b.Ask}
		}
	}
	return p, nil
}

// pollShard refreshes the partial responses of one shard until ctx ends.
func (g *Gateway) pollShard(ctx context.Context, to *remoteShard) error {
	ticks := time.NewTicker(deskEvery)
	defer ticks.Stop()
	factsDue := g.opts.Clock()
	for {
		now := g.opts.Clock()
		g.refreshDesk(to, now)
		if g.merged.ownFacts != nil && now >= factsDue {
			if g.refreshFacts(to, now) {
				factsDue = now + int64(factsEvery)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// partialRoute is the route of partial responses, which are not in the table.
var partialRoute = &wire.Route{Method: wire.MethodGet, On: wire.OnBase}

// requestPartial requests a partial response and returns nil if there is none now.
func (g *Gateway) requestPartial(to *remoteShard, path string) []byte {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	from := &internalRequest{from: g.shards.own, client: netip.IPv4Unspecified()}
	bad := g.shards.send(to, partialRoute, from, []byte(path), request, response, min(partialTimeout, g.shards.timeout))
	if bad != nil || response.StatusCode() != fasthttp.StatusOK {
		return nil
	}
	return bytes.Clone(response.Body())
}

func (g *Gateway) refreshDesk(to *remoteShard, now int64) {
	raw := g.requestPartial(to, pathPartialDesk)
	if raw == nil {
		return
	}
	if old := to.last.desk.Load(); old != nil && bytes.Equal(old.raw, raw) {
		same := *old
		same.at = now
		to.last.desk.Store(&same)
		return
	}
	p, err := decodePartialDesk(raw, g.merged.first[to], market.InstrumentID(len(to.Instruments)))
	if err != nil {
		g.log.Warn("cannot decode partial response of group", "group", to.Name, "error", err)
		return
	}
	p.at = now
	to.last.desk.Store(p)
}

func (g *Gateway) refreshFacts(to *remoteShard, now int64) bool {
	raw := g.requestPartial(to, pathPartialFacts)
	if raw == nil {
		return false
	}
	f, err := shardwire.DecodeFacts(raw)
	if err != nil {
		g.log.Warn("cannot decode partial response of group", "group", to.Name, "error", err)
		return false
	}
	to.last.facts.Store(&partialFacts{Facts: f, at: now})
	return true
}
