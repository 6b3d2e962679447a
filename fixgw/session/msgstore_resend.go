package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"blockdesk/fixgw/wire"
)

// GetMessages returns the messages that a resend of these numbers replays.
func (s *MessageStore) GetMessages(beginSeqNum, endSeqNum int) ([][]byte, error) {
	var messages [][]byte
	err := s.IterateMessages(beginSeqNum, endSeqNum, func(msg []byte) error {
		messages = append(messages, bytes.Clone(msg))
		return nil
	})
	return messages, err
}

// IterateMessages calls f for the kept messages of these numbers, ascending: the newest
// Options.MaxReplay of them. If the last number belongs to a message that is not kept, f
// gets a Heartbeat with that number, because quickfix fills a gap only before a message.
// Custom fields are left out if the last Logon has not asked for them. It holds no lock
// while f runs.
func (s *MessageStore) IterateMessages(beginSeqNum, endSeqNum int, f func([]byte) error) error {
	if err := s.Save(); err != nil {
		return err
	}
	begin, end := uint64(max(beginSeqNum, 1)), uint64(max(endSeqNum, 0))
	if begin > end {
		return nil
	}
	hi := messageKey(nil, s.session, end+1)
	newest := make([]uint64, s.replay) // a ring of the newest numbers
	count := 0
	err := s.store.Scan(messageKey(nil, s.session, begin), hi, func(key, _ []byte) bool {
		newest[count%s.replay] = messageNumber(key)
		count++
		return true
	})
	if err != nil {
		return fmt.Errorf("session %d: %w", s.session, err)
	}
	if count > s.replay {
		begin = newest[count%s.replay]
	}
	s.mu.Lock()
	plain := s.flags&wire.FlagCustomFields == 0
	s.mu.Unlock()
	last, failed := uint64(0), error(nil)
	err = s.store.Scan(messageKey(nil, s.session, begin), hi, func(key, value []byte) bool {
		last = messageNumber(key)
		if value = bytes.Clone(value); plain { // quickfix keeps it
			value = wire.MessageWithoutCustom(value)
		}
		failed = f(value)
		return failed == nil
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("session %d: %w", s.session, err)
	case last < end:
		return f(heartbeat(end))
	}
	return nil
}

// dropBefore deletes the kept messages that were sent before a time. They are ascending in
// their numbers and, by our clock, in their times.
func (s *MessageStore) dropBefore(at time.Time) error {
	s.mu.Lock()
	from, next := s.pruned, s.sender
	s.mu.Unlock()
	limit := []byte(at.UTC().Format("20060102-15:04:05")) // as SendingTime begins
	to := from
	err := s.store.Scan(messageKey(nil, s.session, from), messageKey(nil, s.session, next), func(key, value []byte) bool {
		_, sent, found := bytes.Cut(value, []byte("\x0152="))
		if found && bytes.Compare(sent[:min(len(sent), len(limit))], limit) >= 0 {
			return false
		}
		to = messageNumber(key) + 1
		return true
	})
	if err != nil {
		return fmt.Errorf("session %d: %w", s.session, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if to <= s.pruned || to > s.sender { // pruned or reset meanwhile
		return s.failed
	}
	s.pruned = to
	s.skipped, s.skippedUnsaved = s.skipped.from(to), s.skippedUnsaved || len(s.skipped) > 0
	return s.commit(false, func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(messageKey(nil, s.session, from), messageKey(nil, s.session, to))
	})
}

func messageNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// heartbeat returns the shortest message that quickfix parses as a Heartbeat with that
// number; it is not sent.
func heartbeat(seq uint64) []byte {
	body := append(strconv.AppendUint([]byte("35=0\x0134="), seq, 10), 1)
	msg := append(strconv.AppendInt([]byte("8=FIX.4.4\x019="), int64(len(body)), 10), 1)
	return append(append(msg, body...), "10=000\x01"...)
}

// keptForResend reports whether a client must not miss a sent message. Every message
// begins with BeginString, BodyLength and MsgType.
func keptForResend(msg []byte) bool {
	_, rest, found := bytes.Cut(msg, []byte("\x0135="))
	end := bytes.IndexByte(rest, wire.SOH)
	return found && end > 0 && keptType(string(rest[:end]))
}
