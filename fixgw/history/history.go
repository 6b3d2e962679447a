// Package history keeps what the orders of FIX sessions have traded: each fill until the
// end of the next UTC day, and each participant's bought and sold quantities. A client
// that has lost everything gets its fills and its position from here.
//
// The gateway's reporter records a fill when it reports it, and commits it together with
// the report and its own position in the engine's events: so a crash neither loses a fill
// nor counts it twice. Positions begin with the store: what was traded before it, and
// fills whose store was lost, are not in them.
//
// Limits: a query returns at most MaxFills; a position is a sum of 128 bits.
//
// Concurrency: one goroutine at a time records and commits; any goroutine queries.
package history

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"blockdesk/market"
	"blockdesk/persist/kv"
)

// MaxFills is the most fills that Fills returns.
const MaxFills = 5000

// ErrTooMany means that more than MaxFills fills match.
var ErrTooMany = fmt.Errorf("more than %d fills match", MaxFills)

// Fill is one side of a trade: that of a session's order.
type Fill struct {
	Session     uint16
	Participant market.ParticipantID
	Instrument  market.InstrumentID
	Side        market.Side
	Maker       bool // the order rested
	Order       market.OrderID
	Trade       market.TradeID
	Price       market.Price
	Qty         market.Qty
	At          int64  // Unix nanoseconds
	Seq         uint64 // of the event that it comes from, with Index and Epoch: its ExecID
	Index       uint32
	Epoch       uint32
	Status      byte // OrdStatus (39) of the order after it
	ClOrdID     string
	Account     string
}

// AppendExecID appends the ExecID (17) of the fill's report.
func (f *Fill) AppendExecID(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, f.Seq, 10), '-')
	dst = append(strconv.AppendUint(dst, uint64(f.Index), 10), '-')
	dst = strconv.AppendUint(dst, uint64(f.Epoch), 10)
	if f.Maker {
		dst = append(dst, 'M')
	}
	return dst
}

// Filter selects fills of a session; a zero field matches all.
type Filter struct {
	Order      market.OrderID
	ClOrdID    string
	ExecID     string
	Trade      market.TradeID
	Instrument *market.InstrumentID
	Side       market.Side
	From, To   int64 // Unix nanoseconds; both included
}

func (q *Filter) matches(f *Fill) bool {
	return (q.Order == 0 || q.Order == f.Order) && (q.ClOrdID == "" || q.ClOrdID == f.ClOrdID) &&
		(q.Trade == 0 || q.Trade == f.Trade) && (q.Instrument == nil || *q.Instrument == f.Instrument) &&
		(q.Side == 0 || q.Side == f.Side) && f.At >= q.From && (q.To == 0 || f.At <= q.To) &&
		(q.ExecID == "" || q.ExecID == string(f.AppendExecID(nil)))
}

// Position is what a participant has traded on an instrument, in lots.
type Position struct {
	Instrument   market.InstrumentID
	Bought, Sold market.Uint128
	Last         market.Price // of its newest fill
}

// Keys are the first bytes of the store's keys: KeyFill is followed by day u32, session
// u16, trade u64 and maker u8; KeyPosition by participant u16 and instrument u16.
const (
	KeyFill     byte = 'g'
	KeyPosition byte = 'j'
)

// History is the fills and positions of all sessions.
type History struct {
	store  kv.Store
	layout error // wrapped by errors about a record

	mu        sync.Mutex
	positions map[positionKey]*Position
	pending   []Fill        // not committed
	changed   []positionKey // by them
}

type positionKey struct {
	participant market.ParticipantID
	instrument  market.InstrumentID
}

// Open reads the positions. layout is wrapped by the errors about records that cannot be
// read.
func Open(store kv.Store, layout error) (*History, error) {
	h := &History{store: store, layout: layout, positions: make(map[positionKey]*Position)}
	return h, kv.Each(store, []byte{KeyPosition}, []byte{KeyPosition + 1}, func(key, value []byte) error {
		if len(key) != 5 || len(value) != positionSize || value[0] != recordVersion {
			return fmt.Errorf("%w: position %x: %d bytes", layout, key, len(value))
		}
		number := func(at int) uint64 { return binary.BigEndian.Uint64(value[at:]) }
		k := positionKey{market.ParticipantID(binary.BigEndian.Uint16(key[1:])), market.InstrumentID(binary.BigEndian.Uint16(key[3:]))}
		h.positions[k] = &Position{
			Instrument: k.instrument,
			Bought:     market.Uint128{Hi: number(1), Lo: number(9)}, Sold: market.Uint128{Hi: number(17), Lo: number(25)},
			Last: market.Price(number(33)),
		}
		return nil
	})
}

// Record adds a fill. Commit stores it.
func (h *History) Record(f *Fill) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := positionKey{f.Participant, f.Instrument}
	p := h.positions[k]
	if p == nil {
		p = &Position{Instrument: f.Instrument}
		h.positions[k] = p
	}
	sum := &p.Bought
	if f.Side == market.Sell {
		sum = &p.Sold
	}
	next, err := sum.Add(market.Uint128{Lo: uint64(f.Qty)})
	if err != nil {
		return fmt.Errorf("position of participant %d: %w", f.Participant, err)
	}
	*sum, p.Last = next, f.Price
	h.pending = append(h.pending, *f)
	if !slices.Contains(h.changed, k) {
		h.changed = append(h.changed, k)
	}
	return nil
}

