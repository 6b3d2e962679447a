package fixgw

import (
	"strconv"
	"strings"
	"testing"

	"blockdesk/fixgw/fixclient"
	"blockdesk/market"
)

// quote sends a MassQuote; sets is what follows NoQuoteSets.
func (k *client) quote(id, head, sets string) {
	k.t.Helper()
	k.send("i", "117="+id+"|"+head+sets)
}

const quoteSymbol = "55=SLUSD/USDC|"

// TestMassQuote: quotes rest in the book, move, trade with reports under their QuoteID, and
// are cancelled; the answer has the level that was asked for.
func TestMassQuote(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", nil)
	mm.quote("q1", "301=2|", "296=2|302=1|304=1|295=1|299=7|"+quoteSymbol+"132=1|133=1.1|134=5|135=6|302=2|304=1|295=1|299=8|55=92C/SLUSD|132=5|134=3|")
	mm.want("35=b 117=q1 297=0 301=2 296= 58=")
	d.awaitOrders(3)
	mm.quote("q2", "301=1|293=5|294=6|", "296=1|302=1|304=1|295=1|299=7|"+quoteSymbol+"132=1.01|133=1.1|")
	mm.none() // no b: nothing was refused
	tk.order("hit", "2", "2", "1.01", "59=3|")
	tk.want("11=hit 150=0")
	tk.want("11=hit 150=F 39=2 31=1.0100")
	mm.want("35=8 150=F 39=1 11=q2 583=1 54=1 38=5.00 32=2.00 14=2.00 151=3.00 851=1")
	mm.send("AF", "584=a|585=7|")
	mm.want("35=8 150=I 11=q2 583=1 151=3.00 911=3")
	order := mm.want("35=8 150=I 11=q1 583=1 54=2 99=").Get(37) // unchanged by q2
	mm.want("35=8 150=I 11=q1 583=2 55=92C/SLUSD")
	mm.send("F", "11=f1|41=q1|37="+order+"|"+quoteSymbol+"54=2|"+now60)
	mm.want("35=9 102=99 434=1").Text(t, "UNSUPPORTED: order "+order+" is a quote")
	mm.send("Z", "117=z1|298=1|295=1|55=92C/SLUSD|")
	mm.want("35=b 117=z1 297=1")
	d.awaitOrders(2)
	mm.send("Z", "117=z2|298=4|")
	mm.want("35=b 117=z2 297=4")
	d.awaitOrders(0)
	mm.none()
	mm.send("Z", "117=z2|298=4|")
	mm.want("35=b 117=z2 297=4 97=Y")
}

// TestMassQuoteSelfTradeType: an i names the self-trade prevention of its quotes.
func TestMassQuoteSelfTradeType(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil) // whose participant cancels the newest
	mm := d.dial("MM", keep(1, 1))
	mm.order("a", "1", "10", "1", "59=1|")
	mm.want("35=8 11=a 150=0")
	mm.quote("q1", "301=2|7928=X|", "296=1|302=1|304=1|295=1|299=1|"+quoteSymbol+"133=1|135=5|")
	mm.want("35=b 117=q1 297=5 300=99").Text(t, "INVALID_FIELD: SelfTradeType (7928)")
	mm.quote("q2", "301=2|7928=O|", "296=1|302=1|304=1|295=1|299=1|"+quoteSymbol+"133=1|135=5|")
	mm.want("35=8 11=a 150=4 58=self_trade")
	mm.want("35=b 117=q2 297=0")
	d.awaitOrders(1)
	mm.none()
}

