package httpgw

import (
	"encoding/json"
	"strconv"
)

// Codes of error bodies (contract, section C). Those under "our choice" name
// what the contract leaves open.
const (
	codeInvalidJSON         = "INVALID_JSON"
	codeMissingField        = "MISSING_FIELD"
	codeInvalidField        = "INVALID_FIELD"
	codeInvalidLimit        = "INVALID_LIMIT"
	codeUnknownSymbol       = "UNKNOWN_SYMBOL"
	codeUnknownRoute        = "ROUTE_INCONNUE"
	codeUnknownTicket       = "UNKNOWN_TICKET"
	codeUnknownClaim        = "UNKNOWN_CLAIM"
	codeUnknownPool         = "UNKNOWN_POOL"
	codeMethodNotAllowed    = "METHOD_NOT_ALLOWED"
	codeRefused             = "REFUS_DVP"
	codeCapacityExhausted   = "CAPACITY_EXHAUSTED"
	codeClaimExpired        = "CLAIM_EXPIRED"
	codePaymentUsed         = "PAYMENT_ALREADY_USED"
	codeIdempotencyConflict = "IDEMPOTENCY_CONFLICT"
	codeBodyTooLarge        = "BODY_TOO_LARGE"
	codeUnsupportedMedia    = "UNSUPPORTED_MEDIA_TYPE"
	codePaymentMismatch     = "PAYMENT_MISMATCH"
	codeHeadersTooLarge     = "HEADERS_TOO_LARGE"
	codeRateLimited         = "RATE_LIMITED"
	codeOverloaded          = "OVERLOADED"
	codeReadOnly            = "READ_ONLY"
	codeToken               = "TAKER_NON_ADMIS_JETON"
	codeTokenTooSoon        = "EMISSION_PAR_IP_TROP_RECENTE"
	codeChainUnavailable    = "CHAIN_UNAVAILABLE"

	// Our choice.
	codeLeaderChanged   = "LEADER_CHANGED"
	codeOtherGroup      = "OTHER_GROUP"
	codeGroupLost       = "GROUP_UNREACHABLE"
	codeMalformed       = "MALFORMED_REQUEST"
	codeRequestTimeout  = "REQUEST_TIMEOUT"
	codeUpgradeRequired = "UPGRADE_REQUIRED"
	codeInternal        = "INTERNAL"
)

// Seconds of Retry-After.
const (
	retryLeaderS = 1  // of an answer that sends a client to the leader: a group that votes has a leader in less
	retryChainS  = 10 // the chain is not reached
)

const (
	descriptionPath   = "/"
	specificationPath = "/public-sdk/openapi/svc_public_api_v1.json"

	// MaxEcho is the longest path that a 404 repeats, in bytes.
	MaxEcho = 160
	// hiddenPath stands for any other path (spec, 4.6 and part 7).
	hiddenPath = "(chemin non standard - non reproduit)"
)

// problem is an error that a client gets. All its texts are our own words, and
// path has passed echoPath, so its JSON needs no escapes.
type problem struct {
	status int
	code   string
	text   string // one sentence for a person
	reason string // machine word, "" = none
	field  string // "" = none
	path   string // of ROUTE_INCONNUE
	allow  string // of METHOD_NOT_ALLOWED
	// challenge is the value of WWW-Authenticate, "" = none.
	challenge string
	retryS    int    // Retry-After, 0 = none
	location  string // of a redirect, "" = none
	leader    []byte // JSON of the leader of LEADER_CHANGED, nil = not known

	atLeader bool  // a follower has not what was asked for
	replayed bool  // an Idempotency-Key has brought back a refusal
	ending   bool  // the desk ended under the request, or before it
	cause    error // for the log only; nil = nothing that it should know
}

// append appends the JSON body.
func (p *problem) append(dst []byte, id *requestID) []byte {
	dst = append(dst, `{"ok":false,"code":"`...)
	dst = append(dst, p.code...)
	dst = append(dst, `","error":"`...)
	dst = append(dst, p.text...)
	dst = appendMember(dst, `","reason":"`, p.reason)
	dst = appendMember(dst, `","field":"`, p.field)
	dst = appendMember(dst, `","path":"`, p.path)
	if p.leader != nil {
		dst = append(append(dst, `","leader":`...), p.leader...)
		dst = append(dst, `,"request_id":"`...)
	} else {
		dst = append(dst, `","request_id":"`...)
	}
	dst = append(dst, id[:]...)
	return append(dst, `","service":"`+descriptionPath+`","specification":"`+specificationPath+`"}`...)
}

