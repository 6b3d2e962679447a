package fixgw

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/market"
)

// TestTermsAreRepeated: every report of an order has the fields that the order had, also
// after a restart, after an amend, and in a refusal by the engine.
func TestTermsAreRepeated(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm := d.dial("MM", keep(1, 1))
	d.dial("TK", nil)
	end := time.Now().Add(time.Hour).UTC().Format("20060102-15:04:05.000")
	const buy = "55=SLUSD/USDC|54=1|" + now60
	mm.send("D", "11=a|"+buy+"38=9|40=2|44=1|111=3|18=6|1=house|15=USDC|59=6|126="+end+"|")
	mm.want("11=a 150=0 15=USDC 18=6 111=3.00 1=house 99= 110= 126=" + end)
	mm.send("D", "11=s|"+buy+"38=9|40=4|44=3|99=2|1=other-account|59=1|")
	mm.want("11=s 150=0 40=4 99=2.0000 44=3.0000 1=other-account 126= 111=")
	mm.send("D", "11=plain|"+buy+"38=9|40=2|44=0.5|")
	mm.want("11=plain 150=0 15=USDC 1= 99= 126= 18= 110= 111=")
	mm.send("D", "11=big|"+buy+"38=99999999|40=2|44=1|1=house|59=1|")
	mm.want("11=big 150=8 103=3 1=house")
	mm.send("G", "11=s2|41=s|"+buy+"38=8|40=4|44=3|99=2.5|59=1|")
	mm.want("11=s2 41=s 150=5 99=2.5000 1=other-account")
	sender, target := mm.leave()
	d.stop()
	d.start()
	mm, tk := d.dial("MM", keep(sender, target)), d.dial("TK", nil)
	mm.send("H", "11=a|55=SLUSD/USDC|54=1|")
	mm.want("11=a 150=I 18=6 111=3.00 1=house 126=" + end)
	mm.send("H", "11=s2|55=SLUSD/USDC|54=1|")
	mm.want("11=s2 150=I 99=2.5000 1=other-account")
	tk.order("hit", "2", "1", "1", "59=3|")
	tk.want("11=hit 150=0")
	trade := tk.want("11=hit 150=F 851=2 111=").Get(527)
	mm.want("11=a 150=F 851=1 1=house 111=3.00 527=" + trade)
	if trade == "" {
		t.Error("a fill has no SecondaryExecID")
	}
}

// TestMinQty: an order whose minimum cannot trade at once is refused, and one whose minimum
// can trades all it can.
func TestMinQty(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("offer", "2", "5", "1", "59=1|")
	mm.want("11=offer 150=0")
	tk.order("much", "1", "9", "1", "59=3|110=6|")
	tk.want("11=much 150=8 39=8 103=0 110=6.00 38=9.00").Text(t, "min_qty_unfillable: MinQty (110): can trade at once: 5.00")
	for id, c := range map[string]struct{ fields, reason, text string }{
		"rests":  {"38=9|40=2|44=1|59=1|110=5|", "11", "UNSUPPORTED: MinQty (110)"},
		"above":  {"38=4|40=2|44=1|59=3|110=5|", "13", "INVALID_FIELD: MinQty (110)"},
		"lot":    {"38=4|40=2|44=1|59=3|110=0.001|", "13", "INVALID_FIELD: MinQty (110)"},
		"hidden": {"38=9|40=2|44=1|59=3|110=5|111=1|", "11", "UNSUPPORTED: MaxFloor (111)"},
	} {
		tk.send("D", "11="+id+"|55=SLUSD/USDC|54=1|"+now60+c.fields)
		tk.want("11="+id+" 150=8 103="+c.reason).Text(t, c.text)
	}
	tk.send("D", "11=mkt|55=SLUSD/USDC|54=1|38=3|40=1|110=2|"+now60)
	tk.want("11=mkt 150=0 110=2.00")
	tk.want("11=mkt 150=F 39=2 32=3.00 110=2.00")
	mm.want("11=offer 150=F 32=3.00")
	tk.order("fok", "1", "2", "1", "59=4|110=1|")
	tk.want("11=fok 150=0")
	tk.want("11=fok 150=F 39=2")
}