// TestMassQuoteRefusals: what the gateway refuses changes nothing; an entry that the engine
// refuses has no quote, the others have.
func TestMassQuoteRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	entry := func(fields string) string { return "296=1|302=1|304=1|295=1|299=1|" + fields }
	for _, c := range map[string]struct{ head, sets, reason, text string }{
		"symbol":   {"", entry("55=NO/SUCH|132=1|134=1|"), "1", "UNKNOWN_SYMBOL"},
		"tick":     {"", entry(quoteSymbol + "132=1.00001|134=1|"), "8", "INVALID_FIELD: BidPx (132)"},
		"no price": {"", entry(quoteSymbol + "134=1|"), "8", "MISSING_FIELD: BidPx (132)"},
		"no size":  {"", entry(quoteSymbol + "133=1|"), "99", "MISSING_FIELD: OfferSize (135)"},
		"set":      {"", strings.Replace(entry(quoteSymbol+"132=1|134=1|"), "302=1", "302=x", 1), "99", "INVALID_FIELD: QuoteSetID (302)"},
		"expiry":   {"", entry(quoteSymbol + "132=1|134=1|62=20300101-00:00:00|"), "99", "UNSUPPORTED: tag 62"},
		"window":   {"5617=3|", entry(quoteSymbol + "132=1|134=1|"), "99", "MISSING_FIELD: ProtectionMillis (5619)"},
		"long":     {"5619=3600001|", entry(quoteSymbol + "132=1|134=1|"), "99", "INVALID_FIELD: ProtectionMillis (5619)"},
		"type":     {"537=0|", entry(quoteSymbol + "132=1|134=1|"), "99", "UNSUPPORTED: QuoteType (537)"},
	} {
		mm.quote("q", c.head, c.sets)
		mm.want("35=b 117=q 297=5 300="+c.reason+" 296=").Text(t, c.text)
	}
	mm.send("Z", "117=z|298=2|")
	mm.want("35=b 297=5 300=99").Text(t, "UNSUPPORTED: QuoteCancelType (298)")
	const two = "296=1|302=3|304=2|295=2|299=1|" + quoteSymbol + "132=1|133=1|134=5|135=6|299=2|55=92C/SLUSD|132=5|134=3|"
	mm.quote("q", "301=1|", two)
	mm.want("35=b 117=q 297=0 296=1 302=3 295=1 299=1 55=SLUSD/USDC 368=7").Text(t, "invalid_spread: QuoteEntryID (299) 1 of QuoteSetID (302) 3")
	d.awaitOrders(1)
	mm.quote("q", "301=1|", two)
	mm.want("35=b 117=q 297=0 97=Y 368=7")
	mm.quote("q", "301=2|", two)
	mm.want("35=b 117=q 297=5 300=6").Text(t, "DUPLICATE_CLORDID")
}

// TestQuoteProtection: the trade that reaches the protection pulls every quote of the set and
// the reports say so; the set quotes again after a reset.
func TestQuoteProtection(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	const sets = "296=1|302=1|304=1|295=1|299=7|" + quoteSymbol + "132=1|133=1.1|134=5|135=6|"
	mm.quote("q1", "5617=2|5619=60000|", sets)
	mm.want("35=b 117=q1 297=0")
	for i, id := range []string{"a", "b"} {
		tk.order(id, "2", "1", "1", "59=3|")
		tk.want("11=" + id + " 150=0")
		tk.want("11=" + id + " 150=F")
		mm.want("150=F 11=q1 583=1 14=" + []string{"1.00", "2.00"}[i])
	}
	mm.want("35=8 150=4 39=4 11=q1 583=1 54=1 58=quote_protection 14=2.00 151=0.00")
	mm.want("35=8 150=4 39=4 11=q1 583=1 54=2 58=quote_protection")
	mm.quote("q2", "", sets)
	mm.want("35=b 117=q2 297=5 300=99 368=99").Text(t, "quote_protection")
	mm.quote("q3", "9772=Y|5617=0|5618=3|5619=60000|", sets)
	mm.want("35=b 117=q3 297=0")
	tk.order("c", "1", "3", "1.1", "59=3|")
	tk.want("11=c 150=0")
	tk.want("11=c 150=F")
	mm.want("150=F 11=q3 54=2 32=3.00")
	mm.want("150=4 11=q3 54=1 58=quote_protection")
	mm.want("150=4 11=q3 54=2 58=quote_protection")
}

// TestQuotesEndWithTheConnection: cancel on disconnect takes the quotes too, and a restart
// keeps those of a session that wants them.
func TestQuotesEndWithTheConnection(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "KEEP"}, nil)
	mm, kept := d.dial("MM", nil), d.dial("KEEP", keep(1, 1))
	const sets = "296=1|302=1|304=1|295=1|299=7|" + quoteSymbol
	mm.quote("q1", "", sets+"132=1|133=1.1|134=5|135=6|")
	mm.want("35=b 117=q1 297=0")
	kept.quote("k1", "", sets+"132=0.9|133=1.2|134=5|135=6|")
	kept.want("35=b 117=k1 297=0")
	sender, target := kept.leave()
	mm.c.Close()
	d.awaitOrders(2)
	d.stop()
	d.start()
	d.awaitOrders(2)
	kept = d.dial("KEEP", keep(sender, target))
	kept.quote("k2", "", sets+"132=0.95|133=1.2|134=5|135=6|")
	kept.want("35=b 117=k2 297=0")
	kept.send("H", "11=none|37="+quoteOrder(t, d, "KEEP")+"|"+quoteSymbol+"54=1|")
	kept.want("35=8 150=I 11=k2 583=1 44=0.9500")
	back := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=Y\x01" })
	back.none()
}

// quoteOrder returns the OrderID of the session's bid.
func quoteOrder(t *testing.T, d *harness, compID string) string {
	t.Helper()
	all := func(market.InstrumentID, market.Side) bool { return true }
	for _, o := range d.handler(compID).orders.Open(all) {
		if o.QuoteSet != 0 && o.Side == 1 {
			return strconv.FormatUint(uint64(o.ID), 10)
		}
	}
	t.Fatal("no bid")
	return ""
}
