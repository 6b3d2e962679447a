package cosign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"blockdesk/internal/solana"
)

const (
	// DefaultSignerCalls is half of the connections that a server serves at a time,
	// so that a gateway leaves some for an operator's tool.
	DefaultSignerCalls = MaxSignerConnections / 2

	defaultCallTimeout = 5 * time.Second
)

// ErrUnavailable means that the signer did not answer in time. It may have signed: the
// same request again returns the same signature.
var ErrUnavailable = errors.New("cosign: the signer does not answer: is `blockdesk signer` running?")

// SocketOptions are the settings of a [SocketSigner]. The zero value of a field is
// its default.
type SocketOptions struct {
	// Address is the key that must answer. Default: the one that answers Dial.
	Address solana.Address
	// Timeout bounds a call. Default 5 s.
	Timeout time.Duration
	// MaxCalls bounds the concurrent calls; others wait. 1 to MaxSignerConnections,
	// default DefaultSignerCalls.
	MaxCalls int
}

// SocketSigner is a key in another process, behind the socket of a [Server]. Each call
// is a connection of its own, so that a restarted signer is found again. Any goroutine
// may call it.
type SocketSigner struct {
	path    string
	timeout time.Duration
	slots   chan struct{}
	address solana.Address
}

// Dial asks the signer at a socket for its address, which is fixed from then on:
// signatures of another key behind the same socket are refused. With
// SocketOptions.Address it asks nothing, and the signer may start later. Errors:
// [ErrOptions], [ErrUnavailable], [ErrSigner].
func Dial(path string, o SocketOptions) (*SocketSigner, error) {
	o.Timeout = cmp.Or(o.Timeout, defaultCallTimeout)
	o.MaxCalls = cmp.Or(o.MaxCalls, DefaultSignerCalls)
	if path == "" || o.Timeout < 0 || o.MaxCalls < 1 || o.MaxCalls > MaxSignerConnections {
		return nil, fmt.Errorf("%w: socket %q, Timeout %v, MaxCalls %d: want a path and values above 0", ErrOptions, path, o.Timeout, o.MaxCalls)
	}
	s := &SocketSigner{path: path, timeout: o.Timeout, slots: make(chan struct{}, o.MaxCalls), address: o.Address}
	if s.address != (solana.Address{}) {
		return s, nil
	}
	err := s.call(context.Background(), frame{requestAddress, nil}, answerAddress, s.address[:])
	if err == nil && s.address == (solana.Address{}) {
		err = fmt.Errorf("%w: the signer at %s returned no address", ErrSigner, path)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Address returns the key's address.
func (s *SocketSigner) Address() solana.Address { return s.address }

// Sign asks the other process to sign the job. It blocks at most
// SocketOptions.Timeout. Errors: [ErrZero]; [ErrUnavailable]; a [Refusal] of the
// signer.
func (s *SocketSigner) Sign(ctx context.Context, j Job) (signature solana.Signature, err error) {
	if j.Kind() == 0 {
		return signature, fmt.Errorf("%w of Job was used", ErrZero)
	}
	err = s.call(ctx, signFrame(j), answerSignature, signature[:])
	return signature, err
}

// Uses asks the other process how much of each ceiling of its limits is used; none if it
// has no limits. It blocks at most SocketOptions.Timeout for every maxUses of them. Errors:
// [ErrUnavailable]; a [Refusal], RefusalFrame of a signer of 0.1.0.
func (s *SocketSigner) Uses(ctx context.Context) (list []LimitUse, err error) {
	for len(list) <= maxCeilings {
		var page []LimitUse
		err := s.do(ctx, limitsRequest(len(list)), func(answer frame) (err error) {
			page, err = answer.uses()
			return err
		})
		if err != nil {
			return nil, err
		}
		if list = append(list, page...); len(page) < maxUses {
			break
		}
	}
	return list, nil
}

// call sends one request and decodes its answer, which must have the type want, into
// into.
func (s *SocketSigner) call(ctx context.Context, request frame, want byte, into []byte) error {
	return s.do(ctx, request, func(answer frame) error { return answer.parse(want, into) })
}

// do sends one request and parses its answer.
func (s *SocketSigner) do(ctx context.Context, request frame, parse func(frame) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %s: %d calls are in progress already: %w", ErrUnavailable, s.path, cap(s.slots), ctx.Err())
	}
	answer, err := s.exchange(ctx, request)
	if err == nil {
		err = parse(answer)
	}
	var refusal Refusal
	if errors.As(err, &refusal) && refusal != RefusalBusy {
		return refusal
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, s.path, err)
	}
	return nil
}

func (s *SocketSigner) exchange(ctx context.Context, request frame) (frame, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", s.path)
	if err != nil {
		return frame{}, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := c.Write(request.append(nil)); err != nil {
		// A busy signer answers without reading.
		if answer, answered := readFrame(c); answered == nil {
			return answer, nil
		}
		return frame{}, err
	}
	answer, err := readFrame(c)
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return answer, err
}
