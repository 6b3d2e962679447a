package shardwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

var rewrite = flag.Bool("rewrite-shardwire", false, "write testdata anew")

const shown = int64(1_795_262_400_123_456_789)

// testDesk has every kind of record and both kinds of book.
func testDesk() *Desk {
	return &Desk{
		Enabled: true, At: shown,
		Pairs: []rfq.Pair{
			{
				Instrument: 0, BaseMint: market.Address{1, 2, 3}, BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceBook,
				CorridorBps: 300, MaxAge: 60e9, Via: 1, Anchor: 1_000_000_000, AnchorAt: shown - 1,
				Inventory: 5_000_000, Reserved: 250, Sold: 7,
			},
			{Instrument: 1, BaseDecimals: 9, Rails: market.Rails(0).With(market.RailUSDC), Source: rfq.SourceOperator, CorridorBps: 1, Via: rfq.NoInstrument},
		},
		Locks: []rfq.Lock{
			{Scope: rfq.LockAll, Since: shown, By: 1, Reason: "drill"},
			{Scope: rfq.LockPair, Instrument: 1, Locked: true, Since: shown},
			{Scope: rfq.LockRail, Rail: market.RailSOL, Locked: true, Since: shown},
		},
		Tickets: []*rfq.Ticket{
			{
				ID: 7, Label: "spring block", Rails: market.AllRails, State: rfq.TicketOpen, Priority: 3, Reference: 9,
				CreatedAt: 1, UpdatedAt: 2, ExpiresAt: 3, Seq: 4, By: 5,
				Tranches: []rfq.Tranche{{ID: 1, Capacity: 1000, Reserved: 10, Filled: 20}, {ID: 2, Capacity: 5}},
			},
			{ID: 9, Label: "late", Instrument: 1, Rails: market.AllRails, State: rfq.TicketExpired, Tranches: []rfq.Tranche{{ID: 1}}},
		},
		Books: []Book{
			{Status: 1, Bid: market.Level{Price: 99, Qty: 1}, Ask: market.Level{Price: 101, Qty: 2}},
			{Status: 2},
		},
	}
}

