package quorum

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist"
)

// standbyImage is the standby replica's part of a snapshot.
type standbyImage struct {
	digest  uint64
	state   [32]byte
	replica []byte
	floor   uint64
	events  []event.Event
}

func (s *standby) snapshotPart() standbyImage {
	return standbyImage{
		digest: s.replica.Digest, state: s.replica.State.Hash(), replica: s.replica.AppendSnapshot(nil),
		floor: s.tail.floor, events: append([]event.Event(nil), s.tail.events...),
	}
}

// fsmSnapshot is a snapshot as of one entry: raft's FSMSnapshot.
type fsmSnapshot struct {
	head      header
	stores    *persist.KVView
	standby   chan standbyImage
	stopped   <-chan struct{}
	status    *snapshotStatus
	persisted bool // Persist was called
}

// Persist implements raft.FSMSnapshot.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	s.persisted = true
	err := s.persist(sink)
	s.status.written(s.head.at, err)
	return err
}

func (s *fsmSnapshot) persist(sink raft.SnapshotSink) error {
	var w standbyImage
	select {
	case w = <-s.standby:
	case <-s.stopped:
		return errors.Join(errStopped, sink.Cancel())
	}
	if err := s.write(sink, &w); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (s *fsmSnapshot) Release() {
	if !s.persisted {
		s.status.written(s.head.at, errNoSnapshotFile) // raft could not create a file
	}
	_ = s.stores.Close() // a view has nothing to write
}

// errNoSnapshotFile: raft could not create a file for a snapshot.
var errNoSnapshotFile = errors.New("cannot create a file for a snapshot")

func (s *fsmSnapshot) write(to io.Writer, w *standbyImage) error {
	sum := xxhash.New()
	out := bufio.NewWriterSize(io.MultiWriter(to, sum), 256<<10)
	h := s.head
	h.digest, h.state, h.bytes = w.digest, w.state, uint64(len(w.replica))
	h.floor, h.events = w.floor, uint64(len(w.events))
	_, err := out.Write(h.encode())
	if err == nil {
		_, err = out.Write(w.replica)
	}
	var buf []byte
	for i := 0; i < len(w.events) && err == nil; i++ {
		buf = w.events[i].Append(buf[:0])
		_, err = out.Write(buf)
	}
	if err == nil {
		err = s.writeStores(out)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	_, err = to.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	return err
}

func (s *fsmSnapshot) writeStores(out *bufio.Writer) error {
	var failed error
	var head []byte
	err := s.stores.Scan([]byte{1}, nil, func(key, value []byte) bool {
		head = binary.LittleEndian.AppendUint16(head[:0], uint16(len(key)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(value)))
		for _, p := range [][]byte{head, key, value} {
			if failed == nil {
				_, failed = out.Write(p)
			}
		}
		return failed == nil
	})
	if err == nil && failed == nil {
		_, failed = out.Write(make([]byte, entryHeader))
	}
	return errors.Join(err, failed)
}

// hashingReader hashes what is read.
type hashingReader struct {
	from *bufio.Reader
	sum  hash.Hash64
}

func (s *hashingReader) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.sum.Write(p[:n]) // never fails
	return n, err
}

// readSnapshot reads a snapshot, writes its stores into this node's copy unless that
// copy is as new or newer, and returns the replica after comparing it with the header.
// Memory grows with what is read, not with what a header claims.
func readSnapshot(from io.Reader, stores *localStores, o engine.StateOptions) (h header, r *engine.Replica, events []event.Event, err error) {
	in := &hashingReader{from: bufio.NewReaderSize(from, 256<<10), sum: xxhash.New()}
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return h, nil, nil, fmt.Errorf("%w: reading the header: %w", errSnapshot, err)
	}
	if h, err = decodeHeader(head); err != nil {
		return h, nil, nil, err
	}
	if r, err = readReplica(in, &h, o); err != nil {
		return h, nil, nil, err
	}
	if events, err = readEvents(in, &h); err != nil {
		return h, nil, nil, err
	}
	if err := readStores(in, &h, stores); err != nil {
		return h, nil, nil, fmt.Errorf("entry %d: stores: %w", h.index, err)
	}
	return h, r, events, nil
}

