package admin

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
)

const (
	// MaxFIXKeys bounds the Idempotency-Keys of /desk/fix that are remembered; past
	// it the oldest goes.
	MaxFIXKeys = 1024
	// fixKeyLife is how long one is, in nanoseconds, as of the desk's.
	fixKeyLife = int64(24 * time.Hour)
)

// Codes of /desk/fix are our choice: the contract has no words for them.
const (
	codeUnknownSession = "UNKNOWN_SESSION"
	codeSessionState   = "SESSION_STATE"
)

// FIX is the FIX gateway's sessions: what is behind /desk/fix on the admin
// address. Any goroutine may call it.
type FIX interface {
	// Sessions returns all sessions in the order of their numbers.
	Sessions() []FIXSession
	// Participants returns which state of the participants file is in force.
	Participants() FIXParticipants
	// ResetSequence starts both sequence numbers of a session at 1. With force a
	// session that is logged on is logged out for it; that takes some seconds at
	// most. ErrFIXUnknownSession, ErrFIXLoggedOn.
	ResetSequence(compID string, force bool) error
	// Kick logs a session out with a text. ErrFIXUnknownSession, ErrFIXNotLoggedOn,
	// ErrFIXText.
	Kick(compID, text string) error
	// Announce sends maintenance news to a session, or to all that are logged on
	// where the CompID is empty, and returns to how many. Errors as of Kick.
	Announce(compID, text string) (int, error)
}

// What FIX refuses.
var (
	ErrFIXUnknownSession = errors.New("httpgw: unknown FIX session")
	ErrFIXLoggedOn       = errors.New("httpgw: FIX session is logged on")
	ErrFIXNotLoggedOn    = errors.New("httpgw: FIX session is not logged on")
	ErrFIXText           = errors.New("httpgw: FIX text")
)

// FIXSession is what there is to say of a session. Times are Unix nanoseconds, 0 =
// never.
type FIXSession struct {
	CompID      string
	Participant string
	Number      uint16
	Removed     bool // no more configured
	LoggedOn    bool
	Since       int64  // of the Logon; 0 = not logged on
	Remote      string // host:port; "" = not connected

	NextIn, NextOut uint64 // sequence numbers
	LiveOrders      int
	PendingRequests int // without an answer of the engine
	WaitingBytes    int // that the client has not taken
	RateRefusals    uint64

	CancelOnDisconnect, DropCopy, CustomFields bool

	LastLogon   int64
	LastRefusal int64  // of a Logon
	Refusal     string // its reason
}

// FIXParticipants says what of the participants file is in force.
type FIXParticipants struct {
	File     string // "" = none
	LoadedAt int64  // Unix nanoseconds
	Refused  string // why the file as it is now is not in force; "" = it is
}

// fixSessionJSON is a session as the operator sees it; null is what it does not have.
type fixSessionJSON struct {
	CompID             string    `json:"comp_id"`
	Participant        string    `json:"participant"`
	Number             uint16    `json:"session"`
	State              string    `json:"state"` // logged_on, logged_off or removed
	Since              wire.Time `json:"logged_on_since"`
	Remote             *string   `json:"remote"`
	NextIn             uint64    `json:"next_in"`
	NextOut            uint64    `json:"next_out"`
	LiveOrders         int       `json:"live_orders"`
	PendingRequests    int       `json:"pending_requests"`
	WaitingBytes       int       `json:"bytes_waiting"`
	RateRefusals       uint64    `json:"rate_refusals"`
	CancelOnDisconnect bool      `json:"cancel_on_disconnect"`
	DropCopy           bool      `json:"drop_copy"`
	CustomFields       bool      `json:"custom_fields"`
	LastLogon          wire.Time `json:"last_logon"`
	LastRefusal        wire.Time `json:"last_refusal"`
	Refusal            *string   `json:"refusal"`
}

