package rfq

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestGolden compares the bytes of a request of each kind, a record of each tag and a
// snapshot with testdata/golden.txt, those of version 1, and golden2.txt. They are in
// journals and never change.
func TestGolden(t *testing.T) {
	t.Run("1", func(t *testing.T) { golden(t, "testdata/golden.txt", 1, func() *desk { return busyDesk(t) }) })
	t.Run("2", func(t *testing.T) { golden(t, "testdata/golden2.txt", 2, func() *desk { return busyGuardedDesk(t) }) })
}

func golden(t *testing.T, path string, version int, busy func() *desk) {
	texts := map[string]bool{}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		var name string
		d.ScanArgs(t, "of", &name)
		texts[d.Cmd+" "+name] = true
		switch d.Cmd {
		case "request":
			for k := RequestKind(1); newRequest(k) != nil; k++ {
				if r := newRequest(k); typeName(r) == name {
					fillInVersion(reflect.ValueOf(r).Elem(), version)
					return inLines(AppendRequest(nil, r))
				}
			}
		case "record":
			for k := Tag(1); newRecord(k) != nil; k++ {
				if rec := newRecord(k); typeName(rec) == name {
					fillInVersion(reflect.ValueOf(rec).Elem(), version)
					return inLines(eventBytes(rec))
				}
			}
		case "snapshot":
			return inLines(busy().m.AppendSnapshot(nil))
		}
		d.Fatalf(t, "no %s %s", d.Cmd, name)
		return ""
	})
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		if name := "request " + typeName(newRequest(k)); !texts[name] {
			t.Errorf("%s has no %s", path, name)
		}
	}
	for k := Tag(1); newRecord(k) != nil; k++ {
		if name := "record " + typeName(newRecord(k)); !texts[name] {
			t.Errorf("%s has no %s", path, name)
		}
	}
}

func typeName(v any) string { return reflect.TypeOf(v).Elem().Name() }

// fieldsOfV2 are encoded in version 2 only.
var fieldsOfV2 = map[string]string{
	"RequestQuote": "Indicative",
	"Quote":        "Indicative",
	"Policy":       "Rules Grace UnprovenTTL UnprovenPerClient UnprovenShareBps Dust",
	"Pair":         "FirmBps AnchorSource Confidence PublishedAt Withdrawn OnChain OnChainAt", "RailPrice": "Source Confidence PublishedAt Withdrawn",
	"Terms": "Market RailPrice", "Claim": "Client Proven", "Payment": "Applied Due BlockTime",
	"SetAnchor": "Source Confidence PublishedAt Withdrawn", "SetRailPrice": "Source Confidence PublishedAt Withdrawn",
	"TakeClaim": "Client Proven", "ProvePayment": "BlockTime", "AbandonDelivery": "Reason",
}

func fillIn(v reflect.Value) { fillInVersion(v, 2) }

// fillInVersion gives every field of the version its own value: the number of the field, or
// bytes that count up from it. The first of an array by rail stays zero if it is in version 2.
func fillInVersion(v reflect.Value, version int) {
	n := uint64(0)
	var fill func(reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				v2 := slices.Contains(strings.Fields(fieldsOfV2[v.Type().Name()]), name)
				switch {
				case v2 && version == 1:
				case v2 && v.Field(i).Kind() == reflect.Array:
					fill(v.Field(i).Slice(1, market.RailCount))
				default:
					fill(v.Field(i))
				}
			}
			return
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
			return
		}
		n++
		switch v.Kind() {
		case reflect.Uint8, reflect.Uint16, reflect.Uint64:
			v.SetUint(n & 0xff)
		case reflect.Int64:
			v.SetInt(int64(n))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.String:
			v.SetString(fmt.Sprint("text ", n))
		case reflect.Slice:
			if v.Len() != 0 { // of an array
				for i := range v.Len() {
					fill(v.Index(i))
				}
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
			fill(v.Index(1))
		default:
			panic(v.Kind())
		}
	}
	fill(v)
}

