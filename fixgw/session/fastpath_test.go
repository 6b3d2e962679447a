package session

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quickfixgo/quickfix"

	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

// strict fails when scan lets a frame through that quickfix's way would not take,
// or would read in another way.
func strict(t testing.TB, validator quickfix.Validator, frame []byte) (ordinary bool) {
	t.Helper()
	var x wire.Ordinary
	if _, n, err := wire.ScanFrame(frame, 1<<16); n != len(frame) || err != nil || !x.Scan(frame, "MM", "US") {
		return false
	}
	if seq, err := wire.CheckFrame(frame); err != nil || seq != x.Seq {
		t.Fatalf("let through: %v, number %d for %d: %s", err, x.Seq, seq, wiretest.Show(frame))
	}
	m := quickfix.NewMessage()
	if err := quickfix.ParseMessage(m, bytes.NewBuffer(bytes.Clone(frame))); err != nil {
		t.Fatalf("let through: %v: %s", err, wiretest.Show(frame))
	}
	if err := validator.Validate(m); err != nil {
		t.Fatalf("let through: %v, tag %v: %s", err, err.RefTagID(), wiretest.Show(frame))
	}
	at, err := m.Header.GetTime(52)
	if err != nil || at.UnixNano() != x.SendingTime {
		t.Fatalf("SendingTime %v, %v: %s", at, err, wiretest.Show(frame))
	}
	if a, b := fmt.Sprintf("%+v", wire.ScanOrderRequest(frame)), fmt.Sprintf("%+v", x.OrderRequest); a != b {
		t.Fatalf("read as %s, not %s: %s", b, a, wiretest.Show(frame))
	}
	return true
}

// TestFastPathIsStrict changes ordinary requests at random, field by field: what is
// still ordinary, the dictionary and quickfix take too.
func TestFastPathIsStrict(t *testing.T) {
	t.Parallel()
	validator, err := newValidator()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var pool []string
	for _, sample := range wiretest.OrdinaryRequests {
		if !strict(t, validator, wiretest.Message(sample)) {
			t.Errorf("not ordinary: %s", sample)
		}
		pool = append(pool, strings.Split(strings.TrimSuffix(sample, "|"), "|")...)
	}
	pool = append(pool, "97=Y", "43=Y", "50=x", "58=text", "117=q", "22=8", "48=x", "152=5", "453=1", "8013=Y", "11=", "=", "x", "-1=2",
		"038=1", "34=0", "40=P", "59=2", "59=7", "18=6 G", "54=5", "38=-1", "38=1e5", "38=.", "38=1.1.1", "44=+1", "60=20260101", "60=20260230-00:00:00",
		"60=20260101-24:00:00", "126=x", "432=", "530=3", "35=8", "35=AE", "21=4", "15=USD", "122=20260101-00:00:00", "49=TK", "56=ME")
	ordinary := 0
	for range 100_000 {
		fields := strings.Split(strings.TrimSuffix(wiretest.OrdinaryRequests[r.IntN(len(wiretest.OrdinaryRequests))], "|"), "|")
		for range 1 + r.IntN(3) {
			i, j := r.IntN(len(fields)), r.IntN(len(fields))
			switch r.IntN(4) {
			case 0:
				fields[i] = pool[r.IntN(len(pool))]
			case 1:
				fields = slices.Insert(fields, i, pool[r.IntN(len(pool))])
			case 2:
				fields = slices.Delete(fields, i, i+1)
			case 3:
				fields[i], fields[j] = fields[j], fields[i]
			}
			if len(fields) == 0 {
				fields = []string{"35=D"}
			}
		}
		if strict(t, validator, wiretest.Message(strings.Join(fields, "|")+"|")) {
			ordinary++
		}
	}
	if ordinary < 5_000 {
		t.Errorf("only %d were ordinary: the test shows little", ordinary)
	}
}

func FuzzExpress(f *testing.F) {
	validator, err := newValidator()
	if err != nil {
		f.Fatal(err)
	}
	for _, sample := range wiretest.OrdinaryRequests {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) < 4<<10 && !strings.ContainsAny(body, "\x01") {
			strict(t, validator, wiretest.Message(body))
		}
	})
}

// TestFastPathAllocates: nothing to read a request, decode it, and encode its
// report under a number.
func TestFastPathAllocates(t *testing.T) {
	set := wiretest.Instruments(t)
	frame := wiretest.Message(wiretest.OrdinaryRequests[0])
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var x wire.Ordinary
	if n := testing.AllocsPerRun(1000, func() {
		if !x.Scan(frame, "MM", "US") {
			t.Fatal("not ordinary")
		}
		if _, _, refusal := x.DecodeNew(set, now); refusal != nil {
			t.Fatal(refusal.Text)
		}
	}); n != 0 {
		t.Errorf("reading a request allocates %v times", n)
	}
	s := &Session{id: quickfix.SessionID{SenderCompID: "US", TargetCompID: "MM"}}
	s.outbound.id = &s.id
	o := &wire.ClientOrder{ID: 1, ClOrdID: "a", Side: market.Buy, Type: book.Limit, TIF: book.GTC, Status: wire.StatusNew, Price: 15000, Total: 1000, Leaves: 1000}
	var b Batch
	var body, out []byte
	encode := func() {
		b.Clear()
		body = (&wire.ExecutionReport{Order: o, Instrument: set.Get(0), ExecType: wire.ExecNew, ExecID: []byte("1-0-1"), At: now.UnixNano()}).AppendBody(body[:0])
		b.Add("8", wire.TagOrderID, body, false)
		s.outbound.batch, s.outbound.stamp = &b, now.UnixNano()
		out = s.outbound.appendDraft(out[:0], &b.Drafts[0], 9)
	}
	encode()
	if n := testing.AllocsPerRun(1000, encode); n > 0 {
		t.Errorf("encoding a report allocates %v times", n)
	}
	if err := wiretest.StockChecker().Check(out); err != nil {
		t.Errorf("%v: %s", err, wiretest.Show(out))
	}
}
