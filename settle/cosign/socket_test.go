package cosign

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
)

func connect(t testing.TB, path string) *net.UnixConn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(runtest.HangTimeout))
	return c.(*net.UnixConn)
}

// ended waits until the server hangs up, and returns what it said.
func ended(t testing.TB, c net.Conn) []byte {
	t.Helper()
	reply, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the server does not hang up")
	}
	return reply
}

// TestSlowPeers: a peer that sends nothing, half a frame, or a byte at a time blocks
// no other, and neither does one that does not read its answer.
func TestSlowPeers(t *testing.T) {
	s := start(t, options(t))
	silent, half, drip, unread, closed := connect(t, s.path), connect(t, s.path), connect(t, s.path), connect(t, s.path), connect(t, s.path)
	half.Write([]byte{2, 0, 1})
	closed.Write([]byte{2, 0, 1, requestAddress})
	closed.Close()
	delivery := deliveryOf(t, testClaim)
	job := Job{authorized(t, &delivery).authorized}
	unread.Write(signFrame(job).append(nil))
	dripped := signFrame(job).append(nil)
	for i := range 5 {
		if _, err := drip.Write(dripped[i : i+1]); err != nil {
			t.Fatal(err)
		}
		signedBy(t, authorized(t, &delivery), dialled(t, s.path))
	}
	await.Equal(t, "held connections", 3, func() int { return len(s.slots) }) // not the two that are served
	if reply := ended(t, unread); len(reply) != sizeSize+headSize+signatureSize {
		t.Errorf("read late: %x", reply)
	}
	s.stop()
	for name, c := range map[string]net.Conn{"silent": silent, "half a frame": half, "drip": drip} {
		if reply := ended(t, c); len(reply) != 0 {
			t.Errorf("%s: answered %x", name, reply)
		}
	}
}

// TestSlowPeersAreCutOff: a connection that has not asked within the timeout ends, and
// also one that sends on and on.
func TestSlowPeersAreCutOff(t *testing.T) {
	o := options(t)
	o.Timeout = 50 * time.Millisecond
	s := start(t, o)
	silent, half, drip := connect(t, s.path), connect(t, s.path), connect(t, s.path)
	half.Write([]byte{2, 0, 1})
	// The longest frame lasts for twelve seconds in this way.
	drip.Write([]byte{MaxSignerFrame & 0xff, MaxSignerFrame >> 8, 1, requestSign})
	await.True(t, "the end of one that drips", func() bool {
		_, err := drip.Write([]byte{0})
		return err != nil
	})
	for name, c := range map[string]net.Conn{"silent": silent, "half a frame": half, "drip": drip} {
		if reply := ended(t, c); len(reply) != 0 {
			t.Errorf("%s: answered %x", name, reply)
		}
	}
	await.Equal(t, "held connections", 0, func() int { return len(s.slots) })
}

// TestGarbage: whatever is sent, the server answers with a refusal or hangs up, and
// goes on.
func TestGarbage(t *testing.T) {
	s := start(t, options(t))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		b := make([]byte, rng.IntN(3000))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		if i%2 == 0 { // a head that is right
			copy(b, frame{requestSign, make([]byte, min(max(0, len(b)-4), MaxSignerFrame-headSize))}.append(nil)[:min(4, len(b))])
		}
		c := connect(t, s.path)
		c.Write(b)
		c.CloseWrite()
		if reply := ended(t, c); len(reply) != 0 && (len(reply) != 5 || reply[3] != answerRefusal) {
			t.Fatalf("%x is answered with %x", b, reply)
		}
	}
	delivery := deliveryOf(t, testClaim)
	signedBy(t, authorized(t, &delivery), dialled(t, s.path))
	if s.SignedMessages() != 1 {
		t.Errorf("%d remembered", s.SignedMessages())
	}
}

// TestManyConnections: the server holds as many connections as it may, answers one
// more with RefusalBusy, and is free again when they close.
func TestManyConnections(t *testing.T) {
	s := start(t, options(t))
	held := make([]net.Conn, MaxSignerConnections)
	for i := range held {
		held[i] = connect(t, s.path)
	}
	await.Equal(t, "held connections", MaxSignerConnections, func() int { return len(s.slots) })
	for range 3 {
		if reply := ended(t, connect(t, s.path)); !bytes.Equal(reply, refused(RefusalBusy)) {
			t.Errorf("one more: %x", reply)
		}
	}
	delivery := deliveryOf(t, testClaim)
	signer, err := Dial(s.path, SocketOptions{Address: deskAddress, Timeout: runtest.HangTimeout})
	if err != nil {
		t.Fatal(err)
	}
	_, err = authorized(t, &delivery).Sign(testContext(t), signer)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, RefusalBusy) {
		t.Errorf("while it is busy: %v", err)
	}
	for _, c := range held {
		c.Close()
	}
	await.Equal(t, "held connections", 0, func() int { return len(s.slots) })
	signedBy(t, authorized(t, &delivery), signer)
}

