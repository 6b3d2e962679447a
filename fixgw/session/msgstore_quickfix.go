package session

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/quickfixgo/quickfix"
)

// quickfix.MessageStore. msgstore_resend.go has the reads of a resend.

// NextSenderMsgSeqNum returns the number of the next message sent.
func (s *MessageStore) NextSenderMsgSeqNum() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.sender)
}

// NextTargetMsgSeqNum returns the number expected of the next message received.
func (s *MessageStore) NextTargetMsgSeqNum() int { return int(s.target.Load()) }

// IncrNextSenderMsgSeqNum passes one number over.
func (s *MessageStore) IncrNextSenderMsgSeqNum() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(s.sender+1, nil)
}

// IncrNextTargetMsgSeqNum moves on from the present message. quickfix v0.9.11 also calls
// it after it has refused a ResendRequest, Logout or SequenceReset with an unexpected
// number: then the number stays, because the message with the expected one is still to
// come.
func (s *MessageStore) IncrNextTargetMsgSeqNum() error {
	if s.keepTarget {
		s.keepTarget = false
		return nil
	}
	return s.setTarget(s.target.Load() + 1)
}

// SetNextSenderMsgSeqNum sets the number of the next message sent, at least 1.
func (s *MessageStore) SetNextSenderMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(uint64(max(next, 1)), nil)
}

// SetNextTargetMsgSeqNum sets the number expected next, at least 1.
func (s *MessageStore) SetNextTargetMsgSeqNum(next int) error {
	return s.setTarget(uint64(max(next, 1)))
}

// setTarget sets the next incoming number for quickfix, which is done with the one
// before.
func (s *MessageStore) setTarget(next uint64) error {
	s.mu.Lock()
	s.target.Store(next)
	err := s.commit(false, nil)
	s.mu.Unlock()
	select {
	case s.targetSet <- struct{}{}:
	default:
	}
	return err
}

// CreationTime is called on every pass of quickfix's session loop, which spins while its
// writer is busy. If nothing has happened since the last pass, it yields to the writer.
func (s *MessageStore) CreationTime() time.Time {
	if now := s.activity.Load(); now != s.idle {
		s.idle = now
	} else {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Unix(0, s.created)
}

// SetCreationTime sets the time at which the numbers last began at 1.
func (s *MessageStore) SetCreationTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = t.UnixNano()
}

// SaveMessage stores a sent message under its number.
func (s *MessageStore) SaveMessage(seqNum int, msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(false, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(messageKey(nil, s.session, uint64(seqNum)), msg)
	})
}

// SaveMessageAndIncrNextSenderMsgSeqNum is the one commit of a send.
func (s *MessageStore) SaveMessageAndIncrNextSenderMsgSeqNum(seqNum int, msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.Add(1)
	if !keptForResend(msg) {
		msg = nil
	}
	return s.advance(uint64(seqNum)+1, msg)
}

// Refresh does nothing: only this store writes the session's records.
func (s *MessageStore) Refresh() error { return nil }

// Reset starts both numbers at 1 and deletes the sent messages, synced: a message must
// not come back under a number that means another one.
func (s *MessageStore) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.extending {
		s.extended.Wait()
	}
	s.sender, s.pruned, s.reserved = 1, 1, 1+s.reserve
	s.skipped, s.skippedUnsaved = nil, true
	s.target.Store(1)
	s.unsaved, s.bytes = s.unsaved[:0], s.bytes[:0]
	s.created = time.Now().UnixNano()
	if s.onReset != nil {
		s.onReset()
	}
	return s.commit(true, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(messageKey(nil, s.session, 0), messageKey(nil, s.session, ^uint64(0)))
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
	})
}

// Close gives the reserved numbers back, synced: a clean stop leaves no hole.
func (s *MessageStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sender == 1 && s.target.Load() == 1 {
		return s.failed // nothing has happened
	}
	s.reserved = s.sender
	return s.commit(true, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
	})
}

// storeFactory is the MessageStoreFactory of existing stores, by CompID.
type storeFactory map[string]*MessageStore

// Create implements quickfix.MessageStoreFactory.
func (f storeFactory) Create(id quickfix.SessionID) (quickfix.MessageStore, error) {
	s := f[id.TargetCompID]
	if s == nil {
		return nil, fmt.Errorf("fix: session %s is not configured", id.TargetCompID)
	}
	return s, nil
}
