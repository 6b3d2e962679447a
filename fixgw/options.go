package fixgw

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Options of a Gateway. The zero value of every field but Address and
// Participants means its default. Without participants nobody can log on.
type Options struct {
	Address string // host:port to listen on; port 0 picks one
	// Listen binds Address; default net.Listen.
	Listen       func(network, addr string) (net.Listener, error)
	TLS          *tls.Config // nil = plain TCP
	CompID       string      // ours; default "BLOCKDESK"
	Participants []Participant
	Dictionary   *Dictionary // nil = New reads it

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

	// LogonGrace is how long the reason of a Logout may wait for the answer to the
	// Logon, which goes before it.
	LogonGrace time.Duration
	// KickGrace is how long a client has to read the Logout that ends its session.
	KickGrace time.Duration
	// FlushTimeout is how long a closing connection has to take its last messages.
	FlushTimeout time.Duration

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

	// Group is in the ids of quotes and claims; 0 = the instruments are not split.
	Group market.GroupID

	// Early has sessions that were made ahead (Spares.Next): a node that becomes the
	// leader serves them at once. Where they are not those of Participants, New closes
	// it and makes others. Default nil: Run makes them.
	Early *Early

	// Deposed is for the leader of a group: over says that it leads no more, and
	// leader who does, as "<id> at <host>:<port>", "" = nobody that is known. What
	// cannot be taken then is refused with that, and it is the Logout's text. It must
	// not block. Default nil: the node is no group's.
	Deposed func() (leader string, over bool)
	// Barrier is for the leader of a group: it returns nil once a majority has
	// confirmed, after the call, that this node leads, and this gateway has followed
	// all that any other had told before. An order's status is told after that, so that
	// nobody hears an older one than somebody before. It must end.
	// Default nil: nobody else can lead.
	Barrier func() error
	// ReadOnly is for a follower: it returns who leads, as Deposed does, and all that
	// is no question about the market is rejected with that; no reports are made. It
	// must not block. Default nil: this node takes requests.
	ReadOnly func() string

	// MessageLog keeps the sessions' messages; nil = nothing does. Run runs it.
	MessageLog *MessageLog

	Now    func() time.Time
	Logger *slog.Logger
}

// Limits that are not options.
const (
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
	o.CompID = cmp.Or(o.CompID, "BLOCKDESK")
	o.MaxSessions = cmp.Or(o.MaxSessions, 256)
	o.MaxPending = cmp.Or(o.MaxPending, 64)
	o.MaxPendingPerIP = cmp.Or(o.MaxPendingPerIP, 32)
	o.LogonBytes = cmp.Or(o.LogonBytes, 4<<10)
	o.LogonTimeout = cmp.Or(o.LogonTimeout, 5*time.Second)
	o.RefuseDelay = cmp.Or(o.RefuseDelay, time.Second)
	o.LogonGrace = cmp.Or(o.LogonGrace, time.Second)
	o.KickGrace = cmp.Or(o.KickGrace, 500*time.Millisecond)
	o.FlushTimeout = cmp.Or(o.FlushTimeout, time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 16<<10)
	o.MaxOutbox = cmp.Or(o.MaxOutbox, 1<<20)
	o.Rate = cmp.Or(o.Rate, 500)
	o.GapTimeout = cmp.Or(o.GapTimeout, 10*time.Second)
	o.MaxReplay = cmp.Or(o.MaxReplay, 1000)
	o.KeepMessages = cmp.Or(o.KeepMessages, 100_000)
	o.ReserveSeqs = cmp.Or(o.ReserveSeqs, 10_000)
	o.MaxPendingOrders = cmp.Or(o.MaxPendingOrders, 10_000)
	o.ClosedRefs = cmp.Or(o.ClosedRefs, 256)
	o.MaxQuotes = cmp.Or(o.MaxQuotes, 64)
	o.MaxSubscriptions = cmp.Or(o.MaxSubscriptions, 64)
	o.MaxPackages = cmp.Or(o.MaxPackages, 4096)
	o.MaxProofs = cmp.Or(o.MaxProofs, 1024)
	o.MaxSessionProofs = cmp.Or(o.MaxSessionProofs, 32)
	o.ProofTimeout = cmp.Or(o.ProofTimeout, time.Minute)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	o.RestartGrace = cmp.Or(o.RestartGrace, 30*time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 3*time.Second)
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
	o = o.withDefaults()
	if o.Address == "" {
		return errors.New("fix: address is missing")
	}
	if !wire.IsCompID(o.CompID) {
		return fmt.Errorf("fix: comp_id %q: %s", o.CompID, wire.CompIDRule)
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
		{"logon_grace", o.LogonGrace},
		{"kick_grace", o.KickGrace},
		{"flush_timeout", o.FlushTimeout},
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
