package service

import (
	"errors"
	"fmt"

	"blockdesk/httpgw/admin"
	"blockdesk/settle/access"
)

// tokenAdmin implements admin.Tokens.
type tokenAdmin struct{ tokens *access.Access }

// Tokens lists the stored tokens.
func (d tokenAdmin) Tokens(after string, limit int, ended bool) ([]admin.AccessToken, error) {
	list, err := d.tokens.List(after, limit, ended)
	if err != nil {
		return nil, tokenError(err)
	}
	out := make([]admin.AccessToken, 0, len(list))
	for _, e := range list {
		out = append(out, admin.AccessToken(e))
	}
	return out, nil
}

// Revoke revokes a token.
func (d tokenAdmin) Revoke(id, by string) (admin.AccessToken, error) {
	e, err := d.tokens.Revoke(id, by)
	return admin.AccessToken(e), tokenError(err)
}

// tokenError translates errors of package access into those of the admin address.
func tokenError(err error) error {
	if errors.Is(err, access.ErrUnknownToken) {
		return fmt.Errorf("%w: %w", admin.ErrUnknownToken, err)
	}
	return err
}
