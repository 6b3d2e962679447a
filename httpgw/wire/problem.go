package wire

import (
	"encoding/json"
	"strconv"
)

// Codes of error bodies (docs/specification.md 7 and C.3).
const (
	CodeInvalidJSON         = "INVALID_JSON"
	CodeMissingField        = "MISSING_FIELD"
	CodeInvalidField        = "INVALID_FIELD"
	CodeInvalidLimit        = "INVALID_LIMIT"
	CodeUnknownSymbol       = "UNKNOWN_SYMBOL"
	CodeUnknownRoute        = "ROUTE_INCONNUE"
	CodeUnknownTicket       = "UNKNOWN_TICKET"
	CodeUnknownClaim        = "UNKNOWN_CLAIM"
	CodeUnknownPool         = "UNKNOWN_POOL"
	CodeMethodNotAllowed    = "METHOD_NOT_ALLOWED"
	CodeRefused             = "REFUS_DVP"
	CodeCapacityExhausted   = "CAPACITY_EXHAUSTED"
	CodeClaimExpired        = "CLAIM_EXPIRED"
	CodePaymentUsed         = "PAYMENT_ALREADY_USED"
	CodeIdempotencyConflict = "IDEMPOTENCY_CONFLICT"
	CodeBodyTooLarge        = "BODY_TOO_LARGE"
	CodeUnsupportedMedia    = "UNSUPPORTED_MEDIA_TYPE"
	CodePaymentMismatch     = "PAYMENT_MISMATCH"
	CodeHeadersTooLarge     = "HEADERS_TOO_LARGE"
	CodeRateLimited         = "RATE_LIMITED"
	CodeOverloaded          = "OVERLOADED"
	CodeReadOnly            = "READ_ONLY"
	CodeTokenRefused        = "TAKER_NON_ADMIS_JETON"
	CodeTokenTooSoon        = "EMISSION_PAR_IP_TROP_RECENTE"
	CodeChainUnavailable    = "CHAIN_UNAVAILABLE"
	CodeLeaderChanged       = "LEADER_CHANGED"
	CodeOtherGroup          = "OTHER_GROUP"
	CodeGroupUnreachable    = "GROUP_UNREACHABLE"
	CodeMalformed           = "MALFORMED_REQUEST"
	CodeRequestTimeout      = "REQUEST_TIMEOUT"
	CodeUpgradeRequired     = "UPGRADE_REQUIRED"
	CodeInternal            = "INTERNAL"
)

// Seconds of Retry-After.
const (
	RetryLeaderS = 1  // no leader: an election takes less
	RetryChainS  = 10 // the chain cannot be reached
)

const (
	DescriptionPath   = "/"
	SpecificationPath = "/public-sdk/openapi/svc_public_api_v1.json"

	// MaxEcho is the longest path that a 404 repeats, in bytes.
	MaxEcho = 160
	// HiddenPath replaces any other path (docs/specification.md 4.6 and 7).
	HiddenPath = "(chemin non standard - non reproduit)"
)

// Problem is an error answer. Its texts are constants of this program, and path has
// passed echoPath, so the JSON needs no escapes.
type Problem struct {
	Status int
	Code   string
	Text   string // one sentence for a person
	Reason string // machine-readable word; "" = none
	Field  string // "" = none
	path   string // of ROUTE_INCONNUE
	Allow  string // of METHOD_NOT_ALLOWED

	Challenge string // WWW-Authenticate; "" = none
	RetryS    int    // Retry-After in seconds; 0 = none
	Location  string // of a redirect; "" = none
	Leader    []byte // JSON of the leader, with LEADER_CHANGED; nil = unknown

	RedirectToLeader bool  // this follower lacks the data; the leader has it
	Replayed         bool  // the stored refusal of an Idempotency-Key
	Stopping         bool  // the desk stopped before or during the request
	Cause            error // for the log only; nil = nothing to log
}

// Append appends the JSON body.
func (p *Problem) Append(dst []byte, id *RequestID) []byte {
	dst = append(dst, `{"ok":false,"code":"`...)
	dst = append(dst, p.Code...)
	dst = append(dst, `","error":"`...)
	dst = append(dst, p.Text...)
	dst = appendMember(dst, `","reason":"`, p.Reason)
	dst = appendMember(dst, `","field":"`, p.Field)
	dst = appendMember(dst, `","path":"`, p.path)
	if p.Leader != nil {
		dst = append(append(dst, `","leader":`...), p.Leader...)
		dst = append(dst, `,"request_id":"`...)
	} else {
		dst = append(dst, `","request_id":"`...)
	}
	dst = append(dst, id[:]...)
	return append(dst, `","service":"`+DescriptionPath+`","specification":"`+SpecificationPath+`"}`...)
}

func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, name...)
	return append(dst, value...)
}

// echoPath returns raw path if a 404 may repeat it, or else HiddenPath.
func echoPath(path []byte) string {
	if len(path) == 0 || len(path) > MaxEcho {
		return HiddenPath
	}
	for _, c := range path {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '/' && c != '.' && c != '_' && c != '-' {
			return HiddenPath
		}
	}
	return string(path)
}

// UnknownRoute is the answer to a path without a route.
func UnknownRoute(path []byte) *Problem {
	return &Problem{
		Status: 404, Code: CodeUnknownRoute,
		Text: "This route does not exist. See the service description and the specification.",
		path: echoPath(path),
	}
}

