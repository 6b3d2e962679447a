// Package session is the FIX 4.4 session: it accepts connections, authenticates Logons, and
// keeps each CompID's sequence numbers and sent messages. quickfix is the session layer;
// only this package uses it. The package above gives each Session a Handler, which decides
// what the messages mean.
//
//	socket ─▶ conn: whole, checked frames ─┬─ ordinary request, session idle (fastpath.go) ─┬─▶ Handler
//	                authenticated (logon.go)└─▶ quickfix session (app.go) ───────────────────┘
//	Session.Deliver ─▶ batch numbered and stored (outbound.go) ─▶ connection's write queue ─▶ socket
//
// # Invariants
//
//  1. An outgoing sequence number is never used for two messages, though most commits
//     are not synced: see MessageStore.
//  2. The caller of Deliver never waits for a client: a connection's buffer takes a
//     message at once, or the client is cut off.
//  3. Before a Logon is authenticated the client has no session, no number moves, and a
//     connection costs at most LogonBytes and LogonTimeout. Connections that send nothing
//     keep no client out (listener.go), and neither does a client that guesses passwords
//     (passwords.go).
//  4. A signed Logon opens a session once: its SendingTime is synced before the
//     connection gets the session.
//  5. A CompID keeps its session number, its sequence numbers and messages, and its
//     participant, as long as the process lives. If it is removed from the participants
//     file and added again, it gets the reports that were made meanwhile. A session number
//     always belongs to the same participant: a CompID that a restart gives to another
//     participant gets a new number.
//
// # Messages past quickfix
//
// quickfix handles Logon, Heartbeat, TestRequest, resends, gaps, resets, rejects and
// Logout. Through it, an application message costs about 90 allocations each way. So
// ordinary messages bypass it, and leave the session in the same state as if quickfix had
// handled them:
//   - In: see fastpath.go. The goroutine that handles a message holds the session's lock,
//     so messages are handled one at a time, and before OnLogout cancels the orders.
//     quickfix gets a message at least every half HeartBtInt, because it sends a
//     TestRequest to a client that seems silent.
//   - Out: numbers are given out under quickfix's own lock, and a replay keeps new
//     messages waiting (outbound.go). The connection puts messages in the order of their
//     numbers (socket.go). quickfix does not see that they were sent, so a client
//     gets a Heartbeat every HeartBtInt even if it also gets reports.
//
// quickfix requests a missing message once, and until it has the message it answers only
// ResendRequests. If the message does not come within GapTimeout, the session is logged
// out with MESSAGE_MISSING, and the next logon requests it again (gap.go).
//
// # Participants
//
// Reload replaces all participants or, if one of them is invalid, none. The
// registry of sessions is immutable, behind an atomic pointer. quickfix's Acceptor takes
// no new session while it runs, so each reload that adds CompIDs starts another one, and an
// authenticated connection goes to the acceptor of its session. A session whose CompID was
// removed is logged out and stays, for its orders; quickfix keeps a goroutine for it until
// the process ends, so maxRemoved bounds their number. A reload cancels no order of a client
// that did not ask for cancel on disconnect.
//
// A new session of quickfix sleeps until the next full second, and its first Logon waits
// for that. A node of a group makes the sessions of its later terms ahead (Pool);
// quickfix distinguishes the sets by their Qualifier. quickfix starts a timer of 2 s at
// each Logout of its own. If the session stops first, the timer's goroutine never ends: at
// most one per session, at the end of the process.
//
// A second connection with an authenticated Logon gets the session if the client of the
// first one does not answer a TestRequest within TakeoverSilence (logon.go).
//
// While the node does not lead, a Standby holds the address and names the leader.
//
// # Concurrency
//
// A session and an acceptor have a goroutine of quickfix's each, a connection two and a
// writer of ours. Locks are taken in this order: the session's lock, the caller's of
// Deliver, outbound's, quickfix's, MessageStore's, the connection's. quickfix's callbacks
// that run under its locks (ToApp, ToAdmin, the store's) take only those after them.
//
// # Cost
//
// An ordinary request is checked and decoded, and a message numbered and encoded, without
// allocation (TestFastPathAllocates). The dictionary takes 4 µs a message.
//
// # Tests
//
// The acceptance scripts of the quickfix module for FIX 4.4 (59 of a server, 7 of
// last-processed and next-expected numbers and of resends in chunks) run against this
// package with an echo above it, so that every message goes through quickfix:
// TestAcceptance. TestFastPathChangesNothing, in fixgw, shows that a message that bypasses
// quickfix gets the same answer under the same number.
//
// # Limits
//
// Options and the constants beside them name every limit. FIX 4.4 only; no encryption but
// TLS; XmlData is refused, because quickfix v0.9.11 panics on it. A Reject names one broken
// rule, the first in this order: MsgType, required fields, values, order in the header,
// tags, repeating groups. An unknown tag is 373=0, as QuickFIX's acceptance scripts
// require.
package session
