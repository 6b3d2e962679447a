package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// twin is one instrument's book: the fast one, or the obvious one by option. An
// interface would cost an indirect call and make every order escape; the branch
// here goes the same way every time. For Submit and Cancel, the two that nearly
// every command is, the branch stands where they are called: it is too much to
// be inlined.
type twin struct {
	fast *ladder.Book
	slow *naive.Book
}

func newTwin(obvious bool, o book.Options) twin {
	if obvious {
		return twin{slow: naive.New(o)}
	}
	return twin{fast: ladder.New(o)}
}

func (b twin) amend(o *book.Order, at int64, seq uint64, out *event.Sink) {
	if b.fast != nil {
		b.fast.Amend(o, at, seq, out)
		return
	}
	b.slow.Amend(o, at, seq, out)
}

func (b twin) massCancel(who market.ParticipantID, side market.Side, why event.Reason, at int64, seq uint64, out *event.Sink) int {
	if b.fast != nil {
		return b.fast.MassCancel(who, side, why, at, seq, out)
	}
	return b.slow.MassCancel(who, side, why, at, seq, out)
}

func (b twin) expire(at int64, seq uint64, out *event.Sink) {
	if b.fast != nil {
		b.fast.Expire(at, seq, out)
		return
	}
	b.slow.Expire(at, seq, out)
}

func (b twin) nextExpiry() int64 {
	if b.fast != nil {
		return b.fast.NextExpiry()
	}
	return b.slow.NextExpiry()
}

func (b twin) open(who market.ParticipantID) int {
	if b.fast != nil {
		return b.fast.OpenOrders(who)
	}
	return b.slow.OpenOrders(who)
}

func (b twin) orders() int {
	if b.fast != nil {
		return b.fast.OrderCount()
	}
	return b.slow.OrderCount()
}

func (b twin) get(id market.OrderID) (book.LiveOrder, bool) {
	if b.fast != nil {
		return b.fast.Get(id)
	}
	return b.slow.Get(id)
}

func (b twin) best(side market.Side) market.Price {
	var p market.Price
	if b.fast != nil {
		p, _ = b.fast.Best(side)
	} else {
		p, _ = b.slow.Best(side)
	}
	return p
}

func (b twin) lastTrade() market.Price {
	if b.fast != nil {
		return b.fast.LastTrade()
	}
	return b.slow.LastTrade()
}

func (b twin) setLastTrade(p market.Price) {
	if b.fast != nil {
		b.fast.SetLastTrade(p)
		return
	}
	b.slow.SetLastTrade(p)
}

func (b twin) setMaxOrders(n int) {
	if b.fast != nil {
		b.fast.SetMaxOrders(n)
		return
	}
	b.slow.SetMaxOrders(n)
}

func (b twin) export(f func(book.LiveOrder)) {
	if b.fast != nil {
		b.fast.Export(f)
		return
	}
	b.slow.Export(f)
}

func (b twin) restore(r book.LiveOrder) error {
	if b.fast != nil {
		return b.fast.Import(r)
	}
	return b.slow.Import(r)
}
