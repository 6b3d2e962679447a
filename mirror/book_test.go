package mirror_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

var (
	layouts = []mirror.Layout{mirror.Manifest, mirror.Serum, mirror.OpenBook}
	now     = mirror.Clock{Slot: 1000, Unix: 1_700_000_000}
)

// decode opens and decodes the built market.
func (m *made) decode(into *mirror.Depth, at mirror.Clock) error {
	b, err := mirror.Open(m.listing, m.accounts[0])
	if err != nil {
		return err
	}
	return b.Decode(into, at, m.accounts)
}

func sameDepth(got, want *mirror.Depth) bool {
	return slices.Equal(got.Bids, want.Bids) && slices.Equal(got.Asks, want.Asks) && got.Orders == want.Orders && got.Omitted == want.Omitted
}

// TestBookAgainstNaive compares every layout with the list of orders from which its
// accounts were built.
func TestBookAgainstNaive(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				orders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) order { return drawOrder(t, layout) }), 0, 60).Draw(t, "orders")
				m := makeBook(layout, orders)
				m.listing.Levels = rapid.SampledFrom([]int{1, 2, 5, mirror.MaxLevels}).Draw(t, "levels")
				m.listing.Instrument.Tick = rapid.SampledFrom([]uint64{1, 5, 1000, math.MaxUint64}).Draw(t, "tick")
				m.listing.Instrument.MaxPrice = market.Price(rapid.SampledFrom([]int64{1, 2_000_000, int64(market.MaxPrice)}).Draw(t, "max price"))
				got := mirror.Depth{Bids: make([]mirror.Level, 3), Asks: make([]mirror.Level, 1, 8), Orders: 7, Omitted: 7}
				if err := m.decode(&got, now); err != nil {
					t.Fatal(err)
				}
				if want := m.naive(orders, now); !sameDepth(&got, &want) {
					t.Fatalf("decoded %+v\nwant    %+v", got, want)
				}
			})
		})
	}
}

// drawOrder draws prices around 100 in a few steps, and sometimes from the whole range.
func drawOrder(t *rapid.T, layout mirror.Layout) order {
	most, around := uint64(math.MaxUint64), uint64(100_000)
	if layout == mirror.OpenBook {
		most = math.MaxInt64
	}
	o := order{bid: rapid.Bool().Draw(t, "bid"), size: rapid.Uint64Range(0, 1_000_000_000_000).Draw(t, "size")}
	o.price.Lo = around + rapid.Uint64Range(0, 20).Draw(t, "price")
	if layout == mirror.Manifest {
		o.price.Lo = o.price.Lo*1_000_000_000_000 + rapid.Uint64Range(0, 1).Draw(t, "a bit")
		o.last = rapid.SampledFrom([]uint32{0, 999, 1000, 1001}).Draw(t, "last valid slot")
	}
	if layout == mirror.OpenBook {
		o.life = rapid.SampledFrom([]uint16{0, 1, 9, 10, 11, math.MaxUint16}).Draw(t, "life")
		o.placed = uint64(now.Unix) - rapid.SampledFrom([]uint64{0, 10}).Draw(t, "age")
	}
	switch rapid.IntRange(0, 9).Draw(t, "wild") {
	case 0:
		o.price.Lo = rapid.Uint64Range(0, most).Draw(t, "any price")
	case 1:
		o.size = rapid.Uint64Range(0, most).Draw(t, "any size")
	case 2:
		if layout == mirror.Manifest {
			o.price.Hi = rapid.Uint64().Draw(t, "any high price")
		}
	}
	return o
}

// corrupted is a valid market with one error, and the expected error.
type corrupted struct {
	spoil func(*made)
	want  error
}

func byteAt(account, offset int, v byte) func(*made) {
	return func(m *made) { m.accounts[account].Data[offset] = v }
}

func wordAt(account, offset int, v uint32) func(*made) {
	return func(m *made) { u32(m.accounts[account].Data, offset, v) }
}

func cut(account, by int) func(*made) {
	return func(m *made) { a := m.accounts[account]; a.Data = a.Data[:len(a.Data)-by] }
}

