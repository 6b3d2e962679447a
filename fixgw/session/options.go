package session

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"blockdesk/fixgw/messagelog"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
	"blockdesk/persist/leadership"
)

// Options are the options of a Server. The zero value of every field but Address and
// Participants means its default.
type Options struct {
	Address string // host:port to listen on; port 0 picks one
	// Listen binds Address; default net.Listen.
	Listen       func(network, addr string) (net.Listener, error)
	TLS          *tls.Config // nil = plain TCP
	CompID       string      // ours; default "BLOCKDESK"
	Participants []participants.Participant
	Dictionary   *Dictionary // nil = Open reads it

	MaxSessions int // configured CompIDs, and so connections logged on
	// MaxPending is how many connections may wait before their logon, and MaxPendingPerIP
	// how many of them from one address (IPv6: one /64). One more replaces the oldest that
	// has sent no whole message. A quarter of MaxPending is kept for addresses that have
	// logged on before.
	MaxPending      int
	MaxPendingPerIP int

	// Before the logon: bytes and time that a connection has, and how long a
	// refusal takes whatever its reason.
	LogonBytes   int
	LogonTimeout time.Duration
	RefuseDelay  time.Duration
	// TakeoverSilence is how long the client of a connected session may stay silent when
	// another connection has sent an authenticated Logon, before that connection gets the session.
	TakeoverSilence time.Duration

	// LogonGrace is how long the Logout that names a reason may wait for the answer to
	// the Logon, which goes before it, and the end of the connection for that Logout.
	LogonGrace time.Duration
	// KickGrace is how long a client has to read the Logout that ends its session.
	KickGrace time.Duration
	// FlushTimeout is how long a closing connection has to take its last messages.
	FlushTimeout time.Duration

	MaxMessage int // bytes of an incoming message
	MaxOutbox  int // bytes waiting for a client that reads slowly
	Rate       int // incoming messages a second and session

	// GapTimeout is how long a session may wait for a missing message of the client
	// before it is ended.
	GapTimeout time.Duration

	MaxReplay    int // messages replayed for one ResendRequest
	KeepMessages int // outgoing numbers whose messages are kept
	// KeepFor is how long sent messages are kept, by their SendingTime; 0 = however old.
	KeepFor time.Duration
	// RollAt is the time of day, from 00:00 UTC, at which the numbers of all sessions begin at 1
	// again; 0 = never.
	RollAt      time.Duration
	ReserveSeqs int // outgoing numbers reserved ahead: see MessageStore

	// Prepared has sessions that were made ahead (Pool.Next): a node that becomes the
	// leader serves them at once. If they do not fit Participants, Open closes it and
	// makes others. Default nil: StartSessions makes them.
	Prepared *Prepared

	// Leadership is the node's role in its group. After the node has lost it, refusals
	// and the Logout's text name the leader. A follower process makes no reports, and rejects
	// everything but requests for market data and instruments. An order's status waits
	// for Barrier. Default nil: the node is in no group.
	Leadership *leadership.Leadership

	// MessageLog keeps the sessions' messages; nil = they are not kept.
	MessageLog *messagelog.Log

	Now    func() time.Time
	Logger *slog.Logger
}

// Limits that are not options.
const (
	// MaxGarbage is how many bytes that are no FIX message a connection may send in all.
	MaxGarbage = 4 << 10
	// MaxAhead is how many bytes of messages with numbers too high may wait for
	// a gap to be filled: quickfix keeps them in memory.
	MaxAhead = 512 << 10
	// MaxResends is how many ResendRequests a session may make at once; one
	// more every second.
	MaxResends = 10
	// hardRate times Options.Rate is where a connection is cut at once.
	hardRate = 4
)

