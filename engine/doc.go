// Package engine turns commands into events: one goroutine, one sequence.
//
// Everything that happens is a Command, everything that is seen is an event.Event, one
// goroutine at a time turns one into the other, and nothing leaves before it is durable.
//
//	producers ──Submit──▶ ingress ring ──▶ matcher ──events──▶ egress ring ──▶ consumers
//	                           │                                              ▲ up to the watermark
//	                           └──stamped commands──▶ journaler ──durable─────┘
//
// The ingress ring holds commands until they are both applied and durable. The journaler
// encodes them straight out of the ring while the matcher works, so group commit overlaps
// with matching and costs the matcher nothing.
//
// If matcher, journaler and a consumer sleep, the producer of a command may do their work
// itself: see RunInline.
//
// An engine made by Follow replicates another engine: Apply takes the stamped commands of
// the leader's journal instead of Submit, there is no journaler, and consumers see the same
// events.
//
// Invariants:
//  1. Seq has no gaps and no reuse; At never falls.
//  2. State is a function of the commands alone: no clock, no randomness, no map order.
//     The same journal gives the same events and the same Hash under any batch size and
//     with both book implementations.
//  3. A consumer never sees an event whose command is not durable.
//  4. Submit and SubmitAll never block and never wait for a lock: a full ring is ErrFull.
//     The commands of one SubmitAll are consecutive, and all are taken or none.
//  5. A mirrored instrument has the whole book of the newest slot submitted, and each of
//     the chain's trades once, in the order of their ordinals (MirrorBook, MirrorSwap). No
//     view shows a part of a refresh.
//  6. A command about an order takes no allocation, lock, float, map iteration or interface
//     call between Submit and its events. Clock and journal are called once a batch.
package engine
