package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/gagliardetto/solana-go/rpc"
	"github.com/gagliardetto/solana-go/rpc/jsonrpc"
)

// Commitment is Solana's commitment level of a block.
type Commitment uint8

const (
	Processed Commitment = 1
	Confirmed Commitment = 2
	Finalized Commitment = 3
)

// String returns the JSON-RPC name.
func (c Commitment) String() string {
	if c < Processed || c > Finalized {
		return "commitment?"
	}
	return string([...]sdk.CommitmentType{
		Processed: sdk.CommitmentProcessed, Confirmed: sdk.CommitmentConfirmed, Finalized: sdk.CommitmentFinalized,
	}[c])
}

// MarshalText writes the JSON-RPC name.
func (c Commitment) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Client calls the nodes.
type Client struct {
	options   Options
	upstreams []*upstream
	ids       atomic.Uint64
	rotations atomic.Uint64 // calls of rotation
	active    atomic.Pointer[upstream]

	// fetching is held while a blockhash is fetched; hashMu guards hash.
	fetching sync.Mutex
	hashMu   sync.Mutex
	hash     Blockhash
	// offered is the blockhash that the nodes vote on next, and offers counts them; see
	// latest. fetching guards both.
	offered Blockhash
	offers  int
}

// New returns a client. It calls no node. Errors: [ErrOptions].
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Client{options: o}
	dial := net.Dialer{Timeout: o.DialTimeout, KeepAlive: 15 * time.Second}
	for i := range o.Upstreams {
		u := &o.Upstreams[i]
		c.upstreams = append(c.upstreams, &upstream{
			name: u.name(), url: u.URL, redact: hideSecrets(u.URL), maxAnswer: o.MaxAnswer, batches: batcher{gatherFor: defaultGatherFor},
			http: &http.Client{Transport: o.transport(dial.DialContext), CheckRedirect: noRedirect},
		})
	}
	c.active.Store(c.upstreams[0])
	return c, nil
}

// noRedirect refuses a redirect to another server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes the idle connections.
func (c *Client) Close() {
	for _, u := range c.upstreams {
		u.http.CloseIdleConnections()
	}
}

// Active returns the name of the node that answered last.
func (c *Client) Active() string { return c.active.Load().name }

// Health returns the health of all nodes, in the order of the options.
func (c *Client) Health() []UpstreamHealth {
	now, best := time.Now(), c.bestSlot()
	list := make([]UpstreamHealth, len(c.upstreams))
	for i, u := range c.upstreams {
		h := u.snapshot()
		list[i] = UpstreamHealth{
			Name: u.name, Available: c.available(&h, best, now), Slot: h.slot, Lag: best - min(h.slot, best), Latency: h.latency,
			LastOK: h.lastOK, LastErrorAt: h.errorAt, LastError: h.lastError, ConsecutiveFailures: h.failures, Calls: h.calls, Errors: h.errors,
		}
	}
	return list
}

func (c *Client) bestSlot() (best uint64) {
	for _, u := range c.upstreams {
		best = max(best, u.snapshot().slot)
	}
	return best
}

// available reports whether a node works, does not rate-limit us and is not behind. A
// node whose slot is unknown is not behind.
func (c *Client) available(h *health, best uint64, now time.Time) bool {
	return h.failures < unavailableAfter && !now.Before(h.rateLimitedUntil) && (h.slot == 0 || best-min(h.slot, best) <= c.options.MaxLag)
}

// plan returns the node of each try of a call: the available ones in the order of the
// options, then the others, then again from the first.
func (c *Client) plan() []*upstream {
	now, best := time.Now(), c.bestSlot()
	order, last := make([]*upstream, 0, len(c.upstreams)), []*upstream(nil)
	for _, u := range c.upstreams {
		if h := u.snapshot(); c.available(&h, best, now) {
			order = append(order, u)
		} else {
			last = append(last, u)
		}
	}
	order = append(order, last...)
	tries := make([]*upstream, c.options.Attempts)
	for i := range tries {
		tries[i] = order[i%len(order)]
	}
	return tries
}

// planInTurn is plan in the order of rotation.
func (c *Client) planInTurn() []*upstream { return c.planOf(c.rotation()) }

// planAtRandom is plan, but begins with any of the available nodes, so that no node decides
// alone, call after call, what becomes of a transaction.
func (c *Client) planAtRandom() []*upstream { return c.planOf(c.order(rand.IntN)) }

func (c *Client) planOf(order []int) []*upstream {
	tries := make([]*upstream, c.options.Attempts)
	for i := range tries {
		tries[i] = c.upstreams[order[i%len(order)]]
	}
	return tries
}

// rotation returns the numbers of all nodes in the order in which a call asks one after
// another: the available ones, each call beginning with another of them, then the rest.
func (c *Client) rotation() []int {
	return c.order(func(n int) int { return int(c.rotations.Add(1) % uint64(n)) })
}

// order returns the numbers of the available nodes, beginning with the one that choose
// returns, then the rest.
func (c *Client) order(choose func(n int) int) []int {
	now, best := time.Now(), c.bestSlot()
	order, last := make([]int, 0, len(c.upstreams)), []int(nil)
	for i, u := range c.upstreams {
		if h := u.snapshot(); c.available(&h, best, now) {
			order = append(order, i)
		} else {
			last = append(last, i)
		}
	}
	if n := len(order); n > 0 {
		first := choose(n)
		order = append(append(make([]int, 0, len(c.upstreams)), order[first:]...), order[:first]...)
	}
	return append(order, last...)
}