// TestNothingIsIgnored: a field that asks for another execution is refused with its tag.
func TestNothingIsIgnored(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	mm.order("a", "1", "9", "1", "59=1|")
	mm.want("11=a 150=0")
	for i, field := range strings.Fields("168=20300101-00:00:00 210=1 211=1 388=0 389=1 529=1 544=1 847=1 152=10 423=1 854=1 15=SLUSD") {
		tag, _, _ := strings.Cut(field, "=")
		id := fmt.Sprint("d", i)
		body := "|55=SLUSD/USDC|54=1|38=9|40=2|44=1|" + field + "|" + now60
		mm.send("D", "11="+id+body)
		if text := mm.want("35=8 150=8 103=11 11=" + id).Get(58); !strings.HasPrefix(text, "UNSUPPORTED: ") || !strings.Contains(text, tag) {
			t.Errorf("%s: %s", field, text)
		}
		if tag == "152" { // not in a G of the dictionary's
			continue
		}
		mm.send("G", "41=a|11=g"+id+body)
		mm.want("35=9 102=99 434=2 39=0 11=g" + id)
	}
	for i, field := range strings.Fields("59=3 59=4 18=6 110=1 1=x") {
		id := fmt.Sprint("u", i)
		mm.send("G", "41=a|11="+id+"|55=SLUSD/USDC|54=1|38=9|40=2|44=1|"+field+"|"+now60)
		mm.want("35=9 102=99 434=2 11="+id).Text(t, "UNSUPPORTED: ")
	}
	mm.send("D", "11=x\x7f|55=SLUSD/USDC|54=1|38=9|40=2|44=1|"+now60)
	mm.want("35=8 150=8 11=x?").Text(t, "INVALID_FIELD: ClOrdID (11)")
	// A data field may hold everything.
	mm.send("D", "11=data|55=SLUSD/USDC|54=1|38=9|40=2|44=1|354=6|355=x|11=y|"+now60)
	mm.want("35=8 150=0 11=data")
}

// TestOrigClOrdIDIsCurrent: an older ClOrdID of an order does not name it any more, and
// each answer has the OrigClOrdID of its request.
func TestOrigClOrdIDIsCurrent(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	amend := func(id, orig, qty string) {
		mm.send("G", "11="+id+"|41="+orig+"|55=SLUSD/USDC|54=1|38="+qty+"|40=2|44=1|"+now60)
	}
	mm.order("a", "1", "9", "1", "59=1|")
	order := mm.want("11=a 150=0").Get(37)
	amend("b", "a", "8")
	mm.want("11=b 41=a 150=5")
	amend("c", "a", "7")
	mm.want("35=9 11=c 41=a 102=1 39=0 37="+order).Text(t, "UNKNOWN_ORDER: OrigClOrdID (41)")
	mm.send("F", "11=d|41=a|55=SLUSD/USDC|54=1|"+now60)
	mm.want("35=9 11=d 41=a 102=1 434=1 37=" + order)
	mm.send("F", "11=e|41=b|55=SLUSD/USDC|54=1|"+now60)
	mm.want("35=8 11=e 41=b 150=4")
}

// TestAmendTerms: a G changes time in force, expiry and display; what it leaves out stays, the
// place in the queue too, and reports repeat the new terms, also after a restart.
func TestAmendTerms(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", nil)
	at := func(after time.Duration) string { return time.Now().Add(after).UTC().Format("20060102-15:04:05.000") }
	amend := func(id, orig, fields string) {
		mm.send("G", "11="+id+"|41="+orig+"|55=SLUSD/USDC|54=1|40=2|44=1|"+now60+fields)
	}
	mm.order("first", "1", "9", "1", "59=1|")
	mm.want("11=first 150=0 59=1")
	mm.order("second", "1", "9", "1", "59=1|")
	mm.want("11=second 150=0")
	end, later := at(time.Hour), at(2*time.Hour)
	amend("a", "first", "38=9|59=6|126="+end+"|111=2|")
	mm.want("11=a 41=first 150=5 59=6 111=2.00 151=9.00 126=" + end)
	amend("b", "a", "38=8|126="+later+"|")
	mm.want("11=b 150=5 59=6 111=2.00 38=8.00 126=" + later)
	amend("c", "b", "38=8|59=6|")
	mm.want("11=c 150=5 59=6 126=" + later)
	tk.order("hit", "2", "1", "1", "59=3|")
	tk.want("11=hit 150=0")
	tk.want("11=hit 150=F")
	mm.want("11=c 150=F 14=1.00 111=2.00") // it has kept its place
	amend("d", "c", "38=8|59=0|111=8|")
	mm.want("11=d 150=5 59=0 126= 111= 151=7.00")
	tk.order("hit2", "2", "1", "1", "59=3|")
	tk.want("11=hit2 150=0")
	tk.want("11=hit2 150=F")
	mm.want("11=second 150=F 14=1.00") // it shows more, and so is behind
	sender, target := mm.leave()
	d.stop()
	d.start()
	mm = d.dial("MM", keep(sender, target))
	mm.send("H", "11=d|55=SLUSD/USDC|54=1|")
	mm.want("11=d 150=I 59=0 126= 111= 38=8.00")
	amend("e", "d", "38=8|59=6|")
	mm.want("35=9 11=e 41=d 102=99 434=2").Text(t, "MISSING_FIELD: ExpireTime (126)")
	amend("f", "d", "38=8|126="+later+"|")
	mm.want("35=9 11=f 102=99").Text(t, "INVALID_FIELD: ExpireTime (126), ExpireDate (432)")
	amend("g", "d", "38=8|59=6|126="+at(-time.Hour)+"|")
	mm.want("35=9 11=g 102=99").Text(t, "invalid_expiry")
	amend("h", "d", "38=8|111=0.01|")
	mm.want("35=9 11=h 102=99").Text(t, "invalid_display")
	d.options.Format1 = true
	sender, target = mm.leave()
	d.stop()
	d.start()
	mm = d.dial("MM", keep(sender, target))
	amend("i", "d", "38=8|59=1|")
	mm.want("35=9 11=i 102=99").Text(t, "UNSUPPORTED: TimeInForce (59)")
	amend("j", "d", "38=7|59=0|")
	mm.want("11=j 150=5 59=0 38=7.00")
}

