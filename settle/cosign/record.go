package cosign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// A signer's record is an append-only file of blocks of 64 bytes, a header and then an
// entry for each message:
//
//	header  "BDSIGNED" ‖ version u32 = 1 ‖ 0 u32 ‖ [32]the key's address ‖ 0 [12] ‖ crc u32
//	entry   subject u64 ‖ kind u8 ‖ 0 [7] ‖ signed at i64, unix ns ‖ [32]message hash ‖ 0 u32 ‖ crc u32
//
// The subject is the claim; of a refund, the first eight bytes of the payment's signature,
// and a message of refunds has an entry for each payment. Numbers are little-endian; crc
// is the CRC-32C of the block's first 60 bytes,
// continued from the block before, so that no entry can be removed or moved. A block
// does not cross a disk's sector, so after a crash it is complete, cut off by the end of
// the file, or zero. Refunds came with 0.2.0: an older signer refuses a record that has
// one. Frozen: a test has the bytes.
const (
	recordMagic   = "BDSIGNED"
	recordVersion = 1
	blockSize     = 64
	crcAt         = blockSize - 4
)

// Limits of the record. No entry is deleted, because a second message could then be
// signed for its claim.
const (
	// MaxSignedMessages bounds the record: 64 MiB on disk, and about twice that in
	// memory.
	MaxSignedMessages = 1 << 20
	// MaxDeliveries bounds the deliveries of one claim. A second one is right only
	// after the first can no longer land.
	MaxDeliveries = 5
	// MaxRefundAttempts bounds the messages that pay one payment back, for the same
	// reason.
	MaxRefundAttempts = 5
)

// Errors of a signer's record, wrapped with its path.
var (
	// ErrRecord: the file is not the record of this key, or it is damaged.
	ErrRecord = errors.New("cosign: the record of signed messages is damaged, or is that of another key")
	// ErrRecordInUse: another signer has the record open.
	ErrRecordInUse = errors.New("cosign: another signer uses the record of signed messages: stop it first")
)

type block [blockSize]byte

// crcOf returns the checksum of a block, continued from that of the block before.
func (b *block) crcOf(before uint32) uint32 {
	return crc32.Update(before, crc32.MakeTable(crc32.Castagnoli), b[:crcAt])
}

func (b *block) sum() uint32 { return binary.LittleEndian.Uint32(b[crcAt:]) }

// seal writes the checksum of a block that follows another.
func (b *block) seal(before uint32) { binary.LittleEndian.PutUint32(b[crcAt:], b.crcOf(before)) }

func headerOf(address solana.Address) (b block) {
	copy(b[:], recordMagic)
	binary.LittleEndian.PutUint32(b[8:], recordVersion)
	copy(b[16:], address[:])
	b.seal(0)
	return b
}

type entry struct {
	subject
	at   int64 // unix ns
	hash solana.Hash
}

// subject is what a message is for: a claim, or the payment that is paid back.
type subject struct {
	id   uint64
	kind Kind
}

// logged returns the subject as an attribute of a line in the log.
func (s subject) logged() slog.Attr {
	if s.kind == Refund {
		return slog.String("payment", fmt.Sprintf("%016x", s.id))
	}
	return slog.String("claim", binding.Memo(market.ClaimID(s.id)))
}

// owner is the part of a subject that allows messages of one kind only.
func (s subject) owner() subject {
	if s.kind != Refund {
		s.kind = 0
	}
	return s
}

// most returns how many messages may be signed for the subject, and the refusal beyond.
func (s subject) most() (int, Refusal) {
	switch s.kind {
	case Deliver:
		return MaxDeliveries, RefusalDeliveries
	case Refund:
		return MaxRefundAttempts, RefusalRefunds
	default:
		return 1, RefusalMessage
	}
}

// entries returns the record's entries for a transaction.
func (d *draft) entries(at int64) (list []entry) {
	if d.Kind != Refund {
		return []entry{{subject{uint64(d.Claim), d.Kind}, at, d.hash}}
	}
	for i := range d.refund.Items {
		id := binary.BigEndian.Uint64(d.refund.Items[i].Payment[:])
		list = append(list, entry{subject{id, Refund}, at, d.hash})
	}
	return list
}

func (e *entry) encode(before uint32) (b block, crc uint32) {
	binary.LittleEndian.PutUint64(b[0:], e.id)
	b[8] = byte(e.kind)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.at))
	copy(b[24:], e.hash[:])
	b.seal(before)
	return b, b.sum()
}

// decodeEntry returns the entry of a block and the checksum; ok is false for a block
// that encode does not make.
func decodeEntry(b block, before uint32) (e entry, crc uint32, ok bool) {
	e = entry{
		subject: subject{binary.LittleEndian.Uint64(b[0:]), Kind(b[8])}, at: int64(binary.LittleEndian.Uint64(b[16:])), hash: solana.Hash(b[24:56]),
	}
	again, crc := e.encode(before)
	return e, crc, again == b && e.id != 0 && (e.kind == Cosign || e.kind == Deliver || e.kind == Refund)
}

// signed are the messages of a subject, all of one kind.
type signed struct {
	kind  Kind
	first solana.Hash
	more  []solana.Hash
}

func (s *signed) has(hash solana.Hash) bool { return s.first == hash || slices.Contains(s.more, hash) }

