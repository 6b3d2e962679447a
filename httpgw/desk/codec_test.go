package desk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// filled sets every field of the value at p, each to another one, from n on.
func filled(p any, n uint64) { fill(reflect.ValueOf(p).Elem(), &n) }

func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString("text" + strings.Repeat("x", int(*n%7)))
	case reflect.Int64:
		v.SetInt(-int64(*n) << 40)
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetUint(*n << (*n % 50) & (1<<v.Type().Bits() - 1))
		if v.Uint() == 0 {
			v.SetUint(1 + *n%200)
		}
	}
}

// samples are values with every field set, and with none.
func samples() (answers []*answer, entries []*entry, tickets []*rfq.Ticket) {
	a := new(answer)
	filled2(a)
	answers = append(answers, a, &answer{}, &answer{seq: 1 << 63, result: Result{Claim: &rfq.Claim{ID: 1<<64 - 1}}})
	c, p, t := new(rfq.Claim), new(rfq.Payment), new(rfq.Ticket)
	filled(c, 1)
	filled(p, 2)
	filled(t, 3)
	entries = append(entries, &entry{claim: c}, &entry{payment: p}, &entry{claim: &rfq.Claim{}}, &entry{payment: &rfq.Payment{}})
	long := &rfq.Ticket{Label: strings.Repeat("l", rfq.MaxText), Tranches: make([]rfq.Tranche, rfq.MaxTranches)}
	tickets = append(tickets, t, &rfq.Ticket{Tranches: []rfq.Tranche{}}, long)
	return answers, entries, tickets
}

func filled2(a *answer) {
	a.body, a.seq = [8]byte{1, 2, 3}, 1<<40+7
	filled(&a.result, 10)
	a.result.Replayed = false
}

func encode(walk func(*codec)) []byte {
	var c codec
	walk(&c)
	return c.buf
}

// TestCodec: every field of every value comes back. A field that is added to a
// type of package rfq and not to its walk fails here.
func TestCodec(t *testing.T) {
	t.Parallel()
	answers, entries, tickets := samples()
	for i, a := range answers {
		got, err := parseAnswer(encode(func(c *codec) { c.answer(a) }))
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("answer %d: %v\n got %+v\nwant %+v", i, err, got, a)
		}
	}
	for i, e := range entries {
		got, err := parseEntry(encode(func(c *codec) { c.entry(e) }))
		if err != nil || !reflect.DeepEqual(&got, e) {
			t.Errorf("entry %d: %v\n got %+v\nwant %+v", i, err, got, e)
		}
	}
	for i, v := range tickets {
		got, err := parseTicket(encode(func(c *codec) { c.ticketValue(v) }))
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("ticket %d: %v\n got %+v\nwant %+v", i, err, got, v)
		}
	}
	if seq, keys, err := parseCursor(appendCursor(nil, 1<<63, 5)); seq != 1<<63 || keys != 5 || err != nil {
		t.Errorf("cursor: %d, %d, %v", seq, keys, err)
	}
}

// TestWritingChangesNothing: what is written may be in many hands, so that under
// the race detector two may write it at once.
func TestWritingChangesNothing(t *testing.T) {
	answers, entries, tickets := samples()
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			var c codec
			for _, a := range answers {
				c.answer(a)
			}
			for _, e := range entries {
				c.entry(e)
			}
			for _, k := range tickets {
				c.ticket(k)
			}
		})
	}
	writers.Wait()
}

