package tx

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"blockdesk/internal/solana"
)

// Version of a message.
type Version uint8

const (
	Legacy Version = 1
	V0     Version = 2
	V1     Version = 3
)

// String returns the JSON-RPC name: "legacy", "0" or "1".
func (v Version) String() string {
	if v < Legacy || v > V1 {
		return "version?"
	}
	return [...]string{Legacy: "legacy", V0: "0", V1: "1"}[v]
}

// The first byte of a versioned message is the high bit and the number.
const (
	prefixMask = 0x80
	prefixV0   = prefixMask
	prefixV1   = prefixMask | 1
)

// Limits of the runtime.
const (
	// MaxSize bounds a legacy or version 0 transaction, signatures included.
	MaxSize = 1232
	// MaxSizeV1 bounds a version 1 transaction.
	MaxSizeV1 = 4096
	// MaxKeys bounds static and looked-up keys together.
	MaxKeys = 256
	// Bounds of version 1.
	MaxKeysV1         = 64
	MaxInstructionsV1 = 64
	MaxSignaturesV1   = 12
)

// Errors of decoding and encoding. All are wrapped with the detail.
var (
	ErrTooLong   = errors.New("tx: the transaction is too long")
	ErrTruncated = errors.New("tx: the bytes are truncated")
	ErrTrailing  = errors.New("tx: there are trailing bytes")
	ErrCount     = errors.New("tx: a count is not in its shortest form")
	ErrVersion   = errors.New("tx: unknown version")
	ErrMalformed = errors.New("tx: the message is malformed")
)

// Header says which of a message's keys sign and which are writable. The keys come in
// four runs: writable signers, read-only signers, writable others, read-only others.
type Header struct {
	// Required is the number of signers; the first one pays the fee.
	Required uint8
	// ReadonlySigned and ReadonlyUnsigned are the lengths of the read-only runs.
	ReadonlySigned, ReadonlyUnsigned uint8
}

// Instruction calls a program. Its numbers index the message's keys, then the looked-up
// ones.
type Instruction struct {
	Program  uint8
	Accounts []uint8
	Data     []byte
}

// Lookup loads keys from an address table on the chain, so the message's bytes do not
// contain them.
type Lookup struct {
	Table              solana.Address
	Writable, Readonly []uint8
}

// Config is the budget of a version 1 message. A field counts only if its mask bit is
// set.
type Config struct {
	Mask ConfigMask
	// PriorityFee is the total in lamports.
	PriorityFee uint64
	// Units bounds compute units, LoadedBytes the data of loaded accounts, HeapBytes
	// the heap.
	Units, LoadedBytes, HeapBytes uint32
}

// ConfigMask says which fields of a [Config] are present.
type ConfigMask uint32

const (
	HasPriorityFee ConfigMask = 0b11
	HasUnits       ConfigMask = 0b100
	HasLoadedBytes ConfigMask = 0b1000
	HasHeapBytes   ConfigMask = 0b10000
	knownMask                 = HasPriorityFee | HasUnits | HasLoadedBytes | HasHeapBytes
)

// The bounds of a requested heap.
const (
	minHeap = 32 << 10
	maxHeap = 256 << 10
)

// Message is what signers sign.
type Message struct {
	Version      Version
	Header       Header
	Keys         []solana.Address
	Blockhash    solana.Hash
	Instructions []Instruction
	Lookups      []Lookup // version 0 only
	Config       Config   // version 1 only
}

// MessageHash returns the SHA-256 of a message's bytes. Each claim authorizes only one
// hash, which never changes.
func MessageHash(message []byte) solana.Hash { return sha256.Sum256(message) }

// Signers returns the keys that must sign, the fee payer first. It aliases m.
func (m *Message) Signers() []solana.Address { return m.Keys[:m.Header.Required] }

// FeePayer returns the key that pays the fee.
func (m *Message) FeePayer() solana.Address { return m.Keys[0] }

// Slot returns the index of a signer's signature.
func (m *Message) Slot(key solana.Address) (slot int, ok bool) {
	for i, k := range m.Signers() {
		if k == key {
			return i, true
		}
	}
	return 0, false
}

// Writable reports whether the message requests write access to the static key i. The
// runtime may still refuse it.
func (m *Message) Writable(i int) bool {
	signers, static := int(m.Header.Required), len(m.Keys)
	if i < signers {
		return i < signers-int(m.Header.ReadonlySigned)
	}
	return i < static-int(m.Header.ReadonlyUnsigned)
}

// UsesLookups reports whether any key comes from an address table.
func (m *Message) UsesLookups() bool { return len(m.Lookups) > 0 }

// LookupKeys returns the numbers of writable and read-only keys from tables.
func (m *Message) LookupKeys() (writable, readonly int) {
	for _, l := range m.Lookups {
		writable += len(l.Writable)
		readonly += len(l.Readonly)
	}
	return writable, readonly
}

// advanceNonce is the system program's instruction number.
const advanceNonce = 4

// UsesNonce reports whether the message uses a durable nonce instead of a blockhash:
// its first instruction advances one. Such a message does not expire.
func (m *Message) UsesNonce() bool {
	if len(m.Instructions) == 0 {
		return false
	}
	first := &m.Instructions[0]
	return int(first.Program) < len(m.Keys) && m.Keys[first.Program] == solana.SystemProgram &&
		len(first.Data) >= 4 && binary.LittleEndian.Uint32(first.Data) == advanceNonce
}

// ProgramOf returns the program that an instruction of m calls.
func (m *Message) ProgramOf(i *Instruction) solana.Address { return m.Keys[i.Program] }
