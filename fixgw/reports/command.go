package reports

import (
	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Command is the session and the ClOrdID of the command whose events are being processed.
type Command struct {
	Session  *Session // nil = the command came from no session
	ID       market.OrderID
	text     [event.MaxText]byte
	size     int
	answered bool
}

// ClOrdID returns the client's id of the command. It is valid until the next command.
func (c *Command) ClOrdID() []byte { return c.text[:c.size] }

// IsRequest reports whether a client's request has made the command.
func (c *Command) IsRequest() bool {
	return c.Session != nil && c.size > 0 && c.text[0] != wire.InternalPrefix
}

// Names reports whether the command is a client's request about the order.
func (c *Command) Names(id market.OrderID) bool { return c.IsRequest() && c.ID == id }

// Position is a position in the engine's events: the event after the first Index events of
// the command Seq.
type Position struct {
	Seq   uint64
	Index uint32
}

func (p Position) before(q Position) bool {
	return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index
}

// whole returns the Seq up to which all events lie before p.
func (p Position) whole() uint64 { return p.Seq - min(p.Seq, 1) }
