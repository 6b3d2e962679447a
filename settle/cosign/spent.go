package cosign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"blockdesk/internal/solana"
)

// The file of what has left, beside a signer's record, keeps the ceilings over a restart.
// It is an append-only file of blocks of 64 bytes, a header and then an entry for each
// new message:
//
//	header  "BDSPENT." ‖ version u32 = 1 ‖ 0 u32 ‖ [32]the key's address ‖ 0 [12] ‖ crc u32
//	entry   [32]mint, zero for SOL ‖ class u8 ‖ 0 [3] ‖ lamports u32 ‖ at i64, unix ns ‖ atoms u64 ‖ 0 u32 ‖ crc u32
//
// lamports are for the fee and the rent. Numbers are little-endian; crc is chained as in
// the record. Entries that no window needs are left out when the file is written anew:
// at the start, and when it has MaxSpent entries. Frozen: a test has the bytes.
const (
	spentMagic   = "BDSPENT."
	spentVersion = 1
	// MaxSpent bounds the messages of a day: 8 MiB on disk.
	MaxSpent = 1 << 17
)

// ErrSpent says that a file is not the one of this key, or is damaged.
var ErrSpent = errors.New("cosign: the file of spent limits is damaged, or is that of another key")

// departure is what one message takes from the desk.
type departure struct {
	asset
	at       int64 // unix ns
	atoms    uint64
	lamports uint32
}

func (d *departure) encode(before uint32) (b block, crc uint32) {
	copy(b[:], d.mint[:])
	b[32] = byte(d.class)
	binary.LittleEndian.PutUint32(b[36:], d.lamports)
	binary.LittleEndian.PutUint64(b[40:], uint64(d.at))
	binary.LittleEndian.PutUint64(b[48:], d.atoms)
	b.seal(before)
	return b, b.sum()
}

func decodeDeparture(b block, before uint32) (d departure, crc uint32, ok bool) {
	d = departure{
		asset: asset{LimitClass(b[32]), solana.Address(b[:32])}, at: int64(binary.LittleEndian.Uint64(b[40:])),
		atoms: binary.LittleEndian.Uint64(b[48:]), lamports: binary.LittleEndian.Uint32(b[36:]),
	}
	again, crc := d.encode(before)
	return d, crc, again == b && (d.class == LimitToken || d.class == LimitRefund)
}

func spentHeader(address solana.Address) (b block) {
	copy(b[:], spentMagic)
	binary.LittleEndian.PutUint32(b[8:], spentVersion)
	copy(b[16:], address[:])
	b.seal(0)
	return b
}

// spent counts what has left in the windows. Any goroutine may call it.
type spent struct {
	path   string
	header block
	most   int // MaxSpent

	mu     sync.Mutex
	file   disk
	list   []departure // of the last day, oldest first
	count  int         // entries in the file
	crc    uint32
	failed bool
}

