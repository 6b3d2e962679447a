// Package cosign makes the desk's signature. It defines what may be signed, and holds
// the key or the connection to the process that holds it. A signature is made in steps,
// each with its own type, and only the step before can make a value of that type:
//
//	built bytes ─Countersign─▶ Countersigned ─Authorize─▶ Authorized ─Sign─▶ Signed
//	build.Unsigned ───────AuthorizeDelivery────────────▶ Authorized ─Sign─▶ Signed
//	stored bytes ─────────AuthorizeRefund──────▶ AuthorizedRefund ─Sign─▶ SignedRefund
//
// A [Countersigned] has the taker's verified signature. An [Authorized] has the desk's
// durable permission for exactly its message. A [Signed] has both, and the desk's verified
// signature. Refunds have types of their own, so that permission to deliver cannot pay back
// and the other way round. Sign uses a [Signer]: a key from a file ([FileSigner]), or the socket of a
// separate process ([SocketSigner] and [Server]).
//
// # Invariants
//
//  1. No step can be skipped: the types have no exported field, no two of them
//     convert into each other, and their zero values are useless.
//  2. The signed bytes are those that were built: a submitted transaction differs only
//     in the taker's signature.
//  3. Signatures are verified strictly (package eddsa): the taker's before the desk is
//     asked, the desk's before it is returned.
//  4. The desk signs three shapes of message and no other, [CheckAtomic],
//     [CheckDelivery] and [CheckRefund]: known programs, each instruction at its
//     position, no account with a privilege that it does not need, no address table, no
//     durable nonce. The first two have one transfer of the desk's tokens, with memo and
//     reference of one claim; refunds have one transfer for each payment, with the
//     payment's memo and reference, and pay what the desk's record says is due to the
//     payer in that record.
//  5. A job has one signature: signing is deterministic, and may be repeated after a
//     crash.
//  6. A signer's process trusts nobody. It checks every message itself, and signs for a
//     claim either one atomic message, ever, or up to [MaxDeliveries] deliveries, and for
//     a payment up to [MaxRefundAttempts] refunds. Its record of a message is synced
//     before it signs. With [Limits] it refuses unknown payees, prices below the lowest,
//     and more than the ceilings of an hour and a day, which outlast a restart.
//  7. A key is never printed, encoded, logged, or quoted in an error.
//
// # Concurrency
//
// Values are immutable and shared. Any number of goroutines may call a Signer. A Server
// serves each connection in its own goroutine; its record has one lock, held while an
// entry is synced.
//
// # Cost
//
// In CPU time of one core: 18 µs to check a shape, 115 to countersign, 240 to countersign
// and sign with a key from a file, nearly all of it for two verifications and the
// signature; see the benchmark. A signer's process adds a connection, a third
// verification, and one sync of the disk.
//
// # Limits
//
// Constants: [MaxKeyFile], [MaxSignerFrame], [MaxSignerConnections],
// [MaxSignedMessages], [MaxDeliveries], [MaxRefundAttempts], [MaxAllowedUsers],
// [MaxLimitsFile], [MaxLimitTokens], [MaxPayees], [MaxSpent]. Options: the timeouts,
// SocketOptions.MaxCalls.
//
// A Server knows no claims and no payments. An attacker who controls the gateway can have
// as much sent away, in transactions of the right shape, as the ceilings of its limits
// allow: a delivery does not prove that it was paid for. The attacker cannot get the key, a
// transaction of another shape, or a second message for a claim. The ceilings count what
// was signed, whether it landed or not. Without limits there are no ceilings, and no
// refunds. If the record is deleted, a second message can be signed for each claim in it:
// keep it as carefully as the key.
//
// The package needs Linux, like the program.
package cosign
