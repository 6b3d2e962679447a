package wire

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/ratelimit"
)

// Limit grants or refuses requests of one class, by client.
type Limit struct {
	limiter interface {
		Take(c ratelimit.Client) ratelimit.Allowance
	}
	headerLines []byte // the lines of its headers, up to the number of requests that are left
}

// NewRateLimit returns a token bucket for each client; name stands in RateLimit-Policy.
// It remembers at most maxClients.
func NewRateLimit(name string, r Rate, maxClients int, clock func() int64) *Limit {
	return &Limit{
		ratelimit.NewBuckets(ratelimit.NewRate(r.PerMinute, time.Minute, r.Burst), maxClients, clock),
		// Beside the draft's quota and window, burst is ours.
		limitHeaderLines(name, r.PerMinute, ";burst="+strconv.Itoa(r.Burst)),
	}
}

// NewWindowLimit is NewRateLimit for a limit in any 60 s.
func NewWindowLimit(name string, w Window, maxClients int, clock func() int64) *Limit {
	return &Limit{ratelimit.NewWindows(w.PerMinute, maxClients, clock), limitHeaderLines(name, w.PerMinute, "")}
}

func limitHeaderLines(name string, perMinute int, more string) []byte {
	quoted, quota := strconv.Quote(name), strconv.Itoa(perMinute)
	return joinLines("RateLimit-Policy: "+quoted+";q="+quota+";w=60"+more, "X-RateLimit-Limit: "+quota, "RateLimit: "+quoted+";r=")
}

// Admit takes a request of its client, which clients names, and writes the headers about the limit. A nil
// limit grants everything.
func (l *Limit) Admit(ctx *fasthttp.RequestCtx, clients *Proxies) *Problem {
	if l == nil {
		return nil
	}
	a := l.limiter.Take(ratelimit.ClientOf(clients.Client(ctx)))
	// The lines that l.head begins, the last one's value apart.
	var buf [256]byte
	b := append(buf[:0], l.headerLines...)
	b = strconv.AppendInt(b, a.Remaining, 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, a.ResetS, 10)
	b = append(b, "\r\nX-RateLimit-Remaining: "...)
	b = strconv.AppendInt(b, a.Remaining, 10)
	b = append(b, "\r\nX-RateLimit-Reset"...)
	name := len(b)
	b = strconv.AppendInt(b, a.ResetS, 10)
	ctx.Response.Header.SetCanonical(b[:name], b[name:])
	if !a.OK {
		return RateLimited(int(a.RetryS))
	}
	return nil
}

// Rate is a token bucket of Burst tokens, refilled PerMinute a minute, one for
// each client. The zero value means the default; see Options.NoLimits.
type Rate struct {
	PerMinute int // 1..60,000,000
	Burst     int // 1..1,000,000
}

// Window is a limit of PerMinute requests in any 60 s, for each client. The zero
// value means the default; see Options.NoLimits.
type Window struct {
	PerMinute int // 1..MaxWindow
}

// MaxWindow is the largest Window: the moment of each request is remembered.
const MaxWindow = 1_000_000

// Validate reports a value that is out of range; name is that of the limit.
func (r Rate) Validate(name string) error {
	if r.PerMinute < 1 || r.PerMinute > 60_000_000 {
		return fmt.Errorf("httpgw: rate %s: per_minute %d: 1 to 60000000", name, r.PerMinute)
	}
	if r.Burst < 1 || r.Burst > 1_000_000 {
		return fmt.Errorf("httpgw: rate %s: burst %d: 1 to 1000000", name, r.Burst)
	}
	return nil
}
