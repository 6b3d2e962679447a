package access

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"blockdesk/internal/solana"
	"blockdesk/persist/kv"
)

// The layout, version 1, of this package's part of the map: keys from 0x20 to 0x2f.
// Numbers are big-endian, so that a scan sees them in order; times are Unix
// nanoseconds. Values begin with their version.
//
//	key                     value
//	┌──────┐                ┌───┐
//	│ 0x20 │                │ 1 │                                                   layout version
//	├──────┤                ├───┼──────────┐
//	│ 0x21 │                │ 1 │ time u64 │                                        the latest that has been seen
//	├──────┼───────────┐    ├───┼──────────┼──────────────┬──────────┬─────────────┐
//	│ 0x22 │ token u64 │    │ 1 │ ends u64 │ SHA-256 [32] │ key [32] │ client [16] │ issue
//	├──────┼───────────┤    ├───┼──────────┼──────────────┴──┬───────┴─────────────┘
//	│ 0x23 │ token u64 │    │ 1 │ time u64 │ by, 1..64 bytes │                       revocation
//	└──────┴───────────┘    └───┴──────────┴─────────────────┘
//
// A token's number is the time of its issue; no two are the same. The issue has the
// client for the check of its hour. Issues and revocations are written once.
const (
	keyVersion    = 0x20
	keyTime       = 0x21
	keyIssue      = 0x22
	keyRevocation = 0x23

	layoutVersion = 1
	valueVersion  = 1

	tokenKeySize = 1 + 8
	timeSize     = 1 + 8
	issueSize    = 1 + 8 + 32 + 32 + 16
)

type issue struct {
	at     int64 // its number; in the key
	ends   int64
	hash   [32]byte // of the secret's text
	key    solana.Address
	client [16]byte
}

type revocation struct {
	at int64
	by string
}

func tokenKey(kind byte, at int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, uint64(max(at, 0)))
}

func parseTokenKey(key []byte) (at int64, ok bool) {
	if len(key) != tokenKeySize {
		return 0, false
	}
	return parseTime(key[1:])
}

// parseTime parses a time: positive in 63 bits, as every clock of ours is.
func parseTime(b []byte) (int64, bool) {
	t := int64(binary.BigEndian.Uint64(b))
	return t, t > 0
}

func timeValue(t int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{valueVersion}, uint64(t))
}

func parseTimeValue(value []byte) (int64, bool) {
	if len(value) != timeSize || value[0] != valueVersion {
		return 0, false
	}
	return parseTime(value[1:])
}

func (i *issue) value() []byte {
	b := timeValue(i.ends)
	b = append(b, i.hash[:]...)
	b = append(b, i.key[:]...)
	return append(b, i.client[:]...)
}

func parseIssue(at int64, value []byte) (i issue, ok bool) {
	if len(value) != issueSize {
		return issue{}, false
	}
	i.at = at
	i.ends, ok = parseTimeValue(value[:timeSize])
	rest := value[timeSize:]
	rest = rest[copy(i.hash[:], rest):]
	rest = rest[copy(i.key[:], rest):]
	copy(i.client[:], rest)
	return i, ok
}

func (r *revocation) value() []byte { return append(timeValue(r.at), r.by...) }

func parseRevocation(value []byte) (r revocation, ok bool) {
	if len(value) <= timeSize || len(value) > timeSize+MaxName {
		return revocation{}, false
	}
	r.at, ok = parseTimeValue(value[:timeSize])
	r.by = string(value[timeSize:])
	return r, ok
}

// A token's id is "K" and its number in 16 hexadecimal digits. It is no secret.
const idDigits = 16

func idOf(at int64) string { return fmt.Sprintf("K%0*x", idDigits, at) }

func parseID(id string) (at int64, ok bool) {
	if len(id) != 1+idDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(id[1:], 16, 64)
	return n, err == nil && n > 0 && idOf(n) == id
}

func readTime(kv kv.Store) (int64, error) {
	value, ok, err := kv.Get([]byte{keyTime})
	if err != nil || !ok {
		return 0, err
	}
	t, whole := parseTimeValue(value)
	if !whole {
		return 0, fmt.Errorf("%w: %x is not a time", ErrLayout, value)
	}
	return t, nil
}

// eachIssue calls f with the tokens from number lo on, as kv.Each does.
func eachIssue(store kv.Reader, lo int64, f func(*issue) error) error {
	return kv.Each(store, tokenKey(keyIssue, lo), []byte{keyIssue + 1}, func(key, value []byte) error {
		at, ok := parseTokenKey(key)
		i, whole := parseIssue(at, value)
		if !ok || !whole {
			return fmt.Errorf("%w: the issued token's record under the key %x has %d bytes", ErrLayout, key, len(value))
		}
		return f(&i)
	})
}

func readIssue(kv kv.Store, at int64) (i issue, ok bool, err error) {
	value, ok, err := kv.Get(tokenKey(keyIssue, at))
	if err != nil || !ok {
		return issue{}, false, err
	}
	if i, ok = parseIssue(at, value); !ok {
		return issue{}, false, fmt.Errorf("%w: an issued token's record of %d bytes", ErrLayout, len(value))
	}
	return i, true, nil
}

func readRevocation(kv kv.Store, at int64) (r revocation, ok bool, err error) {
	value, ok, err := kv.Get(tokenKey(keyRevocation, at))
	if err != nil || !ok {
		return revocation{}, false, err
	}
	if r, ok = parseRevocation(value); !ok {
		return revocation{}, false, fmt.Errorf("%w: a revocation of %d bytes", ErrLayout, len(value))
	}
	return r, true, nil
}
