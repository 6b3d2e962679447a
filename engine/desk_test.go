package engine

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

func deskCommands(t testing.TB, r rfq.Request) []Command {
	t.Helper()
	cs, err := DeskCommands(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// longRequest returns the longest request.
func longRequest(token uint64) rfq.Request {
	text := strings.Repeat("x", rfq.MaxText)
	r := &rfq.PostTicket{Label: text, Capacities: slices.Repeat([]market.USD{market.USD(token)}, rfq.MaxTranches)}
	r.RequestID, r.Ref = token, text
	return r
}

func everyRequest() []rfq.Request {
	return []rfq.Request{
		&rfq.SetPolicy{}, &rfq.SetPair{}, &rfq.SetOperator{}, &rfq.SetAnchor{}, &rfq.SetRailPrice{}, &rfq.SetInventory{},
		&rfq.SetLock{}, &rfq.PostTicket{}, &rfq.AmendTicket{}, &rfq.SetTranche{}, &rfq.WithdrawTicket{}, &rfq.RequestQuote{},
		&rfq.TakeClaim{}, &rfq.ProvePayment{}, &rfq.BeginDelivery{}, &rfq.ExpireDelivery{}, &rfq.SettleClaim{},
		&rfq.CosignClaim{}, &rfq.ReleaseClaim{}, &rfq.RefundPayment{}, &rfq.AbandonDelivery{}, longRequest(1),
		&rfq.SeePayment{}, &rfq.ReleaseUnbuilt{}, &rfq.BeginRefund{}, &rfq.ExpireRefund{}, &rfq.SetBalance{},
	}
}

// TestDeskCommands: every request is the same after its commands, and they keep to the
// journal's layout.
func TestDeskCommands(t *testing.T) {
	seq := uint64(7)
	var j Assembler
	for i, r := range everyRequest() {
		r.Head().RequestID = uint64(i + 1)
		if r.Kind() != everyRequest()[i].Kind() {
			t.Fatal("not the same list")
		}
		want := rfq.AppendRequest(nil, r)
		cs := deskCommands(t, r)
		if len(cs) != (len(want)+MaxPiece-1)/MaxPiece || len(cs) > MaxPieces || len(cs) > MaxSubmitAll {
			t.Fatalf("kind %d: %d commands for %d bytes", r.Kind(), len(cs), len(want))
		}
		for n := range cs {
			c := &cs[n]
			c.Seq = seq
			seq++
			last := n == len(cs)-1
			if (c.Kind == Desk) != last || !last && c.Kind != Fragment || !last && c.Status != MaxPiece || int(c.Order.Side) != n {
				t.Fatalf("kind %d: command %d of %d: %+v", r.Kind(), n, len(cs), c)
			}
			if int(c.RefLen) != max(int(c.Status)-56, 0) {
				t.Fatalf("kind %d: a ref of %d bytes for a piece of %d", r.Kind(), c.RefLen, c.Status)
			}
			got, incomplete := j.Add(c)
			if incomplete || last != (got != nil) || last && !bytes.Equal(got, want) {
				t.Fatalf("kind %d: command %d of %d gave %x, incomplete %v; want %x", r.Kind(), n, len(cs), got, incomplete, want)
			}
		}
	}
}

func TestDeskCommandsRefuses(t *testing.T) {
	r := &rfq.SetOperator{Of: rfq.Operator{Name: strings.Repeat("n", rfq.MaxText+1)}}
	dst := []Command{{Kind: Tick}}
	got, err := DeskCommands(dst, r)
	if !errors.Is(err, rfq.ErrRequest) || len(got) != 1 {
		t.Errorf("a name past the limit: %d commands, %v", len(got), err)
	}
	r.Of.Name = r.Of.Name[1:]
	if got, err = DeskCommands(dst, r); err != nil || len(got) != 2 || got[0].Kind != Tick {
		t.Errorf("a name of the limit: %d commands, %v", len(got), err)
	}
}

// TestAdmitCancelsRequests: which requests AdmitCancels admits.
func TestAdmitCancelsRequests(t *testing.T) {
	want := map[rfq.RequestKind]bool{
		rfq.KindWithdrawTicket: true, rfq.KindProvePayment: true, rfq.KindExpireDelivery: true,
		rfq.KindSettleClaim: true, rfq.KindReleaseClaim: true, rfq.KindRefundPayment: true,
		rfq.KindAbandonDelivery: true, rfq.KindSeePayment: true, rfq.KindReleaseUnbuilt: true, rfq.KindExpireRefund: true,
		rfq.KindSetBalance: true,
	}
	e := newEngine(t, Options{})
	e.SetAdmission(AdmitCancels)
	try := func(r rfq.Request, want bool) {
		t.Helper()
		cs := deskCommands(t, r)
		err := e.SubmitAll(cs)
		if want != (err == nil) || err != nil && !errors.Is(err, ErrReadOnly) {
			t.Errorf("%T of %d pieces: %v", r, len(cs), err)
		}
		if len(cs) == 1 {
			if err := e.Submit(&cs[0]); want != (err == nil) {
				t.Errorf("%T by itself: %v", r, err)
			}
		}
	}
	for _, r := range everyRequest() {
		try(r, want[r.Kind()])
	}
	try(&rfq.SetAnchor{Withdrawn: true}, true)
	try(&rfq.SetRailPrice{Withdrawn: true}, true)
	lock := &rfq.SetLock{Locked: true, Reason: strings.Repeat("r", rfq.MaxText)}
	try(lock, true)
	lock.Ref = strings.Repeat("f", rfq.MaxText)
	try(lock, true)
	lock.Locked = false
	try(lock, false)
	proof := &rfq.ProvePayment{}
	if n := len(deskCommands(t, proof)); n < 2 {
		t.Errorf("a payment's proof takes %d command: nothing shows that an Attach is checked with its Desk", n)
	}
	if err := e.Submit(&deskCommands(t, proof)[0]); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an Attach by itself: %v", err)
	}
	mixed := append(deskCommands(t, proof), Command{Kind: NewOrder})
	if err := e.SubmitAll(mixed); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an order behind a proof: %v", err)
	}
	mixed[len(mixed)-1].Kind = CancelOrder
	if err := e.SubmitAll(mixed); err != nil {
		t.Errorf("a cancel behind a proof: %v", err)
	}
}