func inLines(data []byte) string {
	var b strings.Builder
	for text := hex.EncodeToString(data); text != ""; {
		n := min(len(text), 96)
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

// eventBytes returns the chunks of a record, without padding.
func eventBytes(rec Record) (data []byte) {
	out := event.NewGrowingSink(8)
	writeRecord(rec, 7, &codec{}, out)
	for i := range out.Events() {
		c, _ := out.Events()[i].Desk()
		data = append(data, c.Data...)
	}
	return data
}

// busyDesk returns a desk with items of every kind.
func busyDesk(t testing.TB) *desk {
	d := openDesk(t, 25_000, 1000)
	wallet := address("wallet")
	for i, r := range []Request{
		&SetLock{Scope: LockRail, Rail: market.RailSOL, Locked: true, Reason: "drill"},
		&SetPair{Pair: testPair(3)},
		&PostTicket{Label: "ends", Capacities: []market.USD{500_000_000}, ExpiresAt: testAt + hour},
		&PostTicket{Label: "gone", Capacities: []market.USD{500_000_000}},
		&WithdrawTicket{Ticket: 3},
		&RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC},
		&TakeClaim{Ticket: 1, Tranche: 1, Fill: 2, Rail: market.RailUSDC, Mode: Modular, Wallet: wallet},
		&ProvePayment{Claim: 107, Rail: market.RailUSDC, Signature: signature("s1"), Payer: wallet, Amount: 1_000_000_000, Slot: 5},
		&ProvePayment{Claim: 107, Rail: market.RailSOL, Signature: signature("s2"), Payer: wallet, Amount: 1, Slot: 6},
		&TakeClaim{Ticket: 1, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: Atomic, Wallet: wallet},
		&CosignClaim{Claim: 110, Proof: proof("message")},
		&TakeClaim{Ticket: 1, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: Modular, Wallet: wallet},
	} {
		r.Head().RequestID = uint64(101 + i)
		d.must(t, r)
	}
	return d
}

// busyGuardedDesk returns a desk under RulesGuarded with items of every kind.
func busyGuardedDesk(t testing.TB) *desk {
	d := openDesk(t, 25_000, 1000)
	wallet := address("wallet")
	pair := testPair(0)
	pair.FirmBps = [market.RailCount]uint16{1: 100, 2: 150}
	usdc := market.RailUSDC
	for i, r := range []Request{
		&SetPolicy{Policy: guardedPolicy()},
		&SetPair{Pair: pair},
		&SetAnchor{Price: 1_251_000_000, Source: OriginPyth, Confidence: 1_000_000, PublishedAt: testAt - second},
		&SetRailPrice{Rail: market.RailSOL, Withdrawn: true, Source: OriginPool},
		&SetLock{Scope: LockDeliveries, Locked: true, Reason: "drill"},
		&SetBalance{Atoms: 1 << 40, Slot: 77},
		&RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: usdc, Indicative: true},
		&TakeClaim{Ticket: 1, Tranche: 1, Fill: 2, Rail: usdc, Mode: Modular, Wallet: wallet, Client: 0xffff_01020304},
		&ProvePayment{Claim: 108, Rail: usdc, Signature: signature("s1"), Payer: wallet, Amount: 1_003_000_000, Slot: 5, BlockTime: testAt / second},
		&ProvePayment{Claim: 108, Rail: usdc, Signature: signature("s2"), Payer: wallet, Amount: 1, Slot: 6, BlockTime: testAt / second},
		&BeginRefund{Signature: signature("s2"), Proof: proof("refund")},
		&TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: usdc, Mode: Atomic, Wallet: wallet, Proven: true},
		&TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: usdc, Mode: Modular, Wallet: wallet, Client: 7},
		&SeePayment{Claim: 113},
		&TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: usdc, Mode: Modular, Wallet: wallet, Client: 7},
		&ReleaseUnbuilt{Claim: 115},
	} {
		r.Head().RequestID = uint64(101 + i)
		d.must(t, r)
	}
	return d
}

// abandonedDesk returns a busyDesk that has abandoned its paid claim.
func abandonedDesk(t testing.TB) *desk {
	d := busyDesk(t)
	d.must(t, &AbandonDelivery{Header: token(1), Claim: 107})
	return d
}

