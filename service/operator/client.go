// Package operator is the client of a service's admin address: the requests of its
// operators, the state of a group of nodes, and where a data folder says that its
// service listens. The command line and the demo's operator use it.
//
// A request whose outcome is unknown is sent again under the same idempotency key, so it is
// done once; a node that does not lead names the leader, and the request goes there. Errors
// say whether a service answered (RefusedError) or none did (ErrNoService).
//
// Limits: Timeout, tries, maxAnswer. A Client is for one goroutine at a time.
package operator

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
	"syscall"
	"time"
)

const (
	// Timeout bounds a request to the admin address, if it is not a backup.
	Timeout = 30 * time.Second
	// tries is how often a request with an unknown outcome is sent.
	tries = 3
	// maxAnswer bounds what is read of an answer: 4096 tickets of 32
	// tranches are about 25 MB.
	maxAnswer = 64 << 20
)

// Client sends an operator's requests to a running service. One goroutine at a time.
type Client struct {
	URL         string // of the admin address; the leader's once a node has named it
	Token       string
	TokenSource string // where Token comes from, for errors
	HTTP        *http.Client
}

// RefusedError is the refusal of a request by the service.
type RefusedError struct {
	Code   string `json:"code"`
	Text   string `json:"error"`
	Reason string `json:"reason"`
	ID     string `json:"request_id"`
	// Leader is in the answers of a standby: the node that serves operators.
	Leader struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"leader"`
}

// Error returns the code, the text, and the id that the service's log has.
func (e *RefusedError) Error() string {
	text := e.Code
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + ": " + e.Text + " [request " + e.ID + "]"
}

// codeLeaderChanged is the code of a node that does not lead.
const codeLeaderChanged = "LEADER_CHANGED"

// Do sends one request and returns the body of the answer. in is the body, sent as
// JSON by POST; nil is a GET. A request whose outcome is not known is sent again
// under the same key, so that it is done once. If another node leads, Do asks that
// one and changes URL. Errors are or wrap *RefusedError and ErrNoService.
func (c *Client) Do(ctx context.Context, path string, in any) ([]byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	key := NewToken()
	for try := 1; ; try++ {
		answer, err := c.Send(ctx, path, body, key)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != "outcome_unknown" && refused.Code != codeLeaderChanged || try == tries {
			return answer, err
		}
		if refused.Leader.URL != "" && refused.Leader.URL != c.URL {
			c.URL = refused.Leader.URL
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// Send sends one request once: a POST with this body and idempotency key, or a GET if
// body is nil. Errors as of Do.
func (c *Client) Send(ctx context.Context, path string, body []byte, key string) ([]byte, error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("admin address %s: %w", c.URL, err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, Unreachable(c.URL, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, Unreachable(c.URL, fmt.Errorf("reading the answer: %w", err))
	}
	if resp.StatusCode == http.StatusOK {
		return answer, nil
	}
	refused := &RefusedError{}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Code == "" || refused.Code == "ROUTE_INCONNUE" {
		return nil, fmt.Errorf("%s%s answers %s: is it the admin address of a service with its desk enabled?", c.URL, path, resp.Status)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, fmt.Errorf("the token from %s: %w", c.TokenSource, refused)
	}
	return nil, refused
}

// Get reads the answer of a GET into v. Errors as of Do.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	answer, err := c.Do(ctx, path, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, v)
}

// ErrNoService is wrapped if no service answers.
var ErrNoService = errors.New("no service answers")

// Unreachable names a service that a request did not reach, or that went away
// before it answered: the error wraps ErrNoService then. Another error stays as it
// is.
func Unreachable(at string, err error) error {
	var network *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w at %s: is it running? (%w)", ErrNoService, at, cmp.Or(network.Err, err))
	case errors.As(err, &dns):
		return fmt.Errorf("%w at %s: %w", ErrNoService, at, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%w at %s: the connection closed before the answer, so the outcome of the request is unknown (%w)", ErrNoService, at, err)
	}
	return err
}