// MethodNotAllowed is the answer to a method that the route does not support. allow
// lists the methods that it supports.
func MethodNotAllowed(allow string) *Problem {
	return &Problem{
		Status: 405, Code: CodeMethodNotAllowed, Allow: allow,
		Text: "This route does not support this method. The Allow header lists the methods it supports.",
	}
}

// RateLimited is the answer to a client that has to wait for retryS seconds.
func RateLimited(retryS int) *Problem {
	return &Problem{
		Status: 429, Code: CodeRateLimited, RetryS: retryS, Reason: "rate",
		Text: "Too many requests from this address. Wait for the seconds in Retry-After.",
	}
}

// MissingField is the answer to a query that lacks a required parameter.
func MissingField(field string) *Problem {
	return &Problem{Status: 400, Code: CodeMissingField, Field: field, Text: "The query parameter " + field + " is required."}
}

// RepeatedField is the answer to a query that has a parameter more than once.
func RepeatedField(code, field string) *Problem {
	return &Problem{
		Status: 400, Code: code, Field: field, Reason: "repeated",
		Text: "The query parameter " + field + " is given more than once.",
	}
}

// InvalidLimit is the answer to a limit outside 1..most.
func InvalidLimit(most int) *Problem { return invalidLimit(1, most) }

func invalidLimit(least, most int) *Problem {
	return &Problem{
		Status: 400, Code: CodeInvalidLimit, Field: "limit",
		Text: "limit must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most) + ".",
	}
}

// UnknownSymbol is the answer to a symbol that no instrument has.
func UnknownSymbol() *Problem {
	return &Problem{
		Status: 400, Code: CodeUnknownSymbol, Field: "symbol",
		Text: "Unknown symbol. /api/v1/market/symbols lists all symbols.",
	}
}

func invalidJSON(reason string) *Problem {
	return &Problem{Status: 400, Code: CodeInvalidJSON, Reason: reason, Text: "The body must be a single flat JSON object in UTF-8."}
}

// MissingMember is the answer to a body without a required member.
func MissingMember(name string) *Problem {
	return &Problem{Status: 400, Code: CodeMissingField, Field: name, Text: "The body must have the member " + name + "."}
}

// InvalidMember is the answer to a body with a wrong value; reason is one short word.
func InvalidMember(name, reason string) *Problem {
	return &Problem{
		Status: 400, Code: CodeInvalidField, Field: name, Reason: reason,
		Text: "The member " + name + " of the body is invalid. The specification describes it.",
	}
}

// maxEchoedName is the longest name of a client that an error repeats, in bytes.
const maxEchoedName = 64

// UnknownMember is the answer to a body with an unknown member. It repeats the name if it
// is a plain word, because a name comes from the client and may be anything.
func UnknownMember(name []byte) *Problem {
	return unknownName(name, "The body has an unknown member")
}

// UnknownParameter is the answer to a query with an unknown parameter; as UnknownMember.
func UnknownParameter(name []byte) *Problem {
	return unknownName(name, "The query has an unknown parameter")
}

func unknownName(name []byte, text string) *Problem {
	p := &Problem{Status: 400, Code: CodeInvalidField, Reason: "unknown_field", Text: text + "."}
	if isPlainWord(name) {
		p.Field = string(name)
		p.Text = text + ", " + p.Field + "."
	}
	return p
}

// isPlainWord reports whether a name is 1..maxEchoedName letters, digits and "_ -".
func isPlainWord(name []byte) bool {
	for _, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxEchoedName
}

// MalformedFraming is the answer to a request with AmbiguousFraming; see [Header].
func MalformedFraming() *Problem {
	return &Problem{Status: 400, Code: CodeMalformed, Text: "Send Transfer-Encoding only with HTTP/1.1, and never with Content-Length."}
}

// BodyTooLarge is the answer to a body of more than most bytes.
func BodyTooLarge(most int) *Problem {
	return &Problem{Status: 413, Code: CodeBodyTooLarge, Text: "The body is longer than " + strconv.Itoa(most) + " bytes."}
}

// UnsupportedMedia is the answer to a body whose headers do not announce uncompressed
// JSON in UTF-8.
func UnsupportedMedia(reason string) *Problem {
	return &Problem{
		Status: 415, Code: CodeUnsupportedMedia, Reason: reason,
		Text: "The body must have Content-Type application/json in UTF-8 and no Content-Encoding.",
	}
}

func invalidKey(reason string) *Problem {
	return &Problem{
		Status: 400, Code: CodeInvalidField, Field: IdempotencyHeader, Reason: reason,
		Text: "The header " + IdempotencyHeader + " must be one value of 1 to " + strconv.Itoa(MaxIdempotencyKey) +
			" visible ASCII characters.",
	}
}

// RenameField changes Field to the name that the route uses, if it is from.
func (p *Problem) RenameField(from, to string) *Problem {
	if p.Field == from {
		p.Field = to
	}
	return p
}

// LeaderMember returns the member leader of an error: {"id", "url"}.
func LeaderMember(id, url string) []byte {
	text, _ := json.Marshal(struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	}{id, url}) // marshaling strings never fails
	return text
}
