package history

import (
	"errors"
	"fmt"
	"testing"

	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
)

var errLayout = errors.New("layout")

const nanosPerDay = 24 * 60 * 60 * 1_000_000_000

// commit stores what h has recorded.
func commit(t *testing.T, h *History, store *kvtest.Memory) {
	t.Helper()
	if err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { h.Commit(set) }, false); err != nil {
		t.Fatal(err)
	}
	h.AfterCommit()
}

func open(t *testing.T, store *kvtest.Memory) *History {
	t.Helper()
	h, err := Open(store, errLayout)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// fillNumbered is a fill of session 1, whose even ones are sales.
func fillNumbered(n int) Fill {
	return Fill{
		Session: 1, Participant: 5, Instrument: market.InstrumentID(n % 2), Side: market.Side(1 + n%2), Maker: n%3 == 0,
		Order: market.OrderID(100 + n), Trade: market.TradeID(n), Price: 7, Qty: market.Qty(n), At: nanosPerDay*10 + int64(n),
		Seq: uint64(n), Index: 2, Epoch: 3, Status: '1', ClOrdID: fmt.Sprint("c", n), Account: "house",
	}
}

// TestFills: fills are found by every filter, before and after their commit and after a
// restart, until the end of the next day, and only by their own session.
func TestFills(t *testing.T) {
	t.Parallel()
	store := kvtest.New()
	h := open(t, store)
	const count = 6
	for n := 1; n <= count; n++ {
		f := fillNumbered(n)
		if err := h.Record(&f); err != nil {
			t.Fatal(err)
		}
	}
	one := market.InstrumentID(1)
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			filter Filter
			want   string
		}{
			{Filter{}, "[1 2 3 4 5 6]"},
			{Filter{Order: 104}, "[4]"},
			{Filter{ClOrdID: "c2"}, "[2]"},
			{Filter{ExecID: "3-2-3M"}, "[3]"},
			{Filter{ExecID: "3-2-3"}, "[]"},
			{Filter{Trade: 5}, "[5]"},
			{Filter{Instrument: &one}, "[1 3 5]"},
			{Filter{Side: market.Buy}, "[2 4 6]"},
			{Filter{From: nanosPerDay*10 + 2, To: nanosPerDay*10 + 4}, "[2 3 4]"},
		} {
			for _, later := range []int64{0, nanosPerDay} {
				list, err := h.Fills(1, &c.filter, nanosPerDay*10+later)
				got := []market.TradeID{}
				for _, f := range list {
					got = append(got, f.Trade)
					if f != fillNumbered(int(f.Trade)) {
						t.Errorf("%s: %+v", when, f)
					}
				}
				if err != nil || fmt.Sprint(got) != c.want {
					t.Errorf("%s: %+v: %v, %v, want %s", when, c.filter, got, err, c.want)
				}
			}
		}
		if list, err := h.Fills(2, &Filter{}, nanosPerDay*10); len(list) != 0 || err != nil {
			t.Errorf("%s: another session has %v, %v", when, list, err)
		}
		p := h.Positions(5)
		if len(p) != 2 || p[0].Bought.Lo != 2+4+6 || p[0].Sold.Lo != 0 || p[1].Sold.Lo != 1+3+5 || len(h.Positions(6)) != 0 {
			t.Errorf("%s: positions %+v", when, p)
		}
	}
	check("before the commit")
	if err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { h.Commit(set) }, false); err != nil {
		t.Fatal(err)
	}
	check("as the commit is stored")
	h.AfterCommit()
	check("after the commit")
	h = open(t, store)
	check("after a restart")
	if list, err := h.Fills(1, &Filter{}, nanosPerDay*12); len(list) != 0 || err != nil {
		t.Errorf("two days later: %v, %v", list, err)
	}
}

// TestTooManyFills: the limit of an answer, and one more.
func TestTooManyFills(t *testing.T) {
	t.Parallel()
	store := kvtest.New()
	h := open(t, store)
	record := func(n int) {
		f := fillNumbered(n)
		if err := h.Record(&f); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= MaxFills; n++ {
		record(n)
	}
	commit(t, h, store)
	if list, err := h.Fills(1, &Filter{}, nanosPerDay*10); len(list) != MaxFills || err != nil {
		t.Errorf("%d fills, %v", len(list), err)
	}
	record(MaxFills + 1)
	for range 2 {
		if _, err := h.Fills(1, &Filter{}, nanosPerDay*10); !errors.Is(err, ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		commit(t, h, store)
	}
}

// TestDamagedRecords: a record that cannot be read is an error that names it.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	store := kvtest.New()
	h := open(t, store)
	f := fillNumbered(1)
	if err := h.Record(&f); err != nil {
		t.Fatal(err)
	}
	commit(t, h, store)
	set := func(key, value []byte) {
		if err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(key, value) }, false); err != nil {
			t.Fatal(err)
		}
	}
	for n := range fillSize {
		set(f.key(), f.record()[:n])
		if _, err := h.Fills(1, &Filter{}, f.At); !errors.Is(err, errLayout) {
			t.Fatalf("%d bytes of a fill: %v", n, err)
		}
	}
	set([]byte{KeyPosition, 0, 1, 0, 1}, []byte{recordVersion})
	if _, err := Open(store, errLayout); !errors.Is(err, errLayout) {
		t.Errorf("a short position: %v", err)
	}
}