// TestAssemblerDropsIncomplete: pieces that are not those of one request in order.
func TestAssemblerDropsIncomplete(t *testing.T) {
	long := deskCommands(t, longRequest(3))
	short := deskCommands(t, &rfq.SetAnchor{})
	if len(long) < 4 || len(short) != 1 {
		t.Fatalf("%d and %d commands", len(long), len(short))
	}
	change := func(c Command, f func(*Command)) Command { f(&c); return c }
	tick := Command{Kind: Tick}
	rest := len(long) - 1
	for name, c := range map[string]struct {
		commands   []Command
		incomplete []int // indexes at which it is reported
		whole      []int // indexes at which a request comes
	}{
		"whole":                 {append(slices.Clone(long), short...), nil, []int{rest, rest + 1}},
		"begins in the middle":  {[]Command{long[1], long[2], short[0]}, []int{0, 1}, []int{2}},
		"one is missing":        {[]Command{long[0], long[2], long[rest], short[0]}, []int{1, 2}, []int{3}},
		"one comes twice":       {[]Command{long[0], long[1], long[1], short[0]}, []int{2}, []int{3}},
		"another begins":        {[]Command{long[0], long[1], short[0]}, []int{2}, []int{2}},
		"another long begins":   {append([]Command{long[0]}, long...), []int{1}, []int{rest + 1}},
		"cut off":               {[]Command{long[0], tick, long[1], short[0]}, []int{2}, []int{3}},
		"cut off, new":          {append([]Command{long[0], tick}, long...), nil, []int{rest + 2}},
		"an Attach is not full": {[]Command{change(long[0], func(c *Command) { c.Status-- }), short[0]}, []int{0}, []int{1}},
		"an empty Desk":         {[]Command{change(short[0], func(c *Command) { c.Status, c.RefLen = 0, 0 })}, []int{0}, nil},
		"an overfull Desk":      {[]Command{change(short[0], func(c *Command) { c.Status, c.RefLen = 97, 40 })}, []int{0}, nil},
		"of another token":      {[]Command{change(short[0], func(c *Command) { c.Instrument = 9 }), short[0]}, []int{0}, []int{1}},
		"another's last piece":  {[]Command{long[0], deskCommands(t, &rfq.ProvePayment{})[1], short[0]}, []int{1}, []int{2}},
		"ref and length differ": {[]Command{change(short[0], func(c *Command) { c.Status = 60 })}, []int{0}, nil},
		"a bad piece cuts off":  {[]Command{long[0], change(short[0], func(c *Command) { c.Status = 0 }), long[1]}, []int{1, 2}, nil},
	} {
		var j Assembler
		var incomplete, whole []int
		for i, command := range c.commands {
			if command.Kind == Tick {
				continue
			}
			command.Seq = uint64(i + 1)
			request, dropped := j.Add(&command)
			if dropped {
				incomplete = append(incomplete, i)
			}
			if request != nil {
				whole = append(whole, i)
			}
		}
		if !slices.Equal(incomplete, c.incomplete) || !slices.Equal(whole, c.whole) {
			t.Errorf("%s: incomplete at %v, want %v; whole at %v, want %v", name, incomplete, c.incomplete, whole, c.whole)
		}
	}
}

