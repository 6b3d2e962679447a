package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

var testNow = time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC)

func nanos(text string) int64 {
	at, err := time.Parse("20060102-15:04:05.999999999", text)
	if err != nil {
		panic(err)
	}
	return at.UnixNano()
}

func TestDecodeNew(t *testing.T) {
	t.Parallel()
	set := wiretest.Instruments(t)
	const limit = "11=a|55=SLUSD/USDC|54=1|38=10|40=2|44=1.5|"
	for _, c := range []struct {
		fields string
		want   book.Order
	}{
		{limit + "59=1|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTC, Qty: 1000, Price: 15000}},
		{limit, book.Order{Side: market.Buy, Type: book.Limit, TIF: book.Day, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-00:00:00")}},
		{limit + "59=0|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.Day, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-00:00:00")}},
		{limit + "59=3|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.IOC, Qty: 1000, Price: 15000}},
		{limit + "59=4|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.FOK, Qty: 1000, Price: 15000}},
		{limit + "59=6|126=20261121-01:02:03|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTD, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-01:02:03")}},
		{limit + "59=6|126=20261121-01:02:03.456|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTD, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-01:02:03.456")}},
		{limit + "59=6|126=20261121-01:02:03.456789|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTD, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-01:02:03.456789")}},
		{limit + "59=6|126=20261121-01:02:03.456789123|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTD, Qty: 1000, Price: 15000, ExpireAt: nanos("20261121-01:02:03.456789123")}},
		{limit + "59=6|432=20261125|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTD, Qty: 1000, Price: 15000, ExpireAt: nanos("20261126-00:00:00")}},
		{limit + "59=1|18=6|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTC, Qty: 1000, Price: 15000, Flags: book.FlagPostOnly}},
		{limit + "59=1|111=2.5|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTC, Qty: 1000, Price: 15000, Display: 250}},
		{limit + "59=1|111=10|", book.Order{Side: market.Buy, Type: book.Limit, TIF: book.GTC, Qty: 1000, Price: 15000}},
		{"11=a|55=92C/SLUSD|54=2|38=3|40=1|", book.Order{Side: market.Sell, Type: book.Market, TIF: book.IOC, Qty: 3}},
		{"11=a|55=92C/SLUSD|54=2|38=3|40=1|59=1|", book.Order{Side: market.Sell, Type: book.Market, TIF: book.IOC, Qty: 3}},
		{"11=a|55=92C/SLUSD|54=2|38=3|40=1|59=4|", book.Order{Side: market.Sell, Type: book.Market, TIF: book.FOK, Qty: 3}},
		{"11=a|55=92C/SLUSD|54=2|38=3|40=3|99=50|59=1|", book.Order{Side: market.Sell, Type: book.Stop, TIF: book.GTC, Qty: 3, Stop: 10}},
		{"11=a|55=92C/SLUSD|54=2|38=3|40=4|99=50|44=45|59=1|", book.Order{Side: market.Sell, Type: book.StopLimit, TIF: book.GTC, Qty: 3, Stop: 10, Price: 9}},
	} {
		r := ScanOrderRequest(wiretest.Message("35=D|34=1|" + c.fields))
		got, _, refusal := r.DecodeNew(set, testNow)
		if refusal != nil {
			t.Errorf("%s: refused: %s", c.fields, refusal.Text)
		} else if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.fields, got, c.want)
		}
	}
}

