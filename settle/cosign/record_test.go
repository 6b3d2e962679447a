package cosign

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

func recordPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "desk.signed")
}

func opened(t testing.TB, path string) *record {
	t.Helper()
	r, err := openRecord(path, deskAddress)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closed(t testing.TB, r *record) {
	t.Helper()
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
}

func entryOf(claim market.ClaimID, kind Kind, message byte) *entry {
	return &entry{subject: subject{uint64(claim), kind}, at: 1_700_000_000_000_000_000 + int64(message), hash: solana.Hash{message, 0xaa}}
}

// admitted admits one entry, without limits.
func admitted(r *record, e *entry) Refusal { return r.admit([]entry{*e}, func() Refusal { return 0 }) }

// TestOneMessage: one cosigned message a claim, MaxDeliveries deliveries, one kind;
// the same again is let through; and a restart changes nothing of it.
func TestOneMessage(t *testing.T) {
	path := recordPath(t)
	type step struct {
		e    *entry
		want Refusal
	}
	steps := []step{
		{entryOf(1, Cosign, 1), 0},
		{entryOf(1, Cosign, 1), 0},
		{entryOf(1, Cosign, 2), RefusalMessage},
		{entryOf(1, Deliver, 1), RefusalMessage},
		{entryOf(1, Deliver, 2), RefusalMessage},
		{entryOf(2, Cosign, 1), 0},
	}
	for n := range byte(MaxDeliveries) {
		steps = append(steps, step{entryOf(3, Deliver, n), 0}, step{entryOf(3, Deliver, n), 0})
	}
	steps = append(steps,
		step{entryOf(3, Deliver, MaxDeliveries), RefusalDeliveries},
		step{entryOf(3, Deliver, 0), 0},
		step{entryOf(3, Deliver, MaxDeliveries-1), 0},
		step{entryOf(3, Cosign, 0), RefusalMessage},
		step{entryOf(4, Deliver, 0), 0},
	)
	// First once through, then with a restart before every step.
	r := opened(t, path)
	for i, s := range steps {
		if got := admitted(r, s.e); got != s.want {
			t.Errorf("step %d: %s, want %s", i, got, s.want)
		}
	}
	for i, s := range steps {
		closed(t, r)
		r = opened(t, path)
		if got := admitted(r, s.e); got != s.want {
			t.Errorf("after a restart, step %d: %s, want %s", i, got, s.want)
		}
	}
	if want := 3 + MaxDeliveries; r.len() != want {
		t.Errorf("%d remembered, want %d", r.len(), want)
	}
	closed(t, r)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() != int64(1+3+MaxDeliveries)*blockSize {
		t.Errorf("%v, %d bytes, %v", info.Mode(), info.Size(), err)
	}
}

// filled returns a record's path and bytes with n entries in it, each of its own
// claim, 1 to n.
func filled(t testing.TB, n int) (path string, text []byte) {
	t.Helper()
	path = recordPath(t)
	r := opened(t, path)
	for i := range n {
		if refusal := admitted(r, entryOf(market.ClaimID(i+1), Cosign, byte(i))); refusal != 0 {
			t.Fatal(refusal)
		}
	}
	closed(t, r)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, text
}

// TestGoldenRecord freezes what is on disk.
func TestGoldenRecord(t *testing.T) {
	path := recordPath(t)
	r, err := openRecord(path, solana.Address{0xa1, 0xa2, 31: 0xaf})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*entry{
		{subject: subject{0x0102030405060708, Cosign}, at: 0x1112131415161718, hash: solana.Hash{0xc1, 31: 0xcf}},
		{subject: subject{9, Deliver}, at: 1, hash: solana.Hash{0xd1, 31: 0xdf}},
	} {
		if refusal := admitted(r, e); refusal != 0 {
			t.Fatal(refusal)
		}
	}
	closed(t, r)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/record.hex")
	if err != nil {
		t.Fatal(err)
	}
	if text := dump(got); text != string(want) {
		t.Errorf("on disk:\n%s\nwant:\n%s", text, want)
	}
}

// dump is hexadecimal, 32 bytes a line.
func dump(b []byte) string {
	var lines bytes.Buffer
	for len(b) > 0 {
		n := min(32, len(b))
		lines.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return lines.String()
}

// TestTornRecord: a crash leaves a part of the last block, or zeros. A synced entry
// is there, and the record goes on.
func TestTornRecord(t *testing.T) {
	const entries = 3
	_, text := filled(t, entries)
	incomplete := func(left []byte, whole int) {
		t.Helper()
		file := &memory{bytes: bytes.Clone(left)}
		r := newRecord(file, MaxSignedMessages)
		if err := r.load(headerOf(deskAddress)); err != nil || file.synced != len(file.bytes) {
			t.Fatalf("%d bytes: %v", len(left), err)
		}
		if r.len() != whole {
			t.Fatalf("%d bytes: %d entries, want %d", len(left), r.len(), whole)
		}
		for i := whole; i < entries; i++ {
			if refusal := admitted(r, entryOf(market.ClaimID(i+1), Cosign, byte(i))); refusal != 0 {
				t.Fatal(refusal)
			}
		}
		if !bytes.Equal(file.bytes, text) {
			t.Fatalf("%d bytes: other bytes after going on", len(left))
		}
	}
	for size := range len(text) + 1 {
		incomplete(text[:size], max(0, size/blockSize-1))
		if size < blockSize {
			incomplete(append(bytes.Clone(text[:size]), make([]byte, blockSize-size)...), 0)
		}
	}
	for whole := range entries + 1 {
		for zeros := range 2*blockSize + 2 {
			incomplete(append(bytes.Clone(text[:(1+whole)*blockSize]), make([]byte, zeros)...), whole)
		}
	}
}

// TestDamagedRecord: every bit of a record counts, and so do its blocks' places.
func TestDamagedRecord(t *testing.T) {
	_, text := filled(t, 3)
	refused := func(what string, damaged []byte) {
		t.Helper()
		file := &memory{bytes: bytes.Clone(damaged)}
		if err := newRecord(file, MaxSignedMessages).load(headerOf(deskAddress)); !errors.Is(err, ErrRecord) {
			t.Fatalf("%s: %v", what, err)
		}
		if !bytes.Equal(file.bytes, damaged) {
			t.Fatalf("%s: the file was written to", what)
		}
	}
	for bit := range len(text) * 8 {
		b := bytes.Clone(text)
		b[bit/8] ^= 1 << (bit % 8)
		refused("a bit", b)
	}
	nth := func(i int) []byte { return text[i*blockSize : (i+1)*blockSize] }
	zero := make([]byte, blockSize)
	other := headerOf(takerAddress)
	for what, blocks := range map[string][][]byte{
		"an entry taken out":   {nth(0), nth(2), nth(3)},
		"entries changed over": {nth(0), nth(2), nth(1), nth(3)},
		"an entry twice":       {nth(0), nth(1), nth(1)},
		"a zero between":       {nth(0), nth(1), zero, nth(2)},
		"no header":            {nth(1), nth(2)},
		"a zero header":        {zero, nth(1)},
		"another key's":        {other[:], nth(1)},
		"another key's, empty": {other[:]},
		"a long text":          {bytes.Repeat([]byte("not a record "), 20)},
		"a short text":         {[]byte("not a record")},
		"half a header, more":  {nth(0)[:40], zero, nth(1)},
		"garbage behind":       {nth(0), nth(1), bytes.Repeat([]byte{7}, blockSize)},
		"half an entry, zeros": {nth(0), nth(1), nth(2)[:40], zero},
	} {
		refused(what, bytes.Join(blocks, nil))
	}
	// Blocks whose sums are right, and that no record has.
	last := block(text[len(text)-blockSize:])
	for what, e := range map[string]*entry{
		"no claim": entryOf(0, Cosign, 1), "no kind": entryOf(9, 0, 1), "another kind": entryOf(9, 4, 1),
		"a second message": entryOf(1, Cosign, 9), "the same message": entryOf(1, Cosign, 0), "another kind of the claim": entryOf(1, Deliver, 9),
	} {
		b, _ := e.encode(last.sum())
		refused(what, append(bytes.Clone(text), b[:]...))
	}
	e := entryOf(9, Cosign, 9)
	b, _ := e.encode(0)
	b[9] = 1
	b.seal(last.sum())
	refused("a byte that is not used", append(bytes.Clone(text), b[:]...))
}

// TestRecordLimit: the record takes as many messages as it may, and not one more.
func TestRecordLimit(t *testing.T) {
	const most = 5
	file := &memory{}
	r := newRecord(file, most)
	for i := range most {
		if refusal := admitted(r, entryOf(market.ClaimID(i+1), Cosign, 1)); refusal != 0 {
			t.Fatalf("message %d: %s", i+1, refusal)
		}
	}
	if refusal := admitted(r, entryOf(most+1, Cosign, 1)); refusal != RefusalFull {
		t.Errorf("one more: %s", refusal)
	}
	if refusal := admitted(r, entryOf(1, Cosign, 1)); refusal != 0 {
		t.Errorf("the first again: %s", refusal)
	}
	header := headerOf(deskAddress)
	text := append(header[:], file.bytes[blockSize:]...)
	if _, err := newRecord(nil, most-1).replay(text, header); !errors.Is(err, ErrRecord) {
		t.Errorf("read with less room: %v", err)
	}
	if r := opened(t, recordPath(t)); r.most != MaxSignedMessages {
		t.Errorf("room for %d", r.most)
	} else {
		closed(t, r)
	}
}

// memory is a disk that can fail.
type memory struct {
	read                          int
	bytes                         []byte
	synced                        int
	failRead, failWrite, failSync bool
}

var errDisk = errors.New("disk")

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if m.failWrite {
		return 0, errDisk
	}
	if need := int(at) + len(b); need > len(m.bytes) {
		m.bytes = append(m.bytes, make([]byte, need-len(m.bytes))...)
	}
	return copy(m.bytes[at:], b), nil
}

func (m *memory) Sync() error {
	if m.failSync {
		return errDisk
	}
	m.synced = len(m.bytes)
	return nil
}

func (m *memory) Read(b []byte) (int, error) {
	switch {
	case m.failRead && m.read > 0:
		return 0, errDisk
	case m.read == len(m.bytes):
		return 0, io.EOF
	}
	n := copy(b, m.bytes[m.read:])
	m.read += n
	return n, nil
}

func (m *memory) Truncate(size int64) error {
	m.bytes = m.bytes[:size]
	return nil
}

func (m *memory) Close() error { return nil }

// TestFailingDisk: a message that is not known to be durable is not let through,
// and after that no new one is.
func TestFailingDisk(t *testing.T) {
	for name, fail := range map[string]func(m *memory, on bool){
		"write": func(m *memory, on bool) { m.failWrite = on },
		"sync":  func(m *memory, on bool) { m.failSync = on },
	} {
		file := &memory{}
		r := newRecord(file, 10)
		if refusal := admitted(r, entryOf(1, Cosign, 1)); refusal != 0 || file.synced != 2*blockSize {
			t.Fatalf("%s: %s, %d bytes synced", name, refusal, file.synced)
		}
		fail(file, true)
		for range 2 {
			if refusal := admitted(r, entryOf(2, Cosign, 1)); refusal != RefusalRecord {
				t.Errorf("%s: %s", name, refusal)
			}
		}
		fail(file, false)
		if refusal := admitted(r, entryOf(2, Cosign, 1)); refusal != RefusalRecord {
			t.Errorf("%s: after it went on: %s", name, refusal)
		}
		if refusal := admitted(r, entryOf(1, Cosign, 1)); refusal != 0 {
			t.Errorf("%s: what was durable before: %s", name, refusal)
		}
	}
}

// TestUnreadableDisk: a record that cannot be read to its end, or not be made whole,
// is not used.
func TestUnreadableDisk(t *testing.T) {
	_, text := filled(t, 2)
	for name, file := range map[string]*memory{
		"read":   {bytes: text, failRead: true},
		"header": {failWrite: true},
		"sync":   {bytes: text, failSync: true},
	} {
		if err := newRecord(file, 10).load(headerOf(deskAddress)); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRecordInUse: two signers do not share a record, and others cannot get at it.
func TestRecordInUse(t *testing.T) {
	path := recordPath(t)
	r := opened(t, path)
	if second, err := openRecord(path, deskAddress); !errors.Is(err, ErrRecordInUse) || second != nil {
		t.Errorf("a second signer: %v", err)
	}
	closed(t, r)
	closed(t, opened(t, path))
	if r, err := openRecord(path, takerAddress); !errors.Is(err, ErrRecord) || r != nil {
		t.Errorf("another key: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if r, err := openRecord(path, deskAddress); !errors.Is(err, ErrKeyFile) || r != nil {
		t.Errorf("open to others: %v", err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if r, err := openRecord(link, deskAddress); !errors.Is(err, ErrKeyFile) || r != nil {
		t.Errorf("a link: %v", err)
	}
}

// TestRecordRace: of messages that are asked for at the same time, one wins.
func TestRecordRace(t *testing.T) {
	r := opened(t, recordPath(t))
	defer closed(t, r)
	var wg sync.WaitGroup
	won := make([]int, 8)
	for i := range won {
		wg.Go(func() {
			for claim := range market.ClaimID(20) {
				if admitted(r, entryOf(claim+1, Cosign, byte(i))) == 0 {
					won[i]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range won {
		sum += n
	}
	if sum != 20 || r.len() != 20 {
		t.Errorf("%v won, %d remembered", won, r.len())
	}
}

// TestRecordModel: over any requests and restarts the record answers as a map does.
func TestRecordModel(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		path := filepath.Join(dir, string(market.AppendClaimID(nil, market.ClaimID(run))))
		r := opened(t, path)
		defer func() { closed(t, r) }()
		kinds, messages := map[market.ClaimID]Kind{}, map[market.ClaimID][]byte{}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				closed(t, r)
				r = opened(t, path)
			}
			claim := market.ClaimID(rapid.IntRange(1, 3).Draw(rt, "claim"))
			kind := Kind(rapid.IntRange(1, 2).Draw(rt, "kind"))
			message := rapid.ByteRange(1, 7).Draw(rt, "message")
			most := map[Kind]int{Cosign: 1, Deliver: MaxDeliveries}[kind]
			ok := kinds[claim] == 0 || kinds[claim] == kind && (bytes.IndexByte(messages[claim], message) >= 0 || len(messages[claim]) < most)
			if got := admitted(r, entryOf(claim, kind, message)); (got == 0) != ok {
				rt.Fatalf("claim %d, %s, message %d: %s", claim, kind, message, got)
			}
			if ok && bytes.IndexByte(messages[claim], message) < 0 {
				kinds[claim], messages[claim] = kind, append(messages[claim], message)
			}
		}
	})
}

// FuzzRecord: what is read of any bytes is what writing gives.
func FuzzRecord(f *testing.F) {
	_, text := filled(f, 3)
	f.Add(text)
	f.Add(text[:100])
	f.Add(append(bytes.Clone(text), make([]byte, 70)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := newRecord(nil, 100)
		header := headerOf(deskAddress)
		end, err := r.replay(text, header)
		if err != nil || end == 0 {
			return
		}
		if end != (1+r.count)*blockSize || end > len(text) || !bytes.Equal(text[:blockSize], header[:]) {
			t.Fatalf("%d entries end at %d", r.count, end)
		}
		sum := 0
		for claim, s := range r.signed {
			sum += 1 + len(s.more)
			if claim.id == 0 || s.kind == Cosign && len(s.more) > 0 || len(s.more) >= MaxDeliveries {
				t.Fatalf("%+v: %+v", claim, s)
			}
		}
		if last := block(text[end-blockSize : end]); sum != r.count || r.crc != last.sum() {
			t.Fatalf("%d messages of %d, the last sum %x", sum, r.count, r.crc)
		}
	})
}
