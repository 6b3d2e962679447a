package service

import (
	"errors"
	"fmt"
	"testing"

	"blockdesk/httpgw/admin"
	"blockdesk/settle/access"
)

var _ admin.Tokens = tokenAdmin{}

// TestTokenErrors: the gateway's words for what it must tell apart.
func TestTokenErrors(t *testing.T) {
	other := errors.New("other")
	if err := tokenError(fmt.Errorf("x: %w", access.ErrUnknownToken)); !errors.Is(err, admin.ErrUnknownToken) || !errors.Is(err, access.ErrUnknownToken) {
		t.Error(err)
	}
	if err := tokenError(other); !errors.Is(err, other) || errors.Is(err, admin.ErrUnknownToken) || tokenError(nil) != nil {
		t.Error(err)
	}
}
