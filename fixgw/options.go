package fixgw

import (
	"cmp"
	"time"

	"blockdesk/fixgw/session"
	"blockdesk/market"
)

// Options configures a Gateway. The zero value of every field but Address and Participants
// means its default. Without participants no client can log on.
type Options struct {
	session.Options

	MaxPendingOrders int // requests of a session that the engine has not answered
	ClosedRefs       int // answered ClOrdIDs that a session keeps in memory
	MaxQuotes        int // quotes of a session, live or requested
	MaxSubscriptions int // market-data subscriptions of a session

	MaxPackages      int // packages being made; further claims get theirs later
	MaxProofs        int // reports of payments without an answer
	MaxSessionProofs int // of them, of one session
	// ProofTimeout is how long the payment of a report may take to be final.
	ProofTimeout time.Duration

	// SyncEvery bounds how long the reports' cursor may be unsynced.
	SyncEvery time.Duration
	// RestartGrace is how long after a start a client with cancel on disconnect may stay
	// away before its orders are cancelled.
	RestartGrace time.Duration
	// DrainTimeout bounds how long Run waits for the engine's last events.
	DrainTimeout time.Duration

	// Group is part of the ids of quotes and claims; 0 = the instruments are not split.
	Group market.ShardID
	// Format1 makes only commands that release 0.1.0 reads (engine.Format1), while a group
	// is upgraded.
	Format1 bool
}

func (o Options) withDefaults() Options {
	o.Options = o.Options.WithDefaults()
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
	return o
}

// Validate reports the first rule that the options break, defaults filled in.
func (o Options) Validate() error {
	o = o.withDefaults()
	if err := o.Options.Validate(); err != nil {
		return err
	}
	return cmp.Or(
		session.InRange("max_pending_orders", o.MaxPendingOrders, 1, 1_000_000),
		session.InRange("closed_refs", o.ClosedRefs, 1, 1_000_000),
		session.InRange("max_quotes", o.MaxQuotes, 1, 10_000),
		session.InRange("max_subscriptions", o.MaxSubscriptions, 1, 10_000),
		session.InRange("max_packages", o.MaxPackages, 1, 1_000_000),
		session.InRange("max_proofs", o.MaxProofs, 1, 1_000_000),
		session.InRange("max_session_proofs", o.MaxSessionProofs, 1, 1_000_000),
		session.AtMostHour("sync_every", o.SyncEvery),
		session.AtMostHour("restart_grace", o.RestartGrace),
		session.AtMostHour("drain_timeout", o.DrainTimeout),
		session.AtMostHour("proof_timeout", o.ProofTimeout),
	)
}
