package desk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
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

// samples are values with every field set, and with none. An entry is a claim or
// a payment.
func samples() (answers []*answer, entries []rfq.Record, tickets []*rfq.Ticket) {
	a := new(answer)
	filled2(a)
	answers = append(answers, a, &answer{}, &answer{seq: 1 << 63, result: Result{Claim: &rfq.Claim{ID: 1<<64 - 1}}})
	c, p, t := new(rfq.Claim), new(rfq.Payment), new(rfq.Ticket)
	filled(c, 1)
	filled(p, 2)
	filled(t, 3)
	entries = append(entries, c, p, &rfq.Claim{}, &rfq.Payment{})
	long := &rfq.Ticket{Label: strings.Repeat("l", rfq.MaxText), Tranches: make([]rfq.Tranche, rfq.MaxTranches)}
	tickets = append(tickets, t, &rfq.Ticket{Tranches: []rfq.Tranche{}}, long)
	return answers, entries, tickets
}

func filled2(a *answer) {
	a.body, a.seq = [8]byte{1, 2, 3}, 1<<40+7
	filled(&a.result, 10)
	a.result.Replayed = false
}

// entryOf returns what parseEntry has read.
func entryOf(claim *rfq.Claim, payment *rfq.Payment, err error) (rfq.Record, error) {
	if claim != nil {
		return claim, err
	}
	return payment, err
}

