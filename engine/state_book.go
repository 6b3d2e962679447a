package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// instrumentBook is one of the two book implementations. An interface would cost an indirect
// call and make every order escape to the heap; the branch here always goes the same way. For
// Submit and Cancel, nearly all commands, the callers branch themselves, because these methods
// would be too large to be inlined.
type instrumentBook struct {
	fast *ladder.Book
	slow *naive.Book
}

func newInstrumentBook(simple bool, o book.Options) instrumentBook {
	if simple {
		return instrumentBook{slow: naive.New(o)}
	}
	return instrumentBook{fast: ladder.New(o)}
}

func (b instrumentBook) amend(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.fast != nil {
		b.fast.Amend(o, at, seq, out)
		return
	}
	b.slow.Amend(o, at, seq, out)
}

func (b instrumentBook) massCancel(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int {
	if b.fast != nil {
		return b.fast.MassCancel(participant, side, reason, at, seq, out)
	}
	return b.slow.MassCancel(participant, side, reason, at, seq, out)
}

func (b instrumentBook) expire(at int64, seq uint64, out *event.Sink) {
	if b.fast != nil {
		b.fast.Expire(at, seq, out)
		return
	}
	b.slow.Expire(at, seq, out)
}

func (b instrumentBook) nextExpiry() int64 {
	if b.fast != nil {
		return b.fast.NextExpiry()
	}
	return b.slow.NextExpiry()
}

func (b instrumentBook) open(participant market.ParticipantID) int {
	if b.fast != nil {
		return b.fast.OpenOrders(participant)
	}
	return b.slow.OpenOrders(participant)
}

func (b instrumentBook) orders() int {
	if b.fast != nil {
		return b.fast.OrderCount()
	}
	return b.slow.OrderCount()
}

func (b instrumentBook) get(id market.OrderID) (book.LiveOrder, bool) {
	if b.fast != nil {
		return b.fast.Get(id)
	}
	return b.slow.Get(id)
}

func (b instrumentBook) best(side market.Side) market.Price {
	var p market.Price
	if b.fast != nil {
		p, _ = b.fast.Best(side)
	} else {
		p, _ = b.slow.Best(side)
	}
	return p
}

func (b instrumentBook) lastTrade() market.Price {
	if b.fast != nil {
		return b.fast.LastTrade()
	}
	return b.slow.LastTrade()
}

// storedBook has the methods that no command about an order calls.
type storedBook interface {
	Export(func(book.LiveOrder))
	Import(book.LiveOrder) error
	SetLastTrade(market.Price)
	SetMaxOrders(int)
}

func (b instrumentBook) stored() storedBook {
	if b.fast != nil {
		return b.fast
	}
	return b.slow
}