func TestDecodeNewRefuses(t *testing.T) {
	t.Parallel()
	set := wiretest.Instruments(t)
	for _, c := range []struct {
		change string // "tag=value" replaces or adds, "tag" removes
		reason int
		text   string
	}{
		{"55", 1, `MISSING_FIELD: Symbol (55)`},
		{"55=X/Y", 1, `UNKNOWN_SYMBOL: Symbol (55) "X/Y"`},
		{"55=slusd/usdc", 1, `UNKNOWN_SYMBOL: Symbol (55) "slusd/usdc"`},
		{"54=3", 11, `INVALID_FIELD: Side (54) "3": must be 1 (buy) or 2 (sell)`},
		{"38", 13, `MISSING_FIELD: OrderQty (38)`},
		{"38=0", 13, `INVALID_FIELD: OrderQty (38) "0": must be greater than zero`},
		{"38=-1", 13, `INVALID_FIELD: OrderQty (38) "-1": not a plain decimal number`},
		{"38=1e3", 13, `INVALID_FIELD: OrderQty (38) "1e3": not a plain decimal number`},
		{"38=0.001", 13, `INVALID_FIELD: OrderQty (38) "0.001": more fractional digits than the field has`},
		{"38=99999999999999999999", 13, `INVALID_FIELD: OrderQty (38) "99999999999999999999": value does not fit`},
		{"111=0", 13, `INVALID_FIELD: MaxFloor (111) "0": must be greater than zero`},
		{"40=P", 11, `UNSUPPORTED: OrdType (40) "P": must be 1 (market), 2 (limit), 3 (stop) or 4 (stop limit)`},
		{"40=D", 11, `UNSUPPORTED: OrdType (40) "D": must be 1 (market), 2 (limit), 3 (stop) or 4 (stop limit)`},
		{"40=1", 11, `INVALID_FIELD: Price (44) "1.5": not allowed with this OrdType (40)`},
		{"40=4", 11, `MISSING_FIELD: StopPx (99): required by this OrdType (40)`},
		{"99=1", 11, `INVALID_FIELD: StopPx (99) "1": not allowed with this OrdType (40)`},
		{"44", 11, `MISSING_FIELD: Price (44): required by this OrdType (40)`},
		{"44=0", 11, `INVALID_FIELD: Price (44) "0": must be greater than zero`},
		{"44=1.23456", 11, `INVALID_FIELD: Price (44) "1.23456": more fractional digits than the field has`},
		{"44=NaN", 11, `INVALID_FIELD: Price (44) "NaN": not a plain decimal number`},
		{"59=2", 11, `UNSUPPORTED: TimeInForce (59) "2": must be 0 (day), 1 (GTC), 3 (IOC), 4 (FOK) or 6 (GTD)`},
		{"59=11", 11, `UNSUPPORTED: TimeInForce (59) "11": must be one character`},
		{"59=6", 99, `MISSING_FIELD: ExpireTime (126) or ExpireDate (432): TimeInForce (59) 6 needs one`},
		{"126=20261121-01:02:03", 99, `INVALID_FIELD: ExpireTime (126), ExpireDate (432): only with TimeInForce (59) 6`},
		{"59=6|126=tomorrow", 99, `INVALID_FIELD: ExpireTime (126) "tomorrow": must be YYYYMMDD-HH:MM:SS[.sss]`},
		{"59=6|126=20260230-01:02:03", 99, `INVALID_FIELD: ExpireTime (126) "20260230-01:02:03": must be YYYYMMDD-HH:MM:SS[.sss]`},
		{"59=6|126=20261121-24:02:03", 99, `INVALID_FIELD: ExpireTime (126) "20261121-24:02:03": must be YYYYMMDD-HH:MM:SS[.sss]`},
		{"59=6|126=20261121-01:02:03.45", 99, `INVALID_FIELD: ExpireTime (126) "20261121-01:02:03.45": must be YYYYMMDD-HH:MM:SS[.sss]`},
		{"59=6|126=99991121-01:02:03", 99, `INVALID_FIELD: ExpireTime (126) "99991121-01:02:03": must be YYYYMMDD-HH:MM:SS[.sss]`},
		{"59=6|432=2026112", 99, `INVALID_FIELD: ExpireDate (432) "2026112": must be YYYYMMDD`},
		{"18=1", 11, `UNSUPPORTED: ExecInst (18) "1": only 6 (post-only)`},
		{"18=6 G", 11, `UNSUPPORTED: ExecInst (18) "6 G": only 6 (post-only)`},
		{"117=q1", 11, `UNSUPPORTED: QuoteID (117): only with OrdType (40) D, previously quoted`},
	} {
		fields := []string{"35=D", "34=1", "11=a", "55=SLUSD/USDC", "54=1", "38=10", "40=2", "44=1.5"}
		for _, change := range strings.Split(c.change, "|") {
			tag, value, set := strings.Cut(change, "=")
			kept := fields[:0]
			for _, f := range fields {
				if !strings.HasPrefix(f, tag+"=") {
					kept = append(kept, f)
				}
			}
			if fields = kept; set {
				fields = append(fields, tag+"="+value)
			}
		}
		r := ScanOrderRequest(wiretest.Message(strings.Join(fields, "|") + "|"))
		_, _, refusal := r.DecodeNew(set, testNow)
		if refusal == nil || refusal.Text != c.text || refusal.Reason != c.reason {
			t.Errorf("%s: %+v, want %d %s", c.change, refusal, c.reason, c.text)
		}
	}
	r := ScanOrderRequest(wiretest.Message("35=D|34=1|11=a|55=92C/SLUSD|54=1|38=1|40=2|44=7|"))
	if _, _, refusal := r.DecodeNew(set, testNow); refusal == nil || refusal.Text != `INVALID_FIELD: Price (44) "7": not a multiple of the tick 5` {
		t.Errorf("off the tick: %+v", refusal)
	}
}