// TestGoldenBytes: the layout on disk is frozen. Another layout is another
// version.
func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	claim := &rfq.Claim{
		ID: 1<<40 | 5, Quote: 1<<40 | 4, Way: rfq.Atomic, State: rfq.ClaimCosigned,
		Terms: rfq.Terms{
			Ticket: 7, Tranche: 2, Instrument: 3, Fill: 1, Rail: market.RailSOL, DiscountBps: 150, FeeBps: 10,
			Reference: 1_000_000_000, Price: 985_000_000, Base: 253_807_106, Payment: 1_666_666_667, PayTo: market.Address{0xaa},
		},
		Wallet: market.Address{0xbb}, Participant: 300, ReservedAt: 1_800_000_000_000_000_000,
		Deadline: 1_800_000_060_000_000_000, ChangedAt: 1_800_000_001_000_000_000, Proof: [32]byte{0xcc},
	}
	payment := &rfq.Payment{
		Signature: [64]byte{0xdd}, Claim: claim.ID, Rail: market.RailSOL, State: rfq.PaymentRefundDue, Why: 81, Amount: 5,
		Payer: market.Address{0xee}, Slot: 250_000_000, At: 1_800_000_002_000_000_000,
	}
	ticket := &rfq.Ticket{
		ID: 7, Label: "block", Instrument: 3, Rails: market.AllRails, State: rfq.TicketOpen, Priority: 9, CreatedAt: 1_799_999_999_000_000_000,
		UpdatedAt: 1_800_000_000_000_000_000, Seq: 1000, By: 1,
		Tranches: []rfq.Tranche{{ID: 1, Capacity: 1_000_000_000, Reserved: 250_000_000}, {ID: 2, Capacity: 250_000_000, Filled: 250_000_000}},
	}
	a := &answer{body: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, seq: 1001, result: Result{
		Outcome: rfq.Outcome{Token: 1<<40 | 6, Kind: rfq.KindTakeClaim, Reason: 64, Limit: -1, At: 1_800_000_003_000_000_000, Ticket: 7},
		Quote:   &rfq.Quote{ID: 1<<40 | 4, Terms: claim.Terms, IssuedAt: 1, ValidUntil: 2},
		Claim:   claim, Ticket: ticket, Payment: payment,
	}}
	id := [16]byte{0x11, 15: 0x22}
	golden, err := os.ReadFile("testdata/store_v1.hex")
	if err != nil && os.Getenv("WRITE_GOLDEN") == "" {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range []struct {
		name       string
		key, value []byte
	}{
		{"cursor", []byte{keyCursor}, appendCursor(nil, 1001, 3)},
		{"answer", answerKey(nil, &id), encode(func(c *codec) { c.answer(a) })},
		{"refusal", answerKey(nil, &id), encode(func(c *codec) { c.answer(&answer{seq: 1, result: Result{Outcome: a.result.Outcome}}) })},
		{"age", ageKey(nil, 1_800_000_003_000_000_000, &id), nil},
		{"claim", historyKey(nil, claim.ID, 1001, 4), encode(func(c *codec) { c.entry(&entry{claim: claim}) })},
		{"payment", historyKey(nil, claim.ID, 1002, 1), encode(func(c *codec) { c.entry(&entry{payment: payment}) })},
		{"ticket", ticketKey(nil, ticket.ID), encode(func(c *codec) { c.ticketValue(ticket) })},
	} {
		got.WriteString(e.name + "\n " + hex.EncodeToString(e.key) + "\n " + hex.EncodeToString(e.value) + "\n")
	}
	if os.Getenv("WRITE_GOLDEN") != "" {
		os.MkdirAll("testdata", 0o755)
		os.WriteFile("testdata/store_v1.hex", []byte(got.String()), 0o644)
		return
	}
	if got.String() != string(golden) {
		t.Errorf("got\n%swant\n%s", got.String(), golden)
	}
}

