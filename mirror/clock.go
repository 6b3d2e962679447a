package mirror

import (
	"encoding/binary"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// Clock is the chain's clock: a slot, and the time that programs see in it, which decides
// what has expired.
type Clock struct {
	Slot uint64
	// Unix is in seconds, above 0.
	Unix int64
}

// clockSize is the size of the clock account, little-endian: u64 slot, i64 start of the
// epoch, u64 epoch, u64 epoch of the leader schedule, i64 Unix time.
const clockSize = 40

// ParseClock parses the clock account of an answer as of slot. Both must name the same
// slot. Errors: [ErrAccount], [ErrMalformed].
func ParseClock(a *rpc.Account, slot uint64) (Clock, error) {
	if err := check(a, solana.ClockSysvar, solana.SysvarOwner); err != nil {
		return Clock{}, err
	}
	if len(a.Data) != clockSize {
		return Clock{}, malformed(a.Address, "%d bytes, not the clock", len(a.Data))
	}
	c := Clock{binary.LittleEndian.Uint64(a.Data), int64(binary.LittleEndian.Uint64(a.Data[32:]))}
	switch {
	case c.Slot != slot:
		return Clock{}, fmt.Errorf("%w: the clock is at slot %d, the answer is as of slot %d", ErrAccount, c.Slot, slot)
	case c.Unix <= 0:
		return Clock{}, malformed(a.Address, "time %d: must be above 0", c.Unix)
	}
	return c, nil
}
