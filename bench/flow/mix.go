package flow

import (
	"fmt"
	"math/rand/v2"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// MixOptions are the options of a Mix. The zero value is the mix that the
// engine's speed is stated for: 48 % adds, 42 % cancels, 10 % IOC, 500 ticks,
// 17,000 resting orders of 50 participants on one instrument.
type MixOptions struct {
	Seed         uint64
	Resting      int // orders that rest, about; default 17,000
	Ticks        int // prices in use, half of them a side; default 500
	Participants int // default DefaultParticipants, at most engine.MaxParticipants
	Instruments  int // default 1, at most market.MaxInstruments
	// Path moves the price around which orders are placed. Default Still.
	Path Path
	// References gives every order and cancel a client's own id of 12 bytes, as
	// the FIX gateway does.
	References bool
}

// Path is how the middle price of a Mix moves.
type Path uint8

// The paths, from the easiest for a book to the hardest.
const (
	Still   Path = iota
	Wander       // steps of at most 20 ticks, at every command
	Crash        // falls by 60 % in 50,000 commands, recovers, and rests for 200,000
	Swing25      // ±25 % in 100,000 commands
	Swing40      // ±40 % in 100,000 commands
	Swing90      // ±90 % of a price six times as high, in 100,000 commands
	Paths        // their number
)

var pathNames = [Paths]string{"still", "wander", "crash", "swing25", "swing40", "swing90"}

// String returns the name in reports.
func (p Path) String() string { return pathNames[p] }

// at returns the middle of the n-th command, after the middle before it.
func (p Path) at(rng *rand.Rand, n int, before market.Price) market.Price {
	switch p {
	case Wander:
		return max(before+market.Price(rng.IntN(41)-20), mixMiddle)
	case Crash:
		const quiet, fall = 200_000, 50_000
		down := min(max(n%(quiet+2*fall)-quiet, 0), quiet+2*fall-n%(quiet+2*fall))
		return mixHigh - mixHigh*6/10*market.Price(min(down, fall))/fall
	case Swing25:
		return swing(mixHigh, 25, n)
	case Swing40:
		return swing(mixHigh, 40, n)
	case Swing90:
		return swing(6*mixHigh, 90, n)
	}
	return before
}

// swing is a triangle between middle × (1 ± percent / 100).
func swing(middle market.Price, percent, n int) market.Price {
	const quarter = 25_000
	at := n % (4 * quarter)
	up := at
	if at > quarter {
		up = 2*quarter - at
	}
	if at > 3*quarter {
		up = at - 4*quarter
	}
	return middle + middle*market.Price(percent*up)/(100*quarter)
}

// DefaultParticipants is the number of participants of a Mix.
const DefaultParticipants = 50

const (
	mixAdds    = 48 // of 100 commands
	mixCancels = 42
	mixMiddle  = 10_000
	mixHigh    = 33_504 // where the price moves
	mixMaxQty  = 100
	mixEpoch   = 1
	mixStart   = 1_700_000_000_000_000_000 // Unix ns of the first command
	mixStep    = 1_000                     // ns between commands
)

// Mix makes a seeded stream of commands, stamped and ready for State.Apply: the
// same options give the same commands. It follows its own engine, so that every
// cancel names a live order and the book keeps its size.
type Mix struct {
	o     MixOptions
	rng   *rand.Rand
	state *engine.State
	sink  *event.Sink
	seq   uint64
	setup []engine.Command

	middle market.Price
	placed uint64         // orders so far
	live   []mixOrder     // resting orders, in no order
	where  map[uint64]int // counter of an order to its index in live
}

type mixOrder struct {
	counter uint64
	open    market.Qty
	owner   market.ParticipantID
	in      market.InstrumentID
}

// NewMix prepares a mix; its books are filled to o.Resting by Setup.
func NewMix(o MixOptions) (*Mix, error) {
	if o.Resting == 0 {
		o.Resting = 17_000
	}
	if o.Ticks == 0 {
		o.Ticks = 500
	}
	if o.Participants == 0 {
		o.Participants = DefaultParticipants
	}
	if o.Instruments == 0 {
		o.Instruments = 1
	}
	switch {
	case o.Resting < 1 || o.Resting > book.MaxMaxOrders/4:
		return nil, fmt.Errorf("resting %d: 1 to %d", o.Resting, book.MaxMaxOrders/4)
	case o.Ticks < 2 || o.Ticks > mixMiddle:
		return nil, fmt.Errorf("ticks %d: 2 to %d", o.Ticks, mixMiddle)
	case o.Participants < 1 || o.Participants > engine.MaxParticipants:
		return nil, fmt.Errorf("participants %d: 1 to %d", o.Participants, engine.MaxParticipants)
	case o.Path >= Paths:
		return nil, fmt.Errorf("path %d: 0 to %d", o.Path, Paths-1)
	case o.Instruments < 1 || o.Instruments > market.MaxInstruments:
		return nil, fmt.Errorf("instruments %d: 1 to %d", o.Instruments, market.MaxInstruments)
	}
	m := &Mix{
		o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x6d6978)), state: engine.NewState(engine.StateOptions{MaxOrders: max(book.DefaultMaxOrders, 2*o.Resting)}),
		sink: event.NewGrowingSink(64), where: map[uint64]int{}, middle: mixMiddle,
	}
	m.middle = o.Path.at(m.rng, 0, m.middle)
	if err := m.makeSetup(); err != nil {
		return nil, err
	}
	return m, nil
}

// Setup returns the commands that come before Next: the epoch, the instruments,
// the participants with all their limits on, and the orders that rest at first.
func (m *Mix) Setup() []engine.Command { return m.setup }

