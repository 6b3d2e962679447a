package session

import (
	"encoding/binary"
	"runtime"
	"time"
)

// What quickfix calls: a messageStore is the MessageStore of its session. What a
// resend reads is in msgstore_resend.go.

func (s *messageStore) NextSenderMsgSeqNum() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.sender)
}

func (s *messageStore) NextTargetMsgSeqNum() int { return int(s.target.Load()) }

func (s *messageStore) IncrNextSenderMsgSeqNum() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(s.sender+1, nil)
}

// IncrNextTargetMsgSeqNum moves on from the message in hand. quickfix v0.9.11 asks
// for it also where it has refused a ResendRequest, Logout or SequenceReset out of
// turn: then the number stays, for the message that has it is still to come.
func (s *messageStore) IncrNextTargetMsgSeqNum() error {
	if s.keepTarget {
		s.keepTarget = false
		return nil
	}
	return s.setTarget(s.target.Load() + 1)
}

func (s *messageStore) SetNextSenderMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(uint64(max(next, 1)), nil)
}

func (s *messageStore) SetNextTargetMsgSeqNum(next int) error {
	return s.setTarget(uint64(max(next, 1)))
}

// turn sets the next incoming number for quickfix, which is through with the one
// before.
func (s *messageStore) setTarget(next uint64) error {
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

// CreationTime is asked on every pass of quickfix's session loop, which spins
// while its writer is not ready to take a message. When nothing has happened
// since the last pass, the writer gets the processor.
func (s *messageStore) CreationTime() time.Time {
	if now := s.activity.Load(); now != s.idle {
		s.idle = now
	} else {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Unix(0, s.created)
}

func (s *messageStore) SetCreationTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = t.UnixNano()
}

func (s *messageStore) SaveMessage(seqNum int, msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(false, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(messageKey(nil, s.session, uint64(seqNum)), msg)
	})
}

// SaveMessageAndIncrNextSenderMsgSeqNum is the one commit of a send.
func (s *messageStore) SaveMessageAndIncrNextSenderMsgSeqNum(seqNum int, msg []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.Add(1)
	if !keptForResend(msg) {
		msg = nil
	}
	return s.advance(uint64(seqNum)+1, msg)
}

// Refresh does nothing: nobody else writes this session's records.
func (s *messageStore) Refresh() error { return nil }

// Reset starts both numbers at 1 and forgets what was sent, synced: a message
// must not come back under a number that means another one by then.
func (s *messageStore) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.extending {
		s.extended.Wait()
	}
	s.sender, s.pruned, s.reserved = 1, 1, 1+s.reserve
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
func (s *messageStore) Close() error {
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
