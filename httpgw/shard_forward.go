package httpgw

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/shardwire"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

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
)

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
			Help: "Requests forwarded to another group, by outcome: answered, unreachable, overloaded.",
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

// remoteShard is another shard with the connections to its nodes.
type remoteShard struct {
	Shard
	last      partialResponses
	nodes     []remoteNode
	preferred atomic.Int32 // index of the node that answered last
	open      atomic.Int64 // requests in progress
	maxOpen   int64

	answered prometheus.Counter
}

// remoteNode is one process of a remote shard, with its base and api addresses.
type remoteNode struct {
	base, api             string
	baseClient, apiClient *fasthttp.HostClient
}

// partialDesk is another shard's desk with the best prices of its books. Its instruments
// have the numbers of mergedView.
type partialDesk struct {
	*shardwire.Desk
	at   int64  // when it was requested, on Options.Clock
	raw  []byte // the encoding of Desk
	tops []marketdata.View
}

// partialFacts is another shard's share of the catalog's facts.
type partialFacts struct {
	*shardwire.Facts
	at int64
}

// partialResponses are the last responses of a shard; nil = none yet.
type partialResponses struct {
	desk  atomic.Pointer[partialDesk]
	facts atomic.Pointer[partialFacts]
}

func newRemoteShard(g *Shard, o *Shards) (*remoteShard, error) {
	r := &remoteShard{Shard: *g, maxOpen: int64(o.MaxOpen)}
	for i := range g.Nodes {
		n := remoteNode{base: g.Nodes[i].Base, api: g.Nodes[i].API}
		var err error
		if n.baseClient, err = hostClient(n.base, o); err != nil {
			return nil, fmt.Errorf("group %s: %w", g.Name, err)
		}
		if n.apiClient, err = hostClient(n.api, o); err != nil {
			return nil, fmt.Errorf("group %s: %w", g.Name, err)
		}
		r.nodes = append(r.nodes, n)
	}
	return r, nil
}

func hostClient(address string, o *Shards) (*fasthttp.HostClient, error) {
	host, secure, err := hostOf(address)
	if err != nil {
		return nil, err
	}
	return &fasthttp.HostClient{
		Addr: host, IsTLS: secure, DialTimeout: dialShard,
		MaxConns:    o.MaxOpen + 1, // for clients' requests, and one for partial responses
		ReadTimeout: o.Timeout, WriteTimeout: o.Timeout, MaxIdleConnDuration: shardIdle,
		MaxResponseBodySize: maxShardAnswer, WriteBufferSize: writeBuffer, ReadBufferSize: writeBuffer,
		// Repeats a GET that met a connection which had just been closed.
		MaxIdemponentCallAttempts: 2,
		NoDefaultUserAgentHeader:  true, DisablePathNormalizing: true, SecureErrorLogMessage: true,
	}, nil
}

// notSentError is an error before the first byte of a request was sent.
type notSentError struct{ error }

// Unwrap returns the cause.
func (e notSentError) Unwrap() error { return e.error }

func dialShard(address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, notSentError{err}
	}
	return conn, nil
}

// address returns the node's URL and client for a route.
func (n *remoteNode) address(r *wire.Route) (string, *fasthttp.HostClient) {
	if r.On&wire.OnBase != 0 {
		return n.base, n.baseClient
	}
	return n.api, n.apiClient
}

// forward sends a request to another shard and writes its answer.
func (g *Gateway) forward(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route, to *remoteShard) {
	raw := wire.RawTarget(ctx)
	if !wire.IsSafeTarget(raw) {
		g.fail(ctx, id, wire.UnknownRoute(nil))
		return
	}
	if to.open.Add(1) > to.maxOpen {
		to.open.Add(-1)
		g.shards.forwarded.WithLabelValues(to.Name, "overloaded").Inc()
		g.fail(ctx, id, &wire.Problem{
			Status: 503, Code: wire.CodeOverloaded, Reason: "group", RetryS: retryShardS,
			Text: "Too many requests to the group that owns this resource are in progress. Nothing was done.",
		})
		return
	}
	defer to.open.Add(-1)
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	g.copyRequest(ctx, r, request)
	from := &internalRequest{from: g.shards.own, client: g.proxies.Client(ctx)}
	if r.Bearer || r.MayBearer {
		// A token of this shard is replaced by its owner's key. An unknown token is
		// forwarded, because the other shard may have issued it.
		from.taker, _ = g.dvp.Taker(&ctx.Request.Header)
	}
	if bad := g.shards.send(to, r, from, raw, request, response, g.shards.timeout); bad != nil {
		g.shards.forwarded.WithLabelValues(to.Name, "unreachable").Inc()
		g.fail(ctx, id, bad)
		return
	}
	to.answered.Inc()
	g.writeForwarded(ctx, id, r, to, response)
}

// forwardedHeaders are the headers of a client's request that are forwarded.
var forwardedHeaders = [...]string{
	fasthttp.HeaderContentType, fasthttp.HeaderContentEncoding, fasthttp.HeaderAcceptEncoding, fasthttp.HeaderIfNoneMatch,
	fasthttp.HeaderAuthorization, wire.IdempotencyHeader,
}

// returnedHeaders are the headers of a shard's answer that the client gets, in addition
// to those that writeForwarded sets.
var returnedHeaders = [...]string{
	fasthttp.HeaderContentEncoding, fasthttp.HeaderETag, fasthttp.HeaderVary, fasthttp.HeaderRetryAfter,
	fasthttp.HeaderWWWAuthenticate, "Idempotency-Replayed",
}

