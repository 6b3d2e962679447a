// Package rpc is a JSON-RPC client over several Solana nodes.
//
// A node may be slow, behind, rate limited, down, or wrong. Each call tries one node
// after another, in the order of the configuration or in turn, with those that were
// recently unavailable or behind last. A read that takes longer than usual is sent to a second
// node as well, and the first valid answer counts. An answer is validated while another
// node can still be asked.
//
// Invariants:
//  1. Every call ends: within Options.Timeout, after Options.Attempts tries;
//     FindTransaction within one Options.AttemptTimeout more.
//  2. An answer longer than Options.MaxAnswer is refused, not read.
//  3. A send is tried one node at a time, with the same bytes, and succeeds only if the
//     node returns the transaction's own first signature.
//  4. Requests for transactions that are made while a node answers another one travel in
//     one batch. A node that refuses batches gets single requests. An answer counts only
//     for the request whose id it has; a request that the batch leaves unanswered fails
//     by itself.
//  5. A node's URL may contain a key: errors and health use the node's Name only.
//
// Requests are solana-go's types. The client and the answers are our own, because that
// library's client calls one node, reads an answer of any length, and takes a missing
// member for zero.
//
// Concurrency: safe for concurrent use. Goroutines run only while [Client.Run] or a
// call does, and until a batch that no call waits for any more has been given up.
package rpc

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Limits of Agave's interface, and our own.
const (
	MaxUpstreams         = 16
	MaxAccountsPerCall   = 100
	MaxStatusesPerCall   = 256
	MaxSignaturesPerCall = 1000
	maxAttempts          = 16
	unavailableAfter     = 3 // failures in a row
	maxRetryAfter        = 30 * time.Second
	defaultRetryAfter    = 2 * time.Second
)

// ErrOptions says that the options are invalid.
var ErrOptions = errors.New("rpc: invalid options")

// Upstream is a node.
type Upstream struct {
	// Name is used in errors and health; empty means the URL's host.
	Name string
	// URL is http or https. It may contain a key and is never shown.
	URL string
}

// Options are the options of a Client. Zero values mean those of [DefaultOptions].
type Options struct {
	// Upstreams in the order of preference, 1 to MaxUpstreams.
	Upstreams []Upstream
	// Timeout bounds a call with all its tries, AttemptTimeout one try.
	Timeout, AttemptTimeout time.Duration
	// DialTimeout bounds connecting, with TLS.
	DialTimeout time.Duration
	// Attempts is the number of tries of a call, 1 to 16, over all nodes.
	Attempts int
	// HedgeAfter is how long a read waits before a second node is called too. Negative:
	// never.
	HedgeAfter time.Duration
	// Backoff is the first pause before a node is called again in one call; it doubles.
	Backoff time.Duration
	// MaxAnswer bounds the bytes of an answer.
	MaxAnswer int64
	// MaxConnections bounds connections to one node.
	MaxConnections int
	// MaxLag is how many slots a node may be behind the best one before it is called
	// last.
	MaxLag uint64
	// ProbeEvery and BlockhashEvery are the intervals of Run. A blockhash older than
	// MaxBlockhashAge is not used.
	ProbeEvery, BlockhashEvery, MaxBlockhashAge time.Duration
	// BlockhashCommitment is the commitment at which blockhashes are fetched. A node with
	// default settings checks a transaction as of its finalized slot before it forwards
	// it, so a newer blockhash is refused there until it is final. A finalized one lives
	// some 32 blocks less.
	BlockhashCommitment Commitment
}

// DefaultOptions returns the defaults, without upstreams.
func DefaultOptions() Options {
	return Options{
		Timeout: 8 * time.Second, AttemptTimeout: 4 * time.Second, DialTimeout: 2 * time.Second,
		Attempts: 3, HedgeAfter: 300 * time.Millisecond, Backoff: 50 * time.Millisecond,
		MaxAnswer: 8 << 20, MaxConnections: 64, MaxLag: 40,
		ProbeEvery: 2 * time.Second, BlockhashEvery: 2 * time.Second, MaxBlockhashAge: 15 * time.Second,
		BlockhashCommitment: Finalized,
	}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.Timeout = cmp.Or(o.Timeout, d.Timeout)
	o.AttemptTimeout = cmp.Or(o.AttemptTimeout, d.AttemptTimeout)
	o.DialTimeout = cmp.Or(o.DialTimeout, d.DialTimeout)
	o.HedgeAfter = cmp.Or(o.HedgeAfter, d.HedgeAfter)
	o.Backoff = cmp.Or(o.Backoff, d.Backoff)
	o.ProbeEvery = cmp.Or(o.ProbeEvery, d.ProbeEvery)
	o.BlockhashEvery = cmp.Or(o.BlockhashEvery, d.BlockhashEvery)
	o.MaxBlockhashAge = cmp.Or(o.MaxBlockhashAge, d.MaxBlockhashAge)
	o.Attempts = cmp.Or(o.Attempts, d.Attempts)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, d.MaxAnswer)
	o.MaxConnections = cmp.Or(o.MaxConnections, d.MaxConnections)
	o.MaxLag = cmp.Or(o.MaxLag, d.MaxLag)
	o.BlockhashCommitment = cmp.Or(o.BlockhashCommitment, d.BlockhashCommitment)
	return o
}

// Validate checks the options. Errors: [ErrOptions], without a URL.
func (o *Options) Validate() error {
	if len(o.Upstreams) < 1 || len(o.Upstreams) > MaxUpstreams {
		return fmt.Errorf("%w: %d upstreams: out of range", ErrOptions, len(o.Upstreams))
	}
	names := map[string]bool{}
	for i := range o.Upstreams {
		u, err := url.Parse(o.Upstreams[i].URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%w: upstream %d has no http or https URL", ErrOptions, i+1)
		}
		name := o.Upstreams[i].name()
		if names[name] {
			return fmt.Errorf("%w: two upstreams are named %s", ErrOptions, name)
		}
		names[name] = true
	}
	for _, d := range []time.Duration{o.Timeout, o.AttemptTimeout, o.DialTimeout, o.Backoff, o.ProbeEvery, o.BlockhashEvery, o.MaxBlockhashAge} {
		if d < 0 {
			return fmt.Errorf("%w: a duration is negative", ErrOptions)
		}
	}
	if o.Attempts < 0 || o.Attempts > maxAttempts || o.MaxAnswer < 0 || o.MaxConnections < 0 || o.BlockhashCommitment > Finalized {
		return fmt.Errorf("%w: Attempts %d, MaxAnswer %d, MaxConnections %d, BlockhashCommitment %d: one is out of range", ErrOptions, o.Attempts, o.MaxAnswer, o.MaxConnections, o.BlockhashCommitment)
	}
	return nil
}

func (u *Upstream) name() string {
	if u.Name != "" {
		return u.Name
	}
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return "upstream"
	}
	return parsed.Host
}

// transport returns the client's own transport: the standard one waits without bound
// and keeps two idle connections. It requests no compression, so that MaxAnswer bounds
// the bytes that are read.
func (o *Options) transport(dial dialer) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSHandshakeTimeout: o.DialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxConnsPerHost: o.MaxConnections, MaxIdleConnsPerHost: o.MaxConnections, IdleConnTimeout: 90 * time.Second,
		ResponseHeaderTimeout: o.AttemptTimeout, MaxResponseHeaderBytes: 64 << 10,
	}
}