func both(f, g func(*made)) func(*made) { return func(m *made) { f(m); g(m) } }

// refused lists what each layout refuses. The market has three bids and three asks. A
// Manifest market's nodes 0 to 2 are the bids, with 1 as the root; a crit-bit tree's node
// 0 is the root.
func refused(l mirror.Layout) map[string]corrupted {
	const noOrder = 1<<32 - 1
	switch l {
	case mirror.Manifest:
		return map[string]corrupted{
			"empty":                       {func(m *made) { m.accounts[0].Data = nil }, mirror.ErrMalformed},
			"no whole header":             {func(m *made) { m.accounts[0].Data = m.accounts[0].Data[:255] }, mirror.ErrMalformed},
			"another kind":                {byteAt(0, 0, 1), mirror.ErrMalformed},
			"another version":             {byteAt(0, 8, 1), mirror.ErrMalformed},
			"other decimals":              {byteAt(0, 9, 8), mirror.ErrListing},
			"nodes cut":                   {cut(0, 1), mirror.ErrMalformed},
			"part of a node":              {both(func(m *made) { a := m.accounts[0]; a.Data = append(a.Data, 0) }, wordAt(0, 152, 6*80+1)), mirror.ErrMalformed},
			"fewer nodes than linked":     {wordAt(0, 152, 80), mirror.ErrMalformed},
			"a root that is none":         {wordAt(0, 156, 7*80), mirror.ErrMalformed},
			"a root between nodes":        {wordAt(0, 156, 79), mirror.ErrMalformed},
			"another best":                {wordAt(0, 160, 80), mirror.ErrMalformed},
			"a tree without a best":       {wordAt(0, 160, noOrder), mirror.ErrMalformed},
			"a best without a tree":       {wordAt(0, 164, noOrder), mirror.ErrMalformed},
			"a node of another kind":      {byteAt(0, 256+13, 1), mirror.ErrMalformed},
			"a bid among the asks":        {byteAt(0, 256+4*80+56, 1), mirror.ErrMalformed},
			"a ring to the right":         {wordAt(0, 256+4, 80), mirror.ErrMalformed},
			"a ring to the left":          {wordAt(0, 256+2*80, 80), mirror.ErrMalformed},
			"out of order":                {both(wordAt(0, 256+80, 0), both(wordAt(0, 256+84, 160), wordAt(0, 160, 160))), mirror.ErrMalformed},
			"expired before the bank":     {wordAt(0, 256+52, 999), nil},
			"an order without size":       {both(wordAt(0, 256+32, 0), wordAt(0, 256+36, 0)), nil},
			"room for more than is there": {func(m *made) { a := m.accounts[0]; a.Data = append(a.Data, make([]byte, 800)...) }, nil},
		}
	case mirror.Serum:
		return map[string]corrupted{
			"empty":                {func(m *made) { m.accounts[0].Data = nil }, mirror.ErrMalformed},
			"no head":              {byteAt(0, 0, 'S'), mirror.ErrMalformed},
			"no tail":              {byteAt(1, serumSideSize-1, 'S'), mirror.ErrMalformed},
			"not initialized":      {byteAt(0, 5, 2), mirror.ErrAccount},
			"bids as the market":   {func(m *made) { m.accounts[0].Data = m.accounts[1].Data }, mirror.ErrAccount},
			"disabled":             {byteAt(0, 5, 3|128), mirror.ErrClosed},
			"closed":               {byteAt(0, 6, 1), mirror.ErrClosed},
			"another's name":       {byteAt(0, 13, 9), mirror.ErrMalformed},
			"no base lot":          {both(wordAt(0, 349, 0), wordAt(0, 353, 0)), mirror.ErrMalformed},
			"no quote lot":         {wordAt(0, 357, 0), mirror.ErrMalformed},
			"asks as the bids":     {func(m *made) { m.accounts[1].Data = m.accounts[2].Data }, mirror.ErrAccount},
			"one account for both": {func(m *made) { copy(m.accounts[0].Data[317:], atBids[:]) }, mirror.ErrMalformed},
			"more nodes than fit":  {wordAt(1, 13, 911), mirror.ErrMalformed},
			"more nodes by far":    {wordAt(1, 17, 1), mirror.ErrMalformed},
			"more orders than fit": {wordAt(1, 37, 911), mirror.ErrMalformed},
			"more orders by far":   {wordAt(1, 41, 1), mirror.ErrMalformed},
			"fewer orders":         {wordAt(1, 37, 2), mirror.ErrMalformed},
			"more orders":          {wordAt(2, 37, 4), mirror.ErrMalformed},
			"a root that is none":  {wordAt(2, 33, 5), mirror.ErrMalformed},
			"a child that is none": {wordAt(2, 45+28, noOrder), mirror.ErrMalformed},
			"a ring":               {wordAt(2, 45+28, 0), mirror.ErrMalformed},
			"a free node in use":   {byteAt(1, 45, 3), mirror.ErrMalformed},
			"out of order":         {func(m *made) { swapWords(m.accounts[2].Data, 45+24) }, mirror.ErrMalformed},
		}
	default:
		return map[string]corrupted{
			"empty":                {func(m *made) { m.accounts[0].Data = nil }, mirror.ErrAccount},
			"cut":                  {cut(0, 1), mirror.ErrAccount},
			"a side cut":           {cut(2, 1), mirror.ErrAccount},
			"another kind":         {byteAt(0, 0, 1), mirror.ErrAccount},
			"a side of no kind":    {byteAt(1, 0, 1), mirror.ErrAccount},
			"asks as the bids":     {byteAt(1, 312, 1), mirror.ErrAccount},
			"neither":              {byteAt(2, 312, 2), mirror.ErrAccount},
			"other decimals":       {byteAt(0, 10, 7), mirror.ErrListing},
			"a negative lot":       {byteAt(0, 463, 0x80), mirror.ErrMalformed},
			"a negative quote lot": {byteAt(0, 455, 0x80), mirror.ErrMalformed},
			"over":                 {wordAt(0, 48, uint32(now.Unix)-1), mirror.ErrClosed},
			"not quite over":       {wordAt(0, 48, uint32(now.Unix)), nil},
			"more nodes than fit":  {wordAt(1, 316, 1025), mirror.ErrMalformed},
			"more orders than fit": {wordAt(1, 12, 6), mirror.ErrMalformed},
			"more pegged ones":     {wordAt(1, 20, 6), mirror.ErrMalformed},
			"a negative price":     {func(m *made) { u64(m.accounts[2].Data, 840+88*4+16, 1<<63) }, mirror.ErrMalformed},
			"a negative quantity":  {func(m *made) { u64(m.accounts[2].Data, 840+88*1+56, 1<<63) }, mirror.ErrMalformed},
			"a ring":               {wordAt(2, 840+28, 0), mirror.ErrMalformed},
			"out of order":         {func(m *made) { swapWords(m.accounts[2].Data, 840+24) }, mirror.ErrMalformed},
		}
	}
}

