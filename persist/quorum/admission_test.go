package quorum

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/internal/await"
	"blockdesk/persist/journaltest"
)

// begun waits until every node has started raft, which a node does that its peers let in.
func (c *cluster) begun(ids ...string) {
	c.t.Helper()
	for _, id := range ids {
		n := c.members[id].node
		await.True(c.t, id+" takes part", func() bool { _, err := n.running(); return err == nil })
	}
}

// lose stops a node and empties its folder.
func (c *cluster) lose(id string) {
	c.t.Helper()
	c.kill(id, 0)
	m := c.members[id]
	m.disk = vfs.NewCrashableMem()
	m.o.FS, m.o.Dir = m.disk, c.t.TempDir()
}

// TestVoterWithoutMemory: c is down, a and b acknowledge, both end, and b comes back with
// an empty folder: b and c elect no leader, and nothing is lost when a is back.
func TestVoterWithoutMemory(t *testing.T) {
	t.Parallel()
	for _, join := range []bool{false, true} {
		c := newCluster(t, 3, nil)
		ref := journaltest.NewReference(journaltest.Commands(200, 1))
		c.lead()
		c.begun("n1", "n2", "n3")
		c.kill("n3", 0)
		_, term := c.lead("n3")
		w := newWriter(t, term)
		if err := w.append(ref.Commands[:100]); err != nil {
			t.Fatal(err)
		}
		c.kill("n1", 0)
		c.lose("n2")
		c.members["n2"].o.Join = join
		c.start("n2")
		c.start("n3")
		n2, n3 := c.members["n2"].node, c.members["n3"].node
		await.True(t, "n2 is refused", func() bool { return errors.Is(n2.Admission(), ErrEmptyFolder) })
		if err := n2.Ready(); !errors.Is(err, ErrEmptyFolder) || !errors.Is(err, ErrNotReady) {
			t.Errorf("ready: %v", err)
		}
		elections := n3.Counts().Elections
		if s := n3.Status(); s.Leader.ID != "" || elections != 0 {
			t.Fatalf("n3 follows %q after %d elections", s.Leader.ID, elections)
		}
		c.start("n1")
		id, term := c.lead("n2")
		w = newWriter(t, term)
		if seq := w.replica.State.Seq(); seq != 100 {
			t.Fatalf("%s leads from seq %d, acknowledged 100", id, seq)
		}
		if err := w.append(ref.Commands[100:]); err != nil {
			t.Fatal(err)
		}
		if err := n2.Admission(); !errors.Is(err, ErrEmptyFolder) {
			t.Errorf("n2: %v", err)
		}
		for _, id := range []string{"n1", "n2", "n3"} {
			if err := c.stop(id); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAddedBeforeItStarts: a node that was added while it did not run, or was still asking
// its peers, goes on; once it votes, an empty folder is refused.
func TestAddedBeforeItStarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *Options) { o.Timeout = steady })
	id, _ := c.lead()
	first := c.members[id].node
	late := Peer{ID: "late", Address: freeAddress(t)}
	if err := first.AddNonvoter(late.ID, late.Address); err != nil {
		t.Fatal(err)
	}
	c.add(late, true)
	c.begun("late")
	node := c.members["late"].node
	await.True(t, "the added node to catch up", func() bool { return node.Status().Applied >= first.Status().Committed })
	if err := first.AddVoter(late.ID, late.Address); err != nil {
		t.Fatal(err)
	}
	c.lose("late")
	c.start("late")
	await.True(t, "the refusal", func() bool { return errors.Is(c.members["late"].node.Admission(), ErrEmptyFolder) })
}