// TestCodec: every field of every value comes back. A field that is added to a
// type of package rfq and not to its walk fails here.
func TestCodec(t *testing.T) {
	t.Parallel()
	answers, entries, tickets := samples()
	for i, a := range answers {
		got, err := parseAnswer(appendAnswer(nil, a))
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("answer %d: %v\n got %+v\nwant %+v", i, err, got, a)
		}
	}
	for i, e := range entries {
		got, err := entryOf(parseEntry(appendEntry(nil, e)))
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("entry %d: %v\n got %+v\nwant %+v", i, err, got, e)
		}
	}
	for i, v := range tickets {
		got, err := parseTicket(appendTicket(nil, v))
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
			for _, a := range answers {
				appendAnswer(nil, a)
			}
			for _, e := range entries {
				appendEntry(nil, e)
			}
			for _, k := range tickets {
				appendTicket(nil, k)
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
		ID: 1<<40 | 5, Quote: 1<<40 | 4, Mode: rfq.Atomic, State: rfq.ClaimCosigned,
		Terms: rfq.Terms{
			Ticket: 7, Tranche: 2, Instrument: 3, Fill: 1, Rail: market.RailSOL, DiscountBps: 150, FeeBps: 10,
			Reference: 1_000_000_000, Price: 985_000_000, Base: 253_807_106, Payment: 1_666_666_667, PayTo: market.Address{0xaa},
		},
		Wallet: market.Address{0xbb}, Participant: 300, ReservedAt: 1_800_000_000_000_000_000,
		Deadline: 1_800_000_060_000_000_000, ChangedAt: 1_800_000_001_000_000_000, Proof: [32]byte{0xcc},
	}
	payment := &rfq.Payment{
		Signature: [64]byte{0xdd}, Claim: claim.ID, Rail: market.RailSOL, State: rfq.PaymentRefundDue, Reason: 81, Amount: 5,
		Payer: market.Address{0xee}, Slot: 250_000_000, At: 1_800_000_002_000_000_000,
	}
	ticket := &rfq.Ticket{
		ID: 7, Label: "block", Instrument: 3, Rails: market.AllRails, State: rfq.TicketOpen, Priority: 9, CreatedAt: 1_799_999_999_000_000_000,
		UpdatedAt: 1_800_000_000_000_000_000, Seq: 1000, By: 1,
		Tranches: []rfq.Tranche{{ID: 1, Capacity: 1_000_000_000, Reserved: 250_000_000}, {ID: 2, Capacity: 250_000_000, Filled: 250_000_000}},
	}
	a := &answer{body: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}, seq: 1001, result: Result{
		Outcome: rfq.Outcome{RequestID: 1<<40 | 6, Kind: rfq.KindTakeClaim, Reason: 64, Limit: -1, At: 1_800_000_003_000_000_000, Ticket: 7},
		Quote:   &rfq.Quote{ID: 1<<40 | 4, Terms: claim.Terms, IssuedAt: 1, ValidUntil: 2},
		Claim:   claim, Ticket: ticket, Payment: payment,
	}}
	id := [16]byte{0x11, 15: 0x22}
	golden, err := os.ReadFile("testdata/store_v2.hex")
	if err != nil && os.Getenv("WRITE_GOLDEN") == "" {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range []struct {
		name       string
		key, value []byte
	}{
		{"cursor", []byte{projection.KeyCursor}, appendCursor(nil, 1001, 3)},
		{"answer", answerKey(nil, &id), appendAnswer(nil, a)},
		{"refusal", answerKey(nil, &id), appendAnswer(nil, &answer{seq: 1, result: Result{Outcome: a.result.Outcome}})},
		{"age", ageKey(nil, 1_800_000_003_000_000_000, &id), nil},
		{"claim", historyKey(nil, claim.ID, 1001, 4), appendEntry(nil, claim)},
		{"payment", historyKey(nil, claim.ID, 1002, 1), appendEntry(nil, payment)},
		{"ticket", ticketKey(nil, ticket.ID), appendTicket(nil, ticket)},
		{"sale", saleKey(nil, 3, 9), appendSale(nil, &Sale{Number: 9, Seq: 1003, Claim: *claim, Totals: SalesTotals{9, 2_250_000_000, 2_250_000}})},
		{"payment's claim", paymentKey(nil, &payment.Signature, 1002), appendPaymentClaim(nil, claim.ID)},
	} {
		got.WriteString(e.name + "\n " + hex.EncodeToString(e.key) + "\n " + hex.EncodeToString(e.value) + "\n")
	}
	if os.Getenv("WRITE_GOLDEN") != "" {
		os.MkdirAll("testdata", 0o755)
		os.WriteFile("testdata/store_v2.hex", []byte(got.String()), 0o644)
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
	good := appendAnswer(nil, answers[0])
	for n := range good {
		_, err := parseAnswer(good[:n])
		// Where all that may be missing is missing, the answer is a whole one.
		if !errors.Is(err, ErrLayout) && !slices.Contains(partsOf(answers[0]), n) {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
	whole := tickets[2]
	many := rfq.AppendRecord(appendTicket(nil, whole), &rfq.TicketTranche{Ticket: whole.ID})
	foreign := rfq.AppendRecord(appendTicket(nil, tickets[1]), &rfq.TicketTranche{Ticket: tickets[1].ID + 1})
	claim, payment := appendEntry(nil, &rfq.Claim{}), appendEntry(nil, &rfq.Payment{})
	for name, err := range map[string]error{
		"bytes left over": second(parseAnswer(append(bytes.Clone(good), 0))),
		"another version": second(parseAnswer(append([]byte{valueVersion + 1}, good[1:]...))),
		"no outcome":      second(parseAnswer(append(bytes.Clone(good[:1+answerHead]), claim[1:]...))),
		"other order":     second(parseAnswer(append(bytes.Clone(good), claim[1:]...))),
		"no such entry":   third(parseEntry(appendTicket(nil, whole))),
		"empty entry":     third(parseEntry([]byte{valueVersion})),
		"no entry":        third(parseEntry(nil)),
		"two entries":     third(parseEntry(append(bytes.Clone(claim), payment[1:]...))),
		"entry's version": third(parseEntry(append([]byte{valueVersion + 1}, claim[1:]...))),
		"no ticket":       second(parseTicket(claim)),
		"empty ticket":    second(parseTicket([]byte{valueVersion})),
		"tranches":        second(parseTicket(many)),
		"foreign tranche": second(parseTicket(foreign)),
		"label":           second(parseTicket(appendTicket(nil, &rfq.Ticket{Label: strings.Repeat("l", rfq.MaxText+1)}))),
		"short cursor":    third(parseCursor(make([]byte, cursorSize-1))),
		"cursor version":  third(parseCursor(make([]byte, cursorSize))),
		"short payment":   second(parsePaymentClaim(make([]byte, paymentSize-1))),
		"payment version": second(parsePaymentClaim(make([]byte, paymentSize))),
	} {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// partsOf returns where one of an answer's records ends and the next begins.
func partsOf(a *answer) (ends []int) {
	part := *a
	res := a.result
	for _, keep := range []func(){
		func() { part.result = Result{Outcome: res.Outcome} },
		func() { part.result.Quote = res.Quote },
		func() { part.result.Claim = res.Claim },
		func() { t := *res.Ticket; t.Tranches = nil; part.result.Ticket = &t },
	} {
		keep()
		ends = append(ends, len(appendAnswer(nil, &part)))
	}
	for i := range res.Ticket.Tranches {
		part.result.Ticket.Tranches = res.Ticket.Tranches[:i+1]
		ends = append(ends, len(appendAnswer(nil, &part)))
	}
	return ends
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// FuzzStore: whatever the bytes of a value, they are refused or are what would be
// written for what was read.
func FuzzStore(f *testing.F) {
	answers, entries, tickets := samples()
	for _, a := range answers {
		f.Add(appendAnswer(nil, a))
	}
	for _, e := range entries {
		f.Add(appendEntry(nil, e))
	}
	for _, v := range tickets {
		f.Add(appendTicket(nil, v))
	}
	f.Add(appendCursor(nil, 1, 2))
	f.Add(appendPaymentClaim(nil, 3))
	f.Fuzz(func(t *testing.T, data []byte) {
		same := func(what string, err error, write func() []byte) {
			if err == nil {
				if again := write(); !bytes.Equal(again, data) {
					t.Fatalf("%s: %x was read, %x would be written", what, data, again)
				}
			} else if !errors.Is(err, ErrLayout) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		a, err := parseAnswer(data)
		same("answer", err, func() []byte { return appendAnswer(nil, a) })
		e, err := entryOf(parseEntry(data))
		same("entry", err, func() []byte { return appendEntry(nil, e) })
		v, err := parseTicket(data)
		same("ticket", err, func() []byte { return appendTicket(nil, v) })
		seq, keys, err := parseCursor(data)
		same("cursor", err, func() []byte { return appendCursor(nil, seq, keys) })
		id, err := parsePaymentClaim(data)
		same("payment", err, func() []byte { return appendPaymentClaim(nil, id) })
	})
}

// TestLayoutVersion: a store of another layout is refused, and a damaged one is
// named.
func TestLayoutVersion(t *testing.T) {
	t.Parallel()
	set := func(key, value []byte) *kvtest.Memory {
		s := kvtest.New()
		s.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, value) }, true)
		return s
	}
	for name, s := range map[string]*kvtest.Memory{
		"version":    set([]byte{projection.KeyVersion}, []byte{layoutVersion + 1}),
		"cursor":     set([]byte{projection.KeyCursor}, []byte{1}),
		"ticket":     set(ticketKey(nil, 1), []byte{1}),
		"ticket key": set(ticketKey(nil, 2), appendTicket(nil, &rfq.Ticket{ID: 1})),
	} {
		if _, err := New(Options{}, nil, s); !errors.Is(err, ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := kvtest.New()
	s.Break(kvtest.ErrBroken)
	if _, err := New(Options{}, nil, s); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("a broken store: %v", err)
	}
	damaged := set([]byte{keySale}, []byte{valueVersion}) // or New would read all histories
	damaged.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(historyKey(nil, 4, 1, 1), []byte{9}) }, true)
	d, err := New(Options{}, nil, damaged)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Claim(4); !errors.Is(err, ErrLayout) {
		t.Errorf("a damaged history: %v", err)
	}
}

// TestMaxStates: a history has the newest MaxStates states, and a repeated record does
// not change it.
func TestMaxStates(t *testing.T) {
	t.Parallel()
	d, err := New(Options{}, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	const id = market.ClaimID(1<<64 - 1) // the last key there is
	put := func(n, paid int) {
		d.projector.seq, d.projector.record = uint64(n), 1
		d.projector.writeHistory(id, &rfq.Claim{ID: id, Paid: uint64(paid)})
		d.projector.record++
		d.projector.writeHistory(id, &rfq.Payment{Claim: id, Signature: [64]byte{byte(n), byte(n >> 8)}, Slot: uint64(n)})
		if err := d.projector.commit(false); err != nil {
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
