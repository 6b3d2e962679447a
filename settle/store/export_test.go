package store

import (
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// The codecs, for tests outside.

func EncodeBuild(b *Build) []byte                                 { return appendBuild(nil, b) }
func DecodeBuild(id market.ClaimID, value []byte) (*Build, error) { return decodeBuild(id, value) }
func EncodeTransaction(k Transaction) []byte                      { return appendTransaction(nil, &k) }

func DecodeTransaction(key, value []byte) (Transaction, error) { return decodeTransaction(key, value) }

func TransactionKey(id market.ClaimID, hash solana.Hash) []byte { return transactionKey(id, hash) }

func EncodeUnmatched(x *UnmatchedPayment) []byte { return appendUnmatched(nil, x) }

func DecodeUnmatched(key, value []byte) (*UnmatchedPayment, error) {
	return decodeUnmatched(key, value)
}

func UnmatchedKey(resolved bool, sig solana.Signature) []byte {
	if resolved {
		return signatureKey(keyResolved, sig)
	}
	return signatureKey(keyUnmatched, sig)
}
