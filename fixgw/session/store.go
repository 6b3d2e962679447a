package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// The keys of what the store has of sessions. Numbers are big-endian, so that a scan
// sees them in their order.
//
//	a CompID                            session number, u16, and its participant, u16
//	a CompID 0x01 participant           the same, of the CompID's later participants
//	s session                           session record: see msgstore.go
//	r session                           reserved outgoing numbers, u64
//	l session                           SendingTime of the last signed Logon, Unix nanoseconds, u64
//	u session                           skipped outgoing numbers: see skipped.go
//	z session                           time of the last daily roll, Unix nanoseconds, u64
//	m session MsgSeqNum                 one sent application message
const (
	keyAssign  byte = 'a'
	keySession byte = 's'
	keyReserve byte = 'r'
	keySigned  byte = 'l'
	keyMessage byte = 'm'
	keySkipped byte = 'u'
	keyRolled  byte = 'z'
)

// ErrLayout is wrapped by the error for a record that this version cannot read.
var ErrLayout = errors.New("FIX store: record cannot be read")

func assignKey(compID string) []byte { return append([]byte{keyAssign}, compID...) }

func sessionKey(dst []byte, session uint16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, keySession), session)
}

func reservedKey(session uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{keyReserve}, session)
}

func signedKey(session uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{keySigned}, session)
}

func skippedKey(session uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{keySkipped}, session)
}

func messageKey(dst []byte, session uint16, seq uint64) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, keyMessage), session)
	return binary.BigEndian.AppendUint64(dst, seq)
}

// sessionOwner is a CompID and its participant.
type sessionOwner struct {
	compID      string
	participant market.ParticipantID
}

// key returns the store's key of the session number of o: the CompID for its first
// participant, the CompID and the participant for a later one. A session number always
// belongs to the same participant, even if a restart gives the CompID to another.
func (o sessionOwner) key(first bool) []byte {
	if first {
		return assignKey(o.compID)
	}
	return binary.BigEndian.AppendUint16(append(assignKey(o.compID), wire.SOH), uint16(o.participant))
}

// sessionNumbers returns the number of each session, which never changes because commands
// in the journal carry it. New sessions get the next free numbers, from 1, in the order
// of the list.
func sessionNumbers(store kv.Store, list []sessionOwner) (map[sessionOwner]uint16, error) {
	// An assignment is a number u16 and the participant u16. The oldest records lack the
	// participant: they belong to the CompID's present one.
	known := make(map[string][]byte)
	last := uint16(0)
	err := store.Scan([]byte{keyAssign}, []byte{keyAssign + 1}, func(key, value []byte) bool {
		if len(value) >= 2 {
			known[string(key)] = bytes.Clone(value)
			last = max(last, binary.BigEndian.Uint16(value))
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	numbers, fresh := make(map[sessionOwner]uint16, len(list)), make(map[string][]byte)
	for _, o := range list {
		key := string(o.key(true))
		value := known[key]
		if len(value) == 4 && market.ParticipantID(binary.BigEndian.Uint16(value[2:])) != o.participant {
			key = string(o.key(false))
			value = known[key]
		}
		if len(value) == 4 {
			numbers[o] = binary.BigEndian.Uint16(value)
			continue
		}
		number := last + 1
		switch {
		case len(value) == 2:
			number = binary.BigEndian.Uint16(value)
		case last == ^uint16(0):
			return nil, fmt.Errorf("FIX store: no session number is left for %q", o.compID)
		default:
			last = number
		}
		numbers[o] = number
		fresh[key] = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, number), uint16(o.participant))
	}
	if len(fresh) == 0 {
		return numbers, nil
	}
	return numbers, store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for _, key := range slices.Sorted(maps.Keys(fresh)) {
			set([]byte(key), fresh[key])
		}
	}, true)
}
