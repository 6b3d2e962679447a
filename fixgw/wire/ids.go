package wire

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gagliardetto/solana-go/base58"
)

const (
	// MaxCompID is the longest CompID and participant name, in bytes.
	MaxCompID = 32
	// CompIDRule is IsCompID's rule, for error texts.
	CompIDRule = "1 to 32 letters, digits, '.', '_', '-'"
)

// ParseBase58 decodes text into dst, and reports whether text is the base58 of exactly
// that many bytes.
func ParseBase58(dst []byte, text string) bool {
	const most = 2 // base58 takes fewer characters than this for a byte
	if len(text) > most*len(dst) {
		return false
	}
	raw, err := base58.Decode(text)
	if err != nil || len(raw) != len(dst) || base58.Encode(raw) != text {
		return false
	}
	copy(dst, raw)
	return true
}

// IsCompID reports whether text may be a CompID or the name of a participant.
func IsCompID(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= MaxCompID
}

func printable(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Base58 returns data in base58.
func Base58(data []byte) string { return base58.Encode(data) }

// IDs makes ids of messages that no event causes: ExecIDs of refusals, ids of answers. No
// id is used twice, over restarts too, as long as the clock does not go back. Any
// goroutine.
type IDs struct {
	prefix string
	last   atomic.Uint64
}

// NewIDs returns the ids of a process that starts now.
func NewIDs(now time.Time) *IDs {
	return &IDs{prefix: "G" + strconv.FormatInt(now.UnixNano(), 36) + "-"}
}

// Append appends the next id.
func (i *IDs) Append(dst []byte) []byte {
	return strconv.AppendUint(append(dst, i.prefix...), i.last.Add(1), 10)
}