func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	return append(dst, value...)
}

// echoPath returns what a 404 may repeat of a raw path.
func echoPath(path []byte) string {
	if len(path) == 0 || len(path) > MaxEcho {
		return hiddenPath
	}
	for _, c := range path {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '/' && c != '.' && c != '_' && c != '-' {
			return hiddenPath
		}
	}
	return string(path)
}

func unknownRoute(path []byte) *problem {
	return &problem{
		status: 404, code: codeUnknownRoute,
		text: "This route does not exist. See the service description and the specification.",
		path: echoPath(path),
	}
}

func methodNotAllowed(allow string) *problem {
	return &problem{
		status: 405, code: codeMethodNotAllowed, allow: allow,
		text: "This route does not take this method. The Allow header lists those it takes.",
	}
}

func rateLimited(retryS int) *problem {
	return &problem{
		status: 429, code: codeRateLimited, retryS: retryS, reason: "rate",
		text: "Too many requests from this address. Wait as long as Retry-After says.",
	}
}

func missingField(field string) *problem {
	return &problem{
		status: 400, code: codeMissingField, field: field,
		text: "The query parameter " + field + " is required.",
	}
}

func repeatedField(code, field string) *problem {
	return &problem{
		status: 400, code: code, field: field, reason: "repeated",
		text: "The query parameter " + field + " is given more than once.",
	}
}

func invalidLimit(most int) *problem {
	return &problem{
		status: 400, code: codeInvalidLimit, field: "limit",
		text: "limit must be a whole number from 1 to " + strconv.Itoa(most) + ".",
	}
}

func unknownSymbol() *problem {
	return &problem{
		status: 400, code: codeUnknownSymbol, field: "symbol",
		text: "No such symbol. /api/v1/market/symbols lists those there are.",
	}
}

func invalidJSON(reason string) *problem {
	return &problem{
		status: 400, code: codeInvalidJSON, reason: reason,
		text: "The body must be one flat JSON object in UTF-8, and nothing else.",
	}
}

func missingMember(name string) *problem {
	return &problem{
		status: 400, code: codeMissingField, field: name,
		text: "The body must have the member " + name + ".",
	}
}

func invalidMember(name, reason string) *problem {
	return &problem{
		status: 400, code: codeInvalidField, field: name, reason: reason,
		text: "The member " + name + " of the body is not as the specification has it.",
	}
}

// unknownMember does not say which: the name is the client's.
func unknownMember() *problem {
	return &problem{
		status: 400, code: codeInvalidField, reason: "unknown_field",
		text: "The body has a member that this route does not know.",
	}
}

func malformedFraming() *problem {
	return &problem{
		status: 400, code: codeMalformed, text: "Transfer-Encoding goes with HTTP/1.1, and not with Content-Length.",
	}
}

func bodyTooLarge(most int) *problem {
	return &problem{
		status: 413, code: codeBodyTooLarge, text: "The body is longer than " + strconv.Itoa(most) + " bytes.",
	}
}

func unsupportedMedia(reason string) *problem {
	return &problem{
		status: 415, code: codeUnsupportedMedia, reason: reason,
		text: "The body must come as Content-Type application/json in UTF-8, and with no Content-Encoding.",
	}
}

func invalidKey(reason string) *problem {
	return &problem{
		status: 400, code: codeInvalidField, field: idempotencyHeader, reason: reason,
		text: "The header " + idempotencyHeader + " must be one value of 1 to " + strconv.Itoa(MaxIdempotencyKey) +
			" visible ASCII characters.",
	}
}

// rename calls the field that a refusal is about as this route does.
func (p *problem) rename(from, to string) *problem {
	if p.field == from {
		p.field = to
	}
	return p
}

// leaderMember is the member leader of an error: {"id", "url"}.
func leaderMember(id, url string) []byte {
	text, _ := json.Marshal(struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	}{id, url}) // strings always can
	return text
}
