// Package shardwire encodes what the gateways of different shards send each
// other: a shard's desk with the best prices of its books, and its share of the
// catalog's facts. (A shard is a group of instruments with an engine of its own;
// the configuration calls it a group.)
//
// A document begins with a header of 7 bytes:
//
//	 0        4         6      7
//	┌────────┬─────────┬──────┬──────┐
//	│ "BDSH" │ version │ kind │ body │
//	│        │  = 1    │      │      │
//	└────────┴─────────┴──────┴──────┘
//
// Numbers are little-endian and have the width of their Go type; a flag is a byte,
// 0 or 1; a text or a list is a count of 2 bytes and what it counts; an optional
// value is a flag and, where that is 1, the value. Version 1 has two bodies.
//
// Kind 1, a [Desk]:
//
//	┌─────────┬────┬───────┬──────────────────────────────┬─────────┬─────────┐
//	│ enabled │ at │ books │ each book: status, bid price,│ records │ records │
//	│ 1       │ 8  │ 2     │ bid qty, ask price, ask qty  │ count 4 │         │
//	└─────────┴────┴───────┴──────────────────────────────┴─────────┴─────────┘
//
// A record has the encoding of [rfq.AppendRecord]. First the pairs, by instrument;
// then the locks, by scope, instrument and rail; then the tickets by id, each with
// its tranches behind it.
//
// Kind 2, [Facts]:
//
//	┌───────────────────┬────────────────────┬──────┐
//	│ pairs: count 2, … │ tokens: count 2, … │ desk │
//	└───────────────────┴────────────────────┴──────┘
//
// The fields of each value stand in the order of its walk function in facts.go,
// which is part of the format.
//
// A value has one encoding: whatever a decoder accepts is encoded to the same bytes
// again. Decoders take bytes from anybody: they return an error for everything else,
// do not panic, and allocate in proportion to the bytes. A field that is added, goes
// or changes makes a new [Version]. A decoder refuses every version but its own with
// a [VersionError]: the gateway logs it and shows the shard as one that is not
// reached, until both run the same release.
//
// Functions of this package may be called from any number of goroutines at once.
package shardwire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/market"
)

// Version is the version of the format that this package writes and reads.
const Version = 1

// Limits of a document (our choice). An encoder or a decoder that meets more
// returns ErrFormat.
const (
	MaxBooks    = market.MaxInstruments
	MaxPairs    = market.MaxInstruments
	MaxTokens   = 3 * market.MaxInstruments // base, quote and payment of each pair
	MaxAccounts = 16_000                    // of one token
	MaxReasons  = 64                        // of one pair
	MaxText     = 4096                      // bytes of one text
)

// ErrFormat is what is wrong with bytes that no encoder of this version writes, and
// with values that it cannot encode; the text around it says where.
var ErrFormat = errors.New("not a document of a shard")

// VersionError reports a document of a version that this package does not read.
type VersionError struct{ Got uint16 }

// Error names both versions.
func (e VersionError) Error() string {
	return fmt.Sprintf("a document of version %d, and this program reads version %d: run the same release on all shards", e.Got, Version)
}

// kind is what a document holds.
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
