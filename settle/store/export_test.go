package store

import (
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// The codecs, for tests outside.

func EncodeBuild(b *Build) []byte                                 { return appendBuild(nil, b) }
func DecodeBuild(id market.ClaimID, value []byte) (*Build, error) { return decodeBuild(id, value) }
func EncodeKept(k Kept) []byte                                    { return appendKept(nil, &k) }
func DecodeKept(key, value []byte) (Kept, error)                  { return decodeKept(key, value) }
func KeptKey(id market.ClaimID, hash solana.Hash) []byte          { return keptKey(id, hash) }
func EncodeStray(x *Stray) []byte                                 { return appendStray(nil, x) }
func DecodeStray(key, value []byte) (*Stray, error)               { return decodeStray(key, value) }
func StrayKey(resolved bool, sig solana.Signature) []byte {
	if resolved {
		return signatureKey(keyResolved, sig)
	}
	return signatureKey(keyStray, sig)
}