// TestWrongUser: a process of another user is disconnected before its request is read.
func TestWrongUser(t *testing.T) {
	o := options(t)
	us := uint32(os.Geteuid())
	o.AllowUIDs = []uint32{us + 1, us + 2}
	s := start(t, o)
	c := connect(t, s.path)
	c.Write(frame{requestAddress, nil}.append(nil))
	if reply := ended(t, c); len(reply) != 0 {
		t.Errorf("answered %x", reply)
	}
	if _, err := Dial(s.path, SocketOptions{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("dialled: %v", err)
	}
	if text := s.log.String(); !strings.Contains(text, "signer connection refused") {
		t.Errorf("the log: %s", text)
	}
	s.stop()
	o.AllowUIDs = []uint32{us + 1, us}
	signer := dialled(t, start(t, o).path)
	if signer.Address() != deskAddress {
		t.Errorf("address %s", solana.Base58(signer.Address()))
	}
}

// TestSocketMode: the socket is ours alone, or a group's where several users are
// allowed, whatever the umask.
func TestSocketMode(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for _, umask := range []int{0, 0o022, 0o077} {
		unix.Umask(umask)
		for _, c := range []struct {
			uids []uint32
			want fs.FileMode
		}{{nil, 0o600}, {[]uint32{1, 2}, 0o660}} {
			o := options(t)
			o.AllowUIDs = c.uids
			s, err := NewServer(o)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(o.Path); err != nil || info.Mode() != fs.ModeSocket|c.want {
				t.Errorf("umask %#o, users %v: mode %v, %v", umask, c.uids, info.Mode(), err)
			}
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNoServer: what cannot be opened is refused, and nothing is left open.
func TestNoServer(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, o *ServerOptions)
		want  error
	}{
		"no path":             {func(_ *testing.T, o *ServerOptions) { o.Path = "" }, ErrOptions},
		"no record":           {func(_ *testing.T, o *ServerOptions) { o.Record = "" }, ErrOptions},
		"no key":              {func(_ *testing.T, o *ServerOptions) { o.Signer = nil }, ErrOptions},
		"an empty key":        {func(_ *testing.T, o *ServerOptions) { o.Signer = FileSigner{} }, ErrOptions},
		"negative timeout":    {func(_ *testing.T, o *ServerOptions) { o.Timeout = -1 }, ErrOptions},
		"too many users":      {func(_ *testing.T, o *ServerOptions) { o.AllowUIDs = make([]uint32, MaxAllowedUsers+1) }, ErrOptions},
		"no folder":           {func(_ *testing.T, o *ServerOptions) { o.Path = o.Path + "/x/s" }, unix.ENOENT},
		"below a file":        {func(t *testing.T, o *ServerOptions) { writeFile(t, o.Path, nil, 0o600); o.Path += "/s" }, unix.ENOTDIR},
		"no record's folder":  {func(_ *testing.T, o *ServerOptions) { o.Record += "/x/r" }, fs.ErrNotExist},
		"a file":              {func(t *testing.T, o *ServerOptions) { writeFile(t, o.Path, nil, 0o600) }, ErrSocketInUse},
		"a link to a socket":  {func(t *testing.T, o *ServerOptions) { symlink(t, start(t, options(t)).path, o.Path) }, ErrSocketInUse},
		"a server answers":    {func(t *testing.T, o *ServerOptions) { o.Path = start(t, options(t)).path }, ErrSocketInUse},
		"another's record":    {func(t *testing.T, o *ServerOptions) { o.Record = start(t, options(t)).record }, ErrRecordInUse},
		"a record open to us": {func(t *testing.T, o *ServerOptions) { writeFile(t, o.Record, nil, 0o644) }, ErrKeyFile},
		"not a record":        {func(t *testing.T, o *ServerOptions) { writeFile(t, o.Record, []byte("text"), 0o600) }, ErrRecord},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			c.spoil(t, &o)
			s, err := NewServer(o)
			if !errors.Is(err, c.want) || s != nil {
				t.Fatalf("%v, want %v", err, c.want)
			}
		})
	}
	o := options(t)
	o.Path = filepath.Join(filepath.Dir(o.Path), strings.Repeat("s", maxSocketPath))
	if _, err := NewServer(o); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("a path too long: %v", err)
	}
	o.Path = o.Path[:maxSocketPath]
	start(t, o) // the record was given up, and the longest path is taken
	o = options(t)
	o.AllowUIDs = make([]uint32, MaxAllowedUsers)
	start(t, o)
}