// swapWords exchanges two neighbouring words, such as an inner node's children.
func swapWords(d []byte, at int) {
	a, b := [4]byte(d[at:]), [4]byte(d[at+4:])
	copy(d[at:], b[:])
	copy(d[at+4:], a[:])
}

// TestBookRefused corrupts one field of a valid market and expects the error.
func TestBookRefused(t *testing.T) {
	common := map[string]corrupted{
		"as it is":             {func(*made) {}, nil},
		"the most levels":      {func(m *made) { m.listing.Levels = mirror.MaxLevels }, nil},
		"no levels":            {func(m *made) { m.listing.Levels = 0 }, mirror.ErrListing},
		"too many levels":      {func(m *made) { m.listing.Levels = mirror.MaxLevels + 1 }, mirror.ErrListing},
		"no layout":            {func(m *made) { m.listing.Layout = 0 }, mirror.ErrListing},
		"too many decimals":    {func(m *made) { m.listing.Base.Decimals = 20 }, mirror.ErrListing},
		"one mint":             {func(m *made) { m.listing.Quote.Mint = m.listing.Base.Mint }, mirror.ErrListing},
		"another base":         {func(m *made) { m.listing.Base.Mint[9]++ }, mirror.ErrListing},
		"another quote":        {func(m *made) { m.listing.Quote.Mint[9]++ }, mirror.ErrListing},
		"upside down":          {func(m *made) { m.listing.Base, m.listing.Quote = m.listing.Quote, m.listing.Base }, mirror.ErrListing},
		"no tick":              {func(m *made) { m.listing.Instrument.Tick = 0 }, mirror.ErrListing},
		"no market":            {func(m *made) { m.accounts[0] = nil }, mirror.ErrAccount},
		"another market":       {func(m *made) { m.accounts[0].Address[7]++ }, mirror.ErrAccount},
		"another program":      {func(m *made) { m.accounts[0].Owner[7]++ }, mirror.ErrAccount},
		"larger than can be":   {func(m *made) { m.accounts[0].Data = make([]byte, mirror.MaxBookAccount+1) }, mirror.ErrMalformed},
		"one account too many": {func(m *made) { m.accounts = append(m.accounts, nil) }, mirror.ErrAccount},
	}
	for _, layout := range layouts {
		good := makeBook(layout, someOrders(layout, 3))
		for _, table := range []map[string]corrupted{common, refused(layout)} {
			for name, c := range table {
				m := good.clone()
				m.listing.Instrument = instrument()
				c.spoil(m)
				d := mirror.Depth{Bids: make([]mirror.Level, 3), Orders: 1}
				err := m.decode(&d, now)
				if !errors.Is(err, c.want) {
					t.Errorf("%s, %s: %v, want %v", layout, name, err, c.want)
				}
			}
		}
	}
}

