package fixgw

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/ratelimit"
)

// TestRebuild: a client that has lost its numbers and its memory gets its open orders, its
// fills and its position back.
func TestRebuild(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", keep(1, 1)), d.dial("TK", nil)
	mm.order("a", "1", "9", "1", "59=1|1=house|")
	a := mm.want("11=a 150=0").Get(37)
	mm.order("b", "2", "5", "2", "59=1|")
	b := mm.want("11=b 150=0").Get(37)
	mm.send("D", "11=x|55=92C/SLUSD|54=1|38=3|40=2|44=5|59=1|"+now60)
	x := mm.want("11=x 150=0").Get(37)
	tk.order("hit", "2", "4", "1", "59=3|")
	fill := mm.want("11=a 150=F 32=4.00")
	tk.order("lift", "1", "1", "2", "59=3|")
	sold := mm.want("11=b 150=F 32=1.00")
	mm.leave()
	for range 2 { // again after a restart
		d.stop()
		d.start()
		mm = d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
		mm.send("AF", "584=s1|585=7|")
		mm.want("35=8 150=I 11=a 37=" + a + " 39=1 14=4.00 1=house 584=s1 911=3 912=N")
		mm.want("35=8 150=I 11=b 37=" + b + " 39=1 584=s1 911=3 912=N")
		mm.want("35=8 150=I 11=x 37=" + x + " 39=0 584=s1 911=3 912=Y")
		mm.send("AD", "568=t1|569=0|")
		mm.want("35=AQ 568=t1 569=0 748=2 749=0 750=0")
		mm.want("35=AE 568=t1 748=2 912=N 571=" + fill.Get(17) + " 17=" + fill.Get(17) + " 880=" + fill.Get(527) + " 32=4.00 31=1.0000 54=1 37=" + a + " 11=a 1=house")
		mm.want("35=AE 568=t1 748=2 912=Y 571=" + sold.Get(17) + " 880=" + sold.Get(527) + " 32=1.00 31=2.0000 54=2 37=" + b + " 11=b")
		mm.send("AN", "710=p1|724=0|1=house|581=1|715=20260105|"+now60)
		mm.want("35=AO 710=p1 727=1 728=0 729=0 1=house 581=1")
		mm.want("35=AP 710=p1 727=1 728=0 715=20260105 1=house 55=SLUSD/USDC 15=USDC 730=2.0000 703=TQ 704=4.00 705=1.00")
		mm.leave()
	}
}

// TestRebuildFilters: what an AF, an AD and an AN select, and what they are refused for.
func TestRebuildFilters(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	d.stop()
	d.options.Participants[0].CompIDs = append(d.options.Participants[0].CompIDs, "MM2")
	d.start()
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm2 := d.dial("MM2", func(o *fixclient.Options) { o.Username = "mm" })
	request := func(msgType, body string) {
		hooks := d.hooks.Session("MM") // the rate is another test's
		hooks.Lock()
		d.handler("MM").rebuilds = ratelimit.Bucket{}
		hooks.Unlock()
		mm.send(msgType, body)
	}
	request("AF", "584=n|585=7|")
	mm.want("35=8 37=NONE 150=I 39=8 54=7 584=n 911=0 912=Y").Text(t, "UNKNOWN_ORDER: no order is open")
	mm.order("a", "1", "9", "1", "59=1|")
	mm.want("11=a 150=0")
	mm2.order("c", "2", "9", "3", "59=1|")
	mm2.want("11=c 150=0")
	for _, c := range []struct{ body, want string }{
		{"585=1|55=SLUSD/USDC|", "11=a 911=1 912=Y"},
		{"585=1|55=SLUSD/USDC|54=2|", "37=NONE 911=0 912=Y 55=SLUSD/USDC"},
		{"585=1|55=92C/SLUSD|", "37=NONE 911=0"},
		{"585=3|460=12|", "11=a 911=1"},
		{"585=8|453=1|448=MM2|447=D|452=36|", "11=c 911=1 912=Y"},
		{"585=1|55=NO/PE|", "37=NONE 103=1 911=0"},
		{"585=3|460=4|", "37=NONE 103=11"},
		{"585=6|", "37=NONE 103=11"},
		{"585=8|453=1|448=TK|447=D|452=36|", "37=NONE 103=5"},
		{"585=8|453=1|448=XX|447=D|452=36|", "37=NONE 103=5"},
	} {
		request("AF", "584=s|"+c.body)
		mm.want("35=8 150=I 584=s " + c.want)
	}
	began := time.Now().UTC().Add(-time.Minute)
	var ids []string
	for i := range 3 {
		tk.order(fmt.Sprint("t", i), "2", "1", "1", "59=3|")
		ids = append(ids, mm.want("11=a 150=F").Get(17))
	}
	const stamp = "20060102-15:04:05.000"
	after, before := began.Format(stamp), began.Add(time.Hour).Format(stamp)
	today := time.Now().UTC().Format("20060102")
	for _, c := range []struct {
		body string
		want []string
	}{
		{"11=a|", ids},
		{"11=b|", nil},
		{"17=" + ids[1] + "|", ids[1:2]},
		{"54=2|", nil},
		{"55=SLUSD/USDC|", ids},
		{"580=2|75=" + today + "|60=" + after + "|75=" + today + "|60=" + before + "|", ids},
		{"580=1|75=" + today + "|60=" + before + "|", nil},
		{"580=1|75=" + today + "|", ids},
		{"580=1|75=20200101|", nil},
	} {
		request("AD", "568=t|569=1|"+c.body)
		mm.want(fmt.Sprintf("35=AQ 748=%d 749=0", len(c.want)))
		var got []string
		for range c.want {
			got = append(got, mm.want("35=AE 568=t").Get(17))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.body, got, c.want)
		}
	}
	for _, c := range []struct{ body, result string }{
		{"569=2|", "8"},
		{"569=0|263=1|", "99"},
		{"569=0|55=NO/PE|", "1"},
		{"569=0|37=C1|", "99"},
		{"569=0|880=x|", "99"},

		{"569=0|580=3|75=20260101|60=20260101-00:00:00|75=20260101|60=20260101-00:00:00|75=20260101|60=20260101-00:00:00|", "99"},
	} {
		request("AD", "568=t|"+c.body)
		mm.want("35=AQ 568=t 748=0 750=2 749=" + c.result)
	}
	request("AN", "710=p|724=0|1=x|581=1|715="+today+"|55=92C/SLUSD|"+now60)
	mm.want("35=AO 710=p 727=0 728=2 729=0")
	request("AN", "710=p|724=1|1=x|581=1|715="+today+"|"+now60)
	mm.want("35=AO 710=p 727=0 728=4 729=2").Text(t, "UNSUPPORTED: PosReqType (724)")
}

// TestRebuildRate: a client that asks too often is refused, and goes on.
func TestRebuildRate(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	d.gateway.rebuildRate = ratelimit.NewRate(1, time.Hour, maxRebuilds) // before any client
	mm := d.dial("MM", nil)
	for i := range maxRebuilds {
		mm.send("AF", fmt.Sprintf("584=n%d|585=7|", i))
		mm.want("35=8 911=0")
	}
	mm.send("AF", "584=n|585=7|")
	mm.want("35=j 380=4 379=n").Text(t, "RATE_LIMITED: at most 5 requests")
	mm.send("AD", "568=t|569=0|")
	mm.want("35=j 380=4 379=t").Text(t, "RATE_LIMITED: ")
}
