package httpgw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

// Defaults of Options. The rate limits are those of docs/specification.md 8 and C.3;
// the others are our choice.
const (
	DefaultMaxConns      = 4096
	DefaultMaxConnsPerIP = 1024
	DefaultMaxClients    = 65536

	DefaultMarketPerMinute = 60
	DefaultMarketBurst     = 20

	DefaultPartnerPerMinute = 300
	DefaultPartnerBurst     = 60

	DefaultWritePerMinute = 30
	DefaultWriteBurst     = 10

	DefaultHandshakePerMinute = 10
	DefaultHandshakeBurst     = 10

	DefaultDvPPerMinute = 3
)

// Options configures a Gateway. The zero value of a field means its default.
type Options struct {
	// Listening addresses, host:port; port 0 takes a free one.
	Base, API, WS string
	// Listen binds them; default net.Listen.
	Listen func(network, addr string) (net.Listener, error)
	// URLs are the public URLs that documents print. An empty one is derived from its
	// listener; Mirror and Native default to Base.
	URLs catalog.URLs

	// Instruments are the instruments of this shard. Required.
	Instruments *market.Instruments
	Description wire.Description
	// Specification is the OpenAPI document, JSON with the default addresses; see
	// site.Publish. It must not change. Empty: it is not served.
	Specification []byte
	// TokenWindow is the time in which a client address gets one DvP token, as
	// Dependencies.Handshake counts it; 0: an hour.
	TokenWindow time.Duration
	// Downloads are the files below /public-sdk/. Nil: there are none.
	Downloads *site.Downloads
	// FeeBps is the fee that every payment includes, in basis points, which the board
	// shows before a quote.
	FeeBps int
	// DemoChain is the URL of the demo's local chain, where the sandbox wallet of the
	// pages gets its funds. Empty: there is none.
	DemoChain string

	// MaxConns bounds the connections of all three addresses together, without
	// WebSockets, which package feed limits. A connection costs up to MaxHeaderBytes +
	// 16 KiB of buffers. A connection above the limit is answered 503 and closed.
	MaxConns int
	// MaxConnsPerIP bounds the connections of one client address, except trusted
	// proxies. A connection above the limit is answered 429 and closed.
	MaxConnsPerIP int
	// MaxClients bounds the clients that each rate limiter remembers.
	MaxClients int

	MaxHeaderBytes int // request line and headers, 4 KiB..64 KiB; more is 431
	MaxBodyBytes   int // more is 413

	ReadTimeout     time.Duration // for a whole request, from its first byte
	WriteTimeout    time.Duration // for a whole response
	IdleTimeout     time.Duration // between two requests
	ShutdownTimeout time.Duration // for requests in progress when Run ends

	Market    wire.Rate   // market data and RFQ reads
	Partner   wire.Rate   // adapters of aggregators, which poll faster than others
	RFQWrite  wire.Rate   // quotes, claims and proofs of payment
	Handshake wire.Rate   // nonces and tokens
	DvP       wire.Window // builds and submissions, together
	// NoLimits switches every rate limit off.
	NoLimits bool

	// RedirectTargets are URLs of the processes that requests may be redirected to. The
	// Content-Security-Policy of the pages allows them.
	RedirectTargets []string
	// Leadership is the node's role in its raft group. Default nil: a single node.
	Leadership *leadership.Leadership

	// Shards are the shards that instruments are split over. Default nil: not split.
	Shards *Shards

	// TrustedProxies may name the client in ForwardedHeader, default X-Forwarded-For. The
	// header is ignored in requests of other peers.
	TrustedProxies  []netip.Prefix
	ForwardedHeader string

	// Clock returns monotonic nanoseconds, for rate limits and ages. Default: the
	// monotonic clock.
	Clock func() int64
	// Now returns Unix nanoseconds, for the ts of documents and the age of prices.
	// Default: the wall clock.
	Now    func() int64
	Logger *slog.Logger // default: none
}

