package event

import (
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"blockdesk/market"
)

const goldenDigest = 0x0ce9ace4bc1899c8

func bytesOf(e *Event) *[Size]byte { return (*[Size]byte)(unsafe.Pointer(e)) }

func drawEvent(t *rapid.T) Event {
	word := rapid.Uint64()
	return Event{
		Seq: word.Draw(t, "seq"), At: int64(word.Draw(t, "at")), OrderID: market.OrderID(word.Draw(t, "order")),
		Other: word.Draw(t, "other"), Price: market.Price(word.Draw(t, "price")), Qty: market.Qty(word.Draw(t, "qty")),
		Aux: int64(word.Draw(t, "aux")), Kind: Kind(word.Draw(t, "kind")), Side: market.Side(word.Draw(t, "side")),
		Instrument: market.InstrumentID(word.Draw(t, "in")), Participant: market.ParticipantID(word.Draw(t, "who")), Code: uint16(word.Draw(t, "code")),
	}
}

// TestDigestSeesEveryBitAndTheOrder: the digest must change with every field of every event
// and with their order, or a diverging replay would pass.
func TestDigestSeesEveryBitAndTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, sum := drawEvent(t), drawEvent(t), rapid.Uint64().Draw(t, "sum")
		if a != b && Digest(Digest(sum, &a), &b) == Digest(Digest(sum, &b), &a) {
			t.Fatal("the order of two events does not show")
		}
		for i := range Size * 8 {
			flipped := a
			raw := bytesOf(&flipped)
			raw[i/8] ^= 1 << (i % 8)
			if Digest(sum, &flipped) == Digest(sum, &a) {
				t.Fatalf("bit %d does not show", i)
			}
		}
	})
}

// TestDigestIsFrozen: the digest is in every journal; another function would make them
// unreadable.
func TestDigestIsFrozen(t *testing.T) {
	e := Event{Seq: 1, At: 2, OrderID: 3, Other: 4, Price: 5, Qty: 6, Aux: 7, Kind: Accepted, Side: market.Sell, Instrument: 8, Participant: 9, Code: 10}
	if got := Digest(Digest(0, &e), &e); got != goldenDigest {
		t.Errorf("digest %#016x, want %#016x", got, uint64(goldenDigest))
	}
}

func TestReferenceCarriesTheClientsID(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	for _, text := range []string{"", "a", long} {
		e := Event{Aux: -1, Code: 77} // old content of the ring's slot
		want := Ref{OrderID: 5, Instrument: 6, Participant: 7, Origin: 8, Text: []byte(text)}
		e.SetReference(9, want)
		got, ok := e.Reference()
		if !ok || e.Seq != 9 || e.Kind != Reference || string(got.Text) != text ||
			got.OrderID != 5 || got.Instrument != 6 || got.Participant != 7 || got.Origin != 8 {
			t.Errorf("%q: %+v %v", text, got, ok)
		}
	}
	var e Event
	e.SetReference(1, Ref{Text: []byte(long + "y")})
	if got, _ := e.Reference(); string(got.Text) != long {
		t.Errorf("a text past the limit became %q", got.Text)
	}
	if _, ok := (&Event{Kind: Traded}).Reference(); ok {
		t.Error("a trade passes for a reference")
	}
}

func TestSinkGrowsAndKeepsItsOrder(t *testing.T) {
	s := NewGrowingSink(1)
	for round := range 2 {
		for i := range 1000 {
			*s.Next() = Event{Seq: uint64(i)}
		}
		for i, e := range s.Events() {
			if e.Seq != uint64(i) {
				t.Fatalf("round %d: event %d has Seq %d", round, i, e.Seq)
			}
		}
		if len(s.Events()) != 1000 {
			t.Fatalf("%d events", len(s.Events()))
		}
		s.Reset()
	}
}

func TestSinkAsksForRoomAtItsLimit(t *testing.T) {
	asked := 0
	s := &Sink{Buf: make([]Event, 4), Limit: 4, MakeRoom: func(s *Sink) { asked++; s.Limit += 2 }}
	for i := range 8 {
		*s.Next() = Event{Seq: uint64(i)}
	}
	if asked != 2 || s.Pos != 8 || s.At(6).Seq != 6 || s.At(7).Seq != 7 {
		t.Errorf("asked %d times, at %d", asked, s.Pos)
	}
}

func TestEveryReasonHasAWordOfItsOwn(t *testing.T) {
	seen := map[string]Reason{}
	for r, word := range reasonWords {
		if strings.ContainsAny(word, " -A") || word == "" || r.String() != word {
			t.Errorf("reason %d: word %q", r, word)
		}
		// A FOK that cannot fill is one rule, whether it ends or refuses.
		if other, ok := seen[word]; ok && word != "fok_unfillable" {
			t.Errorf("reasons %d and %d are both %q", r, other, word)
		}
		seen[word] = r
	}
	if Reason(9999).String() != "unknown" {
		t.Error("an unknown reason has a word")
	}
}
