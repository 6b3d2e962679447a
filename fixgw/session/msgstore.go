package session

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv"
)

// MessageStore keeps one session's sequence numbers and sent messages. It implements
// quickfix's MessageStore on the FIX store.
//
// Only application messages that a client must not miss are kept. Session messages and
// market data use a number only; a resend fills them as a gap.
//
// # Numbers after a crash
//
// Commits are not synced, so a crash may lose the newest ones although the client has the
// messages. An outgoing number must never be used twice. Therefore the store also has a
// synced number, reserved: the next number never passes it before a higher one is on disk.
// Numbers are reserved ahead of time; a send that outruns the reservation waits. After
// any start the next number is the larger of the recorded one and reserved. A clean Close
// sets reserved to the next number, so only an unclean stop leaves a gap, of at most
// Options.ReserveSeqs numbers, which a resend answers with a gap fill.
//
// The incoming number may fall back. Then the session requests the client's messages
// again, and answers its orders as duplicates.
//
// # Unsaved messages
//
// Messages of a batch get their numbers and go out before they are committed. They wait
// in memory for the next commit, of the reporter or of the session. A crash before that
// commit loses them, and does no harm: the numbers are reserved, and the reports after the
// reporter's position are made again. A resend commits them first.
type MessageStore struct {
	store   kv.Store
	session uint16
	keep    uint64 // numbers whose messages are kept, skipped ones aside
	reserve uint64 // numbers reserved at a time
	replay  int    // messages replayed at most

	activity atomic.Uint64 // changes when the session does something
	idle     uint64        // activity at the last CreationTime; session loop only
	// startedByQuickfix counts the messages that quickfix's session has begun.
	startedByQuickfix atomic.Uint64
	// queuedByQuickfix and writtenByQuickfix count the messages that quickfix has given to its writer,
	// and that the writer has given to the connection.
	queuedByQuickfix, writtenByQuickfix atomic.Uint64

	// target is the next incoming number. quickfix sets it, or the connection's reader
	// while quickfix has no message of the session.
	target atomic.Uint64
	// targetSet, of capacity 1, is sent to when quickfix has set target.
	targetSet chan struct{}
	// targetUnsaved reports that target has changed since the last commit.
	targetUnsaved atomic.Bool
	// keepTarget reports that the present message is refused and does not have the
	// expected number. Session loop only.
	keepTarget bool
	// onReset is called when the numbers start again at 1; nil = no call.
	onReset func()

	mu       sync.Mutex
	sender   uint64 // next outgoing number
	reserved uint64 // highest value that sender may take
	pruned   uint64 // messages below are deleted
	skipped  skipped
	// skippedUnsaved reports that skipped has changed since the last commit.
	skippedUnsaved bool
	created        int64 // Unix nanoseconds
	signed         int64 // SendingTime of the last signed Logon, Unix nanoseconds
	flags          wire.LogonFlags
	record         []byte
	key            []byte
	failed         error // first error of the store: final
	unsaved        []unsaved
	bytes          []byte // of the messages that wait

	extending bool       // extend is syncing
	extended  *sync.Cond // on mu: extend has synced
}

// unsaved is a numbered message that waits for a commit: bytes[from:to].
type unsaved struct {
	seq      uint64
	from, to int
}

const (
	// pruneStep is how many numbers are deleted by one range.
	pruneStep = 4096
	// maxUnsaved is how many bytes of messages wait for a commit at most, one
	// batch aside.
	maxUnsaved = 256 << 10
)

// sessionRecordSize is the size of a session record:
//
//	0 sender u64 · 8 target u64 · 16 pruned u64 · 24 created i64 ·
//	32 LogonFlags u8
const sessionRecordSize = 33

// newMessageStore returns a store without numbers: see open.
func newMessageStore() *MessageStore {
	s := &MessageStore{sender: 1, pruned: 1, targetSet: make(chan struct{}, 1)}
	s.extended = sync.NewCond(&s.mu)
	s.target.Store(1)
	return s
}

