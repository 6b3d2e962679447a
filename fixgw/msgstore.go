package fixgw

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
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
	store   Store
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
	turned chan struct{}
	// behind: target has moved on since the last commit.
	behind atomic.Bool
	// stay: the message in hand is refused, and has not the number that is
	// expected. Session loop only.
	stay bool
	// restarted is called when the numbers begin anew; nil = nobody.
	restarted func()

	mu       sync.Mutex
	sender   uint64 // next outgoing number
	reserved uint64 // highest value that sender may take
	pruned   uint64 // messages below are deleted
	created  int64  // Unix nanoseconds
	signed   int64  // SendingTime of the last signed Logon, Unix nanoseconds
	flags    sessionFlags
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
//	32 sessionFlags u8
const sessionRecordSize = 33

// sessionFlags is what a session's last Logon has asked for. It is durable, so
// that reports that are made while the client is away, and after a restart, are
// made for it. Bits: frozen.
type sessionFlags uint8

const (
	flagCancel   sessionFlags = 1 << 0 // cancel on disconnect (8013)
	flagDropCopy sessionFlags = 1 << 1 // copies of the participant's fills (9406)
	flagCustom   sessionFlags = 1 << 2 // custom fields in our messages (5600)
)

func openMessageStore(store Store, session uint16, o *Options) (*messageStore, error) {
	s := &messageStore{
		store: store, session: session, sender: 1, pruned: 1, turned: make(chan struct{}, 1),
		keep: uint64(o.KeepMessages), reserve: uint64(o.ReserveSeqs), replay: o.MaxReplay,
		created: o.Now().UnixNano(),
	}
	s.extended = sync.NewCond(&s.mu)
	s.target.Store(1)
	value, ok, err := store.Get(sessionKey(nil, session))
	if err != nil {
		return nil, fmt.Errorf("FIX store: session %d: %w", session, err)
	}
	if ok {
		if len(value) != sessionRecordSize {
			return nil, fmt.Errorf("%w: session %d: %d bytes", errLayout, session, len(value))
		}
		s.sender = binary.BigEndian.Uint64(value)
		s.target.Store(binary.BigEndian.Uint64(value[8:]))
		s.pruned = binary.BigEndian.Uint64(value[16:])
		s.created = int64(binary.BigEndian.Uint64(value[24:]))
		s.flags = sessionFlags(value[32])
	}
	value, ok, err = store.Get(reservedKey(session))
	switch {
	case err != nil:
		return nil, fmt.Errorf("FIX store: session %d: %w", session, err)
	case ok && len(value) != 8:
		return nil, fmt.Errorf("%w: session %d: reservation of %d bytes", errLayout, session, len(value))
	case ok:
		s.reserved = binary.BigEndian.Uint64(value)
		s.sender = max(s.sender, s.reserved)
	}
	value, ok, err = store.Get(signedKey(session))
	switch {
	case err != nil:
		return nil, fmt.Errorf("FIX store: session %d: %w", session, err)
	case ok && len(value) != 8:
		return nil, fmt.Errorf("%w: session %d: signed logon of %d bytes", errLayout, session, len(value))
	case ok:
		s.signed = int64(binary.BigEndian.Uint64(value))
	}
	return s, nil
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
func (s *messageStore) setFlags(flags sessionFlags) error {
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
		s.fill(set, deleteRange)
		if more != nil {
			more(set, deleteRange)
		}
	}, sync)
	return s.filled(err)
}

// fill adds the record and the messages that wait to a commit; filled then takes
// what came of it. Both need mu, held over the commit.
func (s *messageStore) fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	s.behind.Store(false)
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

func (s *messageStore) filled(err error) error {
	if err != nil {
		s.failed = fmt.Errorf("FIX store: session %d: %w", s.session, err)
		return s.failed
	}
	s.unsaved, s.bytes = s.unsaved[:0], s.bytes[:0]
	return nil
}

// save commits what waits, if anything does.
func (s *messageStore) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.behind.Load() && len(s.unsaved) == 0 {
		return s.failed
	}
	return s.commit(false, nil)
}

// saveWith commits what waits and what more adds, in one step: messages that were
// sent, and that somebody need not send them again.
func (s *messageStore) saveWith(more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commit(false, more)
}

// waiting returns how many bytes of messages wait for a commit.
func (s *messageStore) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bytes)
}

