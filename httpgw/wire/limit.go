package wire

import (
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/ratelimit"
)

// Limit is the rate limit of one class of routes, per client.
type Limit struct {
	limiter interface {
		Take(c ratelimit.Client) ratelimit.Allowance
	}
	headerLines []byte // the lines of its headers, up to the number of requests that are left
}

// NewRateLimit returns a token bucket per client that remembers at most maxClients
// clients. name is the limit's name in the header RateLimit-Policy.
func NewRateLimit(name string, r Rate, maxClients int, clock func() int64) *Limit {
	return &Limit{
		ratelimit.NewBuckets(ratelimit.NewRate(r.PerMinute, time.Minute, r.Burst), maxClients, clock),
		// The RateLimit draft has quota and window; burst is our choice.
		limitHeaderLines(name, r.PerMinute, ";burst="+strconv.Itoa(r.Burst)),
	}
}

// NewWindowLimit is NewRateLimit for a limit in any window of 60 s.
func NewWindowLimit(name string, w Window, maxClients int, clock func() int64) *Limit {
	return &Limit{ratelimit.NewWindows(w.PerMinute, maxClients, clock), limitHeaderLines(name, w.PerMinute, "")}
}

func limitHeaderLines(name string, perMinute int, more string) []byte {
	quoted, quota := strconv.Quote(name), strconv.Itoa(perMinute)
	return joinLines("RateLimit-Policy: "+quoted+";q="+quota+";w=60"+more, "X-RateLimit-Limit: "+quota, "RateLimit: "+quoted+";r=")
}

// Admit counts a request of its client and writes the rate limit headers. It returns
// the refusal of a client that is over the limit. A nil Limit admits everything.
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

// Rate is a token bucket per client: Burst tokens, refilled at PerMinute tokens a
// minute. The zero value means the default.
type Rate struct {
	PerMinute int // 1..60,000,000
	Burst     int // 1..1,000,000
}

// Window is a limit per client of PerMinute requests in any 60 s. The zero value means
// the default.
type Window struct {
	PerMinute int // 1..MaxWindow
}

// MaxWindow is the largest Window. It has a maximum because the time of each request
// is stored.
const MaxWindow = 1_000_000

// Validate reports a value that is out of range. name is the limit's name in the error.
func (r Rate) Validate(name string) error {
	if r.PerMinute < 1 || r.PerMinute > 60_000_000 {
		return fmt.Errorf("httpgw: rate %s: per_minute %d: must be 1 to 60000000", name, r.PerMinute)
	}
	if r.Burst < 1 || r.Burst > 1_000_000 {
		return fmt.Errorf("httpgw: rate %s: burst %d: must be 1 to 1000000", name, r.Burst)
	}
	return nil
}
