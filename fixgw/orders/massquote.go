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

// MassQuote handles an i, and with cancel a Z.
func (s *Session) MassQuote(frame []byte, cancel bool) *wire.Reject {
	r := wire.ScanMassQuote(frame, cancel, s.mass.fields)
	s.mass.fields = r.Entries
	if refusal := r.CheckID(); refusal != nil {
		return s.refuseQuotes(&r, refusal)
	}
	s.mass.key = append(append(s.mass.key[:0], wire.MassQuotePrefix...), r.QuoteID...)
	content := r.Content()
	done, duplicate, reject := s.Repeated(s.mass.key, content)
	if done {
		return reject
	}
	refusal := r.Decode(s.entry.Instruments, &s.mass.quotes)
	if duplicate {
		refusal = wire.RefuseDuplicate(wire.MassQuoteDuplicate, "QuoteID (117)", r.QuoteID)
	}
	if refusal != nil {
		return s.refuseQuotes(&r, refusal)
	}
	q := &s.mass.quotes
	q.Ref = s.mass.key
	if q.STP == 0 {
		q.STP = s.Terms().STP
	}
	if !q.CancelAll && !q.Cancel {
		q.FirstID = s.entry.Engine.NextOrderIDs(2 * len(q.Entries))
	}
	return s.submitQuotes(&r, &reports.Request{ClOrdID: string(s.mass.key), MsgType: 'i', Content: content})
}

func (s *Session) submitQuotes(r *wire.MassQuoteRequest, entry *reports.Request) *wire.Reject {
	if s.entry.Format1 {
		return wire.BusinessReject(wire.RejNotAvailable, r.QuoteID, fmt.Sprintf("%s: mass quotes: %v", wire.CodeUnsupported, rfq.ErrNotFinalized))
	}
	var err error
	if s.mass.commands, err = s.makeCommands(s.mass.commands[:0], &s.mass.quotes); err != nil {
		return wire.BusinessReject(wire.RejOther, r.QuoteID, s.UnavailableText("the engine did not accept the mass quote"))
	}
	if err = s.Register(entry); err == nil {
		if err = s.entry.Engine.SubmitAll(s.mass.commands); err == nil {
			return nil
		}
		s.Unregister(entry, err)
	}
	return wire.BusinessReject(wire.RejNotAvailable, r.QuoteID, s.RefusalText(err))
}

// makeCommands appends the commands of q for the session.
func (s *Session) makeCommands(dst []engine.Command, q *quotes.Mass) ([]engine.Command, error) {
	dst, err := engine.MassQuoteCommands(dst, q)
	if err != nil {
		return dst, err
	}
	last := &dst[len(dst)-1]
	last.Origin, last.Order.Participant = s.Number, s.Participant.Number
	return dst, nil
}

// refuse answers a message of which nothing is carried out. Its QuoteID may be used
// again.
func (s *Session) refuseQuotes(r *wire.MassQuoteRequest, refusal *wire.Refusal) *wire.Reject {
	s.CountReject()
	ack := wire.MassQuoteAck{QuoteID: r.QuoteID, Response: wire.ResponseAll, Refusal: refusal}
	s.Out.Scratch = ack.AppendBody(s.Out.Scratch[:0], s.entry.Instruments)
	s.Send("b", wire.TagQuoteID, s.Out.Scratch, false)
	return nil
}

// refuseQuoteOrder refuses an F or G of a quote's order.
func refuseQuoteOrder(id market.OrderID) *wire.Refusal {
	return wire.Refuse(wire.CxlRejOther, wire.CodeUnsupported, "order %d is a quote: a MassQuote (i) or QuoteCancel (Z) changes it", id)
}
