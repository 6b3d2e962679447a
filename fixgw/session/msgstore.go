package session

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv"
)

// messageStore keeps one session's sequence numbers and sent messages: it is
// quickfix's MessageStore over our Store.
//
// Only application messages that a client must not miss are kept. Session
// messages and market data move the number alone; on a resend they are gap
// filled.
//
// # Numbers after a crash
//
// Commits are not synced, so a crash may lose the last of them, while the client
// has seen the messages. An outgoing number must never be used twice. So the
// store also holds reserved, synced: the next number never passes it before a
// higher one is safe. The gateway reserves ahead of time; a send that has outrun
// it waits. After any start the next number is the larger of the recorded one
// and reserved. A clean Close sets reserved to the next number, so that only an
// unclean stop leaves a hole, of at most Options.ReserveSeqs numbers, which a
// resend answers by a gap fill.
//
// The incoming number may fall back: then we ask for messages again, and their
// orders are answered as duplicates.
//
// # What waits
//
// Messages of ours that quickfix has not built (see batch) get their numbers and
// go out before they are committed: they wait in memory for the next commit,
// which is the follower's with its position, or any other of the session. A
// crash before it loses a suffix, as above: the numbers are reserved, and the
// reports behind the position are made again. A resend commits what waits first.
type messageStore struct {
	store   kv.Store
	session uint16
	keep    uint64 // messages kept, by number
	reserve uint64 // numbers reserved at a time
	replay  int    // messages replayed at most

	activity atomic.Uint64 // grows when the session does something
	idle     uint64        // activity at the last CreationTime; session loop only
	// begun counts the messages that quickfix's session has taken up.
	begun atomic.Uint64
	// handed and taken count the messages that quickfix has given to its writer,
	// and that the writer has given to the connection.
	handed, taken atomic.Uint64

	// target is the next incoming number. quickfix sets it, or the connection's
	// reader while quickfix has nothing of the session's in hand.
	target atomic.Uint64
	// turned, of capacity 1, is told when quickfix has set target.
	targetSet chan struct{}
	// behind: target has moved on since the last commit.
	targetUnsaved atomic.Bool
	// stay: the message in hand is refused, and has not the number that is
	// expected. Session loop only.
	keepTarget bool
	// restarted is called when the numbers begin anew; nil = nobody.
	onReset func()

	mu       sync.Mutex
	sender   uint64 // next outgoing number
	reserved uint64 // highest value that sender may take
	pruned   uint64 // messages below are deleted
	created  int64  // Unix nanoseconds
	signed   int64  // SendingTime of the last signed Logon, Unix nanoseconds
	flags    wire.LogonFlags
	record   []byte
	key      []byte
	failed   error // first error of the store: final
	unsaved  []unsaved
	bytes    []byte // of the messages that wait

	extending bool       // extend's sync is on its way
	extended  *sync.Cond // on mu: it has ended
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

// newMessageStore has no numbers and no store yet: see open.
func newMessageStore() *messageStore {
	s := &messageStore{sender: 1, pruned: 1, targetSet: make(chan struct{}, 1)}
	s.extended = sync.NewCond(&s.mu)
	s.target.Store(1)
	return s
}

// open reads what the store has of the session. Before that quickfix may ask for
// the creation time, and for nothing else. Once.
func (s *messageStore) open(store kv.Store, session uint16, o *Options) error {
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
	value, ok, err = store.Get(reservedKey(session))
	switch {
	case err != nil:
		return fmt.Errorf("session %d: %w", session, err)
	case ok && len(value) != 8:
		return fmt.Errorf("%w: session %d: reservation of %d bytes", ErrLayout, session, len(value))
	case ok:
		s.reserved = binary.BigEndian.Uint64(value)
		s.sender = max(s.sender, s.reserved)
	}
	value, ok, err = store.Get(signedKey(session))
	switch {
	case err != nil:
		return fmt.Errorf("session %d: %w", session, err)
	case ok && len(value) != 8:
		return fmt.Errorf("%w: session %d: signed logon of %d bytes", ErrLayout, session, len(value))
	case ok:
		s.signed = int64(binary.BigEndian.Uint64(value))
	}
	return nil
}

// appendRecord needs mu.
func (s *messageStore) appendRecord(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, s.sender)
	dst = binary.BigEndian.AppendUint64(dst, s.target.Load())
	dst = binary.BigEndian.AppendUint64(dst, s.pruned)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.created))
	return append(dst, byte(s.flags))
}

