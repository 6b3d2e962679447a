package httpgw

import (
	"bytes"
	"net/netip"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Instruments may be split over shards: processes, or raft groups of them, each with an
// engine of its own. A client may send any request to any shard. The gateway forwards a
// request that another shard owns and returns that shard's answer. A request is
// forwarded at most once and admitted once, where it came in; see internalRequest.

// route admits a request, unless another gateway has admitted it, and forwards it if
// another shard owns it. It reports whether it has answered the request.
func (d *handler) route(ctx *fasthttp.RequestCtx, id *wire.RequestID, m *match) bool {
	g, r := d.g, m.endpoint.Route
	from, bad := g.shards.internalRequestIn(ctx)
	if bad == nil && from == nil {
		bad = g.limits[r.Limit].Admit(ctx, g.proxies)
	}
	if bad != nil {
		g.fail(ctx, id, bad)
		return true
	}
	to := g.shardOf(ctx, r, m.query, m.segment)
	switch {
	case to == nil:
		if from != nil {
			ctx.SetUserValue(internalRequestKey{}, from)
		}
		if r.Merged != 0 {
			var buf [256]byte // enough for a few shards
			ctx.Response.Header.SetCanonical(shardsHeader, g.merged.appendShardAges(buf[:0], r.Merged))
		} else {
			ctx.Response.Header.SetCanonical(shardHeader, []byte(g.shards.name))
		}
		return false
	case from != nil: // the two gateways have different lists of shards
		g.fail(ctx, id, misrouted())
	case r.Stream != nil:
		g.fail(ctx, id, to.redirect(ctx))
	default:
		g.forward(ctx, id, r, to)
	}
	return true
}

// shardOf returns the other shard that owns a request. It returns nil for this shard and
// for invalid requests, which the route refuses.
func (g *Gateway) shardOf(ctx *fasthttp.RequestCtx, r *wire.Route, query, segment []byte) *remoteShard {
	switch {
	case r.Post != nil && segment == nil:
		return g.shardOfBody(ctx.Request.Body())
	case r.Post != nil || r.ReadOne != nil || r.ReadOneOf != nil:
		return g.shardOfSegment(segment)
	case r.Stream != nil:
		return g.shards.bySymbols(query)
	case r.Read != nil:
		return g.shards.byQuery(query)
	default:
		return nil
	}
}

// queryNames are the parameters that name an instrument.
var queryNames = [...]string{"symbol", "ticker_id", "id"}

func (r *shardRouter) byQuery(query []byte) *remoteShard {
	for _, name := range queryNames {
		if raw, count := wire.Param(query, name); count == 1 {
			if to := r.byValue(raw); to != nil {
				return to
			}
		}
	}
	return nil
}

// byValue returns the shard of a symbol or ticker in a raw query value.
func (r *shardRouter) byValue(raw []byte) *remoteShard {
	var buf [wire.MaxQueryValue]byte
	text, ok := wire.AppendUnescaped(buf[:0], raw)
	if !ok {
		return nil
	}
	return r.byName[string(text)]
}

// bySymbols returns the shard that has all symbols of a stream.
func (r *shardRouter) bySymbols(query []byte) (to *remoteShard) {
	args := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	args.ParseBytes(query)
	list := args.Peek("symbols")
	if list == nil {
		list = args.Peek("symbol")
	}
	for len(list) > 0 {
		symbol, rest, _ := bytes.Cut(list, []byte{','})
		of := r.byName[string(symbol)]
		if of == nil || to != nil && to != of {
			return nil
		}
		to, list = of, rest
	}
	return to
}

// shardOfSegment returns the shard of the last segment of a path: the id of a claim or
// of a build, or a ticker.
func (g *Gateway) shardOfSegment(segment []byte) *remoteShard {
	if to := g.shards.byName[string(segment)]; to != nil {
		return to
	}
	if id, ok := market.ParseClaimID(segment); ok {
		return g.shardOfClaim(id)
	}
	if id, ok := market.ParseBuildID(segment); ok {
		return g.shardOfClaim(id)
	}
	return nil
}

// shardOfClaim returns the shard whose number is in a claim's id. A claim from before the
// split may contain any number; it belongs to this shard if this desk has it.
func (g *Gateway) shardOfClaim(id market.ClaimID) *remoteShard {
	to := g.shards.byNumber[id.Shard()]
	if to == nil || g.desk == nil {
		return to
	}
	if _, ours, err := g.desk.Claim(id); ours && err == nil {
		return nil
	}
	return to
}

// routedMembers are the members of a body that name its shard.
var routedMembers = []wire.Member{
	{Name: "order_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
	{Name: "build_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
}

// shardOfBody returns the shard of the ticket or build in a body. The route, here or
// there, checks everything else.
func (g *Gateway) shardOfBody(body []byte) *remoteShard {
	var m wire.Members
	if !wire.PeekObject(body, routedMembers, &m) {
		return nil
	}
	if ticket, ok := market.ParseTicketID(m.Get(0)); ok {
		return g.shards.byNumber[ticket.Shard()]
	}
	if build, ok := market.ParseBuildID(m.Get(1)); ok {
		return g.shardOfClaim(build)
	}
	return nil
}

// redirect sends the client of a stream to this shard. A stream is not forwarded,
// because it may last for days and occupies a connection in any case.
func (to *remoteShard) redirect(ctx *fasthttp.RequestCtx) *wire.Problem {
	raw := wire.RawTarget(ctx)
	if !wire.IsSafeTarget(raw) {
		return wire.UnknownRoute(nil)
	}
	return &wire.Problem{
		Status: fasthttp.StatusTemporaryRedirect, Code: wire.CodeOtherGroup, Reason: "other_group", Location: to.nodes[0].base + string(raw),
		Text: "Another group serves these symbols. Follow Location.",
	}
}

// misrouted is the answer to a gateway that forwarded a request which this shard does
// not own.
func misrouted() *wire.Problem {
	return &wire.Problem{
		Status: fasthttp.StatusMisdirectedRequest, Code: wire.CodeOtherGroup, Reason: "misrouted",
		Text: "This group does not own the forwarded request: the groups' configurations differ.",
	}
}

// clientOf returns the client that a request's limits count, as the gateway that
// admitted it determined.
func (g *Gateway) clientOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if h, ok := ctx.UserValue(internalRequestKey{}).(*internalRequest); ok {
		return h.client
	}
	return g.proxies.Client(ctx)
}

// takerOf returns the owner of a request's DvP token. The gateway that admitted the
// request may have checked the token.
func (g *Gateway) takerOf(ctx *fasthttp.RequestCtx) (market.Address, *wire.Problem) {
	if h, ok := ctx.UserValue(internalRequestKey{}).(*internalRequest); ok && h.taker != (market.Address{}) {
		return h.taker, nil
	}
	return g.dvp.Taker(&ctx.Request.Header)
}

// boardShards returns the other shards with the URLs of their first nodes.
func boardShards(o *Shards) []site.BoardShard {
	if o == nil {
		return nil
	}
	var others []site.BoardShard
	for i := range o.All {
		g := &o.All[i]
		if g.Number == o.Own {
			continue
		}
		one := site.BoardShard{Name: g.Name, Base: g.Nodes[0].Base, WS: g.Nodes[0].WS}
		for j := range g.Instruments {
			one.Symbols = append(one.Symbols, g.Instruments[j].Symbol)
		}
		others = append(others, one)
	}
	return others
}