func (g *Gateway) copyRequest(ctx *fasthttp.RequestCtx, r *wire.Route, request *fasthttp.Request) {
	request.Header.SetMethod(wire.MethodNames[r.Method])
	for _, name := range forwardedHeaders {
		for _, value := range ctx.Request.Header.PeekAll(name) {
			request.Header.AddBytesV(name, value)
		}
	}
	if r.Post != nil {
		request.SetBodyRaw(ctx.Request.Body())
	}
}

// send sends a request to the nodes of a shard until one answers: first to the node that
// answered last, then to the leader that it names, or to the next node. A POST that may
// have been executed is not repeated; its outcome is unknown.
func (r *shardRouter) send(
	to *remoteShard, row *wire.Route, from *internalRequest, raw []byte, request *fasthttp.Request, response *fasthttp.Response, within time.Duration,
) *wire.Problem {
	deadline := time.Now().Add(within)
	at, answered := int(to.preferred.Load()), false
	for range maxForwards {
		address, client := to.nodes[at].address(row)
		request.SetRequestURI(address + string(raw))
		request.Header.SetBytesV(internalHeader, r.appendInternalHeader(make([]byte, 0, maxInternalHeader), from, to.Number, raw, request))
		err := client.DoDeadline(request, response, deadline)
		var notSent notSentError
		switch {
		case errors.As(err, &notSent), errors.Is(err, fasthttp.ErrNoFreeConns):
			at = (at + 1) % len(to.nodes)
			continue
		case err != nil && row.Post != nil:
			return shardUnreachable("outcome_unknown",
				"The group that owns this did not answer in time, and the outcome is unknown. Repeat the request with the same "+wire.IdempotencyHeader+".")
		case errors.Is(err, fasthttp.ErrBodyTooLarge):
			return badShardAnswer()
		case err != nil:
			at = (at + 1) % len(to.nodes)
			continue
		}
		next, why := to.nextNode(at, response)
		if why != nil {
			return why
		}
		if next < 0 {
			to.preferred.Store(int32(at))
			return nil
		}
		at, answered = next, true
	}
	if answered && response.StatusCode() == fasthttp.StatusServiceUnavailable {
		return nil // the shard has no leader now, and the last node says so
	}
	return shardUnreachable("no_answer", "The group that owns this cannot be reached. Nothing was done. Try again in a moment.")
}

// nextNode returns the node to try after an answer of node at: the leader that it names,
// or the next node if it names none; -1 if the answer is final. A leader that is not a
// configured node is not followed.
func (to *remoteShard) nextNode(at int, response *fasthttp.Response) (next int, bad *wire.Problem) {
	switch response.StatusCode() {
	case fasthttp.StatusTemporaryRedirect:
		location := string(response.Header.Peek(fasthttp.HeaderLocation))
		for i := range to.nodes {
			n := &to.nodes[i]
			if strings.HasPrefix(location, n.base+"/") || strings.HasPrefix(location, n.api+"/") {
				return i, nil
			}
		}
		return -1, badShardAnswer()
	case fasthttp.StatusServiceUnavailable:
		body := response.Body()
		if bytes.Contains(body, []byte(`"code":"`+wire.CodeLeaderChanged+`"`)) && !bytes.Contains(body, []byte(`"outcome_unknown"`)) {
			return (at + 1) % len(to.nodes), nil
		}
	case fasthttp.StatusMisdirectedRequest, fasthttp.StatusTooManyRequests:
		return -1, badShardAnswer() // a gateway with the same configuration never answers so
	case fasthttp.StatusBadRequest:
		if bytes.Contains(response.Body(), []byte(`"field":"`+internalHeader+`"`)) {
			return -1, badShardAnswer()
		}
	}
	return -1, nil
}

// badShardAnswer is the answer if the shards' configurations differ or the other
// process is not a blockdesk.
func badShardAnswer() *wire.Problem {
	bad := shardUnreachable("bad_answer", "The group that owns this gave an unusable answer. Nothing was done.")
	bad.Status = fasthttp.StatusBadGateway
	return bad
}

// shardHeader names the shard that answered.
var shardHeader = []byte("X-Group")

// writeForwarded writes the answer of another shard. It keeps the answer's request id,
// which is in the body and in that shard's log.
func (g *Gateway) writeForwarded(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route, to *remoteShard, response *fasthttp.Response) {
	var theirs wire.RequestID
	if text := response.Header.PeekBytes(wire.RequestIDHeader); len(text) == len(theirs) {
		copy(theirs[:], text)
		id = &theirs
	}
	cache := r.Cache
	if status := response.StatusCode(); status != fasthttp.StatusOK && status != fasthttp.StatusNotModified {
		cache = wire.NeverCached
	}
	wire.WriteCommon(ctx, id, cache)
	h := &ctx.Response.Header
	for _, name := range returnedHeaders {
		if value := response.Header.Peek(name); len(value) > 0 {
			h.SetBytesV(name, value)
		}
	}
	h.SetCanonical(shardHeader, []byte(to.Name))
	h.SetContentTypeBytes(response.Header.ContentType())
	ctx.SetStatusCode(response.StatusCode())
	ctx.Response.SetBody(response.Body())
}

// close closes the idle connections to other shards.
func (r *shardRouter) close() {
	for _, to := range r.all {
		for i := range to.nodes {
			to.nodes[i].baseClient.CloseIdleConnections()
			to.nodes[i].apiClient.CloseIdleConnections()
		}
	}
}

func shardUnreachable(reason, text string) *wire.Problem {
	return &wire.Problem{Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeGroupUnreachable, Reason: reason, RetryS: retryShardS, Text: text}
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
