// Package simulation runs the whole service in one process on virtual time: the journal and
// the stores on a disk in memory that loses what was not synced, FIX sessions and HTTP
// clients over a network in memory, and a clock that moves when everybody waits
// (testing/synctest). So an hour of crashes takes a minute.
//
// One seed decides what happens: the orders, when the process is killed or its power is cut,
// how much of what was not synced survives, when a disk fails, when a client goes away or
// stops to read. The interleaving of goroutines is the scheduler's, so a seed does not repeat
// a run to the instruction; a violation that a race causes may need its seed a few times.
//
//	make simulate                     seeds for a minute
//	make simulate SEED=7 SEEDS=1      one seed again
//	make simulate-faults              each planted fault is found
//
// These rules are checked while it runs:
//
//  1. A session's numbers never fall, and a message comes once.
//  2. A report says the same thing each time; an order's reports begin once, add up, and end once.
//  3. The book that REST shows is never crossed, and its sequence numbers never fall in an epoch.
//
// and these at the end, when every client has patiently asked for what it lacks, against a replay of
// the journal:
//
//  4. Every request has an answer.
//  5. An acknowledged order is in the journal, once, and nothing is reported that is not there.
//  6. Every client has all fills of its orders and no other; both sides of a trade agree.
//  7. A client's open orders are the engine's, also by the gateway's own list (AF).
//  8. The journal replays, and its frames have the digests of the events that it replays to.
//
// The tag feed_goroutines builds the feed without epoll, which virtual time cannot wait for.
// Not simulated: TLS, NATS followers, groups of nodes, WebSocket clients, the chain and
// settlement (settle's TestAdversary has those on a real chain).
package simulation