// hedgedCall sends one request to several nodes until one succeeds.
type hedgedCall[T any] struct {
	client *Client
	request[T]
	// hedge allows a second node while the first has not answered.
	hedge bool
	tries []*upstream
	// answer is the result when Run returns nil.
	answer T
}

type try[T any] struct {
	answer T
	err    error
}

// Run makes the tries and returns when all that were started have ended. The error is
// the last try's, or the context's.
func (r *hedgedCall[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.client.options.Timeout)
	results := make(chan try[T], len(r.tries))
	begun, ended := 0, 0
	begin := func() {
		u := r.tries[begun]
		begun++
		go func() { results <- r.try(ctx, u) }()
	}
	defer func() {
		cancel()
		for ; ended < begun; ended++ {
			<-results
		}
	}()
	// The timer starts the next try: a hedge, or one after a pause.
	timer := time.NewTimer(2 * r.client.options.Timeout)
	defer timer.Stop()
	begin()
	r.arm(timer, begun)
	for {
		select {
		case got := <-results:
			ended++
			if got.err == nil {
				r.answer = got.answer
				return nil
			}
			if r.failed(KindOf(got.err), begun, ended) {
				return got.err
			}
			switch {
			case begun == len(r.tries): // another try is still under way
			case begun < r.nodes():
				timer.Stop() // this try replaces the hedge
				begin()
				r.arm(timer, begun)
			default:
				timer.Reset(r.client.options.Backoff << (begun - r.nodes()))
			}
		case <-timer.C:
			if begun < len(r.tries) {
				begin()
			}
		case <-ctx.Done():
			return &Error{Kind: Down, Upstream: r.tries[begun-1].name, Method: r.method, Err: ctx.Err()}
		}
	}
}

// failed reports whether a failure ends the call: no node would do better, or no try is
// left. A node that rate-limits us is not asked again in the same call.
func (r *hedgedCall[T]) failed(kind Kind, begun, ended int) bool {
	if !kind.retryable() {
		return true
	}
	return ended == begun && (begun == len(r.tries) || kind == RateLimited && begun >= r.nodes())
}

// nodes returns how many tries ask a node for the first time.
func (r *hedgedCall[T]) nodes() int { return min(len(r.client.upstreams), len(r.tries)) }

// arm sets the timer for a hedge: one at a time, on a node not asked yet.
func (r *hedgedCall[T]) arm(timer *time.Timer, begun int) {
	if r.hedge && r.client.options.HedgeAfter >= 0 && begun < r.nodes() {
		timer.Reset(r.client.options.HedgeAfter)
	}
}

func (r *hedgedCall[T]) try(ctx context.Context, u *upstream) (t try[T]) {
	t.answer, t.err = attempt(ctx, r.client, u, &r.request)
	if t.err == nil {
		r.client.active.Store(u)
	}
	return t
}

// request is one request and the parser of its result. A parse error is a wrong answer.
type request[T any] struct {
	method string
	id     uint64
	body   []byte
	parse  func(json.RawMessage) (T, error)
}

func newRequest[T any](c *Client, method string, parse func(json.RawMessage) (T, error), params []any) (request[T], error) {
	q := request[T]{method: method, id: c.ids.Add(1), parse: parse}
	if params == nil {
		params = []any{}
	}
	var err error
	if q.body, err = json.Marshal(jsonrpc.RPCRequest{JSONRPC: "2.0", ID: q.id, Method: method, Params: params}); err != nil {
		return q, fmt.Errorf("rpc: %s: %w", method, err)
	}
	return q, nil
}

// attempt calls one node once and records the outcome in its health.
func attempt[T any](ctx context.Context, c *Client, u *upstream, q *request[T]) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.AttemptTimeout)
	defer cancel()
	start := time.Now()
	result, err := u.call(ctx, q.id, q.method, q.body)
	if err == nil {
		if answer, err = q.parse(result); err != nil {
			err = &Error{Kind: WrongAnswer, Upstream: u.name, Method: q.method, Err: err}
		}
	}
	now := time.Now()
	u.record(err, now, now.Sub(start))
	return answer, err
}

// call calls the nodes. hedge is for reads.
func call[T any](ctx context.Context, c *Client, hedge bool, method string, parse func(json.RawMessage) (T, error), params ...any) (answer T, err error) {
	return callOn(ctx, c, c.plan(), hedge, method, parse, params...)
}

// callOn calls the nodes of a plan.
func callOn[T any](
	ctx context.Context, c *Client, plan []*upstream, hedge bool, method string, parse func(json.RawMessage) (T, error), params ...any,
) (answer T, err error) {
	q, err := newRequest(c, method, parse, params)
	if err != nil {
		return answer, err
	}
	r := hedgedCall[T]{client: c, request: q, hedge: hedge, tries: plan}
	if err := r.Run(ctx); err != nil {
		return answer, err
	}
	return r.answer, nil
}

// into decodes a result of type T.
func into[T any](result json.RawMessage) (v T, err error) {
	return v, json.Unmarshal(result, &v)
}
