package desk

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
)

// A value of the store is a version byte and the desk's records, encoded as the engine
// encodes them: rfq.AppendRecord. So what decodes completely encodes to the same
// bytes.
//
// records decodes the records of a value one by one. After an error there are none.
type records struct {
	rest []byte
	next rfq.Record // nil at the end
	err  error
}

func openRecords(value []byte) *records {
	r := &records{rest: value}
	if len(value) == 0 || value[0] != valueVersion {
		r.err = fmt.Errorf("%w: value has %d bytes", ErrLayout, len(value))
		return r
	}
	r.rest = value[1:]
	r.step()
	return r
}

func (r *records) step() {
	if r.next = nil; len(r.rest) == 0 || r.err != nil {
		return
	}
	var err error
	if r.next, r.rest, err = rfq.DecodeRecord(r.rest); err != nil {
		r.next, r.err = nil, fmt.Errorf("%w: %w", ErrLayout, err)
	}
}

// close returns the error; a record that was not taken is one.
func (r *records) close() error {
	if r.err == nil && r.next != nil {
		r.err = fmt.Errorf("%w: unexpected record with tag %d", ErrLayout, r.next.Tag())
	}
	return r.err
}

// takeRecord returns the next record if it is of type T, and otherwise T's zero value.
func takeRecord[T rfq.Record](r *records) T {
	rec, ok := r.next.(T)
	if ok {
		r.step()
	}
	return rec
}

// mustTakeRecord is takeRecord, and fails if the next record is not of type T.
func mustTakeRecord[T rfq.Record](r *records) T {
	rec, ok := r.next.(T)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: a record of type %T is missing", ErrLayout, rec)
	}
	return takeRecord[T](r)
}

// ticket takes a ticket with its tranches; nil if none follows.
func (r *records) ticket() *rfq.Ticket {
	t := takeRecord[*rfq.Ticket](r)
	if t == nil {
		return nil
	}
	t.Tranches = []rfq.Tranche{}
	for tranche := takeRecord[*rfq.TicketTranche](r); tranche != nil; tranche = takeRecord[*rfq.TicketTranche](r) {
		if t.Tranches = append(t.Tranches, tranche.Tranche); tranche.Ticket != t.ID || len(t.Tranches) > rfq.MaxTranches {
			r.next, r.err = nil, fmt.Errorf("%w: tranche %d of ticket %d is stored with ticket %d", ErrLayout, len(t.Tranches), tranche.Ticket, t.ID)
		}
	}
	return t
}

func appendTicketRecords(dst []byte, t *rfq.Ticket) []byte {
	dst = rfq.AppendRecord(dst, t)
	tranche := rfq.TicketTranche{Ticket: t.ID}
	for i := range t.Tranches {
		tranche.Tranche = t.Tranches[i]
		dst = rfq.AppendRecord(dst, &tranche)
	}
	return dst
}

func appendTicket(dst []byte, t *rfq.Ticket) []byte {
	return appendTicketRecords(append(dst, valueVersion), t)
}

func parseTicket(value []byte) (*rfq.Ticket, error) {
	r := openRecords(value)
	t := r.ticket()
	if err := r.close(); err != nil || t == nil {
		return nil, fmt.Errorf("ticket: %w", orLayout(err))
	}
	return t, nil
}

func orLayout(err error) error {
	if err == nil {
		return ErrLayout
	}
	return err
}

// appendEntry appends a value of a claim's history: *rfq.Claim or *rfq.Payment.
func appendEntry(dst []byte, rec rfq.Record) []byte {
	return rfq.AppendRecord(append(dst, valueVersion), rec)
}

// parseEntry parses a value of a claim's history: one of the results is set.
func parseEntry(value []byte) (*rfq.Claim, *rfq.Payment, error) {
	r := openRecords(value)
	claim, payment := takeRecord[*rfq.Claim](r), (*rfq.Payment)(nil)
	if claim == nil {
		payment = mustTakeRecord[*rfq.Payment](r)
	}
	if err := r.close(); err != nil {
		return nil, nil, fmt.Errorf("history: %w", err)
	}
	return claim, payment, nil
}

type answer struct {
	body   [8]byte
	seq    uint64
	result Result
}

// answerHead is the size of an answer before its records.
const answerHead = 8 + 8

// appendAnswer appends the value of an answer, without the result's Replayed.
func appendAnswer(dst []byte, a *answer) []byte {
	dst = append(append(dst, valueVersion), a.body[:]...)
	dst = binary.BigEndian.AppendUint64(dst, a.seq)
	res := &a.result
	dst = rfq.AppendRecord(dst, &res.Outcome)
	if res.Quote != nil {
		dst = rfq.AppendRecord(dst, res.Quote)
	}
	if res.Claim != nil {
		dst = rfq.AppendRecord(dst, res.Claim)
	}
	if res.Ticket != nil {
		dst = appendTicketRecords(dst, res.Ticket)
	}
	if res.Payment != nil {
		dst = rfq.AppendRecord(dst, res.Payment)
	}
	return dst
}

func parseAnswer(value []byte) (*answer, error) {
	if len(value) < 1+answerHead {
		return nil, fmt.Errorf("%w: answer of %d bytes", ErrLayout, len(value))
	}
	a := &answer{body: [8]byte(value[1:]), seq: binary.BigEndian.Uint64(value[9:])}
	r := &records{rest: value[1+answerHead:]}
	if value[0] != valueVersion {
		r.err = fmt.Errorf("%w: unknown version %d", ErrLayout, value[0])
	}
	r.step()
	if outcome := mustTakeRecord[*rfq.Outcome](r); outcome != nil {
		a.result.Outcome = *outcome
	}
	a.result.Quote = takeRecord[*rfq.Quote](r)
	a.result.Claim = takeRecord[*rfq.Claim](r)
	a.result.Ticket = r.ticket()
	a.result.Payment = takeRecord[*rfq.Payment](r)
	if err := r.close(); err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return a, nil
}
