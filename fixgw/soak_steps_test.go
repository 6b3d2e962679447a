package fixgw

import (
	"fmt"
	"net"
	"strings"
	"time"

	"blockdesk/fixgw/session"
)

// The actions of a trader of the soak, by its dice.

// step does one thing, then reads a little.
func (k *trader) step() error {
	k.steps++
	switch roll := k.r.IntN(200); {
	case roll < 90:
		k.newOrder()
	case roll < 108:
		k.change("F")
	case roll < 124:
		k.change("G")
	case roll < 130:
		k.send("H", "", k.pick().statusBody())
	case roll < 132:
		k.ask(&openRequest{msgType: "q", body: "530=7|" + now60})
	case roll < 148: // the same request again
		if id := k.recent(); id != "" {
			k.send(k.asked[id].msgType, "97=Y|", k.asked[id].body)
		}
	case roll < 156: // an old message again, under its old number
		if s, ok := k.sent[k.nextOut-1-k.r.IntN(20)]; ok {
			seq := max(1, k.nextOut-1-k.r.IntN(20))
			k.write(k.frame(s.msgType, seq, "43=Y|122="+stampNow()+"|", s.body))
		}
	case roll < 162:
		from := 1 + k.r.IntN(k.nextIn)
		k.send("2", "", fmt.Sprintf("7=%d|16=%d|", from, min(from+k.r.IntN(500), k.nextIn-1)))
	case roll < 168: // a gap
		k.nextOut += 1 + k.r.IntN(5)
		k.newOrder()
	case roll < 174:
		k.write([]byte("garbage 8=FIX.4.2\x019=x\x01 \x01\x01"[:1+k.r.IntN(25)]))
	case roll < 178:
		k.send("1", "", fmt.Sprintf("112=t%d|", k.steps))
	case roll < 182:
		k.send("V", "", fmt.Sprintf("262=v%d|263=%d|264=%d|265=1|267=2|269=0|269=1|146=1|55=SLUSD/USDC|", k.r.IntN(70), k.r.IntN(3), k.r.IntN(3)))
	case roll < 188: // cut in two
		b := k.orderFrame()
		cut := 1 + k.r.IntN(len(b)-1)
		k.write(b[:cut])
		k.soak.pause(time.Duration(k.r.IntN(20)) * time.Millisecond)
		k.write(b[cut:])
	case roll < 193: // garbled: its number is missed
		b := k.orderFrame()
		const head = len("8=FIX.4.4|9=nnn|") // a wrong length would take the next messages with it
		b[head+k.r.IntN(len(b)-head)] ^= 4
		k.write(b)
	case roll < 197:
		k.dawdle()
	case roll < 199:
		k.flood()
	default:
		k.glut()
	}
	// More sessions, less of each: the machine is the same.
	return k.receive(time.Duration(k.r.IntN(2000*k.soak.sessions)) * time.Microsecond)
}

// recent returns the ClOrdID of one of the last requests, or "".
func (k *trader) recent() string {
	if len(k.ids) == 0 {
		return ""
	}
	return k.ids[max(0, len(k.ids)-1-k.r.IntN(40))]
}

// pick returns a recent order, or something that was never one.
func (k *trader) pick() *aim {
	id := k.recent()
	t := &aim{id: "nothing", symbol: "SLUSD/USDC", side: "1"}
	if a := k.asked[id]; a != nil && a.symbol != "" {
		t = &aim{id: id, symbol: a.symbol, side: a.side}
	}
	return t
}

type aim struct{ id, symbol, side string }

func (t *aim) statusBody() string {
	return fmt.Sprintf("11=%s|55=%s|54=%s|", t.id, t.symbol, t.side)
}

// ask sends a request that must be answered some day; its ClOrdID comes first.
func (k *trader) ask(a *openRequest) { k.write(k.asking(a)) }

func (k *trader) asking(a *openRequest) []byte {
	id := fmt.Sprintf("%s-%d", k.compID, len(k.ids))
	a.body = "11=" + id + "|" + a.body
	k.asked[id] = a
	k.ids = append(k.ids, id)
	return k.take(a.msgType, "", a.body)
}

func (k *trader) newOrder() { k.ask(k.anOrder()) }

func (k *trader) orderFrame() []byte { return k.asking(k.anOrder()) }

