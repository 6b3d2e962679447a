package event

import (
	"bytes"
	"testing"
	"unsafe"
)

func TestDeskCarriesAChunk(t *testing.T) {
	long := bytes.Repeat([]byte{0xff}, MaxDeskChunk)
	for _, data := range [][]byte{long[:1], long[:MaxDeskChunk-1], long} {
		e := Event{Aux: -1, Qty: -1, Code: 77} // old content of the ring's slot
		want := DeskChunk{Tag: 1<<16 - 1, Index: 2, Count: 3, Data: data}
		e.SetDesk(9, want)
		got, ok := e.Desk()
		if !ok || e.Seq != 9 || e.Kind != Desk || got.Tag != want.Tag || got.Index != 2 || got.Count != 3 || !bytes.Equal(got.Data, data) {
			t.Errorf("%d bytes: %+v %v", len(data), got, ok)
		}
		// Unused bytes are zero; otherwise equal chunks would have different digests.
		var clean Event
		if clean.SetDesk(9, want); clean != e {
			t.Errorf("%d bytes: the slot's old content shows", len(data))
		}
	}
	var e Event
	e.SetDesk(1, DeskChunk{Count: 1, Data: append(long, 1)})
	if got, _ := e.Desk(); !bytes.Equal(got.Data, long) {
		t.Errorf("a chunk past the limit became %x", got.Data)
	}
	if _, ok := (&Event{Kind: Reference}).Desk(); ok {
		t.Error("a reference passes for a chunk")
	}
}

// TestDeskDoesNotTrustTheLength: an impossible length of a chunk is clamped.
func TestDeskDoesNotTrustTheLength(t *testing.T) {
	var e Event
	e.SetDesk(1, DeskChunk{Count: 1, Data: []byte{1}})
	(*deskRecord)(unsafe.Pointer(&e)).Len = 255
	if got, _ := e.Desk(); len(got.Data) != MaxDeskChunk {
		t.Errorf("%d bytes", len(got.Data))
	}
}
