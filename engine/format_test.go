package engine

import (
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestFormatCheck: what release 0.1.0 reads has format 1, everything newer format 2.
func TestFormatCheck(t *testing.T) {
	t.Parallel()
	order := func(o book.Order) []Command { return []Command{{Kind: NewOrder, Order: o}} }
	request := func(r rfq.Request) []Command {
		commands, err := DeskCommands(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		return commands
	}
	long := &rfq.PostTicket{Label: "a label that needs several commands", Instrument: 1, Rails: 1, Capacities: make([]market.USD, 20)}
	for _, c := range []struct {
		name     string
		commands []Command
		want     uint16
	}{
		{"post-only", order(book.Order{Flags: book.FlagPostOnly, Participant: 4096}), Format1},
		{"terms", order(book.Order{Flags: book.FlagTerms}), Format2},
		{"MinQty", order(book.Order{Flags: book.FlagMinQty}), Format2},
		{"participant", order(book.Order{Participant: 4097}), Format2},
		{"instrument", []Command{{Kind: SetInstrument, Instrument: 1000}}, Format2},
		{"all instruments", []Command{{Kind: MassCancel, Instrument: AllInstruments}}, Format1},
		{"several pieces", request(long), Format1},
		{"claim", request(&rfq.TakeClaim{Ticket: 1}), Format1},
		{"claim of a client address", request(&rfq.TakeClaim{Ticket: 1, Client: 1}), Format2},
		{"mass quote", []Command{{Kind: QuoteMass}}, Format2},
		{"halt", []Command{{Kind: SetInstrument, Status: StatusHalted}}, Format1},
		{"auction", []Command{{Kind: SetInstrument, Status: StatusAuction}}, Format2},
		{"auction rules", []Command{{Kind: SetAuctions}}, Format2},
		{"new request", request(&rfq.SetBalance{Slot: 1}), Format2},
	} {
		var f FormatCheck
		var got uint16
		for i := range c.commands {
			c.commands[i].Seq = uint64(7 + i)
			got = max(got, f.Format(&c.commands[i]))
		}
		if got != c.want {
			t.Errorf("%s: format %d, want %d", c.name, got, c.want)
		}
	}
}