// anOrder is near the middle of the book, so that it often trades.
func (k *trader) anOrder() *openRequest {
	a := &openRequest{msgType: "D", symbol: "SLUSD/USDC", side: string('1' + byte(k.r.IntN(2)))}
	qty, price := fmt.Sprintf("%d.%02d", 1+k.r.IntN(20), k.r.IntN(100)), fmt.Sprintf("1.%04d", k.r.IntN(12))
	if k.r.IntN(6) == 0 {
		a.symbol, qty, price = "92C/SLUSD", fmt.Sprint(1+k.r.IntN(9)), fmt.Sprint(5*(1+k.r.IntN(4)))
	}
	limit := "40=2|44=" + price + "|"
	kind := limit + "59=1|"
	switch k.r.IntN(12) {
	case 0, 1:
		kind = limit + "59=3|"
	case 2:
		kind = limit + "59=4|"
	case 3:
		kind = limit + "59=1|18=6|"
	case 4:
		kind = "40=1|"
	case 5:
		kind = "40=3|99=" + price + "|59=1|"
	case 6:
		end := time.Now().Add(time.Duration(k.r.IntN(1500)) * time.Millisecond)
		k.soak.expires(end)
		kind = limit + "59=6|126=" + end.UTC().Format("20060102-15:04:05.000") + "|"
	case 7:
		kind = limit + "59=1|111=1|"
	case 8:
		kind = limit + "59=0|"
	}
	a.body = fmt.Sprintf("55=%s|54=%s|38=%s|%s%s", a.symbol, a.side, qty, kind, now60)
	return a
}

// change asks to cancel (F) or to amend (G).
func (k *trader) change(msgType string) {
	t := k.pick()
	body := fmt.Sprintf("41=%s|55=%s|54=%s|38=%d|", t.id, t.symbol, t.side, 1+k.r.IntN(15))
	if msgType == "G" {
		price := fmt.Sprintf("1.%04d", k.r.IntN(12))
		if t.symbol != "SLUSD/USDC" {
			price = fmt.Sprint(5 * (1 + k.r.IntN(4)))
		}
		body += "40=2|44=" + price + "|"
	}
	k.ask(&openRequest{msgType: msgType, body: body + now60, symbol: t.symbol, side: t.side})
}

// dawdle sends without reading.
func (k *trader) dawdle() {
	for range 5 + k.r.IntN(10) {
		k.newOrder()
		k.soak.pause(time.Duration(k.r.IntN(40)) * time.Millisecond)
	}
}

// flood is above the rate, now and then so far that the session is ended.
func (k *trader) flood() {
	rate := k.soak.desk.options.Rate
	var b []byte
	for range rate + k.r.IntN(4*rate) {
		b = append(b, k.take("H", "", k.pick().statusBody())...)
	}
	k.write(b)
}

// glut asks for much, more often than it may, and reads nothing: more than is kept
// for anybody.
func (k *trader) glut() {
	for range session.MaxResends + 3 {
		k.send("2", "", fmt.Sprintf("7=%d|16=%d|", max(1, k.nextIn-500), k.nextIn-1))
	}
	k.soak.pause(500 * time.Millisecond)
}

// part ends the connection in some way. Where the gateway answers, what it has
// said before is taken first.
func (k *trader) part() error {
	if k.over || k.conn == nil {
		k.drop()
		return nil
	}
	how := k.r.IntN(8)
	if k.soak.stopped() {
		how = 0
	}
	last := []byte(nil) // what the gateway ends the session for; nil = it is not asked
	switch how {
	case 0, 1:
		last = k.take("5", "", "")
	case 2:
		last = []byte("8=FIX.4.4\x019=2000000000\x01")
	case 3:
		last = k.frame("n", k.nextOut, "", "212=3|213=a=b|")
	case 4:
		last = []byte(strings.Repeat("x", session.MaxGarbage+1))
	case 5: // a reset of the connection
		if tcp, ok := k.conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
	case 6: // half a message
		b := k.orderFrame()
		k.write(b[:k.r.IntN(len(b))])
	}
	end, again := time.Now().Add(wait), time.Now()
	for last != nil && !k.over {
		switch now := time.Now(); {
		case now.After(end):
			return fmt.Errorf("%s: the gateway does not end a session that was asked to (way %d)", k.compID, how)
		case !now.Before(again): // garbage before it may have taken the last
			again = now.Add(time.Second)
			k.write(last)
		}
		if err := k.receive(50 * time.Millisecond); err != nil {
			return err
		}
	}
	k.drop()
	return nil
}
