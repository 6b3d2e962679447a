package httpgw

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Instruments may be split over shards: processes, or raft groups of them, each with an
// engine of its own. A client may send any request to any shard. The gateway forwards a
// request that another shard owns and returns that shard's answer. A request is
// forwarded at most once and admitted once, where it came in; see internalRequest.

const (
	// maxShardAnswer bounds an answer of another shard, in bytes.
	maxShardAnswer = 8 << 20
	// maxForwards bounds the nodes that one request is sent to.
	maxForwards = 4
	// shardIdle is how long an idle connection to another shard is kept. It is shorter
	// than IdleTimeout, so that this end closes it and no request meets a closed one.
	shardIdle = 5 * time.Second
	// retryShardS is the Retry-After if another shard does not answer: a failover takes
	// about a second.
	retryShardS = 1

	minShardSecret = 32 // bytes
)

// Shards configures the shards. It must be the same in all of them, except Own.
type Shards struct {
	Own    market.ShardID // this shard
	All    []Shard        // 2..market.MaxShards, including this one
	Secret []byte         // key of signatures between gateways, at least 32 bytes
	// Timeout bounds a request to another shard, including all tries.
	Timeout time.Duration
	MaxOpen int // requests in progress to one shard; more are answered OVERLOADED
}

// Shard is one shard.
type Shard struct {
	Name   string // lower case letters, digits and dashes
	Number market.ShardID
	// Instruments are the shard's instruments in its own order. Their IDs are ignored.
	Instruments []market.Instrument
	Nodes       []ShardNode
}

// ShardNode has the URLs of one process of a shard, without a slash at the end. WS is
// only for the pages and may be empty.
type ShardNode struct{ Base, API, WS string }

// Validate reports the first invalid field.
func (o *Shards) Validate() error {
	switch {
	case len(o.All) < 2 || len(o.All) > market.MaxShards:
		return fmt.Errorf("httpgw: %d groups, want 2 to %d", len(o.All), market.MaxShards)
	case len(o.Secret) < minShardSecret:
		return fmt.Errorf("httpgw: the groups' secret has %d bytes, want %d or more", len(o.Secret), minShardSecret)
	case o.Timeout <= 0 || o.MaxOpen < 1:
		return errors.New("httpgw: groups: timeout and max_open must be positive")
	}
	numbers := map[market.ShardID]bool{}
	for i := range o.All {
		g := &o.All[i]
		if g.Name == "" || g.Number < 1 || g.Number > market.MaxShards || numbers[g.Number] || len(g.Nodes) == 0 {
			return fmt.Errorf("httpgw: group %d (%s) needs a name, nodes and a unique number of 1 to %d", g.Number, g.Name, market.MaxShards)
		}
		numbers[g.Number] = true
	}
	if !numbers[o.Own] {
		return fmt.Errorf("httpgw: group %d is not among the groups", o.Own)
	}
	return nil
}

// shardRouter finds the shard that owns a request and forwards to it.
type shardRouter struct {
	own     market.ShardID
	name    string     // ours
	macs    *sync.Pool // see newMACs
	timeout time.Duration
	now     func() int64 // Unix nanoseconds
	// The other shards by what clients name: the numbers in ids, and symbols and tickers.
	byNumber map[market.ShardID]*remoteShard
	byName   map[string]*remoteShard
	all      []*remoteShard // in the order of the configuration

	forwarded *prometheus.CounterVec // by shard and outcome
}

func newShardRouter(o *Shards, now func() int64) (*shardRouter, error) {
	r := &shardRouter{
		own: o.Own, macs: newMACs(o.Secret), timeout: o.Timeout, now: now,
		byNumber: map[market.ShardID]*remoteShard{}, byName: map[string]*remoteShard{},
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blockdesk_http_forwarded_requests_total",
			Help: "Requests forwarded to another group, by group and outcome: answered, unreachable, overloaded.",
		}, []string{"group", "outcome"}),
	}
	for i := range o.All {
		g := &o.All[i]
		if g.Number == o.Own {
			r.name = g.Name
			continue
		}
		remote, err := newRemoteShard(g, o)
		if err != nil {
			return nil, err
		}
		remote.answered = r.forwarded.WithLabelValues(g.Name, "answered")
		r.all = append(r.all, remote)
		r.byNumber[g.Number] = remote
		for j := range g.Instruments {
			symbol := g.Instruments[j].Symbol
			r.byName[symbol], r.byName[catalog.Ticker(symbol)] = remote, remote
		}
	}
	return r, nil
}

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

func shardUnreachable(reason, text string) *wire.Problem {
	return &wire.Problem{Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeGroupUnreachable, Reason: reason, RetryS: retryShardS, Text: text}
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

// hostOf returns host and port of a URL.
func hostOf(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false, fmt.Errorf("httpgw: %q is not an address of a group: want http://host or https://host", text)
	}
	host, secure = u.Host, u.Scheme == "https"
	if u.Port() == "" {
		host = fasthttp.AddMissingPort(host, secure)
	}
	return host, secure, nil
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
