package fixgw

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/engine/lists"
	"blockdesk/fixgw/fixclient"
)

// list sends a NewOrderList; each order is "ID SYMBOL SIDE QTY PRICE [FIELDS]".
func (k *client) list(id, head string, orders ...string) {
	k.t.Helper()
	var body strings.Builder
	fmt.Fprintf(&body, "66=%s|394=3|%s68=%d|73=%d|", id, head, len(orders), len(orders))
	for i, order := range orders {
		f := strings.Fields(order)
		var before, after string // the dictionary's order
		for _, field := range f[5:] {
			switch tag, _, _ := strings.Cut(field, "="); tag {
			case "1", "18":
				before += field + "|"
			default:
				after += field + "|"
			}
		}
		fmt.Fprintf(&body, "11=%s|67=%d|%s55=%s|54=%s|38=%s|40=2|44=%s|%s", f[0], i+1, before, f[1], f[2], f[3], f[4], after)
	}
	k.send("E", body.String())
}

const (
	listSymbol  = "SLUSD/USDC"
	otherSymbol = "92C/SLUSD"
)

// TestOrderList: a list is accepted whole, in one command, with a report of each order and one
// ListStatus. Its orders are then orders like others, and it is executed once.
func TestOrderList(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", nil)
	mm.order("offer", "2", "5", "1.1", "59=1|")
	mm.want("11=offer 150=0")
	list := func() {
		tk.list("l1", "433=1|", "a "+listSymbol+" 1 9 1 59=1", "b "+otherSymbol+" 2 3 5 59=1", "c "+listSymbol+" 1 7 1.1 59=3")
	}
	list()
	tk.want("35=8 11=a 150=0 38=9.00 59=1")
	tk.want("35=8 11=b 150=0 55=92C/SLUSD")
	tk.want("35=8 11=c 150=0")
	tk.want("35=8 11=c 150=F 32=5.00")
	tk.want("35=8 11=c 150=4 58=ioc_remainder")
	status := tk.want("35=N 66=l1 429=1 431=3 82=1 83=1 68=3 73=3 444=")
	for _, fields := range []string{
		"11=a|14=0.00|39=0|151=9.00|84=0.00|6=0|", "11=b|14=0|39=0|151=3|84=0|6=0|", "11=c|14=5.00|39=4|151=0.00|84=2.00|6=1.1000|",
	} {
		if !strings.Contains(strings.ReplaceAll(string(status), "\x01", "|"), fields) {
			t.Errorf("%s\nhas not %s", status, fields)
		}
	}
	d.awaitOrders(2)
	tk.send("G", "11=a2|41=a|55="+listSymbol+"|54=1|38=8|40=2|44=1|"+now60)
	tk.want("35=8 11=a2 41=a 150=5 38=8.00")
	list()
	tk.want("35=N 66=l1 431=3 97=Y")
	tk.none()
	tk.list("l1", "", "x "+listSymbol+" 1 9 1")
	tk.want("35=N 66=l1 431=7 103=6").Text(t, "DUPLICATE_CLORDID: ListID (66)")
	tk.list("l2", "", "x "+listSymbol+" 1 9 1", "c "+listSymbol+" 1 9 1")
	tk.want("35=N 66=l2 431=7").Text(t, "list_refused")
	tk.order("x", "1", "9", "1", "59=1|") // its id is free
	tk.want("35=8 11=x 150=0")
	d.stop()
	d.start()
	d.awaitOrders(3)
}

// TestOrderListIsWhole: if the engine refuses one order of a list, no order of it exists, and each
// gets a report that says so.
func TestOrderListIsWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("offer", "2", "5", "1", "59=1|")
	mm.want("11=offer 150=0")
	tk.list("l1", "", "a "+listSymbol+" 1 5 1 59=3", "b "+listSymbol+" 1 9 1 1=house 18=6 59=1", "c "+listSymbol+" 1 9 0.9")
	tk.want("35=8 11=a 150=8 39=8 103=99 58=list_refused")
	tk.want("35=8 11=b 150=8 39=8 103=0 1=house").Text(t, "post_only_would_take")
	tk.want("35=8 11=c 150=8 39=8 103=99 58=list_refused")
	status := tk.want("35=N 66=l1 431=7 68=3 444=post_only_would_take")
	if text := strings.ReplaceAll(string(status), "\x01", "|"); strings.Count(text, "|39=8|") != 3 || strings.Count(text, "|58=list_refused|") != 2 {
		t.Errorf("%s", text)
	}
	tk.none()
	mm.none()
	tk.list("l1", "", "a "+listSymbol+" 1 5 1 59=3", "b "+listSymbol+" 1 9 1 1=house 18=6 59=1", "c "+listSymbol+" 1 9 0.9")
	tk.want("35=N 66=l1 431=7 97=Y")
	if n := d.gateway.Stats().LiveOrders; n != 1 {
		t.Errorf("%d orders are live, want the offer", n)
	}
}