func symlink(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// TestDefaults: a server and a client need no more than their paths and the key.
func TestDefaults(t *testing.T) {
	o := options(t)
	server, err := NewServer(ServerOptions{Path: o.Path, Record: o.Record, Signer: o.Signer})
	if err != nil {
		t.Fatal(err)
	}
	stop := runtest.Start(t, server.Run)
	signer, err := Dial(o.Path, SocketOptions{Timeout: runtest.HangTimeout})
	if err != nil {
		t.Fatal(err)
	}
	delivery := deliveryOf(t, testClaim)
	before := time.Now()
	signedBy(t, authorized(t, &delivery), signer)
	stop()
	text, err := os.ReadFile(o.Record)
	if err != nil {
		t.Fatal(err)
	}
	header := headerOf(deskAddress)
	if e, _, ok := decodeEntry(block(text[blockSize:2*blockSize]), header.sum()); !ok || e.at < before.UnixNano() || e.at > time.Now().UnixNano() {
		t.Errorf("signed at %v", time.Unix(0, e.at))
	}
	if n := cap(signer.slots); n != DefaultSignerCalls {
		t.Errorf("%d calls at a time", n)
	}
}

// TestStaleSocket: the socket of a server that was killed is taken over.
func TestStaleSocket(t *testing.T) {
	o := options(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := os.Lstat(o.Path); err != nil {
		t.Fatal(err)
	}
	dialled(t, start(t, o).path)
}

// TestStopWithPeers: a connection that says nothing does not hold up the end.
func TestStopWithPeers(t *testing.T) {
	o := options(t)
	o.Timeout = 10 * runtest.HangTimeout // stop fails the test before
	s := start(t, o)
	c := connect(t, s.path)
	await.Equal(t, "held connections", 1, func() int { return len(s.slots) })
	s.stop()
	if reply := ended(t, c); len(reply) != 0 {
		t.Errorf("answered %x", reply)
	}
}

// imposter answers every connection with answer.
func imposter(t testing.TB, answer func(c net.Conn)) string {
	t.Helper()
	path := options(t).Path
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(runtest.HangTimeout))
			answer(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return path
}

// TestImposter: what is behind the socket is not believed, and not waited for.
func TestImposter(t *testing.T) {
	delivery := deliveryOf(t, testClaim)
	a := authorized(t, &delivery)
	reply := func(b []byte) func(c net.Conn) {
		return func(c net.Conn) {
			readFrame(c)
			c.Write(b)
		}
	}
	for name, c := range map[string]struct {
		answer func(c net.Conn)
		want   error
	}{
		"hangs up":               {func(net.Conn) {}, ErrUnavailable},
		"reads and hangs up":     {reply(nil), ErrUnavailable},
		"says nothing":           {func(c net.Conn) { io.Copy(io.Discard, c) }, ErrUnavailable},
		"half an answer":         {reply(signatureFrame(solana.Signature{1}).append(nil)[:20]), ErrUnavailable},
		"an address":             {reply(addressFrame(deskAddress).append(nil)), ErrUnavailable},
		"a longer answer":        {reply(frame{answerSignature, make([]byte, 65)}.append(nil)), ErrUnavailable},
		"a huge frame":           {reply(bytes.Repeat([]byte{0xff}, 1<<16)), ErrUnavailable},
		"another version":        {reply([]byte{2, 0, 9, answerSignature}), ErrUnavailable},
		"a refusal of no number": {reply(refused(77)), Refusal(77)},
		"busy":                   {reply(refused(RefusalBusy)), ErrUnavailable},
		"busy at once":           {func(c net.Conn) { c.Write(refused(RefusalBusy)) }, ErrUnavailable},
		"a refusal":              {reply(refused(RefusalMessage)), RefusalMessage},
		"no signature":           {reply(signatureFrame(solana.Signature{}).append(nil)), ErrSigner},
		"another's signature":    {reply(signatureFrame(signatureOf(otherKey, a.authorized.message())).append(nil)), ErrSigner},
		"of another message":     {reply(signatureFrame(signatureOf(deskKey, []byte("x"))).append(nil)), ErrSigner},
	} {
		t.Run(name, func(t *testing.T) {
			o := SocketOptions{Address: deskAddress, Timeout: runtest.HangTimeout / 2} // a longer wait is cut by the imposter
			if name == "says nothing" {
				o.Timeout = 20 * time.Millisecond
			}
			signer, err := Dial(imposter(t, c.answer), o)
			if err != nil {
				t.Fatal(err)
			}
			x, err := a.Sign(context.Background(), signer)
			if !errors.Is(err, c.want) || errors.Is(err, ErrUnavailable) != errors.Is(c.want, ErrUnavailable) || !x.IsZero() {
				t.Errorf("%v, want %v", err, c.want)
			}
			if name != "says nothing" && errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waited for: %v", err)
			}
		})
	}
}

// TestAnotherKeyBehind: the address stays as it was asked first.
func TestAnotherKeyBehind(t *testing.T) {
	o := options(t)
	s := start(t, o)
	signer := dialled(t, s.path)
	s.stop()
	o.Signer, o.Record = newFileSigner((*[64]byte)(otherKey)), o.Record+"2"
	start(t, o)
	delivery := deliveryOf(t, testClaim)
	if x, err := authorized(t, &delivery).Sign(testContext(t), signer); !errors.Is(err, RefusalShape) || !x.IsZero() {
		t.Errorf("%v", err)
	}
	if signer.Address() != deskAddress {
		t.Errorf("address %s", solana.Base58(signer.Address()))
	}
}

// TestDial: options out of range, no server, no address.
func TestDial(t *testing.T) {
	for name, o := range map[string]SocketOptions{
		"timeout": {Timeout: -1}, "no calls": {MaxCalls: -1}, "too many calls": {MaxCalls: MaxSignerConnections + 1},
	} {
		if s, err := Dial("s", o); !errors.Is(err, ErrOptions) || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s, err := Dial("", SocketOptions{}); !errors.Is(err, ErrOptions) || s != nil {
		t.Errorf("no path: %v", err)
	}
	nowhere := options(t).Path
	if s, err := Dial(nowhere, SocketOptions{}); !errors.Is(err, ErrUnavailable) || s != nil {
		t.Errorf("no server: %v", err)
	}
	if s, err := Dial(nowhere, SocketOptions{Address: deskAddress, MaxCalls: MaxSignerConnections}); err != nil || s.Address() != deskAddress {
		t.Errorf("no server yet: %v", err)
	}
	nobody := imposter(t, func(c net.Conn) {
		readFrame(c)
		c.Write(addressFrame(solana.Address{}).append(nil))
	})
	if s, err := Dial(nobody, SocketOptions{Timeout: runtest.HangTimeout}); !errors.Is(err, ErrSigner) || s != nil {
		t.Errorf("no address: %v", err)
	}
}

// TestCallLimit: more calls than MaxCalls wait, for as long as their context or the
// timeout lets them, and a context ends a call that is under way.
func TestCallLimit(t *testing.T) {
	var asked atomic.Int32
	hold := make(chan struct{})
	path := imposter(t, func(c net.Conn) {
		readFrame(c)
		asked.Add(1)
		<-hold
	})
	signer, err := Dial(path, SocketOptions{Address: deskAddress, Timeout: runtest.HangTimeout, MaxCalls: 1})
	if err != nil {
		t.Fatal(err)
	}
	delivery := deliveryOf(t, testClaim)
	a := authorized(t, &delivery)
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() {
		_, err := a.Sign(ctx, signer)
		first <- err
	}()
	await.Equal(t, "calls under way", 1, asked.Load)
	short, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	if _, err := a.Sign(short, signer); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one call more: %v", err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d calls at a time", n)
	}
	cancel()
	if err := <-first; !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the call under way: %v", err)
	}
	close(hold)
}

// failingKey is a key that fails.
type failingKey struct{ Signer }

func (failingKey) Sign(context.Context, Job) (solana.Signature, error) {
	return solana.Signature{}, errors.New("the token is out")
}

// TestKeyFails: the key's failure is reported without its text.
func TestKeyFails(t *testing.T) {
	o := options(t)
	o.Signer = failingKey{deskSigner()}
	s := start(t, o)
	delivery := deliveryOf(t, testClaim)
	if _, err := authorized(t, &delivery).Sign(testContext(t), dialled(t, s.path)); !errors.Is(err, RefusalKey) || strings.Contains(err.Error(), "token") {
		t.Errorf("%v", err)
	}
}
