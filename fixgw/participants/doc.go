// Package participants reads the participants file: the trading firms, their sessions'
// CompIDs, their credentials (a password's hash, an Ed25519 key), their wallets and their
// risk limits.
package participants