type (
	fixParticipantsJSON struct {
		File     *string   `json:"file"`
		LoadedAt wire.Time `json:"loaded_at"`
		Refused  *string   `json:"refused"`
	}
	fixSessionsAnswer struct {
		OK           bool                `json:"ok"`
		Participants fixParticipantsJSON `json:"participants"`
		Sessions     []fixSessionJSON    `json:"sessions"`
	}
	fixSessionAnswer struct {
		OK     bool   `json:"ok"`
		CompID string `json:"comp_id"`
	}
	fixAnnounceAnswer struct {
		OK   bool `json:"ok"`
		Sent int  `json:"sessions"` // that it was sent to
	}
)

// fixEndpoints are the operators' endpoints of the FIX gateway.
type fixEndpoints struct {
	fix  FIX
	log  commandLog
	now  func() int64 // Unix nanoseconds
	keys fixKeys
}

func newFIXEndpoints(fix FIX, log commandLog, now func() int64) *fixEndpoints {
	return &fixEndpoints{fix: fix, log: log, now: now, keys: fixKeys{byID: make(map[[16]byte]*fixKey)}}
}

func (e *fixEndpoints) routes() operatorRoutes {
	return operatorRoutes{
		"/desk/fix/sessions":                 {"GET": e.listSessions},
		"/desk/fix/sessions/{comp_id}/reset": {"POST": bodied(e.resetSession)},
		"/desk/fix/sessions/{comp_id}/kick":  {"POST": bodied(e.kickSession)},
		"/desk/fix/announce":                 {"POST": bodied(e.announce)},
	}
}

// listSessions lists them all: there are at most as many as are configured, and
// those that were taken out since the start.
func (e *fixEndpoints) listSessions(*call) (any, *wire.Problem) {
	p := e.fix.Participants()
	answer := fixSessionsAnswer{
		OK: true, Sessions: []fixSessionJSON{},
		Participants: fixParticipantsJSON{File: wire.NullIfEmpty(p.File), LoadedAt: wire.Time(p.LoadedAt), Refused: wire.NullIfEmpty(p.Refused)},
	}
	for _, s := range e.fix.Sessions() {
		state := "logged_off"
		switch {
		case s.Removed:
			state = "removed"
		case s.LoggedOn:
			state = "logged_on"
		}
		answer.Sessions = append(answer.Sessions, fixSessionJSON{
			CompID: s.CompID, Participant: s.Participant, Number: s.Number, State: state,
			Since: wire.Time(s.Since), Remote: wire.NullIfEmpty(s.Remote), NextIn: s.NextIn, NextOut: s.NextOut,
			LiveOrders: s.LiveOrders, PendingRequests: s.PendingRequests, WaitingBytes: s.WaitingBytes, RateRefusals: s.RateRefusals,
			CancelOnDisconnect: s.CancelOnDisconnect, DropCopy: s.DropCopy, CustomFields: s.CustomFields,
			LastLogon: wire.Time(s.LastLogon), LastRefusal: wire.Time(s.LastRefusal), Refusal: wire.NullIfEmpty(s.Refusal),
		})
	}
	return answer, nil
}

type resetSessionBody struct {
	Force bool `json:"force"`
}

func (e *fixEndpoints) resetSession(c *call, in *resetSessionBody) (any, *wire.Problem) {
	compID := c.PathValue("comp_id")
	return e.act(c, func() (any, error) {
		return fixSessionAnswer{true, compID}, e.fix.ResetSequence(compID, in.Force)
	})
}

type kickSessionBody struct {
	Text string `json:"text"`
}

func (e *fixEndpoints) kickSession(c *call, in *kickSessionBody) (any, *wire.Problem) {
	compID := c.PathValue("comp_id")
	return e.act(c, func() (any, error) {
		return fixSessionAnswer{true, compID}, e.fix.Kick(compID, in.Text)
	})
}

type announceBody struct {
	Text   string `json:"text"`
	CompID string `json:"comp_id"`
}

