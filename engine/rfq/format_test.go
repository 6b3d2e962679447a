package rfq

import (
	"errors"
	"reflect"
	"testing"
)

// TestFitFormat1: each request loses its newer fields and no others, or is refused.
func TestFitFormat1(t *testing.T) {
	t.Parallel()
	for k := RequestKind(1); newRequest(k) != nil; k++ {
		r := newRequest(k)
		fillIn(reflect.ValueOf(r).Elem())
		switch set := r.(type) {
		case *SetAnchor:
			set.Withdrawn = false
		case *SetRailPrice:
			set.Withdrawn = false
		}
		err := FitFormat1(r)
		if refused := k > KindSetFirstTicket; refused != errors.Is(err, ErrNotFinalized) || refused != (err != nil) {
			t.Errorf("kind %d: %v", k, err)
		}
		if err != nil {
			continue
		}
		data := AppendRequest(nil, r)
		if usesV2(r) || RequestFormat(data) != 1 {
			t.Errorf("kind %d needs format %d", k, RequestFormat(data))
		}
	}
	for _, r := range []Request{&SetAnchor{Withdrawn: true}, &SetRailPrice{Withdrawn: true}} {
		if err := FitFormat1(r); !errors.Is(err, ErrNotFinalized) {
			t.Errorf("%T: %v", r, err)
		}
	}
}

// TestMachineFormat: a desk with rules that 0.1.0 lacks needs the newest format.
func TestMachineFormat(t *testing.T) {
	t.Parallel()
	if got := busyDesk(t).m.Format(); got != 1 {
		t.Errorf("rules of 0.1.0: format %d", got)
	}
	if got := busyGuardedDesk(t).m.Format(); got != 2 {
		t.Errorf("guarded rules: format %d", got)
	}
}