func (o *Options) applyDefaults() {
	o.Base = cmp.Or(o.Base, wire.DefaultBase)
	o.API = cmp.Or(o.API, wire.DefaultAPI)
	o.WS = cmp.Or(o.WS, wire.DefaultWS)
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	o.MaxConns = cmp.Or(o.MaxConns, DefaultMaxConns)
	o.MaxConnsPerIP = cmp.Or(o.MaxConnsPerIP, DefaultMaxConnsPerIP)
	o.MaxClients = cmp.Or(o.MaxClients, DefaultMaxClients)
	o.MaxHeaderBytes = cmp.Or(o.MaxHeaderBytes, wire.DefaultMaxHeaderBytes)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, wire.DefaultMaxBodyBytes)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, wire.DefaultReadTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, wire.DefaultWriteTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, wire.DefaultIdleTimeout)
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, wire.DefaultShutdownTimeout)
	o.Market = cmp.Or(o.Market, wire.Rate{PerMinute: DefaultMarketPerMinute, Burst: DefaultMarketBurst})
	o.Partner = cmp.Or(o.Partner, wire.Rate{PerMinute: DefaultPartnerPerMinute, Burst: DefaultPartnerBurst})
	o.RFQWrite = cmp.Or(o.RFQWrite, wire.Rate{PerMinute: DefaultWritePerMinute, Burst: DefaultWriteBurst})
	o.Handshake = cmp.Or(o.Handshake, wire.Rate{PerMinute: DefaultHandshakePerMinute, Burst: DefaultHandshakeBurst})
	o.DvP = cmp.Or(o.DvP, wire.Window{PerMinute: DefaultDvPPerMinute})
	o.ForwardedHeader = cmp.Or(o.ForwardedHeader, fasthttp.HeaderXForwardedFor)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() int64 { return int64(time.Since(start)) }
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	o.Description.ApplyDefaults()
}

// Validate reports the first invalid field, after applying the defaults to a copy.
func (o Options) Validate() error {
	o.applyDefaults()
	switch {
	case o.Instruments == nil:
		return errors.New("httpgw: instruments are required")
	case len(o.Specification) > 0 && !json.Valid(o.Specification):
		return errors.New("httpgw: the specification is not JSON")
	}
	if err := o.checkConns(); err != nil {
		return err
	}
	if o.Shards != nil {
		if err := o.Shards.Validate(); err != nil {
			return err
		}
	}
	if n := o.DvP.PerMinute; n < 1 || n > wire.MaxWindow {
		return fmt.Errorf("httpgw: rate dvp: per_minute %d: must be 1 to %d", n, wire.MaxWindow)
	}
	return errors.Join(o.Market.Validate("market"), o.Partner.Validate("partner"), o.RFQWrite.Validate("rfq_write"), o.Handshake.Validate("handshake"))
}

// checkConns reports the first invalid limit of connections and requests.
func (o *Options) checkConns() error {
	switch {
	case o.MaxConns < 1:
		return fmt.Errorf("httpgw: max_conns %d is below 1", o.MaxConns)
	case o.MaxConnsPerIP < 1:
		return fmt.Errorf("httpgw: max_conns_per_ip %d is below 1", o.MaxConnsPerIP)
	case o.MaxClients < 1 || o.MaxClients > 1<<24:
		return fmt.Errorf("httpgw: max_clients %d: must be 1 to %d", o.MaxClients, 1<<24)
	case o.MaxHeaderBytes < 4<<10 || o.MaxHeaderBytes > 64<<10:
		return fmt.Errorf("httpgw: max_header_bytes %d: must be %d to %d", o.MaxHeaderBytes, 4<<10, 64<<10)
	case o.MaxBodyBytes < 1 || o.MaxBodyBytes > 16<<20:
		return fmt.Errorf("httpgw: max_body_bytes %d: must be 1 to %d", o.MaxBodyBytes, 16<<20)
	case o.ReadTimeout < 0 || o.WriteTimeout < 0 || o.IdleTimeout < 0 || o.ShutdownTimeout < 0:
		return errors.New("httpgw: a timeout is negative")
	}
	return nil
}

const minShardSecret = 32 // bytes

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
