package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw"
	"blockdesk/settle"
	"blockdesk/settle/access"
	"blockdesk/settle/proof"
)

// What the gateway asks for is what settlement gives.
var (
	_ settle.Desk          = settleDesk{}
	_ httpgw.Settlement    = (*settleDoor)(nil)
	_ httpgw.DvP           = (*settleDoor)(nil)
	_ httpgw.OperatorMoney = (*settleDoor)(nil)
	_ httpgw.Handshake     = handshakeDoor{}
)

// Every word of one side has one of the other.
func TestDoorsHaveEveryWord(t *testing.T) {
	for stage := settle.Open; stage <= settle.Expired; stage++ {
		if stages[stage] == 0 {
			t.Errorf("stage %s has no word", stage)
		}
	}
	for _, payer := range []httpgw.FeePayer{httpgw.DeskPays, httpgw.TakerPays} {
		if feePayers[payer] == 0 {
			t.Errorf("fee payer %d has no word", payer)
		}
	}
}

// Errors cross the doors as what the gateway knows; the desk's stay as they are.
func TestDoorErrors(t *testing.T) {
	other := errors.New("other")
	wrap := func(err error) error { return fmt.Errorf("claim C1: %w", err) }
	for _, c := range []struct {
		through  func(error) error
		from, is error
	}{
		{doorError, settle.ErrUnknownBuild, httpgw.ErrUnknownBuild},
		{doorError, proof.ErrBusy, desk.ErrBusy},
		{doorError, desk.ErrReadOnly, desk.ErrReadOnly},
		{doorError, settle.ErrNotReady, settle.ErrNotReady},
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
	var guard *httpgw.Refusal
	if err := doorError(wrap(&settle.Refusal{Claim: 1, Reason: settle.Locked})); !errors.As(err, &guard) || guard.Reason != "locked" {
		t.Errorf("a refusal becomes %v", err)
	}
	var soon *httpgw.TooSoon
	if err := handshakeError(wrap(&access.TooSoon{RetryAfter: time.Minute})); !errors.As(err, &soon) || soon.RetryAfter != time.Minute {
		t.Errorf("too soon becomes %v", err)
	}
	if doorError(nil) != nil || handshakeError(nil) != nil {
		t.Error("no error becomes one")
	}
}
