package engine

import (
	"unsafe"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Kind is the kind of a command. The numbers are on disk and never change.
type Kind uint8

const (
	// NewOrder submits Command.Order.
	NewOrder Kind = 1
	// AmendOrder changes the order Order.ID (book rule 7).
	AmendOrder Kind = 2
	// CancelOrder cancels the order Order.ID of Order.Participant.
	CancelOrder Kind = 3
	// MassCancel cancels every order of Order.Participant on Instrument (or
	// AllInstruments) and Order.Side (0 = both).
	MassCancel Kind = 4
	// Tick only advances the time, so that orders expire in a quiet market.
	Tick Kind = 5
	// DefineInstrument defines an instrument: see DefineInstrumentCommand.
	DefineInstrument Kind = 6
	// SetRisk sets the limits of Order.Participant on Instrument: see SetRiskCommand.
	SetRisk Kind = 7
	// SetInstrument halts Instrument, resumes it, or begins an auction (Status). Arg is then
	// how long orders gather, in nanoseconds; 0 = until a command ends the auction. Order.ID is
	// the operator's number, for the journal alone.
	SetInstrument Kind = 8
	// SetParticipant sets the kill switch of Order.Participant (Status). Killing also
	// cancels all of the participant's orders.
	SetParticipant Kind = 9
	// StartEpoch starts epoch Arg. Order.Qty is the new limit of live orders per
	// instrument; 0 leaves it unchanged.
	StartEpoch Kind = 10
	// Fragment carries a leading piece of a request to the desk or of a mirror refresh. Desk
	// carries the last piece of a request: see DeskCommands.
	Fragment Kind = 11
	Desk     Kind = 12
	// MirrorRefresh carries the last piece of a refresh of a mirrored instrument, after
	// Fragments with the others: see MirrorRefreshCommands.
	MirrorRefresh Kind = 13
	// MirrorTrade reports an on-chain trade: see MirrorTradeCommand.
	MirrorTrade Kind = 14
	// QuoteMass carries the last piece of a mass quote, after Fragments with the others: see
	// MassQuoteCommands.
	QuoteMass Kind = 15
	// OrderList carries the last piece of a list of orders, after Fragments with the others: see
	// ListCommands.
	OrderList Kind = 16
	// SetAuctions sets the auction rules of Instrument: see SetAuctionsCommand.
	SetAuctions Kind = 17
)

// piece reports whether commands of the kind carry a piece for an Assembler: Fragment, Desk,
// MirrorRefresh, QuoteMass and OrderList.
func (k Kind) piece() bool {
	return k >= Fragment && (k <= MirrorRefresh || k >= QuoteMass && k <= OrderList)
}

// Values of Command.Status.
const (
	StatusTrading       = event.StatusTrading // SetInstrument: the instrument takes orders
	StatusHalted        = event.StatusHalted  // SetInstrument: the instrument takes only cancels
	StatusAuction       = event.StatusAuction // SetInstrument: orders gather for an auction
	StatusKilled  uint8 = 1                   // SetParticipant: the participant may only cancel
	StatusLive    uint8 = 2                   // SetParticipant: the participant may trade
	// StatusInSlices in a StartEpoch: from now on many orders end in slices (State rule 8).
	StatusInSlices uint8 = 1
)

// AllInstruments in a MassCancel or SetRisk means every instrument.
const AllInstruments market.InstrumentID = 1<<16 - 1

// MaxRef is the longest client id of an order (FIX ClOrdID), in bytes.
const MaxRef = event.MaxText

// Command is everything that can happen, in 128 bytes without pointers. The producer fills
// the fields of its Kind and leaves the others zero; the engine stamps Seq and At. The
// journal consists of commands: see persist for their encoding.
type Command struct {
	Seq uint64 // position in the journal, from 1, without gaps
	At  int64  // Unix nanoseconds, the same for a whole batch, never falling

	Order book.Order

	// Arg is a value that depends on Kind: the epoch, packed definitions.
	Arg        uint64
	Kind       Kind
	RefLen     uint8
	Status     uint8
	first      bool // first of a batch; not journaled
	Instrument market.InstrumentID
	Origin     uint16 // session number of the gateway; 0 = none
	Ref        [MaxRef]byte
}

// CommandSize is the size of a Command in bytes.
const CommandSize = 128

var _ [CommandSize]byte = [unsafe.Sizeof(Command{})]byte{}

// IsPiece reports whether c carries a piece for an Assembler.
func (c *Command) IsPiece() bool { return c.Kind.piece() }

// SetRef stores the client's id (1..MaxRef bytes) and reports whether it fits.
func (c *Command) SetRef(text []byte) bool {
	if len(text) == 0 || len(text) > MaxRef {
		return false
	}
	c.RefLen = uint8(copy(c.Ref[:], text))
	return true
}

// RefText returns the client's id. It aliases c.
func (c *Command) RefText() []byte { return c.Ref[:min(int(c.RefLen), MaxRef)] }