func TestClOrdIDLimit(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{0: false, 1: true, MaxClOrdID: true, MaxClOrdID + 1: false} {
		r := OrderRequest{ClOrdID: []byte(strings.Repeat("x", n))}
		if refusal := r.CheckClOrdID(); (refusal == nil) != ok {
			t.Errorf("%d bytes: %+v", n, refusal)
		}
	}
}

// FuzzDecodeOrder: whatever the bytes, nothing panics, and what is let through
// keeps to the engine's ranges and means what the text says.
func FuzzDecodeOrder(f *testing.F) {
	for _, seed := range []string{
		"11=a|55=SLUSD/USDC|54=1|38=10|40=2|44=1.5|59=1|",
		"11=a|55=92C/SLUSD|54=2|38=3|40=4|99=50|44=45|59=6|432=20261125|",
		"11=a|41=b|37=77|55=SLUSD/USDC|54=1|38=10.00|40=2|44=0001.5000|111=1|18=6 6|126=20261121-01:02:03.456|",
	} {
		f.Add(wiretest.Message("35=D|34=1|" + seed))
	}
	f.Add(wiretest.Message("35=V|34=1|262=m|263=1|264=0|265=1|286=1|546=1 2|547=N|267=1|269=2|146=1|55=SLUSD/USDC|812=1|815=0|"))
	f.Add(wiretest.Message("35=e|34=1|320=a|324=b|321=0|559=4|263=2|55=SLUSD/USDC|"))
	set := wiretest.Instruments(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		if r := ScanSecurityRequest(frame); len(r.ID)+len(r.Symbol) > len(frame) || (r.CheckID("x") == nil) != (len(r.ID) <= MaxRequestID) {
			t.Fatalf("%q is read as %+v", frame, r)
		}
		r := ScanOrderRequest(frame)
		o, in, refusal := r.DecodeNew(set, testNow)
		if refusal != nil {
			if refusal.Text == "" || strings.IndexByte(string(AppendText(nil, refusal.Text)), SOH) >= 0 {
				t.Fatalf("refusal %q", refusal.Text)
			}
			return
		}
		if o.Qty < 1 || o.Qty > market.MaxQty || o.Price < 0 || o.Price > market.MaxPrice || o.Stop < 0 || o.Stop > market.MaxPrice ||
			o.Display < 0 || o.Display >= o.Qty || !o.Side.Valid() {
			t.Fatalf("%q passed as %+v", frame, o)
		}
		again := ScanOrderRequest(wiretest.Message(fmt.Sprintf("38=%s|", in.AppendQty(nil, o.Qty))))
		if q, refusal := parseQty(in, "OrderQty (38)", again.qty); refusal != nil || q != o.Qty {
			t.Fatalf("%q: quantity %d comes back as %d, %+v", frame, o.Qty, q, refusal)
		}
		DecodeMarketData(frame, set, 4)
	})
}