// open reads the session's records. Before it quickfix may ask for the creation time
// only. Once.
func (s *MessageStore) open(store kv.Store, session uint16, o *Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store, s.session, s.created = store, session, o.Now().UnixNano()
	s.keep, s.reserve, s.replay = uint64(o.KeepMessages), uint64(o.ReserveSeqs), o.MaxReplay
	value, ok, err := store.Get(sessionKey(nil, session))
	if err != nil {
		return fmt.Errorf("session %d: %w", session, err)
	}
	if ok {
		if len(value) != sessionRecordSize {
			return fmt.Errorf("%w: session %d: %d bytes", ErrLayout, session, len(value))
		}
		s.sender = binary.BigEndian.Uint64(value)
		s.target.Store(binary.BigEndian.Uint64(value[8:]))
		s.pruned = binary.BigEndian.Uint64(value[16:])
		s.created = int64(binary.BigEndian.Uint64(value[24:]))
		s.flags = wire.LogonFlags(value[32])
	}
	if value, ok, err = store.Get(skippedKey(session)); err == nil && ok {
		s.skipped, err = parseSkipped(value)
		s.skipped = s.skipped.between(s.pruned, s.sender)
	}
	if err != nil {
		return fmt.Errorf("session %d: %w", session, err)
	}
	value, ok, err = store.Get(reservedKey(session))
	switch {
	case err != nil:
		return fmt.Errorf("session %d: %w", session, err)
	case ok && len(value) != 8:
		return fmt.Errorf("%w: session %d: the reservation of numbers has %d bytes", ErrLayout, session, len(value))
	case ok:
		s.reserved = binary.BigEndian.Uint64(value)
		if s.sender < s.reserved {
			s.skipped = s.skipped.add(numbers{s.sender, s.reserved})
			s.sender, s.skippedUnsaved = s.reserved, true
		}
	}
	value, ok, err = store.Get(signedKey(session))
	switch {
	case err != nil:
		return fmt.Errorf("session %d: %w", session, err)
	case ok && len(value) != 8:
		return fmt.Errorf("%w: session %d: the record of the last signed Logon has %d bytes", ErrLayout, session, len(value))
	case ok:
		s.signed = int64(binary.BigEndian.Uint64(value))
	}
	return nil
}

// appendRecord needs mu.
func (s *MessageStore) appendRecord(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, s.sender)
	dst = binary.BigEndian.AppendUint64(dst, s.target.Load())
	dst = binary.BigEndian.AppendUint64(dst, s.pruned)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.created))
	return append(dst, byte(s.flags))
}

// setFlags records what the Logon asks for. A change is synced, because the reports after
// a crash depend on it.
func (s *MessageStore) setFlags(flags wire.LogonFlags) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flags == flags {
		return s.failed
	}
	s.flags = flags
	return s.commit(true, nil)
}

// signedLogon records the SendingTime of a signed Logon, in Unix nanoseconds, synced, and
// reports whether it is later than the last one.
func (s *MessageStore) signedLogon(at int64) (later bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at <= s.signed {
		return false, nil
	}
	s.signed = at
	return true, s.commit(true, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(signedKey(s.session), binary.BigEndian.AppendUint64(nil, uint64(at)))
	})
}

// commit writes the record, the unsaved messages, and what more adds. It needs mu. The
// first error is final: a store that has failed is not used again.
func (s *MessageStore) commit(sync bool, more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
	if s.failed != nil {
		return s.failed
	}
	err := s.store.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		s.Fill(set, deleteRange)
		if more != nil {
			more(set, deleteRange)
		}
	}, sync)
	return s.Filled(err)
}

// Lock keeps the numbers and the messages as they are, for a commit that fill adds
// them to.
func (s *MessageStore) Lock() { s.mu.Lock() }

// Unlock ends what Lock began.
func (s *MessageStore) Unlock() { s.mu.Unlock() }

// Fill adds the session's record and its unsaved messages to a commit, whose error
// filled takes. Both need mu, held over the commit.
func (s *MessageStore) Fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	s.targetUnsaved.Store(false)
	if pruneTo, old := s.skipped.keepFrom(s.pruned, s.sender, s.keep); old >= pruneStep {
		deleteRange(messageKey(nil, s.session, s.pruned), messageKey(nil, s.session, pruneTo))
		s.pruned = pruneTo
		s.skipped, s.skippedUnsaved = s.skipped.from(pruneTo), s.skippedUnsaved || len(s.skipped) > 0
	}
	if s.skippedUnsaved {
		set(skippedKey(s.session), s.skipped.append(nil))
	}
	for _, m := range s.unsaved {
		s.key = messageKey(s.key[:0], s.session, m.seq)
		set(s.key, s.bytes[m.from:m.to])
	}
	s.key = sessionKey(s.key[:0], s.session)
	s.record = s.appendRecord(s.record[:0])
	set(s.key, s.record)
}

