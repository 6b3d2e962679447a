package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file has highWaterMarkSlots slots, each at the start of its own block.
const (
	highWaterMarkMagic    = 0x4d464442 // "BDFM" in little-endian bytes
	highWaterMarkVersion  = 1
	highWaterMarkSize     = 64
	highWaterMarkSlots    = 3
	highWaterMarkSlotStep = 4096
	highWaterMarkFileSize = highWaterMarkSlots * highWaterMarkSlotStep
)

// phase is the life cycle of a store. On disk: frozen.
type phase uint8

const (
	creating phase = 1 // the database may be incomplete; nothing was acknowledged
	open     phase = 2 // in use, or crashed
	closed   phase = 3 // closed cleanly
	copying  phase = 4 // an incomplete backup or restore
)

// highWaterMarkRecord says how far the journal is known to reach.
type highWaterMarkRecord struct {
	phase phase
	count uint64 // of records written; the highest is the newest
	last  uint64 // Seq of the last durable command; 0 = none
	first uint64 // first Seq of the frame that ends there
	hash  uint64 // HashFrame of that frame
	epoch uint64

	slot int // slot that it was read from; not on disk
}

var (
	errHighWaterMarkMissing = errors.New("the high-water mark is missing")
	errHighWaterMarkDamaged = errors.New("the high-water mark is damaged in every slot")
	errUnfinished           = errors.New("a backup or a restore into this folder was cut short")
)

// highWaterMark is the file of the high-water mark, the only record outside Pebble of how
// far the journal reached. Pebble takes the end of its log for the end of the data,
// wherever it is; a log that was cut is shorter than the high-water mark says.
//
// A write goes to the page cache and survives the death of the process; a sync takes it
// to the disk. Of the three slots one is safe on disk, one is being synced and one
// takes writes, so whatever a power failure leaves of two of them, the third is valid.
//
// write and sync may be called by two goroutines.
type highWaterMark struct {
	file vfs.File

	mu     sync.Mutex // orders write and the change of slots in sync
	slot   int        // takes writes
	newest highWaterMarkRecord
	dirty  bool // newest is not known to be on disk

	syncMu sync.Mutex // one sync at a time
	synced uint64     // last of the newest record on disk; under mu
}

func (r *highWaterMarkRecord) encode(p *[highWaterMarkSize]byte) {
	clear(p[:])
	binary.LittleEndian.PutUint32(p[0:], highWaterMarkMagic)
	binary.LittleEndian.PutUint16(p[4:], highWaterMarkVersion)
	p[6] = uint8(r.phase)
	binary.LittleEndian.PutUint64(p[8:], r.count)
	binary.LittleEndian.PutUint64(p[16:], r.last)
	binary.LittleEndian.PutUint64(p[24:], r.first)
	binary.LittleEndian.PutUint64(p[32:], r.hash)
	binary.LittleEndian.PutUint64(p[40:], r.epoch)
	binary.LittleEndian.PutUint32(p[60:], crc32.Checksum(p[:60], castagnoli))
}

// decodeHighWaterMark decodes one slot; ok is false unless the record is valid.
func decodeHighWaterMark(p []byte) (r highWaterMarkRecord, ok bool) {
	if len(p) < highWaterMarkSize || binary.LittleEndian.Uint32(p) != highWaterMarkMagic ||
		binary.LittleEndian.Uint16(p[4:]) != highWaterMarkVersion ||
		binary.LittleEndian.Uint32(p[60:]) != crc32.Checksum(p[:60], castagnoli) {
		return highWaterMarkRecord{}, false
	}
	r = highWaterMarkRecord{
		phase: phase(p[6]),
		count: binary.LittleEndian.Uint64(p[8:]),
		last:  binary.LittleEndian.Uint64(p[16:]),
		first: binary.LittleEndian.Uint64(p[24:]),
		hash:  binary.LittleEndian.Uint64(p[32:]),
		epoch: binary.LittleEndian.Uint64(p[40:]),
	}
	return r, r.phase >= creating && r.phase <= copying
}

