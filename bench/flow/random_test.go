package flow

import (
	"math/rand/v2"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

const (
	randomInstruments  = 3 // the last one is mirrored
	randomParticipants = 6
	randomMemory       = 64 // orders that amends and cancels choose from
	randomMiddle       = 100
)

// Random makes a seeded stream of commands of every kind, with every order type, many of
// them refused, to test the engine's invariants. Same seed, same
// commands. They are stamped and ready for State.Apply on an empty State; the
// first dozen bring up instruments and participants.
type Random struct {
	rng    *rand.Rand
	seq    uint64
	at     int64
	epoch  uint64
	placed uint64
	recent [randomMemory]randomOrder
	start  []engine.Command
}

type randomOrder struct {
	id    market.OrderID
	owner market.ParticipantID
	in    market.InstrumentID
}

// NewRandom returns the stream of a seed.
func NewRandom(seed uint64) *Random {
	w := &Random{rng: rand.New(rand.NewPCG(seed, 0x77696c64)), at: mixStart}
	w.start = append(w.start, engine.Command{Kind: engine.StartEpoch, Arg: 1})
	w.epoch = 1
	for i := range randomInstruments {
		w.start = append(w.start, w.definition(market.InstrumentID(i)))
	}
	for participant := market.ParticipantID(1); participant <= randomParticipants; participant++ {
		w.start = append(w.start, w.risk(participant, engine.AllInstruments))
	}
	return w
}

// Take makes the next n commands.
func (w *Random) Take(n int) []engine.Command {
	commands := make([]engine.Command, n)
	for i := range commands {
		w.Next(&commands[i])
	}
	return commands
}

// Next makes the next command.
func (w *Random) Next(c *engine.Command) {
	if len(w.start) > 0 {
		*c, w.start = w.start[0], w.start[1:]
	} else {
		w.make(c)
	}
	w.seq++
	w.at += int64(w.rng.IntN(2_000))
	c.Seq, c.At = w.seq, w.at
}

func (w *Random) make(c *engine.Command) {
	*c = engine.Command{Instrument: market.InstrumentID(w.rng.IntN(randomInstruments - 1))}
	switch {
	case w.one(50):
		c.Instrument = randomInstruments - 1
	case w.one(50):
		c.Instrument = market.InstrumentID(w.rng.IntN(1 << 16))
	}
	c.Order.Participant = market.ParticipantID(1 + w.rng.IntN(randomParticipants))
	if w.one(50) {
		c.Order.Participant = market.ParticipantID(w.rng.IntN(20))
	}
	switch roll := w.rng.IntN(1_000); {
	case roll < 620:
		w.order(c)
	case roll < 790:
		w.amend(c)
	case roll < 930:
		w.cancel(c)
	case roll < 935:
		c.Kind, c.Order.Side = engine.MassCancel, market.Side(w.rng.IntN(4))
		if w.one(3) {
			c.Instrument = engine.AllInstruments
		}
	case roll < 965:
		c.Kind = engine.Tick
	default:
		w.service(c, roll)
	}
	if w.rng.IntN(2) == 0 && c.Kind <= engine.MassCancel {
		c.Origin = uint16(w.rng.IntN(9))
		text := [engine.MaxRef]byte{}
		for i := range text {
			text[i] = byte('A' + w.rng.IntN(26))
		}
		c.SetRef(text[:1+w.rng.IntN(len(text))])
	}
}

// service makes a command that participants cannot send; roll, 965 to 999, chooses it.
func (w *Random) service(c *engine.Command, roll int) {
	switch {
	case roll < 972:
		*c = w.definition(market.InstrumentID(w.rng.IntN(randomInstruments + 1)))
	case roll < 980:
		in := market.InstrumentID(w.rng.IntN(randomInstruments + 1))
		if w.one(2) {
			in = engine.AllInstruments
		}
		*c = w.risk(market.ParticipantID(1+w.rng.IntN(randomParticipants)), in)
	case roll < 986:
		c.Kind, c.Status = engine.SetInstrument, w.status(engine.StatusTrading)
	case roll < 994:
		c.Kind, c.Status = engine.SetParticipant, w.status(engine.StatusLive)
	case roll < 998:
		c.Kind, c.Arg = engine.StartEpoch, w.epoch+1
		if w.one(2) {
			w.epoch++
		} else {
			c.Arg += 1 + w.rng.Uint64N(3)
		}
	default:
		c.Kind = engine.Kind(11 + w.rng.IntN(245))
	}
}

// status returns a status, most often the usual one, which admits orders.
func (w *Random) status(usual uint8) uint8 {
	if w.one(8) {
		return uint8(w.rng.IntN(4))
	}
	return usual
}

func (w *Random) one(in int) bool { return w.rng.IntN(in) == 0 }

func (w *Random) price() market.Price {
	switch {
	case w.one(40):
		return market.Price(w.rng.Int64N(1<<48) - 1<<46)
	case w.one(20):
		return 0
	default:
		return market.Price(randomMiddle - 12 + w.rng.IntN(25))
	}
}

func (w *Random) qty() market.Qty {
	if w.one(40) {
		return market.Qty(w.rng.Int64N(1<<48) - 1<<46)
	}
	return market.Qty(1 + w.rng.IntN(50))
}

func (w *Random) order(c *engine.Command) {
	c.Kind = engine.NewOrder
	w.placed++
	o := &c.Order
	o.ID = market.OrderID(w.epoch<<40 | w.placed)
	if w.one(100) {
		o.ID = w.recent[w.rng.IntN(randomMemory)].id
	}
	o.Side = market.Side(1 + w.rng.IntN(2))
	o.Type = book.Limit
	if w.one(3) {
		o.Type = book.Type(1 + w.rng.IntN(4))
	}
	o.TIF = book.GTC
	if w.one(2) {
		o.TIF = book.TIF(1 + w.rng.IntN(5))
	}
	o.STP = book.STP(1 + w.rng.IntN(4))
	o.Qty = w.qty()
	if o.Type == book.Limit || o.Type == book.StopLimit {
		o.Price = w.price()
	}
	if o.Type == book.Stop || o.Type == book.StopLimit {
		o.Stop = w.price()
	}
	if o.TIF == book.GTD || o.TIF == book.Day {
		o.ExpireAt = w.at + int64(w.rng.IntN(500_000)) - 2_000
	}
	if w.one(4) {
		o.Display = market.Qty(w.rng.Int64N(int64(max(o.Qty, 1)) + 1))
	}
	if w.one(6) {
		o.Flags = book.FlagPostOnly
	}
	if w.one(60) {
		w.damage(o)
	}
	w.recent[w.rng.IntN(randomMemory)] = randomOrder{o.ID, o.Participant, c.Instrument}
}

// damage sets one small field to a random value.
func (w *Random) damage(o *book.Order) {
	any8 := uint8(w.rng.IntN(256))
	switch w.rng.IntN(7) {
	case 0:
		o.Side = market.Side(any8)
	case 1:
		o.Type = book.Type(any8)
	case 2:
		o.TIF = book.TIF(any8)
	case 3:
		o.Flags = book.Flag(any8)
	case 4:
		o.STP = book.STP(any8)
	case 5:
		o.ExpireAt = int64(w.rng.Uint64())
	case 6:
		o.Display = market.Qty(w.rng.Uint64())
	}
}

// choose names an order placed before, most often by its owner.
func (w *Random) choose(c *engine.Command) {
	r := w.recent[w.rng.IntN(randomMemory)]
	c.Order.ID, c.Instrument = r.id, r.in
	if !w.one(20) {
		c.Order.Participant = r.owner
	}
}

func (w *Random) amend(c *engine.Command) {
	c.Kind = engine.AmendOrder
	w.choose(c)
	if !w.one(3) {
		c.Order.Qty = w.qty()
	}
	if !w.one(3) {
		c.Order.Price = w.price()
	}
	if w.one(6) {
		c.Order.Stop = w.price()
	}
	if w.one(3) {
		c.Order.Flags = book.FlagOpenQty
	}
}

func (w *Random) cancel(c *engine.Command) {
	c.Kind = engine.CancelOrder
	w.choose(c)
}

// definition redefines an instrument: mostly only its limits change, sometimes more.
func (w *Random) definition(id market.InstrumentID) engine.Command {
	base := string(rune('A' + id))
	in := market.Instrument{
		ID: id, Symbol: base + "/USD", Base: base, Quote: "USD", PriceDecimals: 2, QtyDecimals: 3,
		Tick: 1, Lot: 1, MinQty: market.Qty(1 + w.rng.IntN(2)), MaxQty: 1 << 40, MaxPrice: 1 << 40, Source: market.Matched,
	}
	if id >= randomInstruments-1 {
		in.Source = market.Mirrored
	}
	if w.seq > 0 && w.one(8) {
		in.Tick++
	}
	return must(engine.DefineInstrumentCommand(&in))
}

func (w *Random) risk(participant market.ParticipantID, in market.InstrumentID) engine.Command {
	var l engine.Limits
	if w.one(2) {
		l.MaxQty = market.Qty(30 + w.rng.IntN(30))
	}
	if w.one(2) {
		l.MaxNotional = market.Mul(uint64(30+w.rng.IntN(30)), randomMiddle)
	}
	if w.one(2) {
		l.MaxOpenOrders = int32(1 + w.rng.IntN(40))
	}
	if w.one(2) {
		l.BandBps = uint16(200 + w.rng.IntN(2_000))
	}
	return must(engine.SetRiskCommand(participant, in, l))
}

// must is for values that are right by construction.
func must(c engine.Command, err error) engine.Command {
	if err != nil {
		panic("flow: " + err.Error())
	}
	return c
}