// testFacts has every field set in one of its values, and optional fields also as
// zero.
func testFacts() *Facts {
	d := func(n uint64, decimals int) *catalog.Decimal {
		return &catalog.Decimal{Units: market.Uint128{Lo: n, Hi: n >> 3}, Decimals: decimals}
	}
	amount, zero, bps, percent, id := market.Amount(12), market.Amount(0), uint16(0), catalog.Percent(-150), uint64(825)
	return &Facts{
		Pairs: []catalog.Pair{
			{
				Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", Source: market.Mirrored, Halted: true, NoBook: true, PriceDecimals: 4, QtyDecimals: 18,
				Tick: *d(1, 4), Lot: *d(2, 2), MinQty: *d(3, 36), Last: d(4, 1), Bid: d(5, 2), Ask: d(6, 3), High24h: d(7, 4), Low24h: d(0, 0),
				LastAt: 8, LastTrade: 9, LastSignature: "sig", Side: market.Sell, LastQty: d(10, 1), BaseVolume24h: *d(11, 2),
				QuoteVolume24h: *d(12, 3), Trades24h: 13, Epoch: 14, Seq: 15,
				Candle:   &catalog.Candle{Open: 16, O: *d(17, 1), H: *d(18, 2), L: *d(19, 3), C: *d(20, 4), BaseVolume: *d(21, 5), QuoteVolume: *d(22, 6), Trades: 23},
				PriceUSD: 24, PriceSource: catalog.FromVaultSnapshot, Floor: 25, VisibleUSD: 26, GuaranteeUSD: 27, ReadAt: 28,
				Pool: &catalog.Pool{
					Address: "pool", Program: "program", Layout: "vault_pair", BaseMint: "a", QuoteMint: "b", BaseVault: "c", QuoteVault: "d", LPMint: "e",
					BaseAtoms: 29, QuoteAtoms: 30, BaseDecimals: 6, QuoteDecimals: 19, FeeBps: &bps, Spot: 31, Slot: 32, At: -33, BaseFees: &amount, QuoteFees: &zero,
				},
				Windows: catalog.Windows{
					Day:    catalog.Window{Status: catalog.WindowExact, VolumeUSD: 34, Trades: 35, DeltaPercent: &percent, ReferenceAt: 36},
					Week:   catalog.Window{Status: catalog.WindowUnproven, Why: "why"},
					LastAt: 37,
				},
				Totals: catalog.Totals{
					OnchainSwaps: 38, ReconstructedSwaps: 39, OnchainUSD: 40, ReconstructedUSD: 41, ReconstructedFeesUSD: 49, MatchedTrades: 42, MatchedUSD: 43,
					FeesBase: *d(44, 1), FeesQuote: *d(45, 2), FeesUnknown: *d(46, 3), FeesUSD: 47, Traders: 48, TradersFrom: "chain",
					Sales: catalog.Sales{Count: 50, DayCount: 51, VolumeUSD: 52, FeesUSD: 53, DayUSD: 54},
				},
				Reasons: []string{"stale", ""},
			},
			{Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", Source: market.Matched},
		},
		Tokens: []catalog.Token{
			{
				Mint: "mint", Symbol: "SLUSD", OnchainSymbol: "slusd", Name: "SL Dollar", Decimals: 6, Role: catalog.RoleSettlement,
				LogoURI: "u1", MetadataURI: "u2", ImageURI: "u3", ImageIPFS: "u4", ImageGateway: "u5", Supply: &amount, CoinMarketCapID: &id,
				Accounts: []catalog.Account{{Address: "x", Amount: 1, Role: catalog.DeskInventory, Label: "l", Pool: "p", PoolLabel: "q", Slot: 2}},
			},
			{Symbol: "USDC"},
		},
		Desk: catalog.Desk{
			Enabled: true, OpenTickets: 1, CapacityUSD: 2, AvailableUSD: 3, ReservedUSD: 4, SettledUSD: 5, FeesUSD: 10, UnderWay: 6, RefundsDue: 7,
			RefundsUSDC: 8, RefundsSOL: 9, Unmatched: 11, UnmatchedUSDC: 12, UnmatchedSOL: 13,
		},
	}
}

func encodedFacts(t testing.TB, f *Facts) []byte {
	t.Helper()
	data, err := AppendFacts(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestGolden pins the bytes of version 2; changing them requires a new Version.
func TestGolden(t *testing.T) {
	for name, data := range map[string][]byte{
		"desk_v2": AppendDesk(nil, testDesk()), "facts_v2": encodedFacts(t, testFacts()),
		"no_desk_v2": AppendDesk(nil, &Desk{}), "no_facts_v2": encodedFacts(t, &Facts{}),
	} {
		file := filepath.Join("testdata", name+".hex")
		if *rewrite {
			if err := os.WriteFile(file, []byte(hex.EncodeToString(data)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(data); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range []*Desk{testDesk(), {}, {Books: make([]Book, MaxBooks)}} {
		got, err := DecodeDesk(AppendDesk(nil, want), len(want.Books))
		if err != nil {
			t.Fatal(err)
		}
		if want.Books == nil {
			want.Books = []Book{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	for _, want := range []*Facts{testFacts(), {}} {
		got, err := DecodeFacts(encodedFacts(t, want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v\nwant %+v", err, got, want)
		}
	}
	if got := AppendDesk([]byte("before"), testDesk()); !bytes.Equal(got, append([]byte("before"), AppendDesk(nil, testDesk())...)) {
		t.Error("AppendDesk does not append")
	}
}

// TestEveryFieldIsSent changes each field of a document in turn and expects other
// bytes, so that no field is forgotten. The exceptions are listed.
func TestEveryFieldIsSent(t *testing.T) {
	f := testFacts()
	base := encodedFacts(t, f)
	leaves(t, "Facts", reflect.ValueOf(f).Elem(), func(path string) {
		data, err := AppendFacts(nil, f)
		if err == nil && bytes.Equal(data, base) && !strings.HasSuffix(path, ".Unreachable") {
			t.Errorf("%s is not encoded", path)
		}
	})
	d := testDesk()
	base = AppendDesk(nil, d)
	leaves(t, "Desk", reflect.ValueOf(d).Elem(), func(path string) {
		if bytes.Equal(AppendDesk(nil, d), base) {
			t.Errorf("%s is not encoded", path)
		}
	})
}

// leaves changes each number, flag and text below v in turn, calls changed, and
// restores it.
func leaves(t *testing.T, path string, v reflect.Value, changed func(path string)) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			leaves(t, path+"."+v.Type().Field(i).Name, v.Field(i), changed)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			leaves(t, path, v.Elem(), changed)
		}
	case reflect.Slice, reflect.Array:
		if v.Len() > 0 {
			leaves(t, path+"[0]", v.Index(0), changed)
		}
	default:
		old := reflect.ValueOf(v.Interface())
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint8, reflect.Uint16, reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		default:
			t.Fatalf("%s is a %s", path, v.Kind())
		}
		changed(path)
		v.Set(old)
	}
}

// TestHeader refuses documents of another version, and names the version.
func TestHeader(t *testing.T) {
	desk, facts := AppendDesk(nil, testDesk()), encodedFacts(t, testFacts())
	if _, err := DecodeDesk(facts, 2); !errors.Is(err, ErrFormat) {
		t.Errorf("facts as a desk: %v", err)
	}
	if _, err := DecodeFacts(desk); !errors.Is(err, ErrFormat) {
		t.Errorf("a desk as facts: %v", err)
	}
	for _, data := range [][]byte{desk, facts} {
		data[4] = 3
	}
	_, err1 := DecodeDesk(desk, 2)
	_, err2 := DecodeFacts(facts)
	for _, err := range []error{err1, err2} {
		var v VersionError
		if !errors.As(err, &v) || v.Got != 3 {
			t.Errorf("version 3: %v", err)
		}
	}
}

// TestDamage cuts documents everywhere, extends them and flips each bit, and expects
// an error or a value with exactly these bytes.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		same func([]byte) (bool, error)
	}{
		"desk":  {AppendDesk(nil, testDesk()), func(data []byte) (bool, error) { return sameDesk(data, 2) }},
		"facts": {encodedFacts(t, testFacts()), sameFacts},
	} {
		for n := range len(c.data) {
			if _, err := c.same(c.data[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes are decoded", name, n, len(c.data))
			}
		}
		if _, err := c.same(append(bytes.Clone(c.data), 0)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: a byte too many: %v", name, err)
		}
		for bit := range len(c.data) * 8 {
			flipped := bytes.Clone(c.data)
			flipped[bit/8] ^= 1 << (bit % 8)
			if same, err := c.same(flipped); err == nil && !same {
				t.Errorf("%s: bit %d: decoded, and encoded differently", name, bit)
			}
		}
	}
}

func sameDesk(data []byte, instruments int) (bool, error) {
	d, err := DecodeDesk(data, instruments)
	return err == nil && bytes.Equal(AppendDesk(nil, d), data), err
}

func sameFacts(data []byte) (bool, error) {
	f, err := DecodeFacts(data)
	if err != nil {
		return false, err
	}
	again, err := AppendFacts(nil, f)
	return bytes.Equal(again, data), err
}

// TestLimits: a document at each limit is decoded again; above it, the encoder of
// facts and the decoder of a desk refuse it.
func TestLimits(t *testing.T) {
	text := strings.Repeat("x", MaxText)
	for name, c := range map[string]struct{ at, above *Facts }{
		"pairs":  {&Facts{Pairs: make([]catalog.Pair, MaxPairs)}, &Facts{Pairs: make([]catalog.Pair, MaxPairs+1)}},
		"tokens": {&Facts{Tokens: make([]catalog.Token, MaxTokens)}, &Facts{Tokens: make([]catalog.Token, MaxTokens+1)}},
		"accounts": {
			&Facts{Tokens: []catalog.Token{{Accounts: make([]catalog.Account, MaxAccounts)}}},
			&Facts{Tokens: []catalog.Token{{Accounts: make([]catalog.Account, MaxAccounts+1)}}},
		},
		"reasons": {
			&Facts{Pairs: []catalog.Pair{{Reasons: make([]string, MaxReasons)}}},
			&Facts{Pairs: []catalog.Pair{{Reasons: make([]string, MaxReasons+1)}}},
		},
		"text":     {&Facts{Tokens: []catalog.Token{{Name: text}}}, &Facts{Tokens: []catalog.Token{{Name: text + "x"}}}},
		"decimals": {&Facts{Pairs: []catalog.Pair{{Tick: catalog.Decimal{Decimals: 36}}}}, &Facts{Pairs: []catalog.Pair{{Tick: catalog.Decimal{Decimals: 37}}}}},
		"negative": {&Facts{}, &Facts{Pairs: []catalog.Pair{{Tick: catalog.Decimal{Decimals: -1}}}}},
		"side":     {&Facts{Pairs: []catalog.Pair{{Side: market.Sell}}}, &Facts{Pairs: []catalog.Pair{{Side: market.Sell + 1}}}},
	} {
		if same, err := sameFacts(encodedFacts(t, c.at)); err != nil || !same {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if data, err := AppendFacts([]byte("x"), c.above); !errors.Is(err, ErrFormat) || string(data) != "x" {
			t.Errorf("%s above the limit: %v", name, err)
		}
	}
	many := func(tickets, tranches int) []byte {
		d := &Desk{Books: make([]Book, 1)}
		for i := range tickets {
			ticket := &rfq.Ticket{ID: market.TicketID(i + 1), State: rfq.TicketOpen}
			for j := range tranches {
				ticket.Tranches = append(ticket.Tranches, rfq.Tranche{ID: market.TrancheID(j + 1)})
			}
			d.Tickets = append(d.Tickets, ticket)
		}
		return AppendDesk(nil, d)
	}
	for name, c := range map[string]struct {
		data  []byte
		valid bool
	}{
		"most tickets":       {many(rfq.MaxTickets, 1), true},
		"one ticket more":    {many(rfq.MaxTickets+1, 1), false},
		"most tranches":      {many(1, rfq.MaxTranches), true},
		"one tranche more":   {many(1, rfq.MaxTranches+1), false},
		"no tranche":         {many(1, 0), false},
		"the largest desk":   {many(rfq.MaxTickets, rfq.MaxTranches), true},
		"another shard's":    {AppendDesk(nil, &Desk{Books: make([]Book, 2)}), false},
		"one book too many":  {AppendDesk(nil, &Desk{Books: make([]Book, MaxBooks+1)}), false},
		"a record of no use": {append(AppendDesk(nil, &Desk{Books: make([]Book, 1)})[:headSize+1+8+2+bookSize], rfq.AppendRecord([]byte{1, 0, 0, 0}, &rfq.Operator{ID: 1, Name: "ann"})...), false},
	} {
		if same, err := sameDesk(c.data, 1); (err == nil) != c.valid || same != c.valid {
			t.Errorf("%s: %v %v", name, same, err)
		}
		if c.valid && len(c.data) > 8<<20 {
			t.Errorf("%s: %d bytes are more than a gateway accepts", name, len(c.data))
		}
	}
}

// TestDeskIsChecked refuses desks whose records are valid one by one but not together.
func TestDeskIsChecked(t *testing.T) {
	for name, change := range map[string]func(d *Desk){
		"pairs out of order":     func(d *Desk) { d.Pairs[0], d.Pairs[1] = d.Pairs[1], d.Pairs[0] },
		"a pair twice":           func(d *Desk) { d.Pairs[1] = d.Pairs[0] },
		"a foreign pair":         func(d *Desk) { d.Pairs[1].Instrument = 2 },
		"a foreign via":          func(d *Desk) { d.Pairs[1].Via = 2 },
		"too many decimals":      func(d *Desk) { d.Pairs[1].BaseDecimals = 19 },
		"unknown rails":          func(d *Desk) { d.Pairs[1].Rails = 255 },
		"a huge anchor":          func(d *Desk) { d.Pairs[1].Anchor = market.MaxUSDPrice + 1 },
		"locks out of order":     func(d *Desk) { d.Locks[0], d.Locks[1] = d.Locks[1], d.Locks[0] },
		"a foreign lock":         func(d *Desk) { d.Locks[1].Instrument = 2 },
		"a lock of a pair's":     func(d *Desk) { d.Locks[0].Instrument = 1 },
		"a lock of no rail":      func(d *Desk) { d.Locks[2].Rail = 0 },
		"an unknown lock":        func(d *Desk) { d.Locks[2].Scope = 4 },
		"tickets out of order":   func(d *Desk) { d.Tickets[0], d.Tickets[1] = d.Tickets[1], d.Tickets[0] },
		"a foreign ticket":       func(d *Desk) { d.Tickets[1].Instrument = 2 },
		"ticket 0":               func(d *Desk) { d.Tickets[0].ID = 0 },
		"an unknown state":       func(d *Desk) { d.Tickets[0].State = 5 },
		"no state":               func(d *Desk) { d.Tickets[0].State = 0 },
		"a ticket's rails":       func(d *Desk) { d.Tickets[0].Rails = 255 },
		"a huge reference":       func(d *Desk) { d.Tickets[0].Reference = market.MaxUSDPrice + 1 },
		"a gap between tranches": func(d *Desk) { d.Tickets[0].Tranches[1].ID = 3 },
		"a huge tranche":         func(d *Desk) { d.Tickets[0].Tranches[1].Capacity = rfq.MaxCapacity + 1 },
		"more sold than there":   func(d *Desk) { d.Tickets[0].Tranches[0].Filled = 991 },
	} {
		d := testDesk()
		change(d)
		if _, err := DecodeDesk(AppendDesk(nil, d), 2); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDesk and FuzzFacts: any bytes give an error or a value that is encoded to the
// same bytes.
func FuzzDesk(f *testing.F) {
	f.Add(AppendDesk(nil, testDesk()))
	f.Add(AppendDesk(nil, &Desk{Books: make([]Book, 2)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if same, err := sameDesk(data, 2); err == nil && !same {
			t.Error("decoded, and encoded differently")
		}
	})
}

func FuzzFacts(f *testing.F) {
	f.Add(encodedFacts(f, testFacts()))
	f.Add(encodedFacts(f, &Facts{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if same, err := sameFacts(data); err == nil && !same {
			t.Error("decoded, and encoded differently")
		}
	})
}

func BenchmarkDesk(b *testing.B) {
	d := &Desk{Enabled: true, Books: make([]Book, 1)}
	for i := range 1000 {
		d.Tickets = append(d.Tickets, &rfq.Ticket{
			ID: market.TicketID(i + 1), Label: "spring block", State: rfq.TicketOpen,
			Tranches: []rfq.Tranche{{ID: 1, Capacity: 5}, {ID: 2, Capacity: 6}},
		})
	}
	data := AppendDesk(nil, d)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AppendDesk(data[:0], d)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeDesk(data, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
