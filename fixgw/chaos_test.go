package fixgw

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestRandomMessages sends well-framed messages of random types, fields and values, and
// raw bytes. The gateway keeps running, all its messages are valid by the dictionary, and
// the next client can trade.
func TestRandomMessages(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MAD", "MM"}, func(o *Options) { o.CompID = "DESK" })
	r := rand.New(rand.NewPCG(runtest.Seed(t), 0))
	values := []string{
		"", "0", "1", "2", "-1", "9", "Y", "N", "a", "b", "SLUSD/USDC", "92C/SLUSD", "X/Y", "1.5", "0.00001", "1e5", "NaN", "99999999999999999999",
		"20261121-00:00:00", "20261121", "\x00", "é", "=", strings.Repeat("9", 70), strings.Repeat("x", 300),
	}
	tags := []int{11, 41, 37, 55, 54, 38, 40, 44, 99, 59, 60, 18, 111, 432, 126, 530, 262, 263, 264, 265, 267, 269, 146, 7, 16, 36, 123, 112, 43, 97, 122, 141, 108, 98, 553, 554, 1, 58, 453, 448, 95, 96, 89, 93, 5000, 8013, 0, 34, 52, 49, 56, 35}
	types := []string{"D", "D", "D", "F", "G", "H", "q", "V", "V", "0", "1", "2", "3", "4", "A", "B", "R", "AE", "ZZ", "n", "8", "j"}
	complete := []string{
		"11=%d|55=SLUSD/USDC|54=1|38=1|40=2|44=1|60=20260101-00:00:00|", "11=%d|41=1|55=SLUSD/USDC|54=1|38=1|60=20260101-00:00:00|",
		"262=%d|263=1|264=1|265=1|267=1|269=0|146=1|55=SLUSD/USDC|", "7=1|16=0|",
	}
	for range 12 {
		conn, err := net.Dial("tcp", d.addr())
		if err != nil {
			t.Fatal(err)
		}
		var replies answers
		go replies.read(conn)
		header := func(msgType string, seq int) string {
			return fmt.Sprintf("35=%s|34=%d|49=MAD|52=%s|56=DESK|", msgType, seq, time.Now().UTC().Format("20060102-15:04:05.000"))
		}
		var sent bytes.Buffer
		sent.Write(wiretest.Message(header("A", 1) + "98=0|108=60|141=Y|8013=N|553=mad|554=" + sessiontest.Password + "|"))
		seq := 2
		for range 60 {
			body := ""
			if r.IntN(2) == 0 {
				body = complete[r.IntN(len(complete))]
				if strings.Contains(body, "%d") {
					body = fmt.Sprintf(body, r.IntN(50))
				}
			}
			for range r.IntN(5) {
				body += fmt.Sprintf("%d=%s|", tags[r.IntN(len(tags))], values[r.IntN(len(values))])
			}
			at := seq
			if r.IntN(20) == 0 {
				at += r.IntN(5) - 2
			}
			frame := wiretest.Message(header(types[r.IntN(len(types))], at) + body)
			if r.IntN(30) == 0 {
				frame[r.IntN(len(frame))] = byte(r.Uint32())
			}
			sent.Write(frame)
			seq++
		}
		conn.SetWriteDeadline(time.Now().Add(wait))
		conn.Write(sent.Bytes())
		// The gateway has done all of it when it answers what comes after, or has ended the
		// session. A garbled length takes what comes behind it along, so this message is sent again.
		await.True(t, "the end of the session, or an answer", func() bool {
			conn.Write(wiretest.Message(header("4", 1) + fmt.Sprintf("123=N|36=%d|", seq+1)))
			conn.Write(wiretest.Message(header("1", seq+1) + "112=END|"))
			seq++
			return replies.have("112=END") || replies.ended()
		})
		conn.(*net.TCPConn).CloseWrite()
		await.True(t, "the end of the connection", replies.ended)
		checkAll(t, replies.all())
		conn.Close()
		d.awaitFree("MAD")
	}
	mm := d.dial("MM", nil)
	mm.order("a", "1", "1", "1", "59=1|")
	mm.want("35=8 11=a 150=0")
}

// answers has what a connection has received so far.
type answers struct {
	mu       sync.Mutex
	received []byte
	over     bool
}

// read reads a connection to its end.
func (a *answers) read(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		a.mu.Lock()
		a.received, a.over = append(a.received, buf[:n]...), err != nil
		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (a *answers) have(field string) bool {
	return bytes.Contains(a.all(), []byte("\x01"+field+"\x01"))
}

func (a *answers) all() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return bytes.Clone(a.received)
}

func (a *answers) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

// checkAll holds every message in b to the dictionary.
func checkAll(t *testing.T, b []byte) {
	t.Helper()
	for len(b) > 0 {
		skip, n, err := wire.ScanFrame(b, 1<<20)
		if err != nil || skip > 0 || n == 0 {
			t.Fatalf("%d, %d, %v at %.200q", skip, n, err, b)
		}
		if err := wiretest.StockChecker().Check(b[:n]); err != nil {
			t.Errorf("our message breaks the dictionary: %v\n%s", err, wiretest.Show(b[:n]))
		}
		b = b[n:]
	}
}