// Resting returns about how many orders rest.
func (m *Mix) Resting() int { return m.o.Resting }

// State returns the mix's own engine, as it is after the last command made.
func (m *Mix) State() *engine.State { return m.state }

// Take makes the next n commands.
func (m *Mix) Take(n int) []engine.Command {
	commands := make([]engine.Command, n)
	for i := range commands {
		m.Next(&commands[i])
	}
	return commands
}

// Next makes the next command.
func (m *Mix) Next(c *engine.Command) {
	m.middle = m.o.Path.at(m.rng, int(m.seq)-len(m.setup), m.middle)
	roll := m.rng.IntN(100)
	switch {
	case roll < mixAdds || len(m.live) == 0:
		m.place(c, book.GTC)
	case roll < mixAdds+mixCancels:
		m.cancel(c)
	default:
		m.place(c, book.IOC)
	}
	m.apply(c)
}

func (m *Mix) makeSetup() error {
	m.setup = make([]engine.Command, 0, 2+m.o.Instruments+m.o.Participants+m.o.Resting)
	m.addSetup(engine.Command{Kind: engine.StartEpoch, Arg: mixEpoch})
	for i := range m.o.Instruments {
		base := fmt.Sprintf("MIX%d", i)
		c, err := engine.DefineInstrumentCommand(&market.Instrument{
			ID: market.InstrumentID(i), Symbol: base + "/USD", Base: base, Quote: "USD",
			PriceDecimals: 2, QtyDecimals: 3, Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1_000_000, MaxPrice: 1_000_000,
			Source: market.Matched,
		})
		if err != nil {
			return err
		}
		m.addSetup(c)
	}
	for i := range m.o.Participants {
		c, err := engine.SetRiskCommand(market.ParticipantID(i+1), engine.AllInstruments, engine.Limits{
			MaxQty: 10 * mixMaxQty, MaxNotional: market.Mul(10*mixMaxQty, 100*mixMiddle),
			MaxOpenOrders: int32(2 * m.o.Resting), BandBps: engine.MaxBandBps,
		})
		if err != nil {
			return err
		}
		m.addSetup(c)
	}
	for range m.o.Resting {
		var c engine.Command
		m.place(&c, book.GTC)
		m.addSetup(c)
	}
	return nil
}

func (m *Mix) addSetup(c engine.Command) {
	m.apply(&c)
	m.setup = append(m.setup, c)
}

func (m *Mix) stamp(c *engine.Command) {
	m.seq++
	c.Seq, c.At = m.seq, mixStart+int64(m.seq)*mixStep
}

func (m *Mix) place(c *engine.Command, tif book.TIF) {
	m.placed++
	*c = engine.Command{Kind: engine.NewOrder, Instrument: market.InstrumentID(m.rng.IntN(m.o.Instruments))}
	half := m.o.Ticks / 2
	away := market.Price(1 + m.rng.IntN(half))
	qty := 1 + m.rng.IntN(mixMaxQty)
	if tif == book.IOC {
		away = -away
		// IOCs take what adds bring beyond cancels: more when the book has grown
		// past its size, less when it has shrunk.
		qty = 1 + qty*len(m.live)/m.o.Resting*3/5
	}
	o := &c.Order
	*o = book.Order{
		ID: market.OrderID(mixEpoch<<40 | m.placed), Type: book.Limit, TIF: tif, STP: book.STPCancelNewest,
		Qty: market.Qty(qty), Side: market.Buy, Price: m.middle - away,
		Participant: market.ParticipantID(1 + m.rng.IntN(m.o.Participants)),
	}
	if m.rng.IntN(2) == 1 {
		o.Side, o.Price = market.Sell, m.middle+away
	}
	m.reference(c)
}

func (m *Mix) cancel(c *engine.Command) {
	victim := m.live[m.rng.IntN(len(m.live))]
	*c = engine.Command{Kind: engine.CancelOrder, Instrument: victim.in}
	c.Order.ID = market.OrderID(mixEpoch<<40 | victim.counter)
	c.Order.Participant = victim.owner
	m.reference(c)
}

func (m *Mix) reference(c *engine.Command) {
	if m.o.References {
		c.Origin = uint16(c.Order.Participant)
		c.SetRef(fmt.Appendf(nil, "%012d", m.seq+1))
	}
}

// apply stamps c, runs it through the mix's own engine and keeps track of what
// rests.
func (m *Mix) apply(c *engine.Command) {
	m.stamp(c)
	m.sink.Reset()
	m.state.Apply(c, m.sink)
	for i := range m.sink.Events() {
		e := &m.sink.Events()[i]
		switch e.Kind {
		case event.Accepted:
			if e.Aux > 0 {
				m.rests(e)
			}
		case event.Traded:
			m.shrinks(e.Other, e.Qty)
		case event.Cancelled:
			m.shrinks(uint64(e.OrderID), e.Qty)
		}
	}
}

func (m *Mix) rests(e *event.Event) {
	counter := uint64(e.OrderID) & (1<<40 - 1)
	m.where[counter] = len(m.live)
	m.live = append(m.live, mixOrder{counter, e.Qty, e.Participant, e.Instrument})
}

func (m *Mix) shrinks(id uint64, by market.Qty) {
	counter := id & (1<<40 - 1)
	at, ok := m.where[counter]
	if !ok {
		return
	}
	m.live[at].open -= by
	if m.live[at].open > 0 {
		return
	}
	last := len(m.live) - 1
	m.live[at] = m.live[last]
	m.where[m.live[at].counter] = at
	m.live = m.live[:last]
	delete(m.where, counter)
}
