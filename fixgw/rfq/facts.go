package rfq

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"blockdesk/market"
)

// facts are the data of the desk's pairs and policy that reports need and that no quote
// or claim has.
type facts struct {
	digits map[market.InstrumentID]uint8 // decimals of the base asset
	mint   market.Address                // of USDC
}

// The facts' record:
//
//	0 version · 1 mint of USDC · 33 of each pair, by instrument: instrument u16, decimals
const (
	factsRecordVersion = 1
	factsRecordHead    = 33
)

func (f *facts) append(dst []byte) []byte {
	dst = append(append(dst, factsRecordVersion), f.mint[:]...)
	for _, in := range sortedKeys(f.digits) {
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(in)), f.digits[in])
	}
	return dst
}

// parse reads the encoding of append, and reports whether it is valid.
func (f *facts) parse(value []byte) bool {
	if len(value) < factsRecordHead || value[0] != factsRecordVersion || (len(value)-factsRecordHead)%3 != 0 {
		return false
	}
	copy(f.mint[:], value[1:])
	for pairs := value[factsRecordHead:]; len(pairs) > 0; pairs = pairs[3:] {
		f.digits[market.InstrumentID(binary.BigEndian.Uint16(pairs))] = pairs[2]
	}
	return true
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
