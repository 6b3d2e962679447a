package httpgw

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
	"maps"
	"net/http"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Limits of the operator's endpoints (our choice).
const (
	// operatorsPerMinute and operatorBurst bound the requests of one address,
	// with a right token or none.
	operatorsPerMinute = 600
	operatorBurst      = 100
	// wrongTokenCost is what a wrong token costs of them: at most one guess a
	// second, after the first ten.
	wrongTokenCost = 10
	// operatorClients bounds the addresses that are remembered.
	operatorClients = 1024
	// minTokenBytes is the shortest token that is looked at.
	minTokenBytes = 16
)

// codeOperatorToken is our choice: the contract has no word for it.
const codeOperatorToken = "OPERATOR_TOKEN_REFUSED"

// Operator is one who may command the desk.
type Operator struct {
	ID          market.OperatorID // as the engine knows him, from 1
	Name        string
	TokenSHA256 [sha256.Size]byte // of the token's bytes
}

// OperatorDesk is what the operator's endpoints need of the desk; see package
// desk.
type OperatorDesk interface {
	View() *rfq.View
	Do(r rfq.Request) (*desk.Result, error)
}

// Operate is what is behind the operator's endpoints, /desk/ on the admin
// address.
type Operate struct {
	// Desk is behind tickets, locks, prices and inventory; nil leaves them out.
	Desk        OperatorDesk
	Instruments *market.Instruments
	Operators   []Operator
	// Backup copies everything that the service has into an empty or missing
	// folder, while it runs. It may take minutes; it is called once at a time.
	Backup func(ctx context.Context, to string) error
	// Money is behind /desk/money; nil leaves it out.
	Money OperatorMoney
	// Tokens is behind /desk/tokens; nil leaves it out.
	Tokens OperatorTokens
	// FIX is behind /desk/fix; nil leaves it out.
	FIX OperatorFIX
	// Cluster is behind /cluster and /desk/cluster; nil leaves it out. A node that
	// stands by has nothing else, and no Backup: its other paths say who leads.
	Cluster OperatorCluster
	// Now returns Unix nanoseconds. Default: the system's clock.
	Now func() int64
}

func (o *Operate) validate() error {
	switch {
	case !o.standsBy() && (o.Instruments == nil || o.Backup == nil):
		return errors.New("httpgw: operate: instruments and backup are required")
	case o.Money != nil && o.Desk == nil:
		return errors.New("httpgw: operate: money needs a desk")
	case len(o.Operators) == 0:
		return errors.New("httpgw: operate: no operator")
	}
	for i := range o.Operators {
		if op := &o.Operators[i]; op.ID == 0 || op.Name == "" || op.TokenSHA256 == [sha256.Size]byte{} {
			return fmt.Errorf("httpgw: operate: operator %d %q: id, name and token are required", i, op.Name)
		}
	}
	return nil
}

// standsBy reports whether this is a node of a group that does not serve.
func (o *Operate) standsBy() bool { return o.Cluster != nil && o.Backup == nil }

// operate serves the endpoints.
type operate struct {
	Operate
	ids    *requestIDs
	limit  *ratelimit.Buckets
	log    *slog.Logger
	backup chan struct{} // full while a backup is under way
	// edit is held from a look at the view to the outcome of what was made of
	// it, so that of two operators neither undoes what the other has just done.
	edit    sync.Mutex
	fixKeys fixKeys
}

// call is one request of an operator.
type call struct {
	*http.Request
	who      *Operator
	body     []byte
	id       requestID
	replayed bool // an Idempotency-Key has brought back an earlier answer
}

// endpointFunc answers a call: a value for encoding/json, or a problem.
type endpointFunc func(*call) (any, *problem)

func newOperate(o Operate, ids *requestIDs, log *slog.Logger) *operate {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	start := time.Now()
	return &operate{
		Operate: o, ids: ids, log: log, backup: make(chan struct{}, 1),
		fixKeys: fixKeys{byID: make(map[[16]byte]*fixKey)},
		limit:   operatorLimit(func() int64 { return int64(time.Since(start)) }),
	}
}

func operatorLimit(clock func() int64) *ratelimit.Buckets {
	return ratelimit.NewBuckets(ratelimit.Of(operatorsPerMinute, time.Minute, operatorBurst), operatorClients, clock)
}

// register adds the endpoints to the admin's routes.
func (o *operate) register(mux *http.ServeMux) {
	routes := map[string]map[string]endpointFunc{}
	if o.Backup != nil {
		routes["/desk/backup"] = map[string]endpointFunc{"POST": o.makeBackup}
	}
	if o.Cluster != nil {
		maps.Copy(routes, o.clusterRoutes())
	}
	if o.Desk != nil {
		maps.Copy(routes, o.deskRoutes())
	}
	if o.Money != nil {
		maps.Copy(routes, o.moneyRoutes())
	}
	if o.Tokens != nil {
		maps.Copy(routes, o.tokenRoutes())
	}
	if o.FIX != nil {
		maps.Copy(routes, o.fixRoutes())
	}
	for path, methods := range routes {
		mux.HandleFunc(path, o.handler(methods))
	}
	var rest map[string]endpointFunc
	if o.standsBy() {
		rest = map[string]endpointFunc{"GET": o.elsewhere, "POST": o.elsewhere}
	}
	mux.HandleFunc("/desk", o.handler(rest))
	mux.HandleFunc("/desk/", o.handler(rest))
}

