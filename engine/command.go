package engine

import (
	"unsafe"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Kind names what a command asks for. The numbers are on disk: frozen.
type Kind uint8

const (
	// NewOrder places Command.Order.
	NewOrder Kind = 1
	// AmendOrder changes the order Order.ID (see book rule 7).
	AmendOrder Kind = 2
	// CancelOrder ends the order Order.ID of Order.Participant.
	CancelOrder Kind = 3
	// MassCancel ends every order of Order.Participant on Instrument (or
	// AllInstruments) and Order.Side (0 = both). Status carries no meaning.
	MassCancel Kind = 4
	// Tick does nothing but bring time forward, so that orders expire on a
	// quiet market.
	Tick Kind = 5
	// DefineInstrument tells the engine of one instrument: see
	// DefineInstrumentCommand.
	DefineInstrument Kind = 6
	// SetRisk sets the limits of Order.Participant on Instrument: see
	// SetRiskCommand.
	SetRisk Kind = 7
	// SetInstrument halts or resumes Instrument (Status).
	SetInstrument Kind = 8
	// SetParticipant kills or revives Order.Participant (Status); a kill also
	// cancels all of the participant's orders.
	SetParticipant Kind = 9
	// StartEpoch begins epoch Arg: one life of one leader. Order.Qty is the
	// limit of live orders an instrument from here on; 0 leaves it as it is.
	StartEpoch Kind = 10
	// Fragment carries a piece of a request to the RFQ desk, Desk the last one:
	// see DeskCommands.
	Fragment Kind = 11
	Desk     Kind = 12
	// MirrorRefresh carries the last piece of a refresh of a mirrored instrument,
	// those before it travel in Fragment: see MirrorRefreshCommands.
	MirrorRefresh Kind = 13
	// MirrorTrade tells a trade that the chain made: see MirrorTradeCommand.
	MirrorTrade Kind = 14
)

// piece reports whether commands of the kind carry pieces, which an Assembler puts
// together: Fragment, Desk and MirrorRefresh.
func (k Kind) piece() bool { return k-Fragment <= MirrorRefresh-Fragment }

// Values of Command.Status.
const (
	StatusTrading uint8 = 1 // SetInstrument: orders welcome
	StatusHalted  uint8 = 2 // SetInstrument: only cancels
	StatusKilled  uint8 = 1 // SetParticipant: only cancels, and all orders go
	StatusLive    uint8 = 2 // SetParticipant: orders welcome
)

// AllInstruments in a MassCancel or SetRisk means every instrument.
const AllInstruments market.InstrumentID = 1<<16 - 1

// MaxRef is the longest id of a client's own (FIX ClOrdID), in bytes.
const MaxRef = event.MaxText

// Command is everything that can happen, in 128 bytes without pointers. A
// producer fills all but Seq and At, which the engine stamps; what it fills
// beyond the fields of its Kind must be zero. Commands are what the journal
// keeps: see persist for their encoding.
type Command struct {
	Seq uint64 // stamped: position in the journal, from 1, without gaps
	At  int64  // stamped: Unix nanoseconds, once a batch, never falling

	Order book.Order

	// Arg is a value that depends on Kind: the epoch, packed definitions.
	Arg        uint64
	Kind       Kind
	RefLen     uint8
	Status     uint8
	first      bool // starts a batch; not journaled
	Instrument market.InstrumentID
	Origin     uint16 // the gateway's session number; 0 is no session
	Ref        [MaxRef]byte
}

// CommandSize is the size of a Command in bytes.
const CommandSize = 128

var _ [CommandSize]byte = [unsafe.Sizeof(Command{})]byte{}

// IsPiece reports whether c carries a piece of something longer, for an Assembler.
func (c *Command) IsPiece() bool { return c.Kind.piece() }

// SetRef stores the client's own id and reports whether it fits (1..MaxRef
// bytes).
func (c *Command) SetRef(text []byte) bool {
	if len(text) == 0 || len(text) > MaxRef {
		return false
	}
	c.RefLen = uint8(copy(c.Ref[:], text))
	return true
}

// RefText returns the client's own id. It aliases c.
func (c *Command) RefText() []byte { return c.Ref[:min(int(c.RefLen), MaxRef)] }
