package engine

import (
	"encoding/binary"

	"blockdesk/engine/auction"
	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// instrumentBook is one of the two book implementations. An interface would cost an indirect
// call and make every order escape to the heap; the branch here always goes the same way. For
// Submit and Cancel, nearly all commands, the callers branch themselves, because these methods
// would be too large to be inlined.
type instrumentBook struct {
	ladder *ladder.Book
	naive  *naive.Book
}

func newInstrumentBook(useNaive bool, o book.Options) instrumentBook {
	if useNaive {
		return instrumentBook{naive: naive.New(o)}
	}
	return instrumentBook{ladder: ladder.New(o)}
}

func (b instrumentBook) amend(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.ladder != nil {
		b.ladder.Amend(o, at, seq, out)
		return
	}
	b.naive.Amend(o, at, seq, out)
}

func (b instrumentBook) submit(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.ladder != nil {
		b.ladder.Submit(o, at, seq, out)
		return
	}
	b.naive.Submit(o, at, seq, out)
}

func (b instrumentBook) cancelFor(id market.OrderID, reason event.Reason, at int64, seq uint64, out *event.Sink) bool {
	if b.ladder != nil {
		return b.ladder.CancelFor(id, reason, at, seq, out)
	}
	return b.naive.CancelFor(id, reason, at, seq, out)
}

func (b instrumentBook) open(participant market.ParticipantID) int {
	if b.ladder != nil {
		return b.ladder.OpenOrders(participant)
	}
	return b.naive.OpenOrders(participant)
}

func (b instrumentBook) get(id market.OrderID) (book.LiveOrder, bool) {
	if b.ladder != nil {
		return b.ladder.Get(id)
	}
	return b.naive.Get(id)
}

func (b instrumentBook) best(side market.Side) market.Price {
	var p market.Price
	if b.ladder != nil {
		p, _ = b.ladder.Best(side)
	} else {
		p, _ = b.naive.Best(side)
	}
	return p
}

func (b instrumentBook) nextLevel(side market.Side, after market.Price) (market.Price, market.Qty) {
	if b.ladder != nil {
		return b.ladder.NextLevel(side, after)
	}
	return b.naive.NextLevel(side, after)
}

// refuses reports whether the book would refuse a new order.
func (b instrumentBook) refuses(o *book.Order, at int64, seq uint64, out *event.Sink) bool {
	var reason event.Reason
	if b.ladder != nil { // not by an interface, which would move o to the heap
		reason, _ = b.ladder.Check(o, 0, at, seq, out)
	} else {
		reason, _ = b.naive.Check(o, 0, at, seq, out)
	}
	return reason != event.ReasonNone
}

func (b instrumentBook) gather(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.ladder != nil {
		b.ladder.Gather(o, at, seq, out)
		return
	}
	b.naive.Gather(o, at, seq, out)
}

func (b instrumentBook) amendGathered(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.ladder != nil {
		b.ladder.AmendGathered(o, at, seq, out)
		return
	}
	b.naive.AmendGathered(o, at, seq, out)
}

func (b instrumentBook) lastTrade() market.Price {
	if b.ladder != nil {
		return b.ladder.LastTrade()
	}
	return b.naive.LastTrade()
}

// storedBook has the methods that an order's command calls only for an ending order.
type storedBook interface {
	MassCancel(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int
	Expire(at int64, seq uint64, out *event.Sink)
	NextExpiry() int64
	OrderCount() int
	Open(participant market.ParticipantID, side market.Side) int
	EndLater(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int
	Sweep(at int64, n int, seq uint64, out *event.Sink) int
	Sweeping() bool
	Check(o *book.Order, more int, at int64, seq uint64, out *event.Sink) (event.Reason, int64)
	TakeOut(id market.OrderID, at int64, seq uint64, out *event.Sink)
	Export(func(book.LiveOrder))
	Import(book.LiveOrder) error
	SetLastTrade(market.Price)
	SetMaxOrders(int)
	auction.Levels
	Gathered(side market.Side) market.Qty
	Uncross(price market.Price, n int, at int64, seq uint64, out *event.Sink) int
	Release(n int, at int64, seq uint64, out *event.Sink) int
	Elect(at int64, seq uint64, out *event.Sink)
}

func (b instrumentBook) stored() storedBook {
	if b.ladder != nil {
		return b.ladder
	}
	return b.naive
}

// takeLevels reads what appendLevels has written.
func takeLevels(r *codec.Reader, n int) []market.Level {
	levels := make([]market.Level, n)
	for i := range levels {
		levels[i] = market.Level{Price: market.Price(r.U64()), Qty: market.Qty(r.U64())}
	}
	return levels
}

func appendLevels(dst []byte, levels []market.Level) []byte {
	for _, l := range levels {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Price))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Qty))
	}
	return dst
}