// TestRequestRoundTrip: an encoded request decodes to itself, and only whole.
func TestRequestRoundTrip(t *testing.T) {
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		fillIn(reflect.ValueOf(r).Elem())
		if p, ok := r.(*SetPair); ok {
			p.Pair.keep(&Pair{})
		}
		if p, ok := r.(*SetPolicy); ok {
			p.Policy.PayTo[0] = market.Address{}
		}
		if r.Kind() != k {
			t.Errorf("%T has kind %d, is made for %d", r, r.Kind(), k)
		}
		data := AppendRequest([]byte("before"), r)[len("before"):]
		again, err := DecodeRequest(data)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%T: %v\n%+v\n%+v", r, err, again, r)
		}
		for n := range data {
			if r, err := DecodeRequest(data[:n]); err == nil {
				t.Errorf("%T: %d of %d bytes were enough", r, n, len(data))
			}
		}
		if _, err := DecodeRequest(append(bytes.Clone(data), 0)); err == nil {
			t.Errorf("%T: a byte too many was taken", r)
		}
		peek, ok := PeekRequest(data)
		if head := r.Head(); !ok || peek.Kind != k || peek.RequestID != head.RequestID || string(peek.Ref) != head.Ref {
			t.Errorf("%T: peek %+v", r, peek)
		}
	}
	if newRequest(0) != nil || newRequest(KindSetBalance+1) != nil {
		t.Error("there is a request of no kind")
	}
}

// TestLowestVersion: a request or record of version 2 that needs only version 1 is refused,
// and one of version 1 clears what an earlier one of version 2 has left.
func TestLowestVersion(t *testing.T) {
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		fillInVersion(reflect.ValueOf(r).Elem(), 1)
		w := codec{buf: []byte{uint8(k), requestVersion2}, v2: true}
		r.Head().walk(&w)
		r.walk(&w)
		if got, err := DecodeRequest(w.buf); err == nil {
			t.Errorf("version 2: %+v", got)
		}
		if p, ok := r.(*SetPair); ok {
			p.Pair.keep(&Pair{})
		}
		if p, ok := r.(*SetPolicy); ok {
			p.Policy.PayTo[0] = market.Address{}
		}
		used := newRequest(k)
		fillIn(reflect.ValueOf(used).Elem())
		if !readRequest(used, AppendRequest(nil, r), &codec{}) || !reflect.DeepEqual(used, r) {
			t.Errorf("read into a used request: %+v; want %+v", used, r)
		}
	}
	for tag := Tag(1); newRecord(tag) != nil; tag++ {
		rec := newRecord(tag)
		fillInVersion(reflect.ValueOf(rec).Elem(), 1)
		w := codec{buf: []byte{uint8(tag | version2), 0, 0}, v2: true}
		rec.walk(&w)
		w.buf[1], w.buf[2] = byte(len(w.buf)-recordHeaderSize), byte((len(w.buf)-recordHeaderSize)>>8)
		if got, _, err := DecodeRecord(w.buf); err == nil {
			t.Errorf("version 2: %+v", got)
		}
	}
}

// TestWritingOnlyReads: goroutines may encode one value at once; the race detector reports
// a write.
func TestWritingOnlyReads(t *testing.T) {
	together := func(v any, write func() []byte) {
		t.Helper()
		fillIn(reflect.ValueOf(v).Elem())
		want := write()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if !bytes.Equal(write(), want) {
					t.Errorf("%T: two writers, two encodings", v)
				}
			})
		}
		wg.Wait()
	}
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		together(r, func() []byte { return AppendRequest(nil, r) })
	}
	for tag := Tag(1); newRecord(tag) != nil; tag++ {
		rec := newRecord(tag)
		together(rec, func() []byte { return eventBytes(rec) })
	}
}

// TestLargestRequest: the largest request fits MaxRequestBytes; with a longer text or one
// more tranche it is refused.
func TestLargestRequest(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	post := func() *PostTicket {
		return &PostTicket{Header: Header{RequestID: 1, Ref: long}, Label: long, Capacities: make([]market.USD, MaxTranches)}
	}
	largest := 0
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		fillIn(reflect.ValueOf(r).Elem())
		r.Head().Ref = long
		largest = max(largest, len(AppendRequest(nil, r)))
	}
	data := AppendRequest(nil, post())
	if _, err := DecodeRequest(data); err != nil || len(data) != 396 || largest > MaxRequestBytes {
		t.Errorf("%v: %d bytes, %d", err, len(data), largest)
	}
	for name, more := range map[string]func(*PostTicket){
		"tranches": func(r *PostTicket) { r.Capacities = append(r.Capacities, 1) },
		"label":    func(r *PostTicket) { r.Label += "x" },
		"ref":      func(r *PostTicket) { r.Ref += "x" },
		"long ref": func(r *PostTicket) { r.Ref = strings.Repeat("x", 1000) },
	} {
		r := post()
		more(r)
		if _, err := DecodeRequest(AppendRequest(nil, r)); err == nil {
			t.Errorf("%s past the limit were taken", name)
		}
	}
	if _, err := DecodeRequest(append(data, make([]byte, MaxRequestBytes)...)); err == nil {
		t.Error("a long request was taken")
	}
}

