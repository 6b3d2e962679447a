package engine

import (
	"encoding/binary"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// rawSize is the bytes of one command in a fuzzer's input: all fields but Seq, which Apply
// refuses if it does not follow.
const rawSize = CommandSize - 8

// rawCommand fills a command with raw bytes.
func rawCommand(b []byte) Command {
	le := binary.LittleEndian
	var c Command
	c.At = int64(le.Uint64(b))
	o := &c.Order
	o.ID = market.OrderID(le.Uint64(b[8:]))
	o.Price, o.Stop = market.Price(le.Uint64(b[16:])), market.Price(le.Uint64(b[24:]))
	o.Qty, o.Display = market.Qty(le.Uint64(b[32:])), market.Qty(le.Uint64(b[40:]))
	o.ExpireAt = int64(le.Uint64(b[48:]))
	o.Participant = market.ParticipantID(le.Uint16(b[56:]))
	o.Side, o.Type, o.TIF = market.Side(b[58]), book.Type(b[59]), book.TIF(b[60])
	o.Flags, o.STP = book.Flag(b[61]), book.STP(b[62])
	c.Arg = le.Uint64(b[64:])
	c.Kind, c.RefLen, c.Status, c.first = Kind(b[72]), b[73], b[74], b[75]&1 == 1
	c.Instrument = market.InstrumentID(le.Uint16(b[76:]))
	c.Origin = le.Uint16(b[78:])
	copy(c.Ref[:], b[80:rawSize])
	return c
}

func appendRaw(dst []byte, c *Command) []byte {
	le := binary.LittleEndian
	o := &c.Order
	for _, v := range [...]uint64{
		uint64(c.At), uint64(o.ID), uint64(o.Price), uint64(o.Stop), uint64(o.Qty), uint64(o.Display), uint64(o.ExpireAt),
	} {
		dst = le.AppendUint64(dst, v)
	}
	dst = le.AppendUint16(dst, uint16(o.Participant))
	dst = append(dst, uint8(o.Side), uint8(o.Type), uint8(o.TIF), uint8(o.Flags), uint8(o.STP), 0)
	dst = le.AppendUint64(dst, c.Arg)
	dst = append(dst, uint8(c.Kind), c.RefLen, c.Status, 0)
	dst = le.AppendUint16(dst, uint16(c.Instrument))
	dst = le.AppendUint16(dst, c.Origin)
	return append(dst, c.Ref[:]...)
}

func TestRawCommandsRoundTrip(t *testing.T) {
	c := sampleCommands()[3]
	if again := rawCommand(appendRaw(nil, &c)); again != c {
		t.Errorf("%+v\nbecame %+v", c, again)
	}
}

// sampleCommands is a small history: two instruments, two participants, orders of several
// types, a trade, an amend, an expiry, a kill; a ticket with a claim and a quote, and the
// first piece of a request.
func sampleCommands() []Command {
	s := newScript(false)
	var commands []Command
	for _, line := range []string{
		"epoch n=1",
		"define in=0 symbol=A/USD",
		"define in=1 symbol=B/USD",
		"risk who=1 in=all qty=500 notional=1000000 open=50 band=5000",
		"risk who=2 in=1 qty=100",
		"new id=1 who=1 side=buy qty=10 price=100 ref=one session=1",
		"new id=2 who=2 side=sell qty=20 price=102 display=5",
		"new id=3 who=2 side=sell qty=7 price=100 tif=ioc",
		"new id=4 who=1 side=sell qty=10 stop=95 price=94 type=stop-limit",
		"new id=5 who=2 side=buy qty=9 price=90 tif=gtd expire=5000 in=1 post-only",
		"amend id=1 who=1 price=101 qty=20",
		"cancel id=2 who=2",
		"desk set-operator token=1 of=7 name=anna",
		"desk set-policy token=2 by=7",
		"desk set-pair token=3 by=7",
		"desk set-anchor token=4 by=7 price=1000000000",
		"desk set-inventory token=5 by=7 atoms=9000000000000",
		"desk post-ticket token=6 by=7 label=block capacities=1000,250000",
		"desk take-claim token=7 fill=250 rail=USDC ref=claim session=1 who=1",
		"desk request-quote token=8 fill=1000 rail=USDC",
		"tick at=5000",
		"new id=6 who=2 side=buy qty=3 stop=120 type=stop tif=day expire=9000",
		"desk post-ticket token=9 label=never-whole capacities=250,250,250,250,250,250,250,250 pieces=0",
		"mass-cancel who=1 in=all side=buy",
		"halt in=1",
		"kill who=2",
	} {
		cs, err := s.parse(line)
		if err != nil {
			panic(err)
		}
		for i := range cs {
			cs[i].At = s.at
		}
		commands = append(commands, cs...)
	}
	return commands
}

// FuzzApply applies any bytes as commands to both books. They must not panic, must agree in
// every event, count Seq, never decrease At, and restore to the same hash.
func FuzzApply(f *testing.F) {
	var all []byte
	for _, c := range sampleCommands() {
		all = appendRaw(all, &c)
		f.Add(all)
	}
	all = nil
	for flow := newMirrorFlow(1); flow.mirror.ordinal < 5; {
		c := flow.next()
		all = appendRaw(all, &c)
	}
	f.Add(all)
	all = nil
	for _, c := range auctionCommands(3, 300) {
		all = appendRaw(all, &c)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		fast, slow := NewState(StateOptions{MaxOrders: 20}), NewState(StateOptions{MaxOrders: 20, Naive: true})
		a, b := event.NewGrowingSink(8), event.NewGrowingSink(8)
		for len(data) >= rawSize {
			c := rawCommand(data)
			data = data[rawSize:]
			c.Seq = fast.Seq() + 1
			at := fast.At()
			a.Reset()
			b.Reset()
			fast.Apply(&c, a)
			slow.Apply(&c, b)
			sameEvents(t, a.Events(), b.Events())
			for i := range a.Events() {
				if e := &a.Events()[i]; e.Seq != c.Seq || e.Kind != event.Reference && e.Kind != event.Desk && e.At != fast.At() {
					t.Fatalf("event %+v of command %d at %d", e, c.Seq, fast.At())
				}
			}
			if fast.Seq() != c.Seq || fast.At() < at || fast.NextExpiry() < 0 {
				t.Fatalf("seq %d after command %d, at %d after %d, next expiry %d", fast.Seq(), c.Seq, fast.At(), at, fast.NextExpiry())
			}
		}
		if fast.Hash() != slow.Hash() {
			t.Fatal("the books' hashes differ")
		}
		if roundTrip(t, fast).Hash() != fast.Hash() {
			t.Fatal("the restored hash differs")
		}
	})
}

func sameEvents(t *testing.T, a, b []event.Event) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d and %d events\nladder %+v\nnaive  %+v", len(a), len(b), a, b)
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("event %d\nladder %+v\nnaive  %+v", i, a[i], b[i])
		}
	}
}
