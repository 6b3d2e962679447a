// Package journaltest tests implementations of engine.Journal: the journal on disk and the
// journal of a raft group pass the same tests.
//
// Run needs a Rig that opens, closes and kills one journal. It checks that every
// acknowledged frame survives a kill, that what survives is a prefix of what was appended,
// that events come once and in order, and that a wrong frame is refused for good. The
// commands are a function of a seed, and a Reference applies them without a journal; every
// recovered state must equal it.
package journaltest

import (
	"math/rand/v2"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// State returns options with small books, because tests make thousands.
func State() engine.StateOptions { return engine.StateOptions{MaxOrders: 4096} }

// resting is how many orders a flow leaves in the books.
const resting = 1000

// Commands returns n stamped commands of a market, after those that set it up: two
// instruments, three participants, limit orders and cancels around one price. Each
// order has its own id and reference.
func Commands(n int, seed uint64) []engine.Command {
	commands := setup()
	rng := rand.New(rand.NewPCG(seed, 1))
	var live []market.OrderID
	for i := range n {
		c := engine.Command{Instrument: market.InstrumentID(rng.IntN(2)), Origin: 1}
		c.Order.Participant = market.ParticipantID(1 + rng.IntN(3))
		if k := rng.IntN(100); (k < 42 || len(live) > resting) && len(live) > 0 {
			j := rng.IntN(len(live))
			c.Kind, c.Order.ID = engine.CancelOrder, live[j]
			live[j] = live[len(live)-1]
			live = live[:len(live)-1]
		} else {
			c.Kind = engine.NewOrder
			c.Order.ID = market.OrderID(1<<40 + i)
			c.Order.Side = market.Side(1 + rng.IntN(2))
			c.Order.Type, c.Order.TIF, c.Order.STP = book.Limit, book.GTC, book.STPCancelNewest
			c.Order.Price = market.Price(1000 + rng.IntN(500) - 250)
			c.Order.Qty = market.Qty(1 + rng.IntN(1000))
			live = append(live, c.Order.ID)
		}
		commands = append(commands, c)
	}
	for i := range commands {
		commands[i].Seq, commands[i].At = uint64(i+1), 1_700_000_000_000_000_000+int64(i/100)*1000
	}
	return commands
}

// setup returns the first commands of a journal, not stamped.
func setup() []engine.Command {
	commands := []engine.Command{{Kind: engine.StartEpoch, Arg: 1}}
	for i, names := range [][2]string{{"SLUSD", "USDC"}, {"92C", "SLUSD"}} {
		c, err := engine.DefineInstrumentCommand(&market.Instrument{
			ID: market.InstrumentID(i), Symbol: names[0] + "/" + names[1], Base: names[0], Quote: names[1],
			PriceDecimals: 4, QtyDecimals: 2, Tick: 1, Lot: 1, MinQty: 1,
			MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Matched,
		})
		if err != nil {
			panic(err) // the instruments above are valid
		}
		commands = append(commands, c)
	}
	for participant := market.ParticipantID(1); participant <= 3; participant++ {
		c, err := engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{
			MaxQty: 1_000_000, MaxNotional: market.Uint128{Hi: 1}, MaxOpenOrders: 1 << 20,
		})
		if err != nil {
			panic(err) // so are the limits
		}
		commands = append(commands, c)
	}
	return commands
}

// Reference is the expected state after each command, from an undisturbed run.
type Reference struct {
	Commands []engine.Command

	digest []uint64 // [i] is after command i; [0] is before all
	hash   [][32]byte
}

// NewReference runs the commands.
func NewReference(commands []engine.Command) *Reference {
	ref := &Reference{Commands: commands}
	r := engine.NewReplica(State())
	note := func() {
		ref.digest = append(ref.digest, r.Digest)
		ref.hash = append(ref.hash, r.State.Hash())
	}
	note()
	for i := range commands {
		r.Apply(&commands[i], nil)
		note()
	}
	return ref
}

// Same reports whether a replica has the state of the undisturbed run after its own
// last command: all commands up to it were applied once, in order, and no other.
func (ref *Reference) Same(r *engine.Replica) bool {
	seq := r.State.Seq()
	return seq < uint64(len(ref.digest)) && r.Digest == ref.digest[seq] && r.State.Hash() == ref.hash[seq]
}
