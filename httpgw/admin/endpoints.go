package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Limits of the operators' endpoints (our choice).
const (
	// operatorsPerMinute and operatorBurst bound the requests of one address.
	operatorsPerMinute = 600
	operatorBurst      = 100
	// wrongTokenCost is the cost of a wrong token in requests. It allows one guess per
	// second after the first ten.
	wrongTokenCost = 10
	// operatorClients bounds the addresses in the rate limit.
	operatorClients = 1024
	// minTokenBytes is the length of the shortest valid token.
	minTokenBytes = 16
)

// codeOperatorToken is our choice.
const codeOperatorToken = "OPERATOR_TOKEN_REFUSED"

// codePriceSource means that the sources of an asset's price do not allow an operator's
// price, or not this one: our choice.
const codePriceSource = "PRICE_SOURCE_REFUSED"

// Operator is a person who may command the desk.
type Operator struct {
	ID          market.OperatorID // in the engine, from 1
	Name        string
	TokenSHA256 [sha256.Size]byte // of the token's bytes
}

// Desk has the methods of the desk that the operators' endpoints need; see package desk.
type Desk interface {
	View() *rfq.View
	Do(r rfq.Request) (*desk.Result, error)
}

// PriceSources are the sources of the prices of assets that have rules.
type PriceSources interface {
	// TryPrice checks a price that an operator wants to set for an asset. It returns a
	// function to call once the engine has taken the price. The error is for the operator.
	TryPrice(asset string, price market.USDPrice) (taken func(), err error)
	// AssetPrices returns the prices of the assets that have rules.
	AssetPrices() []desk.AssetPrice
}

// Operations has what the operators' endpoints call. A nil field removes its endpoints.
type Operations struct {
	Desk        Desk // tickets, locks, prices and inventory
	Prices      PriceSources
	Instruments *market.Instruments
	Operators   []Operator
	// Backup copies all data of the running service into an empty or missing folder. It
	// may take minutes. Calls do not overlap.
	Backup func(ctx context.Context, to string) error
	Money  Money         // /desk/money
	Status StatusSources // of /desk/status
	Tokens Tokens        // /desk/tokens
	FIX    FIX           // /desk/fix
	// Markets serves /desk/markets.
	Markets Markets
	// Cluster serves /cluster and /desk/cluster. A standby has only Cluster and Backup; its
	// other paths answer with the leader.
	Cluster Cluster
	Now     func() int64 // Unix nanoseconds; default: the system's clock
}

func (o *Operations) validate() error {
	switch {
	case !o.standsBy() && (o.Instruments == nil || o.Backup == nil):
		return errors.New("httpgw: operators' endpoints: instruments and backup are required")
	case o.Money != nil && o.Desk == nil:
		return errors.New("httpgw: operators' endpoints: money needs a desk")
	case len(o.Operators) == 0:
		return errors.New("httpgw: operators' endpoints: no operator is configured")
	}
	for i := range o.Operators {
		if op := &o.Operators[i]; op.ID == 0 || op.Name == "" || op.TokenSHA256 == [sha256.Size]byte{} {
			return fmt.Errorf("httpgw: operators' endpoints: operator %d %q: id, name and token are required", i, op.Name)
		}
	}
	return nil
}

// standsBy reports whether this node is a standby.
func (o *Operations) standsBy() bool { return o.Cluster != nil && o.Instruments == nil }

// endpoints serves the operators' endpoints.
type endpoints struct {
	operators []Operator
	backupTo  func(ctx context.Context, to string) error // Operate.Backup
	backup    chan struct{}                              // full while a backup runs
	ids       *wire.RequestIDs
	limit     *ratelimit.Buckets
	log       commandLog
	routes    operatorRoutes
}

// operatorRoutes are endpoints by path and method.
type operatorRoutes map[string]map[string]endpointFunc

// commandLog logs the commands of operators.
type commandLog struct{ *slog.Logger }

// call is one request of an operator.
type call struct {
	*http.Request
	operator *Operator
	body     []byte
	id       wire.RequestID
	replayed bool // the answer is the stored one of an Idempotency-Key
}

