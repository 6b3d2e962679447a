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
	// MaxFIXKeys bounds the stored Idempotency-Keys of /desk/fix. Above it, the oldest is
	// dropped.
	MaxFIXKeys = 1024
	// fixKeyLife is the lifetime of a key in nanoseconds, the same as at the desk.
	fixKeyLife = int64(24 * time.Hour)
)

// Codes of /desk/fix (our choice).
const (
	codeUnknownSession = "UNKNOWN_SESSION"
	codeSessionState   = "SESSION_STATE"
)

// FIX serves /desk/fix: the sessions of the FIX gateway. Implementations are safe for
// concurrent use.
type FIX interface {
	// Sessions returns all sessions in the order of their numbers.
	Sessions() []FIXSession
	// Participants returns which version of the participants file is in use.
	Participants() FIXParticipants
	// ResetSequence resets both sequence numbers of a session to 1. With force, it first
	// logs the session out, which takes some seconds at most. Errors:
	// ErrFIXUnknownSession, ErrFIXLoggedOn.
	ResetSequence(compID string, force bool) error
	// Kick logs a session out with a text. Errors: ErrFIXUnknownSession,
	// ErrFIXNotLoggedOn, ErrFIXText.
	Kick(compID, text string) error
	// Announce sends a News message to a session, or with an empty CompID to all that are
	// logged on, and returns the number of receivers. It has the errors of Kick.
	Announce(compID, text string) (int, error)
}

// Errors of FIX.
var (
	ErrFIXUnknownSession = errors.New("httpgw: unknown FIX session")
	ErrFIXLoggedOn       = errors.New("httpgw: FIX session is logged on")
	ErrFIXNotLoggedOn    = errors.New("httpgw: FIX session is not logged on")
	ErrFIXText           = errors.New("httpgw: the text for FIX sessions is not valid")
)

// FIXSession is the state of a session. Times are Unix nanoseconds, 0 = never.
type FIXSession struct {
	CompID      string
	Participant string
	Number      uint16
	Removed     bool // no longer configured
	LoggedOn    bool
	Since       int64  // of the Logon; 0 = not logged on
	Remote      string // host:port; "" = not connected

	NextIn, NextOut uint64 // sequence numbers
	LiveOrders      int
	PendingRequests int // not yet answered by the engine
	WaitingBytes    int // not yet read by the client
	RateRefusals    uint64

	CancelOnDisconnect, DropCopy, CustomFields bool

	LastLogon   int64
	LastRefusal int64  // of a Logon
	Refusal     string // its reason
}

// FIXParticipants is the state of the participants file.
type FIXParticipants struct {
	File     string // "" = none
	LoadedAt int64  // Unix nanoseconds
	Refused  string // why the present file is not in use; "" = it is
}

// fixSessionJSON is a session in JSON; a value that it does not have is null.
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
		Sent int  `json:"sessions"` // receivers
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

// listSessions lists all sessions: those that are configured, and those that were removed
// since the start.
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

// act executes a command of the FIX gateway: one at a time, and once per Idempotency-Key.
// Commands are logged but not journaled, because they move neither orders nor money.
func (e *fixEndpoints) act(c *call, do func() (any, error)) (any, *wire.Problem) {
	key, problem := c.key()
	if problem != nil {
		return nil, problem
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
	e.log.Info("operator command executed", "request_id", string(c.id[:]), "operator", c.operator.Name,
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
			Text: "Unknown comp_id. GET /desk/fix/sessions lists all sessions.",
		}
	case errors.Is(err, ErrFIXLoggedOn):
		return state("logged_on", "The session is logged on. Use force to log it out first.")
	case errors.Is(err, ErrFIXNotLoggedOn):
		return state("not_logged_on", "The session is not logged on.")
	case errors.Is(err, ErrFIXText):
		return invalidOperatorField("text", "must be 1 to 256 printable ASCII characters")
	}
	e.log.Error("operator command failed", "request_id", string(c.id[:]), "path", c.Pattern, "error", err)
	return &wire.Problem{Status: http.StatusInternalServerError, Code: wire.CodeInternal, Text: "The FIX gateway failed. The log has details under the request_id."}
}

// fixKeys stores the answer of each Idempotency-Key in memory. A restart drops it, as it
// ends the sessions that the commands were about.
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

// find returns the stored answer of a key, or nil. desk.ErrConflict: the key was used with
// another body.
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
