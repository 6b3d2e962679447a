package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
)

// Formats of a sequence of commands. A program that reads a format applies all its
// commands as every other such program does.
const (
	// Format1 is what release 0.1.0 reads.
	Format1 = 1
	// Format2 adds MinQty, event.Terms, mass quotes, requests of rfq in version 2, the
	// requests after KindSetFirstTicket, more instruments and participants,
	// StatusInSlices, and auctions.
	Format2 = 2
)

// Limits of Format1.
const (
	maxInstruments1  = 1000
	maxParticipants1 = 4096
	flags1           = book.FlagPostOnly | book.FlagOpenQty
)

// FormatCheck returns the lowest format of commands. The zero value is ready. Not for
// concurrent use.
type FormatCheck struct{ assembler Assembler }

// Format returns the lowest format that has c; for a request in pieces, with its last one.
// The commands must come in the order of the journal.
func (f *FormatCheck) Format(c *Command) uint16 {
	switch {
	case c.Kind > MirrorTrade, c.Kind == StartEpoch && c.Status != 0,
		c.Kind == SetInstrument && c.Status == StatusAuction:
		return Format2
	case c.IsPiece():
		request, _ := f.assembler.Add(c)
		if request != nil && c.Kind == Desk {
			return rfq.RequestFormat(request)
		}
		return Format1
	case c.Instrument >= maxInstruments1 && c.Instrument != AllInstruments,
		int(c.Order.Participant) > maxParticipants1:
		return Format2
	case (c.Kind == NewOrder || c.Kind == AmendOrder) && c.Order.Flags&^flags1 != 0:
		return Format2
	}
	return Format1
}