// openSpent opens the file, or begins one. The signer's record is locked, so no other
// process writes it. Errors: [ErrSpent], [ErrKeyFile] if others can access the file,
// errors of the file system.
func openSpent(path string, address solana.Address, now int64) (*spent, error) {
	s := &spent{path: path, header: spentHeader(address), most: MaxSpent}
	f, err := openPrivate(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(2+s.most)*blockSize))
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.replay(text)
	}
	if err == nil {
		err = s.rewrite(now)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// replay reads the file's bytes. The remains of a write that a crash interrupted
// are cut off: nothing was signed for that.
func (s *spent) replay(text []byte) error {
	head := text[:min(len(text), blockSize)]
	if !bytes.Equal(head, s.header[:]) {
		if bytes.HasPrefix(s.header[:], bytes.TrimRight(head, "\x00")) && isZero(text[len(head):]) {
			return nil
		}
		return fmt.Errorf("%w: its header is wrong", ErrSpent)
	}
	crc := s.header.sum()
	for at := blockSize; at+blockSize <= len(text) && !isZero(text[at:]); at += blockSize {
		d, next, ok := decodeDeparture(block(text[at:at+blockSize]), crc)
		if !ok {
			return fmt.Errorf("%w: entry %d is damaged", ErrSpent, at/blockSize)
		}
		s.list, crc = append(s.list, d), next
	}
	return nil
}

// rewrite replaces the file by one that has only what the windows need. The caller holds
// mu, or is the only user of s.
func (s *spent) rewrite(now int64) error {
	s.forget(now)
	text, crc := append([]byte(nil), s.header[:]...), s.header.sum()
	for i := range s.list {
		var b block
		b, crc = s.list[i].encode(crc)
		text = append(text, b[:]...)
	}
	temporary := s.path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := createPrivate(temporary, text); err != nil {
		return err
	}
	if err := os.Rename(temporary, s.path); err != nil {
		return err
	}
	f, err := openPrivate(s.path, os.O_RDWR)
	if err == nil {
		err = syncFolder(s.path)
	}
	if err != nil {
		return err
	}
	if s.file != nil {
		s.file.Close() // it has been replaced
	}
	s.file, s.count, s.crc = f, len(s.list), crc
	return nil
}

// forget drops what no window needs. An entry of the future counts: the clock was set
// back.
func (s *spent) forget(now int64) {
	remaining := s.list[:0]
	for _, d := range s.list {
		if d.at > now-int64(dayWindow) {
			remaining = append(remaining, d)
		}
	}
	s.list = remaining
}

// used returns what has left of an asset in the two windows, saturated.
func (s *spent) used(a asset, now int64) (hour, day uint64) {
	for i := len(s.list) - 1; i >= 0; i-- {
		d := &s.list[i]
		amount := d.atoms
		switch {
		case a.class == LimitNetwork:
			amount = uint64(d.lamports)
		case d.asset != a:
			continue
		}
		if d.at > now-int64(dayWindow) {
			day = addSaturating(day, amount)
		}
		if d.at > now-int64(hourWindow) {
			hour = addSaturating(hour, amount)
		}
	}
	return hour, day
}

func addSaturating(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// fits returns why a departure is beyond a ceiling; 0 if it is not.
func (s *spent) fits(l *Limits, d *departure) Refusal {
	for _, a := range []asset{d.asset, {class: LimitNetwork}} {
		c, ok := l.ceilings[a]
		if !ok {
			return RefusalToken
		}
		amount := d.atoms
		if a.class == LimitNetwork {
			amount = uint64(d.lamports)
		}
		hour, day := s.used(a, d.at)
		switch {
		case addSaturating(hour, amount) > c.hour:
			return RefusalHour
		case addSaturating(day, amount) > c.day:
			return RefusalDay
		}
	}
	return 0
}

// leave returns 0 once the departure is durable: it counts from then on, whether the
// message is signed or not. Without limits it counts too, so that limits that are
// loaded later know of it.
func (s *spent) leave(l *Limits, d *departure) Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return RefusalRecord
	}
	if l != nil {
		if refusal := s.fits(l, d); refusal != 0 {
			return refusal
		}
	}
	if s.count >= s.most {
		if err := s.rewrite(d.at); err != nil {
			s.failed = true
			return RefusalRecord
		}
		if s.count >= s.most {
			return RefusalFull
		}
	}
	b, crc := d.encode(s.crc)
	_, err := s.file.WriteAt(b[:], int64(1+s.count)*blockSize)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		s.failed = true
		return RefusalRecord
	}
	s.list, s.count, s.crc = append(s.list, *d), s.count+1, crc
	return 0
}

// LimitUse is how much of a ceiling is used.
type LimitUse struct {
	Class LimitClass
	// Mint is the token, zero for SOL.
	Mint solana.Address
	// Atoms that have left in the last hour and the last day, and the most that may.
	Hour, MaxHour, Day, MaxDay uint64
}

// uses returns the use of each ceiling, in the order of the file.
func (s *spent) uses(l *Limits, now int64) (list []LimitUse) {
	if l == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range l.order {
		u := LimitUse{Class: a.class, Mint: a.mint, MaxHour: l.ceilings[a].hour, MaxDay: l.ceilings[a].day}
		u.Hour, u.Day = s.used(a, now)
		list = append(list, u)
	}
	return list
}

func (s *spent) close() error { return s.file.Close() }