func readReplica(in io.Reader, h *header, o engine.StateOptions) (*engine.Replica, error) {
	var data bytes.Buffer
	if _, err := io.CopyN(&data, in, int64(h.bytes)); err != nil {
		return nil, fmt.Errorf("%w: seq %d: reading the replica: %w", errSnapshot, h.at.Last(), err)
	}
	r, err := engine.RestoreReplica(data.Bytes(), o)
	if err != nil {
		return nil, fmt.Errorf("snapshot of seq %d: %w", h.at.Next-1, err)
	}
	if r.State.Seq()+1 != h.at.Next || r.Digest != h.digest || r.State.Hash() != h.state {
		return nil, fmt.Errorf("%w: holds seq %d and digest %016x, should be %d and %016x",
			errSnapshot, r.State.Seq(), r.Digest, h.at.Next-1, h.digest)
	}
	return r, nil
}

func readEvents(in io.Reader, h *header) ([]event.Event, error) {
	var events []event.Event
	var data [event.Size]byte
	for range h.events {
		if _, err := io.ReadFull(in, data[:]); err != nil {
			return nil, fmt.Errorf("%w: reading the events: %w", errSnapshot, err)
		}
		var e event.Event
		e.Decode(&data)
		if e.Seq <= h.floor || e.Seq >= h.at.Next || len(events) > 0 && e.Seq < events[len(events)-1].Seq {
			return nil, fmt.Errorf("%w: event of seq %d out of order", errSnapshot, e.Seq)
		}
		events = append(events, e)
	}
	return events, nil
}

// readStores reads the entries of the stores and the checksum at the end.
func readStores(in *hashingReader, h *header, stores *localStores) error {
	keep := stores.index >= h.index && stores.index > 0
	if !keep {
		if err := stores.clear(); err != nil {
			return err
		}
	}
	for more := true; more; {
		var failed error
		read := func(set func(key, value []byte)) { more, failed = readEntries(in, set) }
		var err error
		if keep {
			read(func([]byte, []byte) {})
		} else {
			err = stores.write(read)
		}
		if err := errors.Join(failed, err); err != nil {
			return err
		}
	}
	want := in.sum.Sum64()
	var sum [8]byte
	if _, err := io.ReadFull(in, sum[:]); err != nil || binary.LittleEndian.Uint64(sum[:]) != want {
		return fmt.Errorf("%w: wrong checksum of the file", errSnapshot)
	}
	if keep {
		return nil
	}
	return stores.seal(h.index)
}

// readEntries passes entries to set until it has read fillBytes, and reports whether
// more follow.
func readEntries(in io.Reader, set func(key, value []byte)) (more bool, err error) {
	var head [entryHeader]byte
	var data []byte
	for n := 0; n < fillBytes; n += len(data) + opBytes {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return false, fmt.Errorf("%w: reading the stores: %w", errSnapshot, err)
		}
		key, value := int(binary.LittleEndian.Uint16(head[:])), int(binary.LittleEndian.Uint32(head[2:]))
		if key == 0 {
			return false, nil
		}
		if key > persist.MaxKeyBytes || value > persist.MaxValueBytes {
			return false, fmt.Errorf("%w: a store's entry with a key of %d bytes and a value of %d", errSnapshot, key, value)
		}
		if cap(data) < key+value {
			data = make([]byte, key+value)
		}
		data = data[:key+value]
		if _, err := io.ReadFull(in, data); err != nil {
			return false, fmt.Errorf("%w: reading the stores: %w", errSnapshot, err)
		}
		set(data[:key], data[key:])
	}
	return true, nil
}