// TestOrderListRefusals: what a list may not be, and messages about lists that there are not.
func TestOrderListRefusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	var tooMany []string
	for i := range lists.MaxOrders + 1 {
		tooMany = append(tooMany, fmt.Sprintf("o%d %s 1 1 1", i, listSymbol))
	}
	one := []string{"a " + listSymbol + " 1 1 1"}
	for i, c := range []struct {
		head   string
		orders []string
		reason string
		text   string
	}{
		{"", tooMany, "3", "INVALID_FIELD: NoOrders (73): at most 32"},
		{"433=2|", one, "11", "UNSUPPORTED: ListExecInstType (433)"},
		{"69=now|", one, "11", "UNSUPPORTED: tag 69"},
		{"893=N|", one, "11", "UNSUPPORTED: TotNoOrders (68)"},
		{"7928=N|", one, "11", "UNSUPPORTED: SelfTradeType (7928)"},
		{"", []string{"a " + listSymbol + " 1 1 1", "a " + listSymbol + " 1 1 1"}, "99", "list_refused"},
		{"", []string{"a NO/SUCH 1 1 1"}, "1", "UNKNOWN_SYMBOL"},
		{"", []string{"a " + listSymbol + " 1 0.001 1"}, "13", "INVALID_FIELD: OrderQty (38)"},
		{"", []string{"a " + listSymbol + " 1 1 1 211=1"}, "11", "UNSUPPORTED: tag 211"},
	} {
		tk.list(fmt.Sprint("l", i), c.head, c.orders...)
		tk.want("35=N 431=7 39=8 103="+c.reason+" 66="+fmt.Sprint("l", i)).Text(t, c.text)
	}
	tk.send("E", "66=few|394=3|68=2|73=1|11=a|67=1|55="+listSymbol+"|54=1|38=1|40=2|44=1|")
	tk.want("35=N 66=few 431=7").Text(t, "UNSUPPORTED: TotNoOrders (68)")
	tk.send("E", "66=bid|394=1|68=1|73=1|11=a|67=1|55="+listSymbol+"|54=1|38=1|40=2|44=1|")
	tk.want("35=N 66=bid 431=7").Text(t, "UNSUPPORTED: BidType (394)")
	for _, msgType := range []string{"K", "L", "M"} {
		tk.send(msgType, "66=l1|"+map[bool]string{true: now60}[msgType != "M"])
		tk.want("35=j 380=3 379=l1 372="+msgType).Text(t, "UNSUPPORTED: a list is executed at once")
	}
	tk.none()
}

// TestMassCancelOfSession: with 5620=Y a q cancels what its own session has, by instrument and
// side, and leaves the participant's other session alone.
func TestMassCancelOfSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, twoSessions)
	mm, mm2 := d.dial("MM", keep(1, 1)), d.dial("MM2", second)
	for _, k := range []*client{mm, mm2} {
		k.list("l-"+k.compID, "", k.compID+"a "+listSymbol+" 1 1 1 59=1", k.compID+"b "+listSymbol+" 2 1 2 59=1", k.compID+"c "+otherSymbol+" 1 1 5 59=1")
		for range 3 {
			k.want("35=8 150=0")
		}
		k.want("35=N 431=3")
	}
	mm.send("q", "11=q1|530=1|55="+listSymbol+"|54=2|5620=Y|"+now60)
	mm.want("35=8 11=MMb 150=4 58=mass_cancel")
	mm.want("35=r 11=q1 530=1 531=1 533=1 54=2 55=" + listSymbol)
	mm.send("q", "11=q2|530=7|5620=Y|"+now60)
	mm.want("35=8 11=MMa 150=4 58=mass_cancel")
	mm.want("35=8 11=MMc 150=4 58=mass_cancel")
	mm.want("35=r 11=q2 530=7 531=7 533=2")
	mm.send("q", "11=q2|530=7|5620=Y|"+now60)
	mm.want("35=r 11=q2 533=2 97=Y")
	mm.send("q", "11=q2|530=7|"+now60)
	mm.want("35=r 11=q2 531=0 532=99").Text(t, "DUPLICATE_CLORDID")
	mm.send("q", "11=q3|530=7|5620=Y|"+now60)
	mm.want("35=r 11=q3 531=7 533=0")
	mm.send("q", "11=q4|530=7|5620=X|"+now60)
	mm.want("35=r 11=q4 531=0 532=99").Text(t, "INVALID_FIELD: MassCancelSession (5620)")
	mm2.none()
	mm.send("q", "11=q5|530=7|5620=N|"+now60)
	mm.want("35=r 11=q5 531=7 533=3")
	for range 3 {
		mm2.want("35=8 150=4 58=mass_cancel")
	}
}

// TestMassCancelOfManyOrders: a session with more orders than one list names has all cancelled,
// and the report counts them all.
func TestMassCancelOfManyOrders(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, twoSessions)
	mm, mm2 := d.dial("MM", keep(1, 1)), d.dial("MM2", second)
	mm2.order("other", "1", "1", "1", "59=1|")
	mm2.want("11=other 150=0")
	const n = 2*lists.MaxCancels + 10
	for i := range n {
		mm.order(fmt.Sprint("o", i), "1", "1", "1", "59=1|")
	}
	mm.send("q", "11=q|530=7|5620=Y|"+now60) // some orders are on their way
	accepted, cancelled := 0, 0
	for {
		m := mm.next()
		switch m.Get(150) {
		case "0":
			accepted++
			continue
		case "4":
			cancelled++
			continue
		}
		m.Want(t, fmt.Sprint("35=r 11=q 531=7 533=", n))
		break
	}
	if accepted != n || cancelled != n {
		t.Errorf("%d orders accepted, %d cancelled, want %d", accepted, cancelled, n)
	}
	mm.none()
	d.awaitOrders(1)
	mm2.none()
}

// second logs the second session of the first participant on.
func second(o *fixclient.Options) {
	keep(1, 1)(o)
	o.Username = strings.TrimSuffix(o.Username, "2")
}

// twoSessions gives the first participant a second session.
func twoSessions(o *Options) {
	first := &o.Participants[0]
	first.CompIDs = append(first.CompIDs, first.CompIDs[0]+"2")
}