// TestSelfTradeType: an order names its own self-trade prevention, over the participant's.
func TestSelfTradeType(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil) // whose participant cancels the newest
	mm := d.dial("MM", nil)
	mm.order("a", "1", "10", "1", "59=1|")
	mm.want("35=8 11=a 150=0")
	mm.order("b", "2", "10", "1", "59=1|7928=O|")
	mm.want("35=8 11=b 150=0")
	mm.want("35=8 11=a 150=4 58=self_trade")
	mm.order("c", "1", "4", "1", "59=1|7928=D|")
	mm.want("35=8 11=c 150=0")
	mm.want("35=8 11=b 150=D 378=5 151=6.00")
	mm.want("35=8 11=c 150=4 58=self_trade")
	mm.order("e", "1", "1", "1", "59=1|")
	mm.want("35=8 11=e 150=0")
	mm.want("35=8 11=e 150=4 58=self_trade")
	mm.order("e", "1", "1", "1", "59=1|7928=N|")
	mm.want("35=8 11=e 150=8 103=6")
	mm.order("f", "1", "1", "1", "59=1|7928=X|")
	mm.want("35=8 11=f 150=8 103=11").Text(t, "INVALID_FIELD: SelfTradeType (7928)")
	mm.send("G", "11=g|41=b|55=SLUSD/USDC|54=2|38=5|40=2|44=1|7928=N|"+now60)
	mm.want("35=9 11=g").Text(t, "UNSUPPORTED: SelfTradeType (7928)")
	mm.order("h", "1", "1", "1", "59=1|7928=B|")
	mm.want("35=8 11=h 150=0")
	mm.want("35=8 11=b 150=4 58=self_trade")
	mm.want("35=8 11=h 150=4 58=self_trade")
	mm.none()
}

// TestCancelOnDisconnectOfAnOrder: an order says by itself whether it outlives the connection,
// over the Logon, also if the service restarts in between.
func TestCancelOnDisconnectOfAnOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "NO"}, func(o *Options) { o.RestartGrace = time.Hour })
	mm, no := d.dial("MM", nil), d.dial("NO", keep(1, 1))
	for _, k := range []*client{mm, no} {
		k.order("plain", "1", "1", "1", "59=1|")
		k.want("35=8 11=plain 150=0")
		k.order("ends", "1", "1", "1", "59=1|8013=Y|1=house|")
		k.want("35=8 11=ends 150=0 1=house 8013=")
		k.order("stays", "1", "1", "1", "59=1|8013=N|")
		k.want("35=8 11=stays 150=0 8013=")
	}
	mm.order("bad", "1", "1", "1", "59=1|8013=X|")
	mm.want("35=8 11=bad 150=8 103=11").Text(t, "INVALID_FIELD: CancelOrdersOnDisconnect (8013)")
	mm.order("ends", "1", "1", "1", "59=1|8013=N|1=house|")
	mm.want("35=8 11=ends 150=8 103=6")
	mm.send("G", "11=g|41=stays|55=SLUSD/USDC|54=1|38=2|40=2|44=1|8013=Y|"+now60)
	mm.want("35=9 11=g").Text(t, "UNSUPPORTED: CancelOrdersOnDisconnect (8013)")
	mm.send("G", "11=stays-2|41=stays|55=SLUSD/USDC|54=1|38=2|40=2|44=1|"+now60)
	mm.want("35=8 11=stays-2 150=5")
	mm.c.Close()
	d.awaitOrders(4) // what is MM's has ended but for stays-2
	d.stop()
	d.start()
	if n := d.gateway.Stats().LiveOrders; n != 4 {
		t.Fatalf("%d orders live after a restart, want 4", n)
	}
	d.stop()
	d.options.RestartGrace = time.Millisecond
	d.start()
	d.awaitOrders(3) // the client of NO stays away
	open := func(compID string) (ids []string) {
		for _, o := range handlerOf(d.gateway.SessionNamed(compID)).orders.Open(func(market.InstrumentID, market.Side) bool { return true }) {
			ids = append(ids, o.ClOrdID)
		}
		return ids
	}
	if got := open("MM"); !slices.Equal(got, []string{"stays-2"}) {
		t.Errorf("MM has %v", got)
	}
	if got := open("NO"); !slices.Equal(got, []string{"plain", "stays"}) {
		t.Errorf("NO has %v", got)
	}
}