func (e *fixEndpoints) announce(c *call, in *announceBody) (any, *wire.Problem) {
	return e.act(c, func() (any, error) {
		sent, err := e.fix.Announce(in.CompID, in.Text)
		return fixAnnounceAnswer{true, sent}, err
	})
}

// act has the FIX gateway do something, one command at a time, and once under
// an Idempotency-Key. It is logged, not journaled: no order and no money moves by
// it.
func (e *fixEndpoints) act(c *call, do func() (any, error)) (any, *wire.Problem) {
	key, bad := c.key()
	if bad != nil {
		return nil, bad
	}
	e.keys.Lock()
	defer e.keys.Unlock()
	answer, err := e.keys.find(key, e.now())
	if err != nil {
		return nil, terms.DeskProblem(err)
	}
	if c.replayed = answer != nil; !c.replayed {
		if answer, err = do(); err != nil {
			return nil, e.problemOf(c, err)
		}
		e.keys.keep(key, answer, e.now())
	}
	e.log.Info("operator's command", "request_id", string(c.id[:]), "operator", c.operator.Name,
		"path", c.Pattern, "comp_id", c.PathValue("comp_id"), "replayed", c.replayed)
	return answer, nil
}

func (e *fixEndpoints) problemOf(c *call, err error) *wire.Problem {
	state := func(reason, text string) *wire.Problem {
		return &wire.Problem{Status: http.StatusConflict, Code: codeSessionState, Reason: reason, Text: text}
	}
	switch {
	case errors.Is(err, ErrFIXUnknownSession):
		return &wire.Problem{
			Status: http.StatusNotFound, Code: codeUnknownSession, Field: "comp_id",
			Text: "No session has this comp_id. GET /desk/fix/sessions lists those there are.",
		}
	case errors.Is(err, ErrFIXLoggedOn):
		return state("logged_on", "The session is logged on. With force it is logged out first.")
	case errors.Is(err, ErrFIXNotLoggedOn):
		return state("not_logged_on", "The session is not logged on.")
	case errors.Is(err, ErrFIXText):
		return invalidOperatorField("text", "must be 1 to 256 printable ASCII characters")
	}
	e.log.Error("operator's command failed", "request_id", string(c.id[:]), "path", c.Pattern, "error", err)
	return &wire.Problem{Status: http.StatusInternalServerError, Code: wire.CodeInternal, Text: "The FIX gateway could not do it. The request_id names the log's entry."}
}

// fixKeys remembers what was answered under which Idempotency-Key. A restart
// forgets it: the sessions that a text went to are gone then too.
type fixKeys struct {
	sync.Mutex // held during a command
	byID       map[[16]byte]*fixKey
	ring       []*fixKey // oldest at next
	next       int
}

type fixKey struct {
	rfq.IdempotencyKey
	at     int64
	answer any
}

// find returns the answer that key has had, or nil. desk.ErrConflict: another body
// had it.
func (k *fixKeys) find(key rfq.IdempotencyKey, now int64) (any, error) {
	held := k.byID[key.ID]
	switch {
	case key == rfq.IdempotencyKey{} || held == nil || now-held.at >= fixKeyLife:
		return nil, nil
	case held.IdempotencyKey != key:
		return nil, desk.ErrConflict
	}
	return held.answer, nil
}

func (k *fixKeys) keep(key rfq.IdempotencyKey, answer any, now int64) {
	if (key == rfq.IdempotencyKey{}) {
		return
	}
	fresh := &fixKey{IdempotencyKey: key, at: now, answer: answer}
	if len(k.ring) < MaxFIXKeys {
		k.ring = append(k.ring, fresh)
	} else {
		if old := k.ring[k.next]; k.byID[old.ID] == old {
			delete(k.byID, old.ID)
		}
		k.ring[k.next] = fresh
		k.next = (k.next + 1) % MaxFIXKeys
	}
	k.byID[key.ID] = fresh
}
