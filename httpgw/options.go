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

// Defaults of Options. The rate limits of market data and of DvP are the
// description's (part 8), those of RFQ writes and handshakes the contract's
// (section C); the others are our choice.
const (
	DefaultMaxConns      = 4096
	DefaultMaxConnsPerIP = 1024
	DefaultMaxClients    = 65536

	DefaultMarketPerMinute = 60
	DefaultMarketBurst     = 20

	// Aggregators poll faster than others (contract, section F).
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
	// URLs are those that documents print, without a slash at the end. An empty one is
	// made from its listener; Mirror and Native are Base where they are empty.
	URLs catalog.URLs

	// Instruments are all that readers may name. Required.
	Instruments *market.Instruments
	Description wire.Description
	// Specification is the OpenAPI document, JSON that names the default
	// addresses; see publish. It must not change. Empty: it is not served.
	Specification []byte
	// Downloads are the files below /public-sdk/. The AsyncAPI document among them
	// is published as the Specification is. nil: there are none.
	Downloads *site.Downloads
	// DemoChain is the URL of the local chain of a demo, which the pages for people
	// get so that their sandbox wallet can be funded there. Empty: there is none.
	DemoChain string

	// MaxConns bounds the connections of all three addresses together, those
	// handed to the WebSocket excepted (feed has a limit of its own). A
	// connection costs up to MaxHeaderBytes + 16 KiB of buffers. One more is
	// answered 503 and closed.
	MaxConns int
	// MaxConnsPerIP bounds those of one client address; trusted proxies are
	// free of it. One more is answered 429 and closed.
	MaxConnsPerIP int
	// MaxClients bounds the clients that the rate limiter remembers.
	MaxClients int

	MaxHeaderBytes int // request line and headers, 4 KiB..64 KiB; one more byte is 431
	MaxBodyBytes   int // one more byte is 413

	ReadTimeout     time.Duration // for a whole request, from its first byte
	WriteTimeout    time.Duration // for a whole response
	IdleTimeout     time.Duration // between two requests
	ShutdownTimeout time.Duration // for requests under way when Run ends

	Market    wire.Rate   // market data and RFQ reads
	Partner   wire.Rate   // what aggregators poll, below /api/v1/market/adapters/
	RFQWrite  wire.Rate   // quotes, claims and proofs of payment
	Handshake wire.Rate   // nonces and tokens
	DvP       wire.Window // builds and submissions, together
	// NoLimits switches every rate limit off.
	NoLimits bool

	// RedirectTargets are URLs of the processes that requests may be sent on to: pages for
	// people are allowed to follow.
	RedirectTargets []string
	// Leadership is the node's place in its group: what this node cannot answer for is
	// LEADER_CHANGED, or 307 to the leader. Default nil: the node is no group's.
	Leadership *leadership.Leadership

	// Groups are those that instruments are split over; Instruments are our group's
	// then. Default nil: they are not split.
	Shards *Shards

	// TrustedProxies may name the client in ForwardedHeader (default
	// X-Forwarded-For). Requests of other peers are not asked for it.
	TrustedProxies  []netip.Prefix
	ForwardedHeader string

	// Clock returns nanoseconds that never fall, for the rate limiter. Default:
	// the monotonic clock.
	Clock func() int64
	// Now returns the time in Unix nanoseconds, for the ts of documents and the
	// age of prices. Default: the wall clock.
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

// Validate reports the first field that is out of range, after defaults were
// applied to a copy.
func (o Options) Validate() error {
	o.applyDefaults()
	switch {
	case o.Instruments == nil:
		return errors.New("httpgw: no instruments")
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
		return fmt.Errorf("httpgw: rate dvp: per_minute %d: 1 to %d", n, wire.MaxWindow)
	}
	return errors.Join(o.Market.Validate("market"), o.Partner.Validate("partner"), o.RFQWrite.Validate("rfq_write"), o.Handshake.Validate("handshake"))
}

// checkConns reports the first limit on connections and requests that is out of
// range.
func (o *Options) checkConns() error {
	switch {
	case o.MaxConns < 1:
		return fmt.Errorf("httpgw: max_conns %d: at least 1", o.MaxConns)
	case o.MaxConnsPerIP < 1:
		return fmt.Errorf("httpgw: max_conns_per_ip %d: at least 1", o.MaxConnsPerIP)
	case o.MaxClients < 1 || o.MaxClients > 1<<24:
		return fmt.Errorf("httpgw: max_clients %d: 1 to %d", o.MaxClients, 1<<24)
	case o.MaxHeaderBytes < 4<<10 || o.MaxHeaderBytes > 64<<10:
		return fmt.Errorf("httpgw: max_header_bytes %d: %d to %d", o.MaxHeaderBytes, 4<<10, 64<<10)
	case o.MaxBodyBytes < 1 || o.MaxBodyBytes > 16<<20:
		return fmt.Errorf("httpgw: max_body_bytes %d: 1 to %d", o.MaxBodyBytes, 16<<20)
	case o.ReadTimeout < 0 || o.WriteTimeout < 0 || o.IdleTimeout < 0 || o.ShutdownTimeout < 0:
		return errors.New("httpgw: a timeout is negative")
	}
	return nil
}
