package admin

import (
	"errors"
	"net/http"
	"net/url"

	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// codeUnknownToken is our choice.
const codeUnknownToken = "UNKNOWN_TOKEN"

// Tokens serves /desk/tokens: the log of DvP tokens. Implementations are safe for
// concurrent use.
type Tokens interface {
	// Tokens lists at most limit tokens after the id after, "" for the beginning, in the
	// order of their issue. It includes expired tokens only if ended is true. Error:
	// ErrUnknownToken if after is not an id.
	Tokens(after string, limit int, ended bool) ([]AccessToken, error)
	// Revoke revokes a token for good on behalf of an operator and returns it. Revoking
	// again changes nothing. Error: ErrUnknownToken.
	Revoke(id, by string) (AccessToken, error)
}

// ErrUnknownToken means that no token has the id.
var ErrUnknownToken = errors.New("httpgw: unknown token")

// AccessToken is the log's record of a DvP token, without its secret. Times are Unix
// nanoseconds.
type AccessToken struct {
	ID        string
	Key       market.Address // the key it was issued to
	IssuedAt  int64
	ExpiresAt int64
	RevokedAt int64  // 0 = not revoked
	RevokedBy string // operator's name
}

// accessTokenJSON is a token in JSON; a value that it does not have is null.
type accessTokenJSON struct {
	ID        string       `json:"token_id"`
	Key       wire.Address `json:"pubkey"`
	State     string       `json:"state"` // valid, ended or revoked (docs/specification.md 3)
	IssuedAt  wire.Time    `json:"issued_at"`
	ExpiresAt wire.Time    `json:"expires_at"`
	RevokedAt wire.Time    `json:"revoked_at"`
	RevokedBy *string      `json:"revoked_by"`
}

type tokensAnswer struct {
	OK     bool              `json:"ok"`
	Tokens []accessTokenJSON `json:"tokens"`
	Next   *string           `json:"next"` // value of after for the next page; null = end
}

// tokenEndpoints are the operators' endpoints of the DvP tokens.
type tokenEndpoints struct {
	tokens Tokens
	log    commandLog
	now    func() int64 // Unix nanoseconds
}

func (e *tokenEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/tokens":                   {"GET": e.listTokens},
		"/desk/tokens/{token_id}/revoke": {"POST": bodied(e.revokeToken)},
	}
}

// listTokens lists the tokens that have not expired, or with all=true every token.
func (e *tokenEndpoints) listTokens(c *call) (any, *wire.Problem) {
	values := c.URL.Query()
	ended, limit, problem := parseTokenQuery(values)
	if problem != nil {
		return nil, problem
	}
	// The extra token shows whether there is a next page.
	list, err := e.tokens.Tokens(values.Get("after"), limit+1, ended)
	switch {
	case errors.Is(err, ErrUnknownToken):
		return nil, invalidOperatorField("after", "must be the member next of an answer")
	case err != nil:
		return nil, e.tokensFailed(c, err)
	}
	answer := tokensAnswer{OK: true, Tokens: []accessTokenJSON{}}
	for i := range list[:min(limit, len(list))] {
		answer.Tokens = append(answer.Tokens, e.token(&list[i]))
	}
	if len(list) > limit {
		answer.Next = &list[limit-1].ID
	}
	return answer, nil
}

// parseTokenQuery parses all and limit. They and after occur at most once.
func parseTokenQuery(values url.Values) (ended bool, limit int, problem *wire.Problem) {
	if problem := checkOnce(values, "all", "after", "limit"); problem != nil {
		return false, 0, problem
	}
	switch values.Get("all") {
	case "", "false":
	case "true":
		ended = true
	default:
		return false, 0, invalidOperatorField("all", "must be true or false")
	}
	limit, problem = parseListLimit(values)
	return ended, limit, problem
}

// revokeToken revokes a token. It is idempotent by itself, so an Idempotency-Key is only
// validated.
func (e *tokenEndpoints) revokeToken(c *call, _ *noBody) (any, *wire.Problem) {
	if _, problem := c.key(); problem != nil {
		return nil, problem
	}
	t, err := e.tokens.Revoke(c.PathValue("token_id"), c.operator.Name)
	switch {
	case errors.Is(err, ErrUnknownToken):
		return nil, &wire.Problem{
			Status: http.StatusNotFound, Code: codeUnknownToken, Field: "token_id",
			Text: "Unknown token_id. GET /desk/tokens lists all tokens.",
		}
	case err != nil:
		return nil, e.tokensFailed(c, err)
	}
	e.log.Info("operator command executed", "request_id", string(c.id[:]), "operator", c.operator.Name, "path", c.Pattern, "token_id", t.ID)
	return struct {
		OK    bool            `json:"ok"`
		Token accessTokenJSON `json:"token"`
	}{true, e.token(&t)}, nil
}

func (e *tokenEndpoints) tokensFailed(c *call, err error) *wire.Problem {
	_, problem := e.log.outcome(c, nil, err)
	return problem
}

// token returns t in JSON with its present state.
func (e *tokenEndpoints) token(t *AccessToken) accessTokenJSON {
	out := accessTokenJSON{
		ID: t.ID, Key: wire.Address(t.Key), State: "valid",
		IssuedAt: wire.Time(t.IssuedAt), ExpiresAt: wire.Time(t.ExpiresAt), RevokedAt: wire.Time(t.RevokedAt),
	}
	switch {
	case t.RevokedAt != 0:
		out.State, out.RevokedBy = "revoked", &t.RevokedBy
	case t.ExpiresAt <= e.now():
		out.State = "ended"
	}
	return out
}
