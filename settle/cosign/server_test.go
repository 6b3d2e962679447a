package cosign

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// service is a running server. Its folder is short: a socket's path has to be.
type service struct {
	*Server
	path, record string
	log          *lines
	stop         func()
}

// options are those of a server in a folder of its own.
func options(t testing.TB) ServerOptions {
	t.Helper()
	dir, err := os.MkdirTemp("", "signer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return ServerOptions{
		Path: filepath.Join(dir, "s"), Record: filepath.Join(dir, "r"), Signer: deskSigner(), Timeout: runtest.HangTimeout,
		Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	}
}

// start runs a server until the test ends, or stop is called.
func start(t testing.TB, o ServerOptions) *service {
	t.Helper()
	log := &lines{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	server, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return &service{server, o.Path, o.Record, log, runtest.Start(t, server.Run)}
}

func dialled(t testing.TB, path string) *SocketSigner {
	t.Helper()
	s, err := Dial(path, SocketOptions{Timeout: runtest.HangTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSignerProcess: over the socket the same bytes come as from the file, again
// and again, and after a restart.
func TestSignerProcess(t *testing.T) {
	for name, b := range variants(t) {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			s := start(t, o)
			signer := dialled(t, s.path)
			if signer.Address() != deskAddress || s.Address() != deskAddress {
				t.Fatalf("address %s", solana.Base58(signer.Address()))
			}
			want := signedBy(t, authorized(t, b), deskSigner()).Bytes()
			for range 2 {
				if got := signedBy(t, authorized(t, b), signer); !bytes.Equal(got.Bytes(), want) {
					t.Error("other bytes over the socket")
				}
			}
			s.stop()
			if x, err := authorized(t, b).Sign(context.Background(), signer); !errors.Is(err, ErrUnavailable) || !x.IsZero() {
				t.Errorf("while it is down: %v", err)
			}
			if _, err := os.Lstat(s.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is left behind: %v", err)
			}
			again := start(t, o)
			if again.SignedMessages() != 1 {
				t.Errorf("%d remembered", again.SignedMessages())
			}
			if got := signedBy(t, authorized(t, b), signer); !bytes.Equal(got.Bytes(), want) {
				t.Error("other bytes after the restart")
			}
			if text := s.log.String(); !strings.Contains(text, "transaction signed") || !strings.Contains(text, "claim=C") {
				t.Errorf("the log: %s", text)
			}
		})
	}
}

// TestOneMessageAClaim: a faulty gateway gets no second message of a
// claim signed, nor more than MaxDeliveries deliveries, nor one of either kind.
func TestOneMessageAClaim(t *testing.T) {
	o := options(t)
	s := start(t, o)
	signer := dialled(t, s.path)
	sign := func(b builder) error {
		_, err := authorized(t, b).Sign(testContext(t), signer)
		return err
	}
	atomic := func(n byte) builder {
		a := atomicOf(t, testClaim)
		a.Blockhash[0] = n
		return &a
	}
	delivery := func(n byte) builder {
		d := deliveryOf(t, testClaim)
		d.Blockhash[0] = n
		return &d
	}
	for range 2 {
		if err := sign(atomic(1)); err != nil {
			t.Fatal(err)
		}
		for _, b := range []builder{atomic(2), delivery(1)} {
			if err := sign(b); !errors.Is(err, RefusalMessage) {
				t.Errorf("another message: %v", err)
			}
		}
		s.stop()
		s = start(t, o)
	}
	s.stop()
	o = options(t)
	s = start(t, o)
	signer = dialled(t, s.path)
	for n := range byte(MaxDeliveries) {
		if err := sign(delivery(n + 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := sign(delivery(MaxDeliveries + 1)); !errors.Is(err, RefusalDeliveries) {
			t.Errorf("one delivery more: %v", err)
		}
		if err := sign(atomic(1)); !errors.Is(err, RefusalMessage) {
			t.Errorf("a cosignature: %v", err)
		}
		if err := sign(delivery(1)); err != nil {
			t.Errorf("the first again: %v", err)
		}
		s.stop()
		s = start(t, o)
	}
}

// exchange sends raw bytes and returns what comes back until the server hangs up.
func exchange(t testing.TB, path string, request []byte) []byte {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(runtest.HangTimeout))
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil && len(answer) == 0 {
		t.Fatal(err)
	}
	return answer
}

func request(kind Kind, raw []byte) []byte {
	return frame{requestSign, append([]byte{byte(kind)}, raw...)}.append(nil)
}

func refused(r Refusal) []byte { return refusalFrame(r).append(nil) }

// TestServerRefuses: a gateway that sends what it likes gets no signature for what
// the desk does not sign, and the record stays as it is.
func TestServerRefuses(t *testing.T) {
	s := start(t, options(t))
	atomic, delivery := atomicOf(t, testClaim), deliveryOf(t, testClaim)
	both, alone := authorized(t, &atomic).authorized, authorized(t, &delivery).authorized
	other := atomicOf(t, testClaim)
	other.Desk = otherAddress
	foreign := authorized(t, &other).authorized
	mine := deliveryOf(t, testClaim)
	mine.Desk, mine.Wallet = otherAddress, deskAddress
	taker := 1 - both.slot
	takers := solana.Signature(slotOf(both.raw, taker))
	signedBoth := submitted(both.raw, both.slot, signatureOf(deskKey, both.message()))
	for name, c := range map[string]struct {
		request []byte
		want    Refusal
	}{
		"nothing to sign":           {frame{requestSign, nil}.append(nil), RefusalFrame},
		"an address with a body":    {frame{requestAddress, []byte{1}}.append(nil), RefusalFrame},
		"another request":           {frame{3, nil}.append(nil), RefusalFrame},
		"an answer":                 {addressFrame(deskAddress).append(nil), RefusalFrame},
		"another version":           {[]byte{2, 0, 2, requestAddress}, RefusalFrame},
		"a frame too long":          {[]byte{0xff, 0xff, 1, requestSign}, RefusalFrame},
		"a frame too short":         {[]byte{1, 0, 1, requestSign}, RefusalFrame},
		"no transaction":            {request(Cosign, nil), RefusalShape},
		"no kind":                   {request(0, both.raw), RefusalShape},
		"another kind":              {request(3, both.raw), RefusalShape},
		"a delivery as cosignature": {request(Cosign, alone.raw), RefusalShape},
		"a cosignature as delivery": {request(Deliver, both.raw), RefusalShape},
		"trailing bytes":            {request(Cosign, append(bytes.Clone(both.raw), 0)), RefusalShape},
		"cut bytes":                 {request(Cosign, both.raw[:len(both.raw)-1]), RefusalShape},
		"the message alone":         {request(Cosign, both.message()), RefusalShape},
		"another desk's":            {request(Cosign, foreign.raw), RefusalShape},
		"another desk's delivery":   {request(Deliver, built(t, &mine).Bytes()), RefusalShape},
		"the largest transaction":   {request(Cosign, make([]byte, tx.MaxSize)), RefusalShape},
		"nobody has signed":         {request(Cosign, built(t, &atomic).Bytes()), RefusalSlots},
		"the desk's is filled":      {request(Cosign, signedBoth), RefusalSlots},
		"the desk's alone":          {request(Cosign, submitted(signedBoth, taker, solana.Signature{})), RefusalSlots},
		"the taker's in both":       {request(Cosign, submitted(both.raw, both.slot, takers)), RefusalSlots},
		"the taker's malleated":     {request(Cosign, submitted(both.raw, taker, malleated(takers))), RefusalSlots},
		"another's signature":       {request(Cosign, submitted(both.raw, taker, signatureOf(otherKey, both.message()))), RefusalSlots},
		"of another message":        {request(Cosign, submitted(both.raw, taker, signatureOf(takerKey, alone.message()))), RefusalSlots},
		"a delivery that is signed": {request(Deliver, submitted(alone.raw, 0, signatureOf(deskKey, alone.message()))), RefusalSlots},
		"a delivery half signed":    {request(Deliver, submitted(alone.raw, 0, solana.Signature{1})), RefusalSlots},
	} {
		if got := exchange(t, s.path, c.request); !bytes.Equal(got, refused(c.want)) {
			t.Errorf("%s: %x, want %s", name, got, c.want)
		}
	}
	for _, c := range []struct {
		kind   Kind
		b      builder
		spoils []map[string]func(e *edit)
	}{
		{Cosign, &atomic, []map[string]func(e *edit){spoils(t), legSpoils(createAt, deliverAt), paySpoils()}},
		{Deliver, &delivery, []map[string]func(e *edit){spoils(t), legSpoils(deliveryCreateAt, deliveryDeliverAt), deliverySpoils()}},
	} {
		for _, list := range c.spoils {
			for name, spoil := range list {
				e := edit{t, cloneMessage(messageOf(t, c.b))}
				spoil(&e)
				if got := exchange(t, s.path, request(c.kind, takerSigned(t, e.Message))); !bytes.Equal(got, refused(RefusalShape)) {
					t.Errorf("%s: %s: %x", c.kind, name, got)
				}
			}
		}
	}
	if s.SignedMessages() != 0 {
		t.Errorf("%d remembered", s.SignedMessages())
	}
	if got := exchange(t, s.path, request(Cosign, both.raw)); len(got) != sizeSize+headSize+signatureSize {
		t.Errorf("what is right: %x", got)
	}
}

// takerSigned makes a transaction of a message, with the taker's true signature in
// its slot if it has one.
func takerSigned(t testing.TB, m *tx.Message) []byte {
	t.Helper()
	x := tx.Transaction{Signatures: make([]solana.Signature, m.Header.Required), Message: *m}
	if slot, ok := m.Slot(takerAddress); ok {
		x.Signatures[slot] = signatureOf(takerKey, encoded(t, m))
	}
	raw, err := x.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestReceivedEveryBit: no bit of a countersigned transaction may flip on its way
// to the server. A flipped bit in an amount, a blockhash or an account makes
// another message of ours, but one that the taker has not signed.
func TestReceivedEveryBit(t *testing.T) {
	atomic := atomicOf(t, testClaim)
	good := authorized(t, &atomic).authorized
	if d, err := decodeJob(Cosign, good.raw, deskAddress); err != nil || d.Summary != good.Summary || d.slot != good.slot || d.hash != good.hash {
		t.Fatalf("the good one: %+v, %v", d, err)
	}
	for bit := range len(good.raw) * 8 {
		b := bytes.Clone(good.raw)
		b[bit/8] ^= 1 << (bit % 8)
		if d, err := decodeJob(Cosign, b, deskAddress); !errors.Is(err, ErrShape) && !errors.Is(err, errSlots) || d != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
}

// FuzzReceived: what a server would sign is what Countersign or AuthorizeDelivery
// would have let through.
func FuzzReceived(f *testing.F) {
	for _, b := range variants(f) {
		d := authorized(f, b).authorized
		f.Add(byte(d.Kind), d.raw)
	}
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		d, err := decodeJob(Kind(kind), raw, deskAddress)
		if err != nil {
			return
		}
		if d.Kind != Kind(kind) || d.Claim == 0 || solana.Signature(slotOf(raw, d.slot)) != (solana.Signature{}) {
			t.Fatalf("kind %d, claim %d, slot %d", d.Kind, d.Claim, d.slot)
		}
		if d.Kind == Deliver {
			return
		}
		unsigned := submitted(raw, 1-d.slot, solana.Signature{})
		if _, err := Countersign(d.Claim, unsigned, d.Wallet, Submission{Transaction: raw}); err != nil {
			t.Fatalf("not countersigned: %v", err)
		}
	})
}

// TestManyAtOnce: calls from many goroutines are all answered rightly, with no more
// connections than the server takes.
func TestManyAtOnce(t *testing.T) {
	s := start(t, options(t))
	signer := dialled(t, s.path)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			d := deliveryOf(t, market.ClaimID(i+1))
			u, err := d.Build(&solana.AccountCache{})
			if err != nil {
				t.Error(err)
				return
			}
			a, err := AuthorizeDelivery(&agreeing{}, market.ClaimID(i+1), u)
			if err != nil {
				t.Error(err)
				return
			}
			if x, err := a.Sign(context.Background(), signer); err != nil || x.Claim() != market.ClaimID(i+1) {
				t.Errorf("claim %d: %v", i+1, err)
			}
		})
	}
	wg.Wait()
	if s.SignedMessages() != 40 {
		t.Errorf("%d remembered", s.SignedMessages())
	}
}
