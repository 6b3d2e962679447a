package fixgw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// FuzzSession: after a Logon and any bytes, in any pieces, the session ends when the
// client disconnects, and the next client is served.
func FuzzSession(f *testing.F) {
	d := newDesk(f, []string{"MM"}, func(o *Options) { o.CompID, o.RefuseDelay = "FUZZ", time.Millisecond })
	message := func(fields string) []byte {
		return wiretest.Message(fmt.Sprintf(fields, "49=MM|52="+stampNow()+"|56=FUZZ|"))
	}
	for _, seed := range [][]byte{
		message("35=D|34=2|%s11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=1|60=20260101-00:00:00|"),
		message("35=V|34=2|%s262=m|263=1|264=1|265=1|267=2|269=0|269=1|146=1|55=SLUSD/USDC|"),
		message("35=R|34=2|%s131=q|146=1|55=SLUSD/USDC|152=100|15=USDC|54=1|"),
		message("35=AE|34=2|%s571=t|572=1|818=x|570=N|55=SLUSD/USDC|32=1|31=1|75=20260101|60=20260101-00:00:00|552=1|54=1|37=1|"),
		message("35=4|34=2|%s123=Y|36=99999999999999999999|"),
		message("35=2|34=2|%s7=1|16=0|"), message("35=n|34=2|%s212=9|213=a=b|"), message("35=D|34=9|%s146=9999999|"),
		[]byte("8=FIX.4.4\x019=2000000000\x01"),
	} {
		f.Add(seed, byte(7))
	}
	logon := func(t *testing.T) net.Conn {
		return await.Value(t, "a client to be served", func() net.Conn {
			c, err := net.Dial("tcp", d.addr())
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(wait))
			c.Write(wiretest.Message(d.logonText("MM", "108=60|141=Y|553=mm|554="+sessiontest.Password+"|")))
			var head [512]byte
			if n, err := c.Read(head[:]); err == nil && bytes.Contains(head[:n], []byte("\x0135=A\x01")) {
				return c
			}
			c.Close()
			return nil
		}, func(c net.Conn) bool { return c != nil })
	}
	f.Fuzz(func(t *testing.T, data []byte, piece byte) {
		c := logon(t)
		go func() {
			defer c.(*net.TCPConn).CloseWrite()
			for len(data) > 0 {
				n := min(len(data), 1+int(piece))
				if _, err := c.Write(data[:n]); err != nil {
					return
				}
				data = data[n:]
			}
		}()
		if _, err := io.Copy(io.Discard, c); err != nil {
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				t.Fatal("the session does not end")
			}
		}
		c.Close()
	})
}
