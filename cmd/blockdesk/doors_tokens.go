package main

import (
	"errors"
	"fmt"

	"blockdesk/httpgw"
	"blockdesk/settle/access"
)

// tokenDoor is httpgw.OperatorTokens.
type tokenDoor struct{ log *access.Access }

// Tokens lists what the log has.
func (d tokenDoor) Tokens(after string, limit int, ended bool) ([]httpgw.AccessToken, error) {
	list, err := d.log.List(after, limit, ended)
	if err != nil {
		return nil, tokenError(err)
	}
	out := make([]httpgw.AccessToken, 0, len(list))
	for _, e := range list {
		out = append(out, httpgw.AccessToken(e))
	}
	return out, nil
}

// Revoke ends a token.
func (d tokenDoor) Revoke(id, by string) (httpgw.AccessToken, error) {
	e, err := d.log.Revoke(id, by)
	return httpgw.AccessToken(e), tokenError(err)
}

// tokenError puts what operators meet of package access into the gateway's words.
func tokenError(err error) error {
	if errors.Is(err, access.ErrUnknownToken) {
		return fmt.Errorf("%w: %w", httpgw.ErrUnknownToken, err)
	}
	return err
}
