// Package participants reads the participants file: the trading firms, their sessions'
// CompIDs, their credentials (a password's hash, an Ed25519 key), their wallets and their
// risk limits. It knows the form of the file and its rules; package session applies a new
// list to running sessions.
//
// Parse accepts a whole valid file or nothing. A password is checked against an argon2id
// hash, whose cost is bounded because each check spends it; weak Ed25519 keys are refused.
// No error names a hash.
//
// Limits: MaxFile, MaxParticipants, [MaxPassword], and the caps of argon2id's cost.
package participants