// TestRecordRoundTrip: records of every length decode from their chunks.
func TestRecordRoundTrip(t *testing.T) {
	out := event.NewGrowingSink(8)
	var want []Record
	for k := Tag(1); newRecord(k) != nil; k++ {
		rec := newRecord(k)
		fillIn(reflect.ValueOf(rec).Elem())
		switch r := rec.(type) {
		case *Ticket:
			r.Tranches = nil
		case *Policy:
			r.PayTo[0] = market.Address{}
		}
		if rec.Tag() != k {
			t.Errorf("%T has tag %d, is made for %d", rec, rec.Tag(), k)
		}
		want = append(want, rec)
		storedRecord(t, rec)
		writeRecord(rec, uint64(k), &codec{}, out)
		*out.Next() = event.Event{Seq: uint64(k), Kind: event.Accepted}
	}
	var r Reader
	for i := range out.Events() {
		rec, seq, ok := r.Add(&out.Events()[i])
		if !ok {
			continue
		}
		if seq != uint64(want[0].Tag()) || !reflect.DeepEqual(rec, want[0]) {
			t.Errorf("seq %d: %+v; want %+v", seq, rec, want[0])
		}
		want = want[1:]
	}
	if len(want) != 0 {
		t.Errorf("%d records did not come", len(want))
	}
}

// storedRecord encodes rec for a store and decodes it again, intact and damaged.
func storedRecord(t *testing.T, rec Record) {
	t.Helper()
	data := AppendRecord([]byte("before"), rec)[len("before"):]
	got, rest, err := DecodeRecord(append(bytes.Clone(data), "after"...))
	if err != nil || string(rest) != "after" || !reflect.DeepEqual(got, rec) {
		t.Errorf("%T: %+v, %d bytes left, %v", rec, got, len(rest), err)
	}
	if !bytes.Equal(data[recordHeaderSize:], eventBytes(rec)) {
		t.Errorf("%T: the store has other bytes than the events", rec)
	}
	damaged := [][]byte{append([]byte{99}, data[1:]...), append([]byte{data[0], data[1] + 1, data[2]}, append(bytes.Clone(data[3:]), 0)...)}
	for n := range data {
		damaged = append(damaged, data[:n])
	}
	for _, data := range damaged {
		if got, rest, err := DecodeRecord(data); !errors.Is(err, ErrRecord) || got != nil || rest != nil {
			t.Errorf("%T: %d bytes were taken: %+v, %v", rec, len(data), got, err)
		}
	}
}

// TestReaderRefusesIncompleteRecords: the reader panics on events that only a broken engine
// writes.
func TestReaderRefusesIncompleteRecords(t *testing.T) {
	whole := event.NewGrowingSink(8)
	claim := newRecord(TagClaim)
	writeRecord(claim, 7, &codec{}, whole)
	pieces := whole.Events()
	if len(pieces) < 3 {
		t.Fatalf("a claim has %d pieces", len(pieces))
	}
	made := func(seq uint64, c event.DeskChunk) (e event.Event) {
		e.SetDesk(seq, c)
		return e
	}
	for name, stream := range map[string][]event.Event{
		"begins in the middle": pieces[1:],
		"a piece is missing":   {pieces[0], pieces[2]},
		"another begins":       {pieces[0], pieces[0]},
		"another command":      {pieces[0], made(8, event.DeskChunk{Tag: 8, Index: 1, Count: uint16(len(pieces)), Data: []byte{1}})},
		"another tag":          {pieces[0], made(7, event.DeskChunk{Tag: 7, Index: 1, Count: uint16(len(pieces)), Data: []byte{1}})},
		"another count":        {pieces[0], made(7, event.DeskChunk{Tag: 8, Index: 1, Count: 2, Data: []byte{1}})},
		"no piece at all":      {made(7, event.DeskChunk{Tag: 8})},
		"no such tag":          {made(7, event.DeskChunk{Tag: 99, Count: 1, Data: []byte{1}})},
		"too short":            {made(7, event.DeskChunk{Tag: uint16(TagRemoved), Count: 1, Data: []byte{1}})},
		"too long":             {made(7, event.DeskChunk{Tag: uint16(TagRemoved), Count: 1, Data: make([]byte, 40)})},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the reader took it")
				}
			}()
			var r Reader
			for i := range stream {
				r.Add(&stream[i])
			}
		})
	}
}