// number gives the messages of b the next numbers. encode appends each, under
// its number, to what it is given; those that are kept wait for the next commit.
// show gets all of them, in one piece, and the first number; it must not hold on
// to them. The caller holds quickfix's lock of what is sent.
func (s *messageStore) number(b *batch, encode func(dst []byte, m *draft, seq uint64) []byte, show func(first, next, handed uint64, messages []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if next := s.sender + uint64(len(b.drafts)); next > s.reserved {
		if err := s.outrun(next); err != nil {
			return err
		}
	}
	first, from := s.sender, len(s.bytes)
	for i := range b.drafts {
		m := &b.drafts[i]
		at := len(s.bytes)
		s.bytes = encode(s.bytes, m, s.sender)
		if keptType(m.msgType) {
			s.unsaved = append(s.unsaved, unsaved{s.sender, at, len(s.bytes)})
		}
		s.sender++
	}
	s.behind.Store(true)
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
func (s *messageStore) outrun(next uint64) error {
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
	if s.stay {
		s.stay = false
		return nil
	}
	return s.turn(s.target.Load() + 1)
}

func (s *messageStore) SetNextSenderMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(uint64(max(next, 1)), nil)
}

func (s *messageStore) SetNextTargetMsgSeqNum(next int) error { return s.turn(uint64(max(next, 1))) }

// turn sets the next incoming number for quickfix, which is through with the one
// before.
func (s *messageStore) turn(next uint64) error {
	s.mu.Lock()
	s.target.Store(next)
	err := s.commit(false, nil)
	s.mu.Unlock()
	select {
	case s.turned <- struct{}{}:
	default:
	}
	return err
}

// passed moves the next incoming number on from seq, which quickfix has not
// seen. The next commit writes it.
func (s *messageStore) passed(seq uint64) {
	if s.target.CompareAndSwap(seq, seq+1) {
		s.behind.Store(true)
	}
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
func (s *messageStore) low() bool {
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
		s.failed = fmt.Errorf("FIX store: session %d: %w", s.session, err)
		return s.failed
	}
	s.reserved = next
	return nil
}

// GetMessages returns the messages that a resend of these numbers replays.
func (s *messageStore) GetMessages(beginSeqNum, endSeqNum int) ([][]byte, error) {
	var messages [][]byte
	err := s.IterateMessages(beginSeqNum, endSeqNum, func(msg []byte) error {
		messages = append(messages, bytes.Clone(msg))
		return nil
	})
	return messages, err
}

// IterateMessages calls f for the kept messages of these numbers, ascending: the
// newest Options.MaxReplay of them. When the last number is of a message that is
// not kept, f gets a Heartbeat with that number, since quickfix fills a gap only
// in front of a message. Custom fields are left out where the last Logon has not
// asked for them. It holds no lock while f runs.
func (s *messageStore) IterateMessages(beginSeqNum, endSeqNum int, f func([]byte) error) error {
	if err := s.save(); err != nil {
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
		return fmt.Errorf("FIX store: session %d: %w", s.session, err)
	}
	if count > s.replay {
		begin = newest[count%s.replay]
	}
	s.mu.Lock()
	plain := s.flags&flagCustom == 0
	s.mu.Unlock()
	last, failed := uint64(0), error(nil)
	err = s.store.Scan(messageKey(nil, s.session, begin), hi, func(key, value []byte) bool {
		last = messageNumber(key)
		if value = bytes.Clone(value); plain { // quickfix keeps it
			value = messageWithoutCustom(value)
		}
		failed = f(value)
		return failed == nil
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("FIX store: session %d: %w", s.session, err)
	case last < end:
		return f(heartbeat(end))
	}
	return nil
}

func messageNumber(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// heartbeat returns the least message that quickfix parses as a Heartbeat of
// that number; it is not sent.
func heartbeat(seq uint64) []byte {
	body := append(strconv.AppendUint([]byte("35=0\x0134="), seq, 10), 1)
	msg := append(strconv.AppendInt([]byte("8=FIX.4.4\x019="), int64(len(body)), 10), 1)
	return append(append(msg, body...), "10=000\x01"...)
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
	if s.restarted != nil {
		s.restarted()
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

// keptForResend reports whether a sent message is one that a client must not
// miss. Every message begins with BeginString, BodyLength and MsgType.
func keptForResend(msg []byte) bool {
	_, rest, found := bytes.Cut(msg, []byte("\x0135="))
	end := bytes.IndexByte(rest, soh)
	return found && end > 0 && keptType(string(rest[:end]))
}

// keptType reports whether messages of a type are kept: neither session messages,
// nor what only tells how things stood at a moment: market data, instruments and
// their status, quotes.
func keptType(msgType string) bool {
	switch msgType {
	case "0", "1", "2", "3", "4", "5", "A",
		"W", "X", "Y", "y", "d", "f",
		"S", "Z", "AG", "AI":
		return false
	}
	return true
}