// TestCodecRefuses: what no walk wrote.
func TestCodecRefuses(t *testing.T) {
	t.Parallel()
	answers, _, tickets := samples()
	good := encode(func(c *codec) { c.answer(answers[0]) })
	for n := range good {
		if _, err := parseAnswer(good[:n]); !errors.Is(err, ErrLayout) {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	ticket := encode(func(c *codec) { c.ticketValue(tickets[1]) })
	many := bytes.Clone(ticket)
	many[len(many)-1] = rfq.MaxTranches + 1
	label := encode(func(c *codec) { c.ticketValue(&rfq.Ticket{Label: strings.Repeat("l", rfq.MaxText+1)}) })
	wide := []byte{valueVersion, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x80, 0}
	for name, err := range map[string]error{
		"bytes left over": second(parseAnswer(append(bytes.Clone(good), 0))),
		"another version": second(parseAnswer(append([]byte{valueVersion + 1}, good[1:]...))),
		"no such entry":   second(parseEntry([]byte{valueVersion, 3})),
		"empty entry":     second(parseEntry([]byte{valueVersion, 0})),
		"too many parts":  second(parseAnswer([]byte{valueVersion, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16})),
		"long number":     second(parseEntry(wide)),
		"tranches":        second(parseTicket(many)),
		"label":           second(parseTicket(label)),
		"short cursor":    third(parseCursor(make([]byte, cursorSize-1))),
		"cursor version":  third(parseCursor(make([]byte, cursorSize))),
	} {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error          { return err }
func third[T any](_ T, _ uint64, err error) error { return err }

// FuzzStore: whatever the bytes of a value, they are refused or are what would be
// written for what was read.
func FuzzStore(f *testing.F) {
	answers, entries, tickets := samples()
	for _, a := range answers {
		f.Add(encode(func(c *codec) { c.answer(a) }))
	}
	for _, e := range entries {
		f.Add(encode(func(c *codec) { c.entry(e) }))
	}
	for _, v := range tickets {
		f.Add(encode(func(c *codec) { c.ticketValue(v) }))
	}
	f.Add(appendCursor(nil, 1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		same := func(what string, err error, walk func(c *codec)) {
			if err == nil {
				if again := encode(walk); !bytes.Equal(again, data) {
					t.Fatalf("%s: %x was read, %x would be written", what, data, again)
				}
			} else if !errors.Is(err, ErrLayout) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		a, err := parseAnswer(data)
		same("answer", err, func(c *codec) { c.answer(a) })
		e, err := parseEntry(data)
		same("entry", err, func(c *codec) { c.entry(&e) })
		v, err := parseTicket(data)
		same("ticket", err, func(c *codec) { c.ticketValue(v) })
		seq, keys, err := parseCursor(data)
		same("cursor", err, func(c *codec) { c.buf = appendCursor(nil, seq, keys) })
	})
}

// TestLayoutVersion: a store of another layout is refused, and a damaged one is
// named.
func TestLayoutVersion(t *testing.T) {
	t.Parallel()
	set := func(key, value []byte) *memStore {
		s := newMemStore()
		s.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, value) }, true)
		return s
	}
	for name, s := range map[string]*memStore{
		"version":    set([]byte{keyVersion}, []byte{layoutVersion + 1}),
		"cursor":     set([]byte{keyCursor}, []byte{1}),
		"ticket":     set(ticketKey(nil, 1), []byte{1}),
		"ticket key": set(ticketKey(nil, 2), encode(func(c *codec) { c.ticketValue(&rfq.Ticket{ID: 1}) })),
	} {
		if _, err := New(Options{}, nil, s); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newMemStore()
	s.breakNow()
	if _, err := New(Options{}, nil, s); !errors.Is(err, errBroken) {
		t.Errorf("a broken store: %v", err)
	}
	d, err := New(Options{}, nil, set(historyKey(nil, 4, 1, 1), []byte{9}))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Claim(4); !errors.Is(err, ErrLayout) {
		t.Errorf("a damaged history: %v", err)
	}
}

// TestMaxStates: a history shows the newest MaxStates states, and is not changed
// by one that is told again.
func TestMaxStates(t *testing.T) {
	t.Parallel()
	d, err := New(Options{}, nil, newMemStore())
	if err != nil {
		t.Fatal(err)
	}
	const id = market.ClaimID(1<<64 - 1) // the last key there is
	put := func(n, paid int) {
		d.follow.seq, d.follow.record = uint64(n), 1
		d.follow.archive(id, entry{claim: &rfq.Claim{ID: id, Paid: uint64(paid)}})
		d.follow.record++
		d.follow.archive(id, entry{payment: &rfq.Payment{Claim: id, Signature: [64]byte{byte(n), byte(n >> 8)}, Slot: uint64(n)}})
		if err := d.follow.commit(false); err != nil {
			t.Fatal(err)
		}
	}
	check := func(states, first int) {
		t.Helper()
		h, ok, err := d.Claim(id)
		if err != nil || !ok || len(h.States) != states || h.States[0].Paid != uint64(first) || h.Claim != h.States[len(h.States)-1] {
			t.Fatalf("%+v, %v, %v", h, ok, err)
		}
	}
	for n := range MaxStates {
		put(n, n)
	}
	check(MaxStates, 0)
	put(MaxStates, MaxStates-1)
	check(MaxStates, 0)
	put(MaxStates+1, MaxStates)
	check(MaxStates, 1)
	h, _, _ := d.Claim(id)
	if len(h.Payments) != MaxStates || h.Payments[0].Slot == 0 {
		t.Errorf("%d payments, the first one %+v", len(h.Payments), h.Payments[0])
	}
	other := binary.BigEndian.AppendUint64([]byte{keyHistory}, uint64(id-1))
	if bytes.Compare(other, historyEnd(id-1)) >= 0 || !bytes.Equal(historyEnd(id), []byte{keyHistory + 1}) {
		t.Error("the end of a history")
	}
}