// WithDefaults returns o with the default of each option that is zero.
func (o Options) WithDefaults() Options {
	o.CompID = cmp.Or(o.CompID, "BLOCKDESK")
	o.MaxSessions = cmp.Or(o.MaxSessions, 256)
	o.MaxPending = cmp.Or(o.MaxPending, 4096)
	o.MaxPendingPerIP = cmp.Or(o.MaxPendingPerIP, 1024)
	o.LogonBytes = cmp.Or(o.LogonBytes, 4<<10)
	o.LogonTimeout = cmp.Or(o.LogonTimeout, 5*time.Second)
	o.RefuseDelay = cmp.Or(o.RefuseDelay, time.Second)
	o.TakeoverSilence = cmp.Or(o.TakeoverSilence, time.Second)
	o.LogonGrace = cmp.Or(o.LogonGrace, time.Second)
	o.KickGrace = cmp.Or(o.KickGrace, 500*time.Millisecond)
	o.FlushTimeout = cmp.Or(o.FlushTimeout, time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 16<<10)
	o.MaxOutbox = cmp.Or(o.MaxOutbox, 4<<20)
	o.Rate = cmp.Or(o.Rate, 500)
	o.GapTimeout = cmp.Or(o.GapTimeout, 10*time.Second)
	o.MaxReplay = cmp.Or(o.MaxReplay, 1000)
	o.KeepMessages = cmp.Or(o.KeepMessages, 100_000)
	o.ReserveSeqs = cmp.Or(o.ReserveSeqs, 2_000)
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Validate reports the first rule that the options break, defaults filled in.
func (o Options) Validate() error {
	o = o.WithDefaults()
	if o.Address == "" {
		return errors.New("fix: address is missing")
	}
	if !wire.IsCompID(o.CompID) {
		return fmt.Errorf("fix: comp_id %q: %s", o.CompID, wire.CompIDRule)
	}
	err := cmp.Or(
		InRange("max_sessions", o.MaxSessions, 1, 10_000),
		InRange("max_pending", o.MaxPending, 1, 10_000),
		InRange("max_pending_per_ip", o.MaxPendingPerIP, 1, 10_000),
		InRange("logon_bytes", o.LogonBytes, 256, 64<<10),
		InRange("max_message", o.MaxMessage, 1<<10, 1<<20),
		InRange("max_outbox", o.MaxOutbox, 64<<10, 64<<20),
		InRange("messages_per_second", o.Rate, 1, 1_000_000),
		InRange("max_replay", o.MaxReplay, 1, 100_000),
		InRange("keep_messages", o.KeepMessages, 1, 100_000_000),
		InRange("reserve_seqs", o.ReserveSeqs, 2, 1_000_000),
		AtMostHour("logon_timeout", o.LogonTimeout),
		AtMostHour("refuse_delay", o.RefuseDelay),
		AtMostHour("takeover_silence", o.TakeoverSilence),
		AtMostHour("logon_grace", o.LogonGrace),
		AtMostHour("kick_grace", o.KickGrace),
		AtMostHour("flush_timeout", o.FlushTimeout),
		AtMostHour("gap_timeout", o.GapTimeout),
	)
	if err == nil && o.KeepFor < 0 {
		err = fmt.Errorf("fix: keep_for %s: must not be negative", o.KeepFor)
	}
	if err == nil && (o.RollAt < 0 || o.RollAt > 24*time.Hour) {
		err = fmt.Errorf("fix: roll_at %s: must be 0 to 24h", o.RollAt)
	}
	if err != nil || len(o.Participants) == 0 {
		return err
	}
	return participants.Validate(o.Participants, o.MaxSessions)
}

// InRange returns an error for an option that is not lo to hi.
func InRange(name string, n, lo, hi int) error {
	if n < lo || n > hi {
		return fmt.Errorf("fix: %s %d: must be %d to %d", name, n, lo, hi)
	}
	return nil
}

// AtMostHour returns an error for an option that is not 0 to an hour.
func AtMostHour(name string, d time.Duration) error {
	if d < 0 || d > time.Hour {
		return fmt.Errorf("fix: %s %s: must be 0 to 1h", name, d)
	}
	return nil
}