// readHighWaterMark returns the newest record of the file and the number of invalid slots.
// Errors: errHighWaterMarkMissing, errHighWaterMarkDamaged, those of reading.
func readHighWaterMark(fs vfs.FS, path string) (r highWaterMarkRecord, bad int, err error) {
	f, err := fs.Open(path)
	if oserror.IsNotExist(err) {
		return highWaterMarkRecord{}, highWaterMarkSlots, errHighWaterMarkMissing
	} else if err != nil {
		return highWaterMarkRecord{}, 0, fmt.Errorf("opening the high-water mark: %w", err)
	}
	var buf [highWaterMarkFileSize]byte
	n, err := io.ReadFull(f, buf[:])
	err = errors.Join(ignoreEOF(err), f.Close())
	if err != nil {
		return highWaterMarkRecord{}, 0, fmt.Errorf("reading the high-water mark: %w", err)
	}
	for slot := range highWaterMarkSlots {
		start := slot * highWaterMarkSlotStep
		if start >= n {
			bad++
			continue
		}
		got, ok := decodeHighWaterMark(buf[start:min(n, start+highWaterMarkSlotStep)])
		if !ok {
			bad++
		} else if got.count > r.count {
			r, r.slot = got, slot
		}
	}
	if bad == highWaterMarkSlots {
		return highWaterMarkRecord{}, bad, errHighWaterMarkDamaged
	}
	return r, bad, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// openHighWaterMark opens the file for writing, or creates it, writes r into every slot,
// the oldest record's first, and syncs the file and its directory.
func openHighWaterMark(fs vfs.FS, path string, r highWaterMarkRecord) (*highWaterMark, error) {
	f, err := fs.OpenReadWrite(path, "blockdesk-mark")
	if err != nil {
		return nil, fmt.Errorf("opening the high-water mark: %w", err)
	}
	// One slot after the other, the newest record's last, so that a crash in between
	// loses neither.
	m := &highWaterMark{file: f, newest: r, slot: (r.slot + 1) % highWaterMarkSlots}
	for range highWaterMarkSlots {
		if err := m.write(r); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if err := m.sync(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if err := syncDir(fs, fs.PathDir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return m, nil
}

// write makes r the newest record and sets its count. When it returns, r survives the
// process, not yet the machine.
func (m *highWaterMark) write(r highWaterMarkRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.count = m.newest.count + 1
	var p [highWaterMarkSize]byte
	r.encode(&p)
	if _, err := m.file.WriteAt(p[:], int64(m.slot)*highWaterMarkSlotStep); err != nil {
		return fmt.Errorf("writing the high-water mark: %w", err)
	}
	m.newest, m.dirty = r, true
	return nil
}

// sync puts the newest record on disk unless it is there. A failed sync must not be
// repeated.
func (m *highWaterMark) sync() error {
	m.syncMu.Lock()
	defer m.syncMu.Unlock()
	m.mu.Lock()
	if !m.dirty {
		m.mu.Unlock()
		return nil
	}
	last := m.newest.last
	m.slot, m.dirty = (m.slot+1)%highWaterMarkSlots, false
	m.mu.Unlock()
	if err := m.file.SyncData(); err != nil {
		return fmt.Errorf("syncing the high-water mark: %w", err)
	}
	m.mu.Lock()
	m.synced = last
	m.mu.Unlock()
	return nil
}

// read returns the newest record and the last Seq that is on disk.
func (m *highWaterMark) read() (newest highWaterMarkRecord, synced uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest, m.synced
}

func (m *highWaterMark) close() error { return m.file.Close() }

// syncDir makes the names in a directory durable.
func syncDir(fs vfs.FS, path string) error {
	d, err := fs.OpenDir(path)
	if err != nil {
		return fmt.Errorf("opening directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