// TestAssemblerLimit: a request has at most MaxPieces; one Fragment more is refused.
func TestAssemblerLimit(t *testing.T) {
	var j Assembler
	attach := deskCommands(t, longRequest(1))[0]
	for n := range MaxPieces {
		attach.Seq, attach.Order.Side = uint64(n+1), market.Side(n)
		if _, incomplete := j.Add(&attach); incomplete != (n == MaxPieces-1) {
			t.Errorf("Fragment %d: incomplete %v", n, incomplete)
		}
	}
	for n := range MaxPieces {
		attach.Seq, attach.Order.Side = uint64(n+1), market.Side(n)
		if n == MaxPieces-1 {
			attach.Kind = Desk
		}
		request, incomplete := j.Add(&attach)
		if incomplete || n == MaxPieces-1 && len(request) != MaxPieces*MaxPiece {
			t.Errorf("piece %d: %d bytes, incomplete %v", n, len(request), incomplete)
		}
	}
}

// TestAssemblerNeedsConsecutivePieces: in any mix of pieces a request is complete exactly
// if its pieces are consecutive; and an Assembler that is saved and restored at any point
// continues the same.
func TestAssemblerNeedsConsecutivePieces(t *testing.T) {
	var pool [][]Command
	for i, r := range everyRequest() {
		r.Head().RequestID = uint64(i + 1)
		pool = append(pool, deskCommands(t, r))
	}
	rapid.Check(t, func(t *rapid.T) {
		type mark struct{ request, number int }
		var marks []mark
		var commands []Command
		for range rapid.IntRange(1, 20).Draw(t, "runs") {
			k := rapid.IntRange(-1, len(pool)-1).Draw(t, "request")
			if k < 0 {
				commands, marks = append(commands, Command{Kind: Tick}), append(marks, mark{-1, 0})
				continue
			}
			from := rapid.IntRange(0, len(pool[k])-1).Draw(t, "from")
			if rapid.Bool().Draw(t, "whole") {
				from = 0
			}
			to := rapid.IntRange(from+1, len(pool[k])).Draw(t, "to")
			for n := from; n < to; n++ {
				commands, marks = append(commands, pool[k][n]), append(marks, mark{k, n})
			}
		}
		var j, again Assembler
		for i := range commands {
			seq := uint64(i + 1)
			commands[i].Seq = seq
			if rapid.IntRange(0, 3).Draw(t, "save") == 0 {
				saved := bytes.Clone(again.pending(seq))
				again = Assembler{}
				if !again.restore(saved, seq) {
					t.Fatalf("%d bytes do not come back", len(saved))
				}
			}
			if commands[i].Kind == Tick {
				continue
			}
			k := marks[i].request
			whole := commands[i].Kind == Desk && i+1 >= len(pool[k])
			for n := range len(pool[k]) {
				whole = whole && marks[max(i+1-len(pool[k])+n, 0)] == mark{k, n}
			}
			request, incomplete := j.Add(&commands[i])
			second, secondIncomplete := again.Add(&commands[i])
			if (request != nil) != whole || incomplete != secondIncomplete || !bytes.Equal(request, second) {
				t.Fatalf("command %d of %v: %d bytes, incomplete %v; restored %d bytes, incomplete %v", i, marks, len(request), incomplete, len(second), secondIncomplete)
			}
			if whole {
				if p, ok := rfq.PeekRequest(request); !ok || p.RequestID != uint64(k+1) {
					t.Fatalf("another request than %d: %+v", k+1, p)
				}
			}
		}
	})
}

func TestPendingIsCanonical(t *testing.T) {
	var j Assembler
	for _, n := range []int{1, MaxPiece - 1, MaxPiece + 1, MaxPieces * MaxPiece} {
		if j.restore(make([]byte, n), 5) {
			t.Errorf("%d bytes of pieces: restored", n)
		}
	}
	if !j.restore(make([]byte, (MaxPieces-1)*MaxPiece), 5) || j.NextPiece(5) != MaxPieces-1 || j.NextPiece(6) != 0 {
		t.Error("all but the last piece: not restored")
	}
}