// A fill's record:
//
//	0 version · 1 participant u16 · 3 instrument u16 · 5 side · 6 status · 7 order u64 ·
//	15 price i64 · 23 quantity i64 · 31 at i64 · 39 seq u64 · 47 index u32 · 51 epoch u32 ·
//	55 length of ClOrdID u8 · 56 ClOrdID · Account
//
// A position's: 0 version · 1 bought u128 · 17 sold u128 · 33 last price i64.
const (
	recordVersion = 1
	fillSize      = 56
	positionSize  = 41
)

// Commit adds everything recorded since AfterCommit to a commit; day of a fill is that of
// its time.
func (h *History) Commit(set func(key, value []byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.pending {
		set(h.pending[i].key(), h.pending[i].record())
	}
	for _, k := range h.changed {
		p := h.positions[k]
		key := binary.BigEndian.AppendUint16([]byte{KeyPosition}, uint16(k.participant))
		value := []byte{recordVersion}
		for _, n := range [...]uint64{p.Bought.Hi, p.Bought.Lo, p.Sold.Hi, p.Sold.Lo, uint64(p.Last)} {
			value = binary.BigEndian.AppendUint64(value, n)
		}
		set(binary.BigEndian.AppendUint16(key, uint16(k.instrument)), value)
	}
}

// AfterCommit forgets what the commit has stored.
func (h *History) AfterCommit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.pending)
	h.pending, h.changed = h.pending[:0], h.changed[:0]
}

// Expired returns the range of fills of the days before day.
func Expired(day uint32) (lo, hi []byte) {
	return []byte{KeyFill}, binary.BigEndian.AppendUint32([]byte{KeyFill}, day)
}

// DayOf returns the UTC day of a Unix nanosecond.
func DayOf(at int64) uint32 {
	const day = 24 * 60 * 60 * 1_000_000_000
	return uint32(max(at, 0) / day)
}

func bucket(day uint32, session uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32([]byte{KeyFill}, day), session)
}

func (f *Fill) key() []byte {
	key := binary.BigEndian.AppendUint64(bucket(DayOf(f.At), f.Session), uint64(f.Trade))
	if f.Maker {
		return append(key, 1)
	}
	return append(key, 0)
}

func (f *Fill) record() []byte {
	v := binary.BigEndian.AppendUint16([]byte{recordVersion}, uint16(f.Participant))
	v = binary.BigEndian.AppendUint16(v, uint16(f.Instrument))
	v = append(v, byte(f.Side), f.Status)
	for _, n := range [...]uint64{uint64(f.Order), uint64(f.Price), uint64(f.Qty), uint64(f.At), f.Seq} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	v = binary.BigEndian.AppendUint32(v, f.Index)
	v = binary.BigEndian.AppendUint32(v, f.Epoch)
	v = append(append(v, byte(len(f.ClOrdID))), f.ClOrdID...)
	return append(v, f.Account...)
}

const fillKeySize = 1 + 4 + 2 + 8 + 1

// parse reads the encoding of key and record, and reports whether it is valid.
func (f *Fill) parse(key, v []byte) bool {
	if len(key) != fillKeySize || len(v) < fillSize || v[0] != recordVersion || len(v) < fillSize+int(v[55]) {
		return false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(v[at:]) }
	end := fillSize + int(v[55])
	*f = Fill{
		Session: binary.BigEndian.Uint16(key[5:]), Trade: market.TradeID(binary.BigEndian.Uint64(key[7:])), Maker: key[15] == 1,
		Participant: market.ParticipantID(binary.BigEndian.Uint16(v[1:])), Instrument: market.InstrumentID(binary.BigEndian.Uint16(v[3:])),
		Side: market.Side(v[5]), Status: v[6], Order: market.OrderID(number(7)), Price: market.Price(number(15)), Qty: market.Qty(number(23)),
		At: int64(number(31)), Seq: number(39), Index: binary.BigEndian.Uint32(v[47:]), Epoch: binary.BigEndian.Uint32(v[51:]),
		ClOrdID: string(v[fillSize:end]), Account: string(v[end:]),
	}
	return true
}

// Fills returns the fills of a session's orders of yesterday and today that match, in the
// order of their trades; now gives the day. It returns ErrTooMany, or an error of the
// store.
func (h *History) Fills(session uint16, q *Filter, now int64) ([]Fill, error) {
	var list []Fill
	h.mu.Lock()
	for i := range h.pending { // a commit meanwhile may store them: then they are found twice
		if f := &h.pending[i]; f.Session == session && q.matches(f) {
			list = append(list, *f)
		}
	}
	h.mu.Unlock()
	present := DayOf(now)
	for day := max(present, 1) - 1; day <= present+1; day++ {
		var f Fill
		err := kv.Each(h.store, bucket(day, session), append(bucket(day, session), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), func(key, value []byte) error {
			if !f.parse(key, value) {
				return fmt.Errorf("%w: fill %x: %d bytes", h.layout, key, len(value))
			}
			if q.matches(&f) {
				list = append(list, f)
			}
			if len(list) > 2*MaxFills {
				return ErrTooMany
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b Fill) int {
		return cmp.Or(cmp.Compare(a.Trade, b.Trade), slices.Compare(a.key(), b.key()))
	})
	list = slices.CompactFunc(list, func(a, b Fill) bool { return a.Trade == b.Trade && a.Maker == b.Maker })
	if len(list) > MaxFills {
		return nil, ErrTooMany
	}
	return list, nil
}

// Positions returns a participant's positions, by instrument.
func (h *History) Positions(participant market.ParticipantID) []Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Position
	for k, p := range h.positions {
		if k.participant == participant {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b Position) int { return int(a.Instrument) - int(b.Instrument) })
	return list
}
