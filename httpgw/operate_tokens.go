package httpgw

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"blockdesk/market"
)

// Limits of /desk/tokens (our choice).
const (
	tokenLimit    = 100 // tokens of a list, where the query does not say
	MaxTokenLimit = 500 // tokens of a list, at most
)

// codeUnknownToken is our choice: the contract has no word for it.
const codeUnknownToken = "UNKNOWN_TOKEN"

// OperatorTokens is the log of the DvP tokens: what is behind /desk/tokens on the
// admin address. Any goroutine may call it.
type OperatorTokens interface {
	// Tokens lists tokens in the order of their issue, from behind the id after, ""
	// for the beginning; at most limit. Those whose time is over come with ended.
	// ErrUnknownToken where after is no id.
	Tokens(after string, limit int, ended bool) ([]AccessToken, error)
	// Revoke ends a token for good, in the name of an operator, and returns it. Who
	// revokes one again gets it as it is. ErrUnknownToken where there is none.
	Revoke(id, by string) (AccessToken, error)
}

// ErrUnknownToken means that no token has this id.
var ErrUnknownToken = errors.New("httpgw: unknown token")

// AccessToken is what the log has of a DvP token; nobody has its secret. Times are
// Unix nanoseconds.
type AccessToken struct {
	ID        string
	Key       market.Address // that it is bound to
	IssuedAt  int64
	ExpiresAt int64
	RevokedAt int64  // 0 = not revoked
	RevokedBy string // operator's name
}

// accessTokenJSON is a token as the operator sees it; null is what it does not have.
type accessTokenJSON struct {
	ID        string      `json:"token_id"`
	Key       jsonAddress `json:"pubkey"`
	State     string      `json:"state"` // valid, ended or revoked (spec, part 3)
	IssuedAt  jsonTime    `json:"issued_at"`
	ExpiresAt jsonTime    `json:"expires_at"`
	RevokedAt jsonTime    `json:"revoked_at"`
	RevokedBy *string     `json:"revoked_by"`
}

type tokensAnswer struct {
	OK     bool              `json:"ok"`
	Tokens []accessTokenJSON `json:"tokens"`
	Next   *string           `json:"next"` // what after takes for the rest; null = that was all
}

func (o *operate) tokenRoutes() map[string]map[string]endpointFunc {
	return map[string]map[string]endpointFunc{
		"/desk/tokens":                   {"GET": o.listTokens},
		"/desk/tokens/{token_id}/revoke": {"POST": o.revokeToken},
	}
}

// listTokens lists those that are not over, or all that the log has.
func (o *operate) listTokens(c *call) (any, *problem) {
	values := c.URL.Query()
	ended, limit, bad := parseTokenQuery(values)
	if bad != nil {
		return nil, bad
	}
	// One more than is shown tells whether there is a rest.
	list, err := o.Tokens.Tokens(values.Get("after"), limit+1, ended)
	switch {
	case errors.Is(err, ErrUnknownToken):
		return nil, invalidOperatorField("after", "must be the next of an answer")
	case err != nil:
		return nil, o.tokensFailed(c, err)
	}
	answer := tokensAnswer{OK: true, Tokens: []accessTokenJSON{}}
	for i := range list[:min(limit, len(list))] {
		answer.Tokens = append(answer.Tokens, o.token(&list[i]))
	}
	if len(list) > limit {
		answer.Next = &list[limit-1].ID
	}
	return answer, nil
}

// parseTokenQuery reads all and limit; they and after come at most once.
func parseTokenQuery(values url.Values) (ended bool, limit int, bad *problem) {
	for _, name := range []string{"all", "after", "limit"} {
		if len(values[name]) > 1 {
			return false, 0, repeatedField(codeInvalidField, name)
		}
	}
	switch values.Get("all") {
	case "", "false":
	case "true":
		ended = true
	default:
		return false, 0, invalidOperatorField("all", "must be true or false")
	}
	limit = tokenLimit
	if text := values.Get("limit"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n < 1 || n > MaxTokenLimit {
			return false, 0, invalidLimit(MaxTokenLimit)
		}
		limit = int(n)
	}
	return ended, limit, nil
}

// revokeToken ends a token. Doing it again changes nothing, so that an
// Idempotency-Key is only looked at.
func (o *operate) revokeToken(c *call) (any, *problem) {
	var in struct{}
	if bad := c.decode(&in); bad != nil {
		return nil, bad
	}
	if _, bad := c.key(); bad != nil {
		return nil, bad
	}
	t, err := o.Tokens.Revoke(c.PathValue("token_id"), c.who.Name)
	switch {
	case errors.Is(err, ErrUnknownToken):
		return nil, &problem{
			status: http.StatusNotFound, code: codeUnknownToken, field: "token_id",
			text: "No token has this token_id. GET /desk/tokens lists those there are.",
		}
	case err != nil:
		return nil, o.tokensFailed(c, err)
	}
	o.log.Info("operator's command", "request_id", string(c.id[:]), "operator", c.who.Name, "path", c.Pattern, "token_id", t.ID)
	return struct {
		OK    bool            `json:"ok"`
		Token accessTokenJSON `json:"token"`
	}{true, o.token(&t)}, nil
}

func (o *operate) tokensFailed(c *call, err error) *problem {
	_, bad := o.outcome(c, nil, err)
	return bad
}

// token renders t as it is now.
func (o *operate) token(t *AccessToken) accessTokenJSON {
	out := accessTokenJSON{
		ID: t.ID, Key: jsonAddress(t.Key), State: "valid",
		IssuedAt: jsonTime(t.IssuedAt), ExpiresAt: jsonTime(t.ExpiresAt), RevokedAt: jsonTime(t.RevokedAt),
	}
	switch {
	case t.RevokedAt != 0:
		out.State, out.RevokedBy = "revoked", &t.RevokedBy
	case t.ExpiresAt <= o.Now():
		out.State = "ended"
	}
	return out
}