// endpointFunc answers a call with a value for encoding/json or a problem.
type endpointFunc func(*call) (any, *wire.Problem)

// bodied returns an endpoint that decodes the body and calls do.
func bodied[B any](do func(*call, *B) (any, *wire.Problem)) endpointFunc {
	return func(c *call) (any, *wire.Problem) {
		in := new(B)
		if problem := c.decode(in); problem != nil {
			return nil, problem
		}
		return do(c, in)
	}
}

// noBody is an object without members, the body of requests that need none.
type noBody struct{}

func operatorLimit(clock func() int64) *ratelimit.Buckets {
	return ratelimit.NewBuckets(ratelimit.NewRate(operatorsPerMinute, time.Minute, operatorBurst), operatorClients, clock)
}

// register adds the endpoints to the admin's routes.
func (p *endpoints) register(mux *http.ServeMux) {
	for path, methods := range p.routes {
		mux.HandleFunc(path, p.handler(methods))
	}
}

// handler serves one path. A path without methods is unknown.
func (p *endpoints) handler(methods map[string]endpointFunc) http.HandlerFunc {
	var allow []string
	for m := range methods {
		allow = append(allow, m)
		if m == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, id: p.ids.Next()}
		answer, problem := p.serve(w, c, methods, strings.Join(allow, ", "))
		h := w.Header()
		if c.replayed {
			h.Set(string(wire.ReplayedHeader), "true")
		}
		if problem != nil {
			if c.body == nil && c.ContentLength != 0 {
				// Otherwise the answer would wait for the rest of the body.
				h.Set("Connection", "close")
			}
			refuseAdmin(w, &c.id, problem)
			return
		}
		adminHeaders(h, &c.id)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			p.log.Debug("answer to operator not delivered", "error", err)
		}
	}
}

// serve checks the token first, then method and body, and runs the endpoint.
func (p *endpoints) serve(w http.ResponseWriter, c *call, methods map[string]endpointFunc, allow string) (any, *wire.Problem) {
	if problem := p.authorize(c); problem != nil {
		return nil, problem
	}
	if methods == nil {
		return nil, wire.UnknownRoute(rawPath(c.Request))
	}
	method := c.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := methods[method]
	if serve == nil {
		return nil, wire.MethodNotAllowed(allow)
	}
	if c.Method == http.MethodPost {
		if problem := c.read(w); problem != nil {
			return nil, problem
		}
	}
	return serve(c)
}

// authorize finds the operator of the token. Its time depends neither on the operator nor
// on how much of a token is right, because it compares hashes.
func (p *endpoints) authorize(c *call) *wire.Problem {
	peer, err := netip.ParseAddrPort(c.RemoteAddr)
	if err != nil {
		peer = netip.AddrPortFrom(netip.IPv6Unspecified(), 0) // shared by all clients without an address
	}
	key := ratelimit.ClientOf(peer.Addr())
	if a := p.limit.Take(key); !a.OK {
		return wire.RateLimited(int(a.RetryS))
	}
	scheme, token, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) < minTokenBytes {
		return &wire.Problem{
			Status: http.StatusUnauthorized, Code: codeOperatorToken, Reason: "missing",
			Text: "Send an operator's token as Authorization: Bearer TOKEN.",
		}
	}
	sum := sha256.Sum256([]byte(token))
	for i := range p.operators {
		if subtle.ConstantTimeCompare(sum[:], p.operators[i].TokenSHA256[:]) == 1 {
			c.operator = &p.operators[i]
		}
	}
	if c.operator != nil {
		return nil
	}
	p.limit.Charge(key, wrongTokenCost-1)
	p.log.Warn("operator token refused", "request_id", string(c.id[:]), "peer", peer.Addr().String())
	return &wire.Problem{Status: http.StatusUnauthorized, Code: codeOperatorToken, Reason: "unknown", Text: "No operator has this token."}
}