func (o *operate) deskRoutes() map[string]map[string]endpointFunc {
	return map[string]map[string]endpointFunc{
		"/desk/tickets":                     {"GET": o.listTickets, "POST": o.postTicket},
		"/desk/tickets/{order_id}/amend":    {"POST": o.amendTicket},
		"/desk/tickets/{order_id}/tranches": {"POST": o.setTranche},
		"/desk/tickets/{order_id}/withdraw": {"POST": o.withdrawTicket},
		"/desk/locks":                       {"GET": o.listLocks, "POST": o.setLock},
		"/desk/prices":                      {"GET": o.listPrices, "POST": o.setPrice},
		"/desk/inventory":                   {"GET": o.listInventory, "POST": o.setInventory},
	}
}

// handler serves one path; one without methods is unknown.
func (o *operate) handler(methods map[string]endpointFunc) http.HandlerFunc {
	var allow []string
	for m := range methods {
		allow = append(allow, m)
		if m == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, id: o.ids.next()}
		answer, bad := o.serve(w, c, methods, strings.Join(allow, ", "))
		h := w.Header()
		if c.replayed {
			h.Set(string(hReplayed), "true")
		}
		if bad != nil {
			if c.body == nil && c.ContentLength != 0 {
				// Else the answer would wait for the body that nobody wants.
				h.Set("Connection", "close")
			}
			refuseAdmin(w, &c.id, bad)
			return
		}
		adminHeaders(h, &c.id)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			o.log.Debug("operator's answer not delivered", "error", err)
		}
	}
}

// serve checks who calls before anything else is told.
func (o *operate) serve(w http.ResponseWriter, c *call, methods map[string]endpointFunc, allow string) (any, *problem) {
	if bad := o.authorize(c); bad != nil {
		return nil, bad
	}
	if methods == nil {
		return nil, unknownRoute(rawPath(c.Request))
	}
	method := c.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := methods[method]
	if serve == nil {
		return nil, methodNotAllowed(allow)
	}
	if c.Method == http.MethodPost {
		if bad := c.read(w); bad != nil {
			return nil, bad
		}
	}
	return serve(c)
}

// authorize finds the operator whose token c carries. The time that it takes
// does not depend on which, or on how much of a token is right: what is compared
// are hashes.
func (o *operate) authorize(c *call) *problem {
	peer, err := netip.ParseAddrPort(c.RemoteAddr)
	if err != nil {
		peer = netip.AddrPortFrom(netip.IPv6Unspecified(), 0) // all without an address share it
	}
	key := ratelimit.ClientOf(peer.Addr())
	if a := o.limit.Take(key); !a.OK {
		return rateLimited(int(a.RetryS))
	}
	scheme, token, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) < minTokenBytes {
		return &problem{
			status: http.StatusUnauthorized, code: codeOperatorToken, reason: "missing",
			text: "This needs an operator's token: Authorization: Bearer, a space, the token.",
		}
	}
	sum := sha256.Sum256([]byte(token))
	for i := range o.Operators {
		if subtle.ConstantTimeCompare(sum[:], o.Operators[i].TokenSHA256[:]) == 1 {
			c.who = &o.Operators[i]
		}
	}
	if c.who != nil {
		return nil
	}
	o.limit.Charge(key, wrongTokenCost-1)
	o.log.Warn("operator's token refused", "request_id", string(c.id[:]), "peer", peer.Addr().String())
	return &problem{
		status: http.StatusUnauthorized, code: codeOperatorToken, reason: "unknown",
		text: "No operator has this token.",
	}
}

// read takes the body, which must be JSON. Admin bounds its length and the time
// that it may take.
func (c *call) read(w http.ResponseWriter) *problem {
	if coding := c.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return unsupportedMedia("content_encoding")
	}
	if !isJSON([]byte(c.Header.Get("Content-Type"))) {
		return unsupportedMedia("content_type")
	}
	body, err := io.ReadAll(c.Body)
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return &problem{
			status: http.StatusRequestEntityTooLarge, code: codeBodyTooLarge,
			text: fmt.Sprintf("The body is longer than %d bytes.", long.Limit),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problem{status: http.StatusRequestTimeout, code: codeRequestTimeout, text: "The body did not arrive in time."}
	case err != nil:
		return &problem{status: http.StatusBadRequest, code: codeMalformed, text: "The body did not arrive whole."}
	}
	c.body = body
	// What follows may take longer than a body may. A writer without deadlines,
	// as tests have, had none.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return nil
}