// TestBookRefusedLater: Decode repeats the checks of Open, and an error leaves nothing of
// the last refresh in the Depth.
func TestBookRefusedLater(t *testing.T) {
	for _, layout := range layouts {
		m := makeBook(layout, someOrders(layout, 3))
		b, err := mirror.Open(m.listing, m.accounts[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Accounts()) != len(m.accounts) || b.Accounts()[0] != atMarket {
			t.Fatalf("%s asks for %v", layout, b.Accounts())
		}
		var d mirror.Depth
		for name, c := range map[string]corrupted{
			"none":        {func(m *made) { m.accounts = nil }, mirror.ErrAccount},
			"one missing": {func(m *made) { m.accounts[len(m.accounts)-1] = nil }, mirror.ErrAccount},
			"one foreign": {func(m *made) { m.accounts[len(m.accounts)-1].Owner = solana.SystemProgram }, mirror.ErrAccount},
			"one other":   {func(m *made) { m.accounts[len(m.accounts)-1].Address = atMarket; m.accounts[0].Address = atAsks }, mirror.ErrAccount},
		} {
			if err := b.Decode(&d, now, m.accounts); err != nil || d.Orders != 6 {
				t.Fatalf("%s: %+v, %v", layout, d, err)
			}
			corrupted := m.clone()
			c.spoil(corrupted)
			err := b.Decode(&d, now, corrupted.accounts)
			if !errors.Is(err, c.want) || len(d.Bids)+len(d.Asks)+d.Orders+d.Omitted != 0 {
				t.Errorf("%s, %s: %+v, %v, want %v", layout, name, d, err, c.want)
			}
		}
		if layout == mirror.Manifest {
			continue
		}
		moved := m.clone()
		moved.accounts[0].Data[map[mirror.Layout]int{mirror.Serum: 349, mirror.OpenBook: 456}[layout]]++
		if err := b.Decode(&d, now, moved.accounts); !errors.Is(err, mirror.ErrMalformed) {
			t.Errorf("%s: another base lot: %v", layout, err)
		}
	}
}

// someOrders makes n bids and n asks at prices of their own, about 1.
func someOrders(layout mirror.Layout, n int) (orders []order) {
	unit := map[mirror.Layout]uint64{mirror.Manifest: 100_000_000_000, mirror.Serum: 1, mirror.OpenBook: 1}[layout]
	for i := range uint64(n) {
		orders = append(orders,
			order{bid: true, price: market.Uint128{Lo: (10_000 - i) * unit}, size: 1 + i},
			order{price: market.Uint128{Lo: (10_001 + i) * unit}, size: 1 + i})
	}
	return orders
}

// TestBookSum: an order that would overflow a level is omitted, and a smaller one after
// it is not.
func TestBookSum(t *testing.T) {
	price := market.Uint128{Lo: 1_000_000_000_000_000}
	m := makeBook(mirror.Manifest, []order{{price: price, size: 1 << 63}, {price: price, size: 1 << 63}, {price: price, size: 1<<63 - 1}})
	var d mirror.Depth
	if err := m.decode(&d, now); err != nil || d.Orders != 2 || d.Omitted != 1 || !slices.Equal(d.Asks, []mirror.Level{{Price: 10_000, Size: math.MaxUint64}}) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestOpenBookPegged: pegged orders are counted.
func TestOpenBookPegged(t *testing.T) {
	m := makeBook(mirror.OpenBook, someOrders(mirror.OpenBook, 3))
	u32(m.accounts[1].Data, 20, 2)
	u32(m.accounts[2].Data, 20, 3)
	var d mirror.Depth
	if err := m.decode(&d, now); err != nil || d.Orders != 6 || d.Omitted != 5 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestAppendLots: sizes in lots, rounded down, and levels below a lot.
func TestAppendLots(t *testing.T) {
	l := listing(mirror.Manifest)
	levels := []mirror.Level{{Price: 5, Size: 999_999}, {Price: 4, Size: 1_000_000}, {Price: 3, Size: 2_999_999}, {Price: 2, Size: math.MaxUint64}}
	got, err := l.AppendLots([]market.Level{{Price: 9, Qty: 9}}, levels)
	want := []market.Level{{Price: 9, Qty: 9}, {Price: 4, Qty: 1}, {Price: 3, Qty: 2}, {Price: 2, Qty: 18_446_744_073_709}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	l.Instrument.QtyDecimals, l.Base.Decimals = 10, 9
	got, err = l.AppendLots(nil, []mirror.Level{{Price: 1, Size: math.MaxInt64 / 10}, {Price: 2, Size: math.MaxInt64/10 + 1}})
	if want := []market.Level{{Price: 1, Qty: math.MaxInt64 / 10 * 10}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("about 2^63 lots: %v, %v; want %v", got, err, want)
	}
	l.Instrument.Lot = 0
	if _, err := l.AppendLots(nil, levels); !errors.Is(err, mirror.ErrListing) {
		t.Errorf("no lot: %v", err)
	}
}

func clockAccount(slot, unix uint64) *rpc.Account {
	d := make([]byte, 40)
	u64(d, 0, slot)
	u64(d, 32, unix)
	return &rpc.Account{Address: solana.ClockSysvar, Owner: solana.SysvarOwner, Data: d}
}

// TestParseClock: the clock must name the answer's slot.
func TestParseClock(t *testing.T) {
	if c, err := mirror.ParseClock(clockAccount(7, 1_700_000_000), 7); err != nil || c != (mirror.Clock{Slot: 7, Unix: 1_700_000_000}) {
		t.Errorf("%+v, %v", c, err)
	}
	short, other := clockAccount(7, 1), clockAccount(7, 1)
	short.Data, other.Owner = short.Data[:39], solana.SystemProgram
	for name, c := range map[string]struct {
		account *rpc.Account
		want    error
	}{
		"none": {nil, mirror.ErrAccount}, "another owner": {other, mirror.ErrAccount}, "cut": {short, mirror.ErrMalformed},
		"an older bank": {clockAccount(6, 1), mirror.ErrAccount}, "a newer bank": {clockAccount(8, 1), mirror.ErrAccount},
		"no time": {clockAccount(7, 0), mirror.ErrMalformed}, "before 1970": {clockAccount(7, math.MaxUint64), mirror.ErrMalformed},
	} {
		if got, err := mirror.ParseClock(c.account, 7); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestLayoutWords: the names of layouts.
func TestLayoutWords(t *testing.T) {
	if got := fmt.Sprint(mirror.Manifest, mirror.Serum, mirror.OpenBook, mirror.Layout(0)); got != "manifest serum openbook layout?" {
		t.Error(got)
	}
}
