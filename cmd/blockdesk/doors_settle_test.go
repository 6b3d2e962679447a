package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"blockdesk/httpgw"
	"blockdesk/settle"
	"blockdesk/settle/access"
)

// What the gateway asks for is what settlement gives.
var (
	_ settle.Desk          = settleDesk{}
	_ httpgw.Settlement    = (*settleDoor)(nil)
	_ httpgw.DvP           = (*settleDoor)(nil)
	_ httpgw.OperatorMoney = (*settleDoor)(nil)
	_ httpgw.Handshake     = handshakeDoor{}
)

// Errors cross the doors as what the gateway knows; the desk's stay as they are.
func TestDoorErrors(t *testing.T) {
	other := errors.New("other")
	wrap := func(err error) error { return fmt.Errorf("claim C1: %w", err) }
	for _, c := range []struct {
		through  func(error) error
		from, is error
	}{
		{handshakeError, access.ErrKey, httpgw.ErrBadKey},
		{handshakeError, access.ErrNonceUsed, httpgw.ErrBadNonce},
		{handshakeError, access.ErrNonceExpired, httpgw.ErrBadNonce},
		{handshakeError, access.ErrProof, httpgw.ErrBadProof},
		{handshakeError, access.ErrFull, httpgw.ErrTokensFull},
		{handshakeError, other, other},
	} {
		got := c.through(wrap(c.from))
		if !errors.Is(got, c.is) || !errors.Is(got, c.from) {
			t.Errorf("%v becomes %v, want %v", c.from, got, c.is)
		}
	}
	var soon *httpgw.TooSoon
	if err := handshakeError(wrap(&access.TooSoon{RetryAfter: time.Minute})); !errors.As(err, &soon) || soon.RetryAfter != time.Minute {
		t.Errorf("too soon becomes %v", err)
	}
	if handshakeError(nil) != nil {
		t.Error("no error becomes one")
	}
}
