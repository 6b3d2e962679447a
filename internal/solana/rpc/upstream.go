package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// upstream is one node and its health.
type upstream struct {
	name, url string
	redact    *strings.Replacer // see hideSecrets
	http      *http.Client
	maxAnswer int64
	batches   batcher

	mu     sync.Mutex
	health health
	first  FirstBlock // the last one that it returned
}

// health is guarded by upstream.mu.
type health struct {
	slot             uint64
	latency          time.Duration
	lastOK           time.Time
	lastError        string
	errorAt          time.Time
	failures         int
	rateLimitedUntil time.Time
	calls            uint64
	errors           uint64
}

// UpstreamHealth is the health of one node.
type UpstreamHealth struct {
	Name string
	// Available nodes are called before the others.
	Available bool
	// Slot is the node's last known slot; Lag is how far that is behind the highest of
	// all nodes.
	Slot, Lag uint64
	// Latency is a moving average over about eight calls.
	Latency time.Duration
	// LastOK and LastErrorAt are zero if there was none.
	LastOK, LastErrorAt time.Time
	LastError           string
	// ConsecutiveFailures, and calls and errors since the start.
	ConsecutiveFailures int
	Calls, Errors       uint64
}

// response is a JSON-RPC 2.0 answer. It is our own type because solana-go's read a
// missing member as zero and an error as any value.
type response struct {
	ID     *uint64         `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

// call makes one try. The error is an *Error.
func (u *upstream) call(ctx context.Context, id uint64, method string, body []byte) (json.RawMessage, error) {
	post := u.post
	if method == batched {
		post = u.postGathered
	}
	result, err := post(ctx, id, body)
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Upstream, e.Method = u.name, method
		e.Message, e.TxError = u.redact.Replace(e.Message), u.redact.Replace(e.TxError)
		for i := range e.Logs {
			e.Logs[i] = u.redact.Replace(e.Logs[i])
		}
	}
	return result, err
}

// post makes one request.
func (u *upstream) post(ctx context.Context, id uint64, body []byte) (json.RawMessage, error) {
	text, status, failure := u.send(ctx, body)
	if failure == nil {
		failure = failedStatus(status)
	}
	if failure != nil {
		return nil, failure
	}
	return decodeResponse(text, id, status)
}

// send sends a body, and returns the answer's within Options.MaxAnswer.
func (u *upstream) send(ctx context.Context, body []byte) (text []byte, status int, failure *Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, &Error{Kind: Rejected, Err: withoutURL(err)}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := u.http.Do(req)
	if err != nil {
		return nil, 0, &Error{Kind: Down, Err: withoutURL(err)}
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, u.maxAnswer+1))
	switch {
	case err != nil:
		return nil, 0, &Error{Kind: Down, Err: withoutURL(err)}
	case int64(len(text)) > u.maxAnswer:
		return nil, 0, &Error{Kind: WrongAnswer, Message: fmt.Sprintf("longer than %d bytes", u.maxAnswer)}
	case res.StatusCode == http.StatusTooManyRequests:
		return nil, 0, &Error{Kind: RateLimited, Code: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"))}
	}
	return text, res.StatusCode, nil
}

// failedStatus returns the error of a status that says that the node cannot serve us.
func failedStatus(status int) *Error {
	if status >= http.StatusInternalServerError || status == http.StatusUnauthorized || status == http.StatusForbidden {
		return &Error{Kind: Down, Code: status, Message: http.StatusText(status)}
	}
	return nil
}

// decodeResponse validates an answer and returns its result.
func decodeResponse(text []byte, id uint64, status int) (json.RawMessage, error) {
	var r response
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, &Error{Kind: WrongAnswer, Code: status, Err: err}
	}
	return r.open(status, id)
}

// open returns the result of the answer to request id.
func (r *response) open(status int, id uint64) (json.RawMessage, error) {
	switch {
	// A node that cannot parse a request has no id to answer with.
	case r.ID != nil && *r.ID != id, r.ID == nil && r.Error == nil:
		return nil, &Error{Kind: WrongAnswer, Message: "the answer is for another request"}
	case r.Error != nil:
		return nil, classify(r.Error)
	case r.Result == nil || status != http.StatusOK:
		return nil, &Error{Kind: WrongAnswer, Code: status, Message: "no result"}
	}
	return r.Result, nil
}

// withoutURL removes the URL that net/http puts into its errors, which may contain a
// key.
func withoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

const (
	// minSecret is the shortest text to redact, in bytes: keys are longer, and words
	// such as v2 are no secret.
	minSecret = 6
	redacted  = "***"
)

// hideSecrets returns a replacer that redacts the parts of a node's URL that may be a
// key, because a node may repeat the request in its errors, which are published. Hosts
// are no secret.
func hideSecrets(text string) *strings.Replacer {
	parsed, err := url.Parse(text)
	if err != nil {
		return strings.NewReplacer()
	}
	password, _ := parsed.User.Password()
	parts := []string{parsed.User.Username(), password, parsed.RawQuery}
	parts = append(parts, strings.Split(parsed.EscapedPath(), "/")...)
	parts = append(parts, strings.Split(parsed.Path, "/")...)
	for _, pair := range strings.Split(parsed.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		parts = append(parts, value)
	}
	for _, values := range parsed.Query() {
		parts = append(parts, values...)
	}
	// The longest first, because replacing a short part could leave pieces of a longer
	// one that contains it.
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, part := range parts {
		if len(part) >= minSecret {
			pairs = append(pairs, part, redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

// retryAfter parses a Retry-After header in seconds, bounded.
func retryAfter(text string) time.Duration {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return defaultRetryAfter
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}

// record records a call that ended at now after took. It ignores a call that we
// cancelled. A request that any node would refuse does not count as a failure in a row.
func (u *upstream) record(err error, now time.Time, took time.Duration) {
	if errors.Is(err, context.Canceled) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	h := &u.health
	h.calls++
	if e := (*Error)(nil); errors.As(err, &e) {
		h.lastError, h.errorAt = truncate(e.Error(), maxMessage), now
		h.errors++
		if e.Kind == RateLimited {
			h.rateLimitedUntil = now.Add(e.RetryAfter)
		}
		if e.Kind.retryable() {
			h.failures++
			return
		}
	}
	h.failures, h.rateLimitedUntil, h.lastOK = 0, time.Time{}, now
	if h.latency == 0 {
		h.latency = took
	}
	h.latency += (took - h.latency) / 8
}

// setSlot records the node's slot.
func (u *upstream) setSlot(slot uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.health.slot = slot
}

func (u *upstream) firstBlock() FirstBlock {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first
}

func (u *upstream) setFirstBlock(f FirstBlock) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.first = f
}

func (u *upstream) snapshot() health {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.health
}