// TestFounders: the first nodes of a group begin only when all are there, and one that was
// seen empty then may begin later.
func TestFounders(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *Options) { o.Timeout = quick })
	c.begun("n1", "n2", "n3")
	c.lead()
	if err := c.stop("n3"); err != nil {
		t.Fatal(err)
	}
	c.start("n3") // with its log: it asks no peer
	c.begun("n3")

	answer := probeAnswer{hasLog: true, voter: true}
	n := c.members["n3"].node
	others := slices.DeleteFunc(slices.Clone(c.peers), func(p Peer) bool { return p.ID == "n3" })
	none, away := []error{nil, nil}, errors.New("no connection")
	for _, k := range []struct {
		name    string
		join    bool
		answers []probeAnswer
		errs    []error
		want    error
	}{
		{"all empty", false, []probeAnswer{{}, {}}, none, nil},
		{"one away", false, []probeAnswer{{}, {}}, []error{nil, away}, errAlone},
		{"one has a log", false, []probeAnswer{answer, {}}, []error{nil, away}, ErrEmptyFolder},
		{"one has a log without it", false, []probeAnswer{{hasLog: true}, {}}, none, ErrEmptyFolder},
		{"one has seen it", false, []probeAnswer{answer, {hasLog: true, founder: true}}, none, nil},
		{"an old program", false, []probeAnswer{{}, {}}, []error{nil, errOldProgram}, ErrEmptyFolder},
		{"joins, all know a log", true, []probeAnswer{{hasLog: true}, {hasLog: true}}, none, nil},
		{"joins, one is away", true, []probeAnswer{{hasLog: true}, {}}, []error{nil, away}, errAlone},
		{"joins and is a voter", true, []probeAnswer{{hasLog: true}, answer}, none, ErrEmptyFolder},
		{"joins nothing", true, []probeAnswer{{}, {}}, none, errAlone},
		{"joins an old group", true, []probeAnswer{{}, {}}, []error{errOldProgram, errOldProgram}, nil},
	} {
		o := n.o
		o.Join = k.join
		if err := (&Node{o: o}).judge(others, k.answers, k.errs); !errors.Is(err, k.want) || (err == nil) != (k.want == nil) {
			t.Errorf("%s: %v, want %v", k.name, err, k.want)
		}
	}
}

// TestProbeBytes pins the bytes, which other versions of the program read.
func TestProbeBytes(t *testing.T) {
	t.Parallel()
	b := birth{1, 2, 15: 16}
	q := probeQuestion{id: "n1", birth: b}
	if got := q.encode(); !bytes.Equal(got, []byte("\xbd\x01\x02\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10n1")) {
		t.Errorf("question %q", got)
	}
	if back, err := readQuestion(bytes.NewReader(q.encode()[1:])); err != nil || back != q {
		t.Errorf("%+v, %v", back, err)
	}
	a := probeAnswer{hasLog: true, founder: true, reads: 2, format: 1, term: 7, last: 9, birth: b}
	want := "\xbd\x01\x05\x00\x02\x00\x01\x00\x07\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00" + string(b[:])
	if got := a.encode(); string(got) != want {
		t.Errorf("answer %q", got)
	}
	if back, err := decodeAnswer(a.encode()); err != nil || back != a {
		t.Errorf("%+v, %v", back, err)
	}
	for _, bad := range []string{"", want[:39], "\x00" + want[1:], "\xbd\x02" + want[2:], "\xbd\x01\x08" + want[3:]} {
		if _, err := decodeAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestProbeOldProgram: a program without probes reads a call of raft that it does not know,
// and closes the connection.
func TestProbeOldProgram(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = conn.Read(make([]byte, 64))
			err = errors.Join(err, conn.Close())
		}
		closed <- err
	}()
	_, err = c.members["n1"].node.probe(l.Addr().String(), &probeQuestion{id: "n1"})
	if !errors.Is(err, errOldProgram) {
		t.Errorf("an old program: %v", err)
	}
	if err := errors.Join(<-closed, l.Close()); err != nil {
		t.Error(err)
	}
}

// TestProbeSilence: a connection that sends nothing, or half a question, is closed and
// does not hold up the others.
func TestProbeSilence(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.lead()
	n := c.members["n1"].node
	for _, sent := range []string{"", "\xbd", "\xbd\x01\xff"} {
		conn, err := net.Dial("tcp", n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	var a probeAnswer
	await.True(t, "an answer", func() bool {
		var err error
		a, err = n.probe(n.Addr(), &probeQuestion{id: "n1"})
		return err == nil
	})
	if !a.hasLog || !a.voter || a.founder || a.reads != MaxFormat {
		t.Errorf("%+v", a)
	}
}
