package fixgw

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options of a Gateway. The zero value of every field but Address and
// Participants means its default. Without participants nobody can log on.
type Options struct {
	Address      string      // host:port to listen on; port 0 picks one
	TLS          *tls.Config // nil = plain TCP
	CompID       string      // ours; default "BLOCKDESK"
	Participants []Participant

	MaxSessions int // configured CompIDs, and so connections logged on
	MaxPending  int // connections that have not logged on yet
	// MaxPendingPerIP is how many of them one address (IPv6: one /64) may have, so that one
	// alone does not shut the others out.
	MaxPendingPerIP int

	// Before the logon: bytes and time that a connection has, and how long a
	// refusal takes whatever its reason.
	LogonBytes   int
	LogonTimeout time.Duration
	RefuseDelay  time.Duration

	MaxMessage int // bytes of an incoming message
	MaxOutbox  int // bytes waiting for a client that reads slowly
	Rate       int // incoming messages a second and session

	// GapTimeout is how long a session may wait for a message of the client's that
	// is missing before it is ended. It is looked at when a later one comes.
	GapTimeout time.Duration

	MaxReplay    int // messages replayed for one ResendRequest
	KeepMessages int // outgoing numbers whose messages are kept
	ReserveSeqs  int // outgoing numbers reserved ahead: see messageStore

	MaxPendingOrders int // requests of a session that the engine has not answered
	ClosedRefs       int // answered ClOrdIDs a session kept in memory
	MaxQuotes        int // quotes of a session that are live or asked for
	MaxSubscriptions int // market-data subscriptions of a session

	MaxPackages      int // packages being made; further claims get theirs later
	MaxProofs        int // reports of payments that wait for their answer
	MaxSessionProofs int // of them, those of one session
	// ProofTimeout is how long the payment of a report may take to be final.
	ProofTimeout time.Duration

	// SyncEvery bounds how long the reports' cursor may be unsynced.
	SyncEvery time.Duration
	// RestartGrace is how long after a start a session with cancel on
	// disconnect may stay away before its orders are cancelled.
	RestartGrace time.Duration
	// DrainTimeout bounds how long Run waits for the engine's last events.
	DrainTimeout time.Duration

	// MessageLog keeps the sessions' messages; nil = nothing does. Run runs it.
	MessageLog *MessageLog

	Now    func() time.Time
	Logger *slog.Logger
}

// Limits that are not options.
const (
	MinHeartBtInt = 10 // seconds
	MaxHeartBtInt = 60
	// MaxGarbage is how many bytes that are no FIX message a connection may
	// send in all.
	MaxGarbage = 4 << 10
	// MaxAhead is how many bytes of messages with numbers too high may wait for
	// a gap to be filled: quickfix keeps them in memory.
	MaxAhead = 512 << 10
	// MaxResends is how many ResendRequests a session may make at once; one
	// more every second.
	MaxResends = 10
	// MaxVerifies is how many passwords are checked at a time: each takes the
	// memory of its hash.
	// A flood of wrong passwords gets one core at most.
	MaxVerifies = 1
	// batchReports is how many reports are sent before their state is committed.
	batchReports = 512
	// hardRate times Options.Rate is where a connection is cut at once.
	hardRate = 4
)

func (o Options) withDefaults() Options {
	text := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	count := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	text(&o.CompID, "BLOCKDESK")
	count(&o.MaxSessions, 256)
	count(&o.MaxPending, 64)
	count(&o.MaxPendingPerIP, 32)
	count(&o.LogonBytes, 4<<10)
	span(&o.LogonTimeout, 5*time.Second)
	span(&o.RefuseDelay, time.Second)
	count(&o.MaxMessage, 16<<10)
	count(&o.MaxOutbox, 1<<20)
	count(&o.Rate, 500)
	span(&o.GapTimeout, 10*time.Second)
	count(&o.MaxReplay, 1000)
	count(&o.KeepMessages, 100_000)
	count(&o.ReserveSeqs, 10_000)
	count(&o.MaxPendingOrders, 10_000)
	count(&o.ClosedRefs, 256)
	count(&o.MaxQuotes, 64)
	count(&o.MaxSubscriptions, 64)
	count(&o.MaxPackages, 4096)
	count(&o.MaxProofs, 1024)
	count(&o.MaxSessionProofs, 32)
	span(&o.ProofTimeout, time.Minute)
	span(&o.SyncEvery, time.Second)
	span(&o.RestartGrace, 30*time.Second)
	span(&o.DrainTimeout, 3*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports the first rule that the options break, defaults filled in.
func (o Options) Validate() error {
	o = o.withDefaults()
	if o.Address == "" {
		return errors.New("fix: address is missing")
	}
	if !isCompID(o.CompID) {
		return fmt.Errorf("fix: comp_id %q: %s", o.CompID, compIDRule)
	}
	for _, c := range []struct {
		name   string
		v      int
		lo, hi int
	}{
		{"max_sessions", o.MaxSessions, 1, 10_000},
		{"max_pending", o.MaxPending, 1, 10_000},
		{"max_pending_per_ip", o.MaxPendingPerIP, 1, 10_000},
		{"logon_bytes", o.LogonBytes, 256, 64 << 10},
		{"max_message", o.MaxMessage, 1 << 10, 1 << 20},
		{"max_outbox", o.MaxOutbox, 64 << 10, 64 << 20},
		{"messages_per_second", o.Rate, 1, 1_000_000},
		{"max_replay", o.MaxReplay, 1, 100_000},
		{"keep_messages", o.KeepMessages, 1, 100_000_000},
		{"reserve_seqs", o.ReserveSeqs, 2, 1_000_000},
		{"max_pending_orders", o.MaxPendingOrders, 1, 1_000_000},
		{"closed_refs", o.ClosedRefs, 1, 1_000_000},
		{"max_quotes", o.MaxQuotes, 1, 10_000},
		{"max_subscriptions", o.MaxSubscriptions, 1, 10_000},
		{"max_packages", o.MaxPackages, 1, 1_000_000},
		{"max_proofs", o.MaxProofs, 1, 1_000_000},
		{"max_session_proofs", o.MaxSessionProofs, 1, 1_000_000},
	} {
		if c.v < c.lo || c.v > c.hi {
			return fmt.Errorf("fix: %s %d: must be %d to %d", c.name, c.v, c.lo, c.hi)
		}
	}
	for _, c := range []struct {
		name string
		v    time.Duration
	}{
		{"logon_timeout", o.LogonTimeout},
		{"refuse_delay", o.RefuseDelay},
		{"gap_timeout", o.GapTimeout},
		{"sync_every", o.SyncEvery},
		{"restart_grace", o.RestartGrace},
		{"drain_timeout", o.DrainTimeout},
		{"proof_timeout", o.ProofTimeout},
	} {
		if c.v < 0 || c.v > time.Hour {
			return fmt.Errorf("fix: %s %s: must be 0 to 1h", c.name, c.v)
		}
	}
	if len(o.Participants) == 0 {
		return nil
	}
	return validateParticipants(o.Participants, o.MaxSessions)
}
