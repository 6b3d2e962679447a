// Package cosign is the desk's signature: what it takes to get one, and who has the
// key. The way there is a chain of types, each of which only the step before it
// makes:
//
//	built bytes ─Countersign─▶ Countersigned ─Authorize─▶ Authorized ─Sign─▶ Signed
//	build.Unsigned ───────AuthorizeDelivery────────────▶ Authorized ─Sign─▶ Signed
//
// A [Countersigned] has the taker's verified signature. An [Authorized] has the
// desk's durable yes to exactly its message. A [Signed] has both, and the desk's
// signature, verified like everybody's. Between Authorized and Signed is a
// [Signer]: a key from a file ([FileSigner]), or the socket of a process of its own
// ([SocketSigner] and [Server]).
//
// # Invariants
//
//  1. There is no other way: the types have no exported field, no two of them
//     convert into each other, and nothing can be done with their zero values.
//  2. What is signed is what was built, to the byte: a submitted transaction
//     differs in the taker's signature and in nothing else.
//  3. Signatures are verified strictly (package eddsa), the taker's before the desk
//     is asked, the desk's own before it is told.
//  4. The desk signs two shapes of message and no other, [CheckAtomic] and
//     [CheckDelivery]: known programs, each instruction in its place, the desk's
//     tokens moved once, no account with a privilege that it does not need, memo
//     and reference of one claim, no address table, no durable nonce.
//  5. A job has one signature: signing is deterministic, and may be repeated after
//     any crash.
//  6. A signer's process trusts nobody. It checks every message itself, and signs
//     one message of an atomic claim, ever, or [MaxDeliveries] of a delivered one,
//     and for no claim both. It remembers a message, synced, before it signs it.
//  7. A key is not told: not printed, encoded, logged, or quoted by an error.
//
// # Concurrency
//
// Values are immutable and shared freely. Every Signer may be called by any number
// of goroutines. A Server serves each connection by a goroutine of its own; its
// record has one lock, held while an entry is synced.
//
// # Cost
//
// In CPU time of one core: 18 µs to check a shape, 115 to countersign, 240 to
// countersign and sign with a key from a file. The two verifications and the
// signature are nearly all of it; the benchmark tells. A signer's process adds a
// connection, a third verification, and one sync of the disk.
//
// # Limits
//
// Constants: [MaxKeyFile], [MaxSignerFrame], [MaxSignerConnections],
// [MaxSignedMessages], [MaxDeliveries], [MaxAllowedUsers]. Options: the timeouts,
// SocketOptions.MaxCalls.
//
// A Server knows no prices and no claims. Who holds the gateway can have the desk's
// tokens sent away, a claim at a time, in transactions of the right shape; what he
// cannot have is the key, another shape, or a second message of a claim. A record
// that is deleted is forgotten: it is to be kept as the key is.
//
// The package is for Linux, as the program is.
package cosign