// read reads the body, which must be JSON. Server bounds its length and time.
func (c *call) read(w http.ResponseWriter) *wire.Problem {
	if coding := c.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return wire.UnsupportedMedia("content_encoding")
	}
	if !wire.IsJSON([]byte(c.Header.Get("Content-Type"))) {
		return wire.UnsupportedMedia("content_type")
	}
	body, err := io.ReadAll(c.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &wire.Problem{
			Status: http.StatusRequestEntityTooLarge, Code: wire.CodeBodyTooLarge,
			Text: fmt.Sprintf("The body is longer than %d bytes.", long.Limit),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &wire.Problem{Status: http.StatusRequestTimeout, Code: wire.CodeRequestTimeout, Text: "The body did not arrive in time."}
	case err != nil:
		return &wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeMalformed, Text: "The body is incomplete."}
	}
	c.body = body
	// The endpoint may take longer than a body may. The writers of tests have no
	// deadlines, hence the ignored error.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return nil
}

// decode decodes the body into v, a pointer to a struct with json tags. The body must be
// one JSON object in UTF-8 with members of v, by their exact names, each at most once.
func (c *call) decode(v any) *wire.Problem {
	if problem := checkMembers(c.body, memberNames(v)); problem != nil {
		return problem
	}
	err := json.Unmarshal(c.body, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return invalidOperatorField(wrong.Field, "must be a JSON "+jsonWord(wrong))
	case err != nil:
		return invalidOperatorJSON()
	}
	return nil
}

// memberNames returns the names of the members of v.
func memberNames(v any) []string {
	var names []string
	for t, i := reflect.TypeOf(v).Elem(), 0; i < t.NumField(); i++ {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return names
}

// checkMembers refuses what encoding/json accepts silently: repeated names, of which the
// last value counts, names in another case, and invalid UTF-8. Invalid JSON takes
// precedence over an invalid member.
func checkMembers(body []byte, names []string) (wrong *wire.Problem) {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !utf8.Valid(body) {
		return invalidOperatorJSON()
	}
	var seen []string
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return invalidOperatorJSON()
		}
		text, _ := name.(string)
		switch {
		case wrong != nil:
		case !slices.Contains(names, text):
			wrong = wire.UnknownMember([]byte(text))
		case slices.Contains(seen, text):
			wrong = wire.InvalidMember(text, "repeated")
		default:
			seen = append(seen, text)
		}
	}
	if _, err := d.Token(); err != nil {
		return invalidOperatorJSON()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalidOperatorJSON()
	}
	return wrong
}

func jsonWord(e *json.UnmarshalTypeError) string {
	switch e.Type.String() {
	case "string":
		return "string"
	case "bool":
		return "true or false"
	case "[]string":
		return "array of strings"
	default:
		return "number within its range"
	}
}

func invalidOperatorJSON() *wire.Problem {
	return &wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeInvalidJSON, Text: "The body is not a single JSON object."}
}

// invalidOperatorField returns INVALID_FIELD with the rule that the field violates. rule
// must need no escapes in JSON.
func invalidOperatorField(field, rule string) *wire.Problem {
	return &wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeInvalidField, Field: field, Text: field + " " + rule + "."}
}

// outcome logs the outcome of a command and returns the result or the problem.
func (l commandLog) outcome(c *call, result *desk.Result, err error) (*desk.Result, *wire.Problem) {
	if err != nil {
		problem := terms.DeskProblem(err)
		if problem.Cause != nil {
			l.Error("operator command failed", "request_id", string(c.id[:]), "path", c.Pattern, "error", problem.Cause)
		}
		return nil, problem
	}
	c.replayed = result.Replayed
	l.Info("operator command executed", "request_id", string(c.id[:]), "operator", c.operator.Name,
		"path", c.Pattern, "replayed", c.replayed, "reason", result.Reason.String())
	if result.Reason != 0 {
		return nil, operatorRefusal(result.Reason)
	}
	return result, nil
}

// operatorRefusals has the sentences for reasons that only operators can cause.
var operatorRefusals = map[event.Reason]string{
	event.ReasonInvalidQty:         "The capacity is below what the tranche has reserved and filled, or above the maximum.",
	event.ReasonInvalidPrice:       "The desk does not accept this price.",
	event.ReasonInvalidExpiry:      "The expiry is not in the future.",
	event.ReasonInvalidCombination: "The values contradict each other.",
}