type disk interface {
	io.ReadCloser // from its beginning
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// record is the list of the messages that a key has signed. Any goroutine may call
// it.
type record struct {
	most int // MaxSignedMessages

	mu     sync.Mutex
	file   disk
	signed map[subject]signed // by owner
	count  int
	crc    uint32 // of the last block
	failed bool
}

// openRecord opens a key's record, or begins one if there is no file. It cuts off what
// a crash has left after the last complete entry: nothing was signed for that. Errors:
// [ErrRecord], [ErrRecordInUse], [ErrKeyFile] if others can access the file, errors of
// the file system.
func openRecord(path string, address solana.Address) (*record, error) {
	file, err := openPrivate(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	r := newRecord(file, MaxSignedMessages)
	if err = lockFile(file); err == nil {
		err = r.load(headerOf(address))
	}
	if err == nil {
		err = syncFolder(path)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func newRecord(file disk, most int) *record {
	return &record{most: most, file: file, signed: map[subject]signed{}}
}

// load reads the file, and leaves it complete and synced.
func (r *record) load(header block) error {
	most := int64(1+r.most) * blockSize
	text, err := io.ReadAll(io.LimitReader(r.file, most+blockSize))
	if err != nil {
		return err
	}
	end, err := r.replay(text, header)
	if err != nil {
		return err
	}
	if end == 0 {
		if _, err := r.file.WriteAt(header[:], 0); err != nil {
			return err
		}
		end, r.crc = blockSize, header.sum()
	}
	return errors.Join(r.file.Truncate(int64(end)), r.file.Sync())
}

// replay reads a record's bytes, and returns where the last complete block ends: 0 if
// even the header is incomplete. An incomplete or zero tail is what a crash left of
// the last write. Any other fault is damage, and might hide a message. Errors:
// [ErrRecord].
func (r *record) replay(text []byte, header block) (end int, err error) {
	head := text[:min(len(text), blockSize)]
	if !bytes.Equal(head, header[:]) {
		if bytes.HasPrefix(header[:], bytes.TrimRight(head, "\x00")) && isZero(text[len(head):]) {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: its header is wrong", ErrRecord)
	}
	r.crc = header.sum()
	for at := blockSize; at < len(text); at += blockSize {
		rest := text[at:]
		if len(rest) < blockSize || isZero(rest[:blockSize]) && isZero(rest) {
			return at, nil
		}
		e, crc, ok := decodeEntry(block(rest[:blockSize]), r.crc)
		if !ok {
			return 0, fmt.Errorf("%w: entry %d is damaged", ErrRecord, r.count+1)
		}
		if known, refusal := r.check(&e); known || refusal != 0 {
			return 0, fmt.Errorf("%w: entry %d of %s cannot follow those before it", ErrRecord, r.count+1, e.logged())
		}
		r.add(&e, crc)
	}
	return len(text), nil
}

func isZero(b []byte) bool { return len(bytes.TrimRight(b, "\x00")) == 0 }

// check reports whether a message was signed before, or why it may not be signed.
func (r *record) check(e *entry) (known bool, refusal Refusal) {
	s, ok := r.signed[e.owner()]
	most, beyond := e.most()
	switch {
	case e.id == 0:
		return false, RefusalShape
	case ok && s.kind != e.kind:
		return false, RefusalMessage
	case ok && s.has(e.hash):
		return true, 0
	case ok && 1+len(s.more) >= most:
		return false, beyond
	case r.count >= r.most:
		return false, RefusalFull
	}
	return false, 0
}

// add appends a message that check has allowed.
func (r *record) add(e *entry, crc uint32) {
	s, ok := r.signed[e.owner()]
	if ok {
		s.more = append(s.more, e.hash)
	} else {
		s = signed{kind: e.kind, first: e.hash}
	}
	r.signed[e.owner()] = s
	r.count, r.crc = r.count+1, crc
}

// admit returns 0 once the message of some entries is durable in the record. Before an
// entry that is not there yet is written, leave counts what the message takes from the
// desk, or refuses it. admit blocks for a sync of the disk for each entry, so that a
// crash leaves no hole between them. After a failed write nothing new is admitted,
// because the disk's content is unknown.
func (r *record) admit(list []entry, leave func() Refusal) Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []entry
	for i := range list {
		known, refusal := r.check(&list[i])
		if refusal != 0 {
			return refusal
		}
		if !known {
			fresh = append(fresh, list[i])
		}
	}
	switch {
	case len(fresh) == 0:
		return 0
	case r.failed:
		return RefusalRecord
	case r.count+len(fresh) > r.most:
		return RefusalFull
	}
	if refusal := leave(); refusal != 0 {
		return refusal
	}
	for i := range fresh {
		if err := r.write(&fresh[i]); err != nil {
			r.failed = true
			return RefusalRecord
		}
	}
	return 0
}

func (r *record) write(e *entry) error {
	b, crc := e.encode(r.crc)
	if _, err := r.file.WriteAt(b[:], int64(1+r.count)*blockSize); err != nil {
		return err
	}
	if err := r.file.Sync(); err != nil {
		return err
	}
	r.add(e, crc)
	return nil
}

func (r *record) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func (r *record) close() error { return r.file.Close() }