// Filled notes that the commit of what Fill has set has ended with err.
func (s *MessageStore) Filled(err error) error {
	if err != nil {
		s.failed = fmt.Errorf("session %d: %w", s.session, err)
		return s.failed
	}
	s.unsaved, s.bytes, s.skippedUnsaved = s.unsaved[:0], s.bytes[:0], false
	return nil
}

// Save commits the unsaved messages and numbers, if there are any.
func (s *MessageStore) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.targetUnsaved.Load() && len(s.unsaved) == 0 {
		return s.failed
	}
	return s.commit(false, nil)
}

// SaveWith commits the unsaved messages and what more adds, in one step: the messages that
// were sent, and a record that they need not be sent again.
func (s *MessageStore) SaveWith(more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(false, more)
}

// UnsavedBytes returns the size of the unsaved messages.
func (s *MessageStore) UnsavedBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bytes)
}

// number gives the messages of b the next numbers. encode appends each, under its number,
// to its argument; those that are kept wait for the next commit. show gets all of them,
// in one piece, with their numbers; it must not keep them. The caller holds quickfix's
// lock of what is sent.
func (s *MessageStore) number(b *Batch, encode func(dst []byte, m *draft, seq uint64) []byte, show func(first, next, quickfixBefore uint64, messages []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if next := s.sender + uint64(len(b.Drafts)); next > s.reserved {
		if err := s.reserveNow(next); err != nil {
			return err
		}
	}
	first, from := s.sender, len(s.bytes)
	for i := range b.Drafts {
		m := &b.Drafts[i]
		at := len(s.bytes)
		s.bytes = encode(s.bytes, m, s.sender)
		if keptType(m.msgType) {
			s.unsaved = append(s.unsaved, unsaved{s.sender, at, len(s.bytes)})
		}
		s.sender++
	}
	s.targetUnsaved.Store(true)
	s.activity.Add(1)
	if show != nil {
		show(first, s.sender, s.queuedByQuickfix.Load(), s.bytes[from:])
	}
	if len(s.bytes) > maxUnsaved {
		return s.commit(false, nil)
	}
	return nil
}

// reserveNow reserves numbers up to next and some more, synced, before one of them is
// used. It needs mu.
func (s *MessageStore) reserveNow(next uint64) error {
	for next > s.reserved && s.extending {
		s.extended.Wait()
	}
	if s.failed != nil || next <= s.reserved {
		return s.failed
	}
	s.reserved = next + s.reserve
	return s.commit(true, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
	})
}

// advanceTarget moves the next incoming number on from seq, a message that quickfix has
// not seen. The next commit writes it.
func (s *MessageStore) advanceTarget(seq uint64) {
	if s.target.CompareAndSwap(seq, seq+1) {
		s.targetUnsaved.Store(true)
	}
}

// advance sets the next outgoing number and stores msg, if any, under the number before
// it. It needs mu.
func (s *MessageStore) advance(next uint64, msg []byte) error {
	for next > s.reserved && s.extending {
		s.extended.Wait()
	}
	reserve := next > s.reserved
	if reserve {
		s.reserved = next + s.reserve
	}
	s.sender = next
	if !reserve && msg == nil {
		return s.commit(false, nil)
	}
	return s.commit(reserve, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		if reserve {
			set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
		}
		if msg != nil {
			s.key = messageKey(s.key[:0], s.session, next-1)
			set(s.key, msg)
		}
	})
}

// needsReserve reports whether less than half of the reserved numbers is left.
func (s *MessageStore) needsReserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sender > 1 && s.sender+s.reserve/2 > s.reserved
}

// extend reserves further numbers ahead of their use. Sends go on while it syncs.
func (s *MessageStore) extend() error {
	s.mu.Lock()
	if s.failed != nil || s.extending {
		defer s.mu.Unlock()
		return s.failed
	}
	s.extending = true
	next := max(s.sender+s.reserve, s.reserved)
	s.mu.Unlock()
	err := s.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, next))
	}, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extending = false
	s.extended.Broadcast()
	if err != nil {
		s.failed = fmt.Errorf("session %d: %w", s.session, err)
		return s.failed
	}
	s.reserved = next
	return nil
}

// keptType reports whether messages of a type are kept: not session messages, and not
// what is of no use later, market data, instruments and their status, quotes.
func keptType(msgType string) bool {
	switch msgType {
	case "0", "1", "2", "3", "4", "5", "A",
		"W", "X", "Y", "y", "d", "f", "h",
		"S", "Z", "AG", "AI":
		return false
	}
	return true
}
