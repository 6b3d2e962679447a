// Package shardwire encodes what the gateways of different shards send each other: a
// shard's desk with the best prices of its books, and its share of the catalog's facts.
// A shard is a group of instruments with an engine of its own; the configuration calls
// it a group.
//
// A document begins with a header of 7 bytes:
//
//	 0        4         6      7
//	┌────────┬─────────┬──────┬──────┐
//	│ "BDSH" │ version │ kind │ body │
//	│        │  = 2    │      │      │
//	└────────┴─────────┴──────┴──────┘
//
// Numbers are little-endian and have the width of their Go type. A flag is a byte, 0 or
// 1. A text or a list is a count of 2 bytes and its bytes or items. An optional value is
// a flag and, if that is 1, the value. Version 2 has two bodies.
//
// Kind 1, a [Desk]:
//
//	┌─────────┬────┬───────┬──────────────────────────────┬─────────┬─────────┐
//	│ enabled │ at │ books │ each book: status, bid price,│ records │ records │
//	│ 1       │ 8  │ 2     │ bid qty, ask price, ask qty  │ count 4 │         │
//	└─────────┴────┴───────┴──────────────────────────────┴─────────┴─────────┘
//
// A record has the encoding of [rfq.AppendRecord]. The order is: pairs by instrument,
// locks by scope, instrument and rail, tickets by id, each followed by its tranches.
//
// Kind 2, [Facts]:
//
//	┌───────────────────┬────────────────────┬──────┐
//	│ pairs: count 2, … │ tokens: count 2, … │ desk │
//	└───────────────────┴────────────────────┴──────┘
//
// The fields of a value have the order of its walk function in facts.go, which is part
// of the format.
//
// A value has one encoding: encoding a decoded value gives the same bytes. Decoders
// accept untrusted bytes: they return an error for invalid input, do not panic, and
// allocate in proportion to the input. Adding, removing or changing a field requires a
// new [Version]. A decoder refuses all other versions with a [VersionError]; the gateway
// logs it and reports the shard as unreachable until both run the same release.
//
// The functions of this package are safe for concurrent use.
package shardwire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/market"
)

// Version is the version of the format that this package writes and reads.
const Version = 2

// Limits of a document (our choice). Above them, encoding and decoding return ErrFormat.
const (
	MaxBooks    = market.MaxInstruments
	MaxPairs    = market.MaxInstruments
	MaxTokens   = 3 * market.MaxInstruments // base, quote and payment of each pair
	MaxAccounts = 16_000                    // of one token
	MaxReasons  = 64                        // of one pair
	MaxText     = 4096                      // bytes of one text
)

// ErrFormat is wrapped by errors about bytes that no encoder of this version writes, and
// about values that cannot be encoded. The wrapping text says where.
var ErrFormat = errors.New("invalid shard document")

// VersionError reports a document of another version.
type VersionError struct{ Got uint16 }

// Error names both versions.
func (e VersionError) Error() string {
	return fmt.Sprintf("shard document has version %d, this program reads version %d: run the same release on all shards", e.Got, Version)
}

// kind is the type of a document's body.
type kind uint8

const (
	kindDesk  kind = 1
	kindFacts kind = 2
)

const (
	magic    = "BDSH"
	headSize = len(magic) + 2 + 1
)

func appendHead(dst []byte, k kind) []byte {
	return append(binary.LittleEndian.AppendUint16(append(dst, magic...), Version), byte(k))
}

// body returns what follows the header of a document of kind k.
func body(data []byte, k kind) ([]byte, error) {
	if len(data) < headSize || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("header of %d bytes: %w", len(data), ErrFormat)
	}
	if got := binary.LittleEndian.Uint16(data[len(magic):]); got != Version {
		return nil, VersionError{got}
	}
	if kind(data[headSize-1]) != k {
		return nil, fmt.Errorf("kind %d, want %d: %w", data[headSize-1], k, ErrFormat)
	}
	return data[headSize:], nil
}
