// Package engine turns commands into events: one goroutine, one sequence.
//
// Everything that happens is a Command; everything that is seen is an
// event.Event; one goroutine at a time turns one into the other; nothing leaves
// before it is durable.
//
//	producers ──Submit──▶ ingress ring ──▶ matcher ──events──▶ egress ring ──▶ consumers
//	                           │                                              ▲ up to the watermark
//	                           └──stamped commands──▶ journaler ──durable─────┘
//
// The ingress ring holds commands until they are both applied and durable, so
// the journaler encodes straight out of it while the matcher works: group
// commit overlaps with matching and costs the matcher nothing.
//
// Where matcher, journaler and a consumer sleep, who has placed a command may do
// their work himself (RunInline): waking three goroutines one after the other takes
// longer than all of it. A turn is taken from a goroutine that sleeps and looks at
// nothing, by one compare-and-swap, and given back by a store; so there is one
// writer as before, and no lock.
//
// An engine on another machine, made by Follow, takes the stamped commands of the
// leader's journal in place of its own: who calls Apply is its one writer, there
// is neither ingress nor journaler, and consumers see the same events.
//
// Invariants:
//  1. Seq has no gaps and no reuse; At never falls.
//  2. State is a function of the commands alone: no clock, no randomness, no map
//     order. The same journal gives the same events and the same Hash under any
//     batch size and on both books.
//  3. A consumer never sees an event whose command is not durable.
//  4. Submit and SubmitAll never block and never wait for a lock: a full ring is
//     ErrFull. What one SubmitAll submits stays together, whole or not at all.
//  5. A mirrored instrument has the book of the newest slot told, whole, and each
//     of the chain's trades once, in the order of their ordinals (MirrorBook,
//     MirrorSwap). No view shows a part of a refresh.
//  6. No allocation, lock, clock, float, map iteration or interface call for a
//     command about an order between Submit and its events (the clock and the
//     journal are asked once a batch).
package engine
