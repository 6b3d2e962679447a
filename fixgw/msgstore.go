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
type messageStore struct {
	store   Store
	session uint16
	keep    uint64 // messages kept, by number
	reserve uint64 // numbers reserved at a time
	replay  int    // messages replayed at most

	activity atomic.Uint64 // grows when the session does something
	idle     uint64        // activity at the last CreationTime; session loop only

	mu       sync.Mutex
	sender   uint64 // next outgoing number
	target   uint64 // next incoming number
	reserved uint64 // highest value that sender may take
	pruned   uint64 // messages below are deleted
	created  int64  // Unix nanoseconds
	signed   int64  // SendingTime of the last signed Logon, Unix nanoseconds
	flags    sessionFlags
	record   []byte
	key      []byte
	failed   error // first error of the store: final

	extending bool       // extend's sync is on its way
	extended  *sync.Cond // on mu: it has ended
}

// pruneStep is how many numbers are deleted by one range.
const pruneStep = 4096

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
		store: store, session: session, sender: 1, target: 1, pruned: 1,
		keep: uint64(o.KeepMessages), reserve: uint64(o.ReserveSeqs), replay: o.MaxReplay,
		created: o.Now().UnixNano(),
	}
	s.extended = sync.NewCond(&s.mu)
	value, ok, err := store.Get(sessionKey(nil, session))
	if err != nil {
		return nil, fmt.Errorf("FIX store: session %d: %w", session, err)
	}
	if ok {
		if len(value) != sessionRecordSize {
			return nil, fmt.Errorf("%w: session %d: %d bytes", errLayout, session, len(value))
		}
		s.sender = binary.BigEndian.Uint64(value)
		s.target = binary.BigEndian.Uint64(value[8:])
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
	dst = binary.BigEndian.AppendUint64(dst, s.target)
	dst = binary.BigEndian.AppendUint64(dst, s.pruned)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.created))
	return append(dst, byte(s.flags))
}

// setFlags notes what the Logon asked for; the next commit writes it.
func (s *messageStore) setFlags(flags sessionFlags) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flags = flags
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

// commit writes the record and what more adds. It needs mu. The first error is
// final: a store that has failed once is not asked again.
func (s *messageStore) commit(sync bool, more func(set func(key, value []byte), deleteRange func(lo, hi []byte))) error {
	if s.failed != nil {
		return s.failed
	}
	err := s.store.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		if more != nil {
			more(set, deleteRange)
		}
		s.key = sessionKey(s.key[:0], s.session)
		s.record = s.appendRecord(s.record[:0])
		set(s.key, s.record)
	}, sync)
	if err != nil {
		s.failed = fmt.Errorf("FIX store: session %d: %w", s.session, err)
	}
	return s.failed
}

func (s *messageStore) NextSenderMsgSeqNum() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.sender)
}

func (s *messageStore) NextTargetMsgSeqNum() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.target)
}

func (s *messageStore) IncrNextSenderMsgSeqNum() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(s.sender+1, nil)
}

func (s *messageStore) IncrNextTargetMsgSeqNum() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target++
	return s.commit(false, nil)
}

func (s *messageStore) SetNextSenderMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.advance(uint64(max(next, 1)), nil)
}

func (s *messageStore) SetNextTargetMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = uint64(max(next, 1))
	return s.commit(false, nil)
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
	var pruneTo uint64
	if next > s.keep && next-s.keep >= s.pruned+pruneStep {
		pruneTo = next - s.keep
	}
	if !reserve && pruneTo == 0 && msg == nil {
		return s.commit(false, nil)
	}
	return s.commit(reserve, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		if reserve {
			set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
		}
		if pruneTo > 0 {
			deleteRange(messageKey(nil, s.session, s.pruned), messageKey(nil, s.session, pruneTo))
			s.pruned = pruneTo
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
// in front of a message. It holds no lock.
func (s *messageStore) IterateMessages(beginSeqNum, endSeqNum int, f func([]byte) error) error {
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
	last, failed := uint64(0), error(nil)
	err = s.store.Scan(messageKey(nil, s.session, begin), hi, func(key, value []byte) bool {
		last = messageNumber(key)
		failed = f(bytes.Clone(value)) // quickfix keeps it
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
	s.sender, s.target, s.pruned, s.reserved = 1, 1, 1, 1+s.reserve
	s.created = time.Now().UnixNano()
	return s.commit(true, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(messageKey(nil, s.session, 0), messageKey(nil, s.session, ^uint64(0)))
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
	})
}

// Close gives the reserved numbers back, synced: a clean stop leaves no hole.
func (s *messageStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sender == 1 && s.target == 1 {
		return s.failed // nothing has happened
	}
	s.reserved = s.sender
	return s.commit(true, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(reservedKey(s.session), binary.BigEndian.AppendUint64(nil, s.reserved))
	})
}

// keptForResend reports whether a sent message is one that a client must not
// miss: neither a session message nor market data. Every message begins with
// BeginString, BodyLength and MsgType.
func keptForResend(msg []byte) bool {
	i := bytes.Index(msg, []byte("\x0135="))
	if i < 0 || i+5 >= len(msg) {
		return false
	}
	if msg[i+5] != 1 {
		return true // a type of two characters
	}
	switch msg[i+4] {
	case '0', '1', '2', '3', '4', '5', 'A', 'W', 'X', 'Y':
		return false
	}
	return true
}
