package rfq

import (
	"blockdesk/engine/event"
)

// Stamp is what the sequencer gave a command.
type Stamp struct {
	Seq uint64
	At  int64 // Unix ns; never falls
}

// Machine is the desk.
type Machine struct {
	w wire
}

// New returns an empty desk.
func New() *Machine { return &Machine{} }

// Apply does one encoded request.
func (m *Machine) Apply(data []byte, s Stamp, px Prices, out *event.Sink) {
	o := Outcome{Reason: event.ReasonInvalidCommand, At: s.At}
	if p, ok := PeekRequest(data); ok {
		o.Token, o.Kind = p.Token, p.Kind
	}
	writeRecord(&o, s.Seq, &m.w, out)
}

// Expire ends what is due at s.At.
func (m *Machine) Expire(s Stamp, out *event.Sink) {}

// NextExpiry returns when Expire has something to do next; 0 = nothing.
func (m *Machine) NextExpiry() int64 { return 0 }

// Board returns a reader's copy of what is shown.
func (m *Machine) Board() *Board { return &Board{} }