// decode reads the body into v, a pointer to a struct with tags: one JSON object
// in UTF-8 with members that v has, by their exact names, each at most once.
func (c *call) decode(v any) *problem {
	if bad := checkMembers(c.body, memberNames(v)); bad != nil {
		return bad
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

// memberNames returns the names of the members that v has.
func memberNames(v any) []string {
	var names []string
	for t, i := reflect.TypeOf(v).Elem(), 0; i < t.NumField(); i++ {
		names = append(names, t.Field(i).Tag.Get("json"))
	}
	return names
}

// checkMembers refuses what encoding/json takes without a word: a name twice, of
// which the last value counts, a name in other letters, and bytes that are no
// UTF-8. What is no JSON comes before what is wrong with a member.
func checkMembers(body []byte, names []string) (wrong *problem) {
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
			wrong = unknownMember()
		case slices.Contains(seen, text):
			wrong = invalidMember(text, "repeated")
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
		return "number in its range"
	}
}

func invalidOperatorJSON() *problem {
	return &problem{status: http.StatusBadRequest, code: codeInvalidJSON, text: "The body is not one JSON object."}
}

// invalidOperatorField says what is wrong with a member; rule needs no escapes
// in JSON.
func invalidOperatorField(field, rule string) *problem {
	return &problem{status: http.StatusBadRequest, code: codeInvalidField, field: field, text: field + " " + rule + "."}
}

// do sends a request to the desk in the name of the operator, and logs it.
func (o *operate) do(c *call, r rfq.Request) (*desk.Result, *problem) {
	head := r.Head()
	head.Operator = c.who.ID
	var bad *problem
	if head.Key, bad = c.key(); bad != nil {
		return nil, bad
	}
	result, err := o.Desk.Do(r)
	return o.outcome(c, result, err)
}

// outcome logs what came of an operator's command, and says what it is on the
// wire.
func (o *operate) outcome(c *call, result *desk.Result, err error) (*desk.Result, *problem) {
	if err != nil {
		bad := deskProblem(err)
		if bad.cause != nil {
			o.log.Error("operator's command failed", "request_id", string(c.id[:]), "path", c.Pattern, "error", bad.cause)
		}
		return nil, bad
	}
	c.replayed = result.Replayed
	o.log.Info("operator's command", "request_id", string(c.id[:]), "operator", c.who.Name,
		"path", c.Pattern, "replayed", c.replayed, "reason", result.Reason.String())
	if result.Reason != 0 {
		return nil, operatorRefusal(&result.Outcome)
	}
	return result, nil
}

// operatorRefusals are for reasons that no client meets: an operator has named
// the value.
var operatorRefusals = map[event.Reason]string{
	event.ReasonInvalidQty:         "The capacity is less than what the tranche has reserved and filled, or more than one may have.",
	event.ReasonInvalidPrice:       "The price is not one that the desk takes.",
	event.ReasonInvalidExpiry:      "The expiry is not in the future.",
	event.ReasonInvalidCombination: "The values do not go together.",
}

func operatorRefusal(o *rfq.Outcome) *problem {
	if text := operatorRefusals[o.Reason]; text != "" {
		return &problem{status: http.StatusBadRequest, code: codeInvalidField, reason: o.Reason.String(), text: text}
	}
	return refusal(o)
}

// key hashes the Idempotency-Key, if there is one: each operator has keys of his
// own, and the path is part of the body.
func (c *call) key() (rfq.Key, *problem) {
	keys := c.Header.Values(idempotencyHeader)
	switch {
	case len(keys) == 0:
		return rfq.Key{}, nil
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > MaxIdempotencyKey:
		return rfq.Key{}, invalidOperatorField(idempotencyHeader, fmt.Sprintf("must come once, with 1 to %d bytes", MaxIdempotencyKey))
	}
	id := sha256.Sum256(fmt.Appendf(nil, "operator %d %s", c.who.ID, keys[0]))
	body := sha256.Sum256(fmt.Appendf(nil, "%s %s", c.URL.Path, c.body))
	return rfq.Key{ID: [16]byte(id[:]), Body: [8]byte(body[:])}, nil
}

// makeBackup copies the service's data.
func (o *operate) makeBackup(c *call) (any, *problem) {
	var in struct {
		To string `json:"to"`
	}
	if bad := c.decode(&in); bad != nil {
		return nil, bad
	}
	if !strings.HasPrefix(in.To, "/") {
		return nil, invalidOperatorField("to", "must be an absolute path of a folder on the service's machine")
	}
	select {
	case o.backup <- struct{}{}:
	default:
		return nil, &problem{
			status: http.StatusConflict, code: codeOverloaded, reason: "backup_running",
			text: "A backup is under way.", retryS: 10,
		}
	}
	defer func() { <-o.backup }()
	if err := o.Backup(c.Context(), in.To); err != nil {
		// The operator may know what the service's files are called.
		o.log.Error("backup failed", "request_id", string(c.id[:]), "error", err)
		return nil, &problem{
			status: http.StatusInternalServerError, code: codeInternal, reason: "backup_failed",
			text: "The backup failed; the service's log says why under the request_id.",
		}
	}
	o.log.Info("backup made", "request_id", string(c.id[:]), "operator", c.who.Name)
	return struct {
		OK bool   `json:"ok"`
		To string `json:"to"`
	}{true, in.To}, nil
}
