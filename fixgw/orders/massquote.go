package orders

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/quotes"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Quotes of market makers: MassQuote (i) and QuoteCancel (Z), answered by b. A quote is two
// orders in the book that belong to a quote set; only a later i or Z of the session changes
// them, and reports (8) come of what happens to them otherwise. The QuoteIDs are a name space
// of their own: wire.MassQuotePrefix.

// massQuoter submits the mass quotes of a session, without allocation. Guarded by the session's
// lock.
type massQuoter struct {
	*Session
	fields   []wire.MassQuoteEntry
	quotes   quotes.Mass
	commands []engine.Command
	key      []byte
}

// request handles an i, and with cancel a Z.
func (m *massQuoter) request(frame []byte, cancel bool) *wire.Reject {
	r := wire.ScanMassQuote(frame, cancel, m.fields)
	m.fields = r.Entries
	if refusal := r.CheckID(); refusal != nil {
		return m.refuse(&r, refusal)
	}
	m.key = append(append(m.key[:0], wire.MassQuotePrefix...), r.QuoteID...)
	content := r.Content()
	done, duplicate, reject := m.Repeated(m.key, content)
	if done {
		return reject
	}
	refusal := r.Decode(m.entry.Instruments, &m.quotes)
	if duplicate {
		refusal = wire.RefuseDuplicate(wire.MassQuoteDuplicate, "QuoteID (117)", r.QuoteID)
	}
	if refusal != nil {
		return m.refuse(&r, refusal)
	}
	q := &m.quotes
	q.Ref = m.key
	if q.STP == 0 {
		q.STP = m.Terms().STP
	}
	if !q.CancelAll && !q.Cancel {
		q.FirstID = m.entry.Engine.NextOrderIDs(2 * len(q.Entries))
	}
	return m.submit(&r, &reports.Request{ClOrdID: string(m.key), MsgType: 'i', Content: content})
}

func (m *massQuoter) submit(r *wire.MassQuoteRequest, entry *reports.Request) *wire.Reject {
	if m.entry.Format1 {
		return wire.BusinessReject(wire.RejNotAvailable, r.QuoteID, fmt.Sprintf("%s: mass quotes: %v", wire.CodeUnsupported, rfq.ErrFormat))
	}
	var err error
	if m.commands, err = m.makeCommands(m.commands[:0], &m.quotes); err != nil {
		return wire.BusinessReject(wire.RejOther, r.QuoteID, m.UnavailableText("the engine did not accept the mass quote"))
	}
	if err = m.Register(entry); err == nil {
		if err = m.entry.Engine.SubmitAll(m.commands); err == nil {
			return nil
		}
		m.Unregister(entry, err)
	}
	return wire.BusinessReject(wire.RejNotAvailable, r.QuoteID, m.RefusalText(err))
}

// makeCommands appends the commands of q for the session.
func (m *massQuoter) makeCommands(dst []engine.Command, q *quotes.Mass) ([]engine.Command, error) {
	dst, err := engine.MassQuoteCommands(dst, q)
	if err != nil {
		return dst, err
	}
	last := &dst[len(dst)-1]
	last.Origin, last.Order.Participant = m.Number, m.Participant.Number
	return dst, nil
}

// refuse answers a message of which nothing is carried out. Its QuoteID may be used
// again.
func (m *massQuoter) refuse(r *wire.MassQuoteRequest, refusal *wire.Refusal) *wire.Reject {
	m.CountReject()
	ack := wire.MassQuoteAck{QuoteID: r.QuoteID, Response: wire.ResponseAll, Refusal: refusal}
	m.Out.Scratch = ack.AppendBody(m.Out.Scratch[:0], m.entry.Instruments)
	m.Send("b", wire.TagQuoteID, m.Out.Scratch, false)
	return nil
}

// refuseQuoteOrder refuses an F or G of a quote's order.
func refuseQuoteOrder(id market.OrderID) *wire.Refusal {
	return wire.Refuse(wire.CxlRejOther, wire.CodeUnsupported, "order %d is a quote: a MassQuote (i) or QuoteCancel (Z) changes it", id)
}