func operatorRefusal(reason event.Reason) *wire.Problem {
	if text := operatorRefusals[reason]; text != "" {
		return &wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeInvalidField, Reason: reason.String(), Text: text}
	}
	return terms.Refusal(reason)
}

// Limits of the operators' lists (our choice).
const (
	listLimit    = 100 // default items
	MaxListLimit = 500 // maximum items
)

// parseListLimit parses the query's limit.
func parseListLimit(values url.Values) (int, *wire.Problem) {
	text := values.Get("limit")
	if text == "" {
		return listLimit, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > MaxListLimit {
		return 0, wire.InvalidLimit(MaxListLimit)
	}
	return int(n), nil
}

// checkOnce refuses a query that repeats one of the names.
func checkOnce(values url.Values, names ...string) *wire.Problem {
	for _, name := range names {
		if len(values[name]) > 1 {
			return wire.RepeatedField(wire.CodeInvalidField, name)
		}
	}
	return nil
}

// key returns the hashed Idempotency-Key, if there is one. Each operator has separate keys,
// and the path counts as part of the body.
func (c *call) key() (rfq.IdempotencyKey, *wire.Problem) {
	keys := c.Header.Values(wire.IdempotencyHeader)
	switch {
	case len(keys) == 0:
		return rfq.IdempotencyKey{}, nil
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > wire.MaxIdempotencyKey:
		return rfq.IdempotencyKey{}, invalidOperatorField(wire.IdempotencyHeader, fmt.Sprintf("must occur once and have 1 to %d bytes", wire.MaxIdempotencyKey))
	}
	id := sha256.Sum256(fmt.Appendf(nil, "operator %d %s", c.operator.ID, keys[0]))
	body := sha256.Sum256(fmt.Appendf(nil, "%s %s", c.URL.Path, c.body))
	return rfq.IdempotencyKey{ID: [16]byte(id[:]), Body: [8]byte(body[:])}, nil
}

// Errors of Operations.Backup that have an answer of their own.
var (
	ErrBackupDisk   = errors.New("the disk of the data is nearly full (journal.disk_critical_percent): make room first")
	ErrBackupFolder = errors.New("the folder of a backup must be empty or missing")
)

type backupBody struct {
	To string `json:"to"`
}

// makeBackup backs up the service's data.
func (p *endpoints) makeBackup(c *call, in *backupBody) (any, *wire.Problem) {
	if !strings.HasPrefix(in.To, "/") {
		return nil, invalidOperatorField("to", "must be an absolute path of a folder on the service's machine")
	}
	select {
	case p.backup <- struct{}{}:
	default:
		return nil, &wire.Problem{
			Status: http.StatusConflict, Code: wire.CodeOverloaded, Reason: "backup_running",
			Text: "A backup is in progress.", RetryS: 10,
		}
	}
	defer func() { <-p.backup }()
	switch err := p.backupTo(c.Context(), in.To); {
	case errors.Is(err, ErrBackupDisk):
		return nil, &wire.Problem{
			Status: http.StatusServiceUnavailable, Code: wire.CodeReadOnly, Reason: "disk_critical",
			Text: "The disk of the data is nearly full, below journal.disk_critical_percent. Make room first.",
		}
	case errors.Is(err, ErrBackupFolder):
		return nil, invalidOperatorField("to", "must be an empty or missing folder on the service's machine")
	case err != nil:
		p.log.Error("backup failed", "request_id", string(c.id[:]), "error", err)
		return nil, &wire.Problem{
			Status: http.StatusInternalServerError, Code: wire.CodeInternal, Reason: "backup_failed",
			Text: "The backup failed. The log has details under the request_id.",
		}
	}
	p.log.Info("backup made", "request_id", string(c.id[:]), "operator", c.operator.Name)
	return struct {
		OK bool   `json:"ok"`
		To string `json:"to"`
	}{true, in.To}, nil
}