// TestCodecFlag: a flag is 0 or 1, and a text longer than the data is refused.
func TestCodecFlag(t *testing.T) {
	for b, want := range map[byte]bool{0: true, 1: true, 2: false, 255: false} {
		w := codec{buf: []byte{b}, reading: true}
		var v bool
		if w.flag(&v); w.complete() != want {
			t.Errorf("flag %d: %v", b, w.complete())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "data")
		w := codec{buf: data, reading: true}
		text := "old"
		w.text(&text)
		if want := len(data) > 0 && int(data[0]) == len(data)-1 && len(data)-1 <= MaxText; w.complete() != want {
			t.Fatalf("text: %v", w.complete())
		} else if want && text != string(data[1:]) {
			t.Fatalf("text %q", text)
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		f.Add(AppendRequest(nil, r))
		fillIn(reflect.ValueOf(r).Elem())
		f.Add(AppendRequest(nil, r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRequest(data)
		if err != nil {
			return
		}
		if again := AppendRequest(nil, r); !bytes.Equal(again, data) {
			t.Errorf("%x reads as %+v, which is %x", data, r, again)
		}
		if p, ok := PeekRequest(data); !ok || p.Kind != r.Kind() || p.RequestID != r.Head().RequestID {
			t.Errorf("%x: peek %+v", data, p)
		}
	})
}

// FuzzApply applies bytes as requests, each after its length, to a busy desk.
func FuzzApply(f *testing.F) {
	var all []byte
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		fillIn(reflect.ValueOf(r).Elem())
		data := AppendRequest(nil, r)
		f.Add(append([]byte{1, byte(len(data))}, data...))
		all = append(append(all, 9, byte(len(data))), data...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := busyDesk(t)
		if len(data) != 0 && data[0]&1 != 0 {
			d = busyGuardedDesk(t)
		}
		for len(data) >= 2 {
			n := min(int(data[1]), len(data)-2)
			d.at += int64(data[0]) * second
			d.applyBytes(t, data[2:2+n])
			data = data[2+n:]
		}
		d.check(t)
		d.restart(t)
	})
}

// FuzzRestore: an accepted snapshot is canonical, and the restored desk keeps its invariants.
func FuzzRestore(f *testing.F) {
	f.Add(New().AppendSnapshot(nil))
	f.Add(busyDesk(f).m.AppendSnapshot(nil))
	f.Add(abandonedDesk(f).m.AppendSnapshot(nil))
	f.Add(busyGuardedDesk(f).m.AppendSnapshot(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Restore(data)
		if err != nil {
			return
		}
		if !m.sameSnapshot(data) {
			t.Fatal("not the same bytes again")
		}
		out := event.NewGrowingSink(64)
		for i, at := range []int64{m.lastShown.At, addTime(m.lastShown.At, hour), addTime(m.lastShown.At, 40*day)} {
			for _, slot := range m.claims.slots {
				c := &m.claims.at(slot).Claim
				m.Apply(AppendRequest(nil, &ProvePayment{
					Header: Header{RequestID: 1}, Claim: c.ID, Rail: c.Terms.Rail, Amount: c.Terms.Payment, Signature: signature(fmt.Sprint(i)),
				}), Stamp{Seq: m.lastShown.Seq + 1, At: at}, books{}, out)
				for _, r := range []Request{
					&SettleClaim{Header: Header{RequestID: 1}, Claim: c.ID}, &AbandonDelivery{Header: Header{RequestID: 1}, Claim: c.ID},
				} {
					m.Apply(AppendRequest(nil, r), Stamp{Seq: m.lastShown.Seq + 1, At: at}, books{}, out)
				}
				break
			}
			m.Expire(Stamp{Seq: m.lastShown.Seq + 1, At: at}, math.MaxInt, out)
			if err := checkSums(m); err != nil {
				t.Fatal(err)
			}
			m.ReadModel().View()
		}
	})
}