// setFlags notes what the Logon asks for. Where that is something else than before
// it is synced: what is reported after a crash depends on it.
func (s *messageStore) setFlags(flags wire.LogonFlags) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flags == flags {
		return s.failed
	}
	s.flags = flags
	return s.commit(true, nil)
}

// signedLogon takes the SendingTime of a signed Logon, in Unix nanoseconds,
// synced, and reports whether it is later than the one before.
func (s *messageStore) signedLogon(at int64) (later bool, err error) {
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

// commit writes the record, the messages that wait, and what more adds. It needs
// mu. The first error is final: a store that has failed once is not asked again.
func (s *messageStore) commit(sync bool, more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
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
func (s *messageStore) Lock() { s.mu.Lock() }

// Unlock ends what Lock began.
func (s *messageStore) Unlock() { s.mu.Unlock() }

// Fill adds the session's record and its unsaved messages to a commit, whose error
// filled takes. Both need mu, held over the commit.
func (s *messageStore) Fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	s.targetUnsaved.Store(false)
	if s.sender > s.keep && s.sender-s.keep >= s.pruned+pruneStep {
		pruneTo := s.sender - s.keep
		deleteRange(messageKey(nil, s.session, s.pruned), messageKey(nil, s.session, pruneTo))
		s.pruned = pruneTo
	}
	for _, m := range s.unsaved {
		s.key = messageKey(s.key[:0], s.session, m.seq)
		set(s.key, s.bytes[m.from:m.to])
	}
	s.key = sessionKey(s.key[:0], s.session)
	s.record = s.appendRecord(s.record[:0])
	set(s.key, s.record)
}

func (s *messageStore) Filled(err error) error {
	if err != nil {
		s.failed = fmt.Errorf("session %d: %w", s.session, err)
		return s.failed
	}
	s.unsaved, s.bytes = s.unsaved[:0], s.bytes[:0]
	return nil
}

// Save commits what waits, if anything does.
func (s *messageStore) Save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.targetUnsaved.Load() && len(s.unsaved) == 0 {
		return s.failed
	}
	return s.commit(false, nil)
}

// SaveWith commits what waits and what more adds, in one step: messages that were
// sent, and that somebody need not send them again.
func (s *messageStore) SaveWith(more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(false, more)
}

// UnsavedBytes returns how many bytes of messages wait for a commit.
func (s *messageStore) UnsavedBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bytes)
}

// number gives the messages of b the next numbers. encode appends each, under
// its number, to what it is given; those that are kept wait for the next commit.
// show gets all of them, in one piece, and the first number; it must not hold on
// to them. The caller holds quickfix's lock of what is sent.
func (s *messageStore) number(b *Batch, encode func(dst []byte, m *draft, seq uint64) []byte, show func(first, next, handed uint64, messages []byte)) error {
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
		show(first, s.sender, s.handed.Load(), s.bytes[from:])
	}
	if len(s.bytes) > maxUnsaved {
		return s.commit(false, nil)
	}
	return nil
}

// outrun reserves numbers up to next and some more, synced, before any of them
// is used. It needs mu.
func (s *messageStore) reserveNow(next uint64) error {
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

// passed moves the next incoming number on from seq, which quickfix has not
// seen. The next commit writes it.
func (s *messageStore) advanceTarget(seq uint64) {
	if s.target.CompareAndSwap(seq, seq+1) {
		s.targetUnsaved.Store(true)
	}
}

// advance makes next the next outgoing number and stores msg, if any, under the
// one before. It needs mu.
func (s *messageStore) advance(next uint64, msg []byte) error {
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

// low reports whether less than half of the reserved numbers is left.
func (s *messageStore) needsReserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sender > 1 && s.sender+s.reserve/2 > s.reserved
}

// extend reserves further numbers ahead of their use. The gateway's keeper calls
// it; sends go on while the sync is on its way.
func (s *messageStore) extend() error {
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
