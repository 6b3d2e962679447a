package cosign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// What a signer remembers is a file of blocks of 64 bytes, a header and then an
// entry a message, which only grows:
//
//	header  "BDSIGNED" ‖ version u32 = 1 ‖ 0 u32 ‖ [32]the key's address ‖ 0 [12] ‖ crc u32
//	entry   claim u64 ‖ kind u8 ‖ 0 [7] ‖ signed at i64, unix ns ‖ [32]message hash ‖ 0 u32 ‖ crc u32
//
// Numbers are little-endian; crc is the CRC-32C of the block's first 60 bytes,
// continued from the block before, so no entry can be taken out or moved. A block
// does not cross a disk's sector, so a crash leaves it whole, in part behind the
// end of the file, or zero. Frozen: a test has the bytes.
const (
	recordMagic   = "BDSIGNED"
	recordVersion = 1
	blockSize     = 64
	crcAt         = blockSize - 4
)

// Limits of what a signer remembers. It forgets nothing: a message for a claim that
// it had forgotten could be signed beside the first.
const (
	// MaxSignedMessages bounds the record: 64 MiB on disk, and about twice that
	// in memory.
	MaxSignedMessages = 1 << 20
	// MaxDeliveries bounds the different deliveries of one claim. A second one is
	// only right after the first can never land.
	MaxDeliveries = 5
)

// Errors of a signer's record, wrapped with its path.
var (
	// ErrRecord: the file is not the record of this key, or it is damaged.
	ErrRecord = errors.New("cosign: not this key's record of signed messages")
	// ErrRecordInUse: another signer has it.
	ErrRecordInUse = errors.New("cosign: the record is another signer's")
)

type block [blockSize]byte

// crcOf is the sum of a block that follows another.
func (b *block) crcOf(before uint32) uint32 {
	return crc32.Update(before, crc32.MakeTable(crc32.Castagnoli), b[:crcAt])
}

// sum returns the sum that is written in a block.
func (b *block) sum() uint32 { return binary.LittleEndian.Uint32(b[crcAt:]) }

// seal writes the sum of a block that follows another.
func (b *block) seal(before uint32) { binary.LittleEndian.PutUint32(b[crcAt:], b.crcOf(before)) }

func headerOf(address solana.Address) (b block) {
	copy(b[:], recordMagic)
	binary.LittleEndian.PutUint32(b[8:], recordVersion)
	copy(b[16:], address[:])
	b.seal(0)
	return b
}

// entry is one signed message.
type entry struct {
	claim market.ClaimID
	kind  Kind
	at    int64 // unix ns
	hash  solana.Hash
}

// encode returns the block, and its sum.
func (e *entry) encode(before uint32) (b block, crc uint32) {
	binary.LittleEndian.PutUint64(b[0:], uint64(e.claim))
	b[8] = byte(e.kind)
	binary.LittleEndian.PutUint64(b[16:], uint64(e.at))
	copy(b[24:], e.hash[:])
	b.seal(before)
	return b, b.sum()
}

// decodeEntry reads a block and its sum. ok is false for one that encode does not
// write there.
func decodeEntry(b block, before uint32) (e entry, crc uint32, ok bool) {
	e = entry{
		claim: market.ClaimID(binary.LittleEndian.Uint64(b[0:])), kind: Kind(b[8]),
		at: int64(binary.LittleEndian.Uint64(b[16:])), hash: solana.Hash(b[24:56]),
	}
	again, crc := e.encode(before)
	return e, crc, again == b && e.claim != 0 && (e.kind == Cosign || e.kind == Deliver)
}

// signed is what was signed for a claim: one kind, for ever.
type signed struct {
	kind  Kind
	first solana.Hash
	more  []solana.Hash
}

func (s *signed) has(hash solana.Hash) bool { return s.first == hash || slices.Contains(s.more, hash) }

// disk is the file that a record is in.
type disk interface {
	io.ReadCloser // from its beginning
	io.WriterAt
	Truncate(size int64) error
	Sync() error
}

// record remembers the messages that a key has signed. Any goroutine may call it.
type record struct {
	most int // MaxSignedMessages

	mu     sync.Mutex
	file   disk
	claims map[market.ClaimID]signed
	count  int
	crc    uint32 // of the last block
	failed bool
}

// openRecord opens a key's record, or begins one where there is no file. It cuts
// off what a crash has left behind the last whole entry: nothing was signed for
// that. Errors: [ErrRecord], [ErrRecordInUse], [ErrKeyFile] where others can get at
// the file, or the file system's.
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
	return &record{most: most, file: file, claims: map[market.ClaimID]signed{}}
}

// load reads the file, and leaves it whole and synced.
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

// replay takes in a record's bytes, and returns where the last whole block ends: 0
// if not even the header is whole. What ends the bytes and is no whole block, or is
// zero, was being written in a crash. Everything else that is wrong is damage, and
// might hide a message. Errors: [ErrRecord].
func (r *record) replay(text []byte, header block) (end int, err error) {
	head := text[:min(len(text), blockSize)]
	if !bytes.Equal(head, header[:]) {
		if bytes.HasPrefix(header[:], bytes.TrimRight(head, "\x00")) && isZero(text[len(head):]) {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: its header", ErrRecord)
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
		if known, no := r.check(&e); known || no != 0 {
			return 0, fmt.Errorf("%w: entry %d of claim %s cannot follow those before it", ErrRecord, r.count+1, binding.Memo(e.claim))
		}
		r.add(&e, crc)
	}
	return len(text), nil
}

func isZero(b []byte) bool { return len(bytes.TrimRight(b, "\x00")) == 0 }

// judge says whether a message was signed before, or why it may not be.
func (r *record) check(e *entry) (known bool, no Refusal) {
	s, ok := r.claims[e.claim]
	switch {
	case ok && s.kind != e.kind:
		return false, RefusalMessage
	case ok && s.has(e.hash):
		return true, 0
	case ok && e.kind == Cosign:
		return false, RefusalMessage
	case ok && 1+len(s.more) >= MaxDeliveries:
		return false, RefusalDeliveries
	case r.count >= r.most:
		return false, RefusalFull
	}
	return false, 0
}

// take enters a message that judge has let pass.
func (r *record) add(e *entry, crc uint32) {
	s, ok := r.claims[e.claim]
	if ok {
		s.more = append(s.more, e.hash)
	} else {
		s = signed{kind: e.kind, first: e.hash}
	}
	r.claims[e.claim] = s
	r.count, r.crc = r.count+1, crc
}

// admit returns 0 once the message is durable as one that was signed: now, or
// before. It blocks for a sync of the disk. After a failed write nothing new is
// admitted: what is on the disk is not known.
func (r *record) admit(e *entry) Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, no := r.check(e)
	switch {
	case known || no != 0:
		return no
	case r.failed:
		return RefusalRecord
	}
	b, crc := e.encode(r.crc)
	_, err := r.file.WriteAt(b[:], int64(1+r.count)*blockSize)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		r.failed = true
		return RefusalRecord
	}
	r.add(e, crc)
	return 0
}

// len returns how many messages are remembered.
func (r *record) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func (r *record) close() error { return r.file.Close() }
