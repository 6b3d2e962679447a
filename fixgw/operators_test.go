package fixgw

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// life is one connection of a client that sends bursts until the gateway or the client
// ends it. The client must get its messages in the order of their numbers.
func (d *harness) life(compID string, r *rand.Rand) error {
	conn, err := net.Dial("tcp", d.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	said := make(chan error, 1)
	go func() { said <- inOrder(conn) }()
	seq := 0
	frame := func(msgType, body string) []byte {
		seq++
		return wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s", msgType, seq, compID, stampNow(), d.options.CompID, body))
	}
	out := frame("A", fmt.Sprintf("98=0|108=60|141=Y|8013=%c|553=%s|554=%s|", "YN"[r.IntN(2)], strings.ToLower(compID), sessiontest.Password))
	out = append(out, frame("V", "262=r|263=1|264=0|265=1|267=3|269=0|269=1|269=2|146=1|55=SLUSD/USDC|")...)
	for range 1 + r.IntN(8) {
		for range r.IntN(30) {
			switch r.IntN(8) {
			case 0:
				out = append(out, frame("1", "112=x|")...)
			case 1:
				out = append(out, frame("2", "7=1|16=0|")...)
			case 2:
				out = append(out, frame("q", fmt.Sprintf("11=q%d|530=7|%s", r.Uint64(), now60))...)
			default:
				out = append(out, frame("D", fmt.Sprintf("11=o%d|55=SLUSD/USDC|54=%d|38=1|40=2|44=0.%d|59=1|%s", r.Uint64(), 1+r.IntN(2), 1000+r.IntN(4), now60))...)
			}
		}
		if _, err := conn.Write(out); err != nil {
			break // it was ended
		}
		out = out[:0]
		// sleep: a burst, and a while later the next.
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
	if r.IntN(2) == 0 {
		if _, err := conn.Write(frame("5", "")); err != nil {
			return <-said
		}
	}
	conn.(*net.TCPConn).CloseWrite()
	return <-said
}

// inOrder reads a connection to its end: a Logon or a Logout first, and up to a
// Logout every number once and in its turn.
func inOrder(conn net.Conn) error {
	conn.SetReadDeadline(time.Now().Add(wait))
	var in []byte
	buf := make([]byte, 4096)
	next := 0
	for {
		n, err := conn.Read(buf)
		in = append(in, buf[:n]...)
		for {
			skip, n, bad := wire.ScanFrame(in, 1<<20)
			if bad != nil || skip > 0 {
				return fmt.Errorf("not FIX: %w: %s", bad, wiretest.Show(in))
			}
			if n == 0 {
				break
			}
			m := sessiontest.Message(bytes.Clone(in[:n]))
			in = in[n:]
			seq := 0
			fmt.Sscan(m.Get(34), &seq)
			switch {
			case m.Get(43) == "Y":
			case next == 0 && m.Get(35) != "A" && m.Get(35) != "5":
				return fmt.Errorf("the first is %s", m)
			case next > 0 && seq != next && m.Get(35) != "A":
				return fmt.Errorf("number %d is due: %s", next, m)
			default:
				next = seq + 1
			}
			if m.Get(35) == "5" {
				io.Copy(io.Discard, conn)
				return nil
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the connection was not ended, after number %d", next-1)
		}
		if n == 0 { // closed, or cut off
			return nil
		}
	}
}

// TestOperatorsUnderTraffic: operators kick, reset, remove and add sessions and announce
// news while clients log on, trade, request resends and disconnect. Each client gets its
// messages in order, no connection is left over, and all can log on at the end.
func TestOperatorsUnderTraffic(t *testing.T) {
	t.Parallel()
	ids := []string{"A1", "B1", "C1"}
	d := newDesk(t, ids, func(o *Options) { o.RefuseDelay = time.Millisecond })
	d.dial("A1", nil).leave() // they are awake
	// Until enough has happened: some seconds, and longer on a slow machine.
	var lives atomic.Int64
	going := func() bool {
		stats := d.gateway.Stats()
		return !t.Failed() && (lives.Load() < 40 || stats.MessagesOut < 50 || stats.Kicked < 1)
	}
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for going() {
				if err := d.life(id, r); err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
				lives.Add(1)
			}
		})
	}
	list := d.options.Participants
	for i := range 2 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(i)))
			for going() {
				id := ids[r.IntN(len(ids))]
				switch r.IntN(6) { // an error does not matter
				case 0:
					_ = d.gateway.Kick(id, "go")
				case 1:
					_ = d.gateway.ResetSequence(id, r.IntN(2) == 0)
				case 2:
					d.gateway.Reload(without(list, id))
				case 3:
					d.gateway.Reload(list)
				case 4:
					d.gateway.Announce("", "news")
				case 5:
					d.gateway.Sessions()
					d.gateway.Stats()
				}
				// sleep: operators leave the sessions time to log on.
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
			}
		})
	}
	all.Wait()
	t.Logf("%d connections, %+v", lives.Load(), d.gateway.Stats())
	d.reload(list)
	for _, id := range ids {
		s := d.gateway.SessionNamed(id)
		await.True(t, id+" to be logged out", func() bool { return !s.Connected() && !s.LoggedOn() })
		k := d.dial(id, nil)
		k.order("last", "1", "1", "0.0001", "59=3|")
		m := k.next()
		for m.Get(11) != "last" { // a report of the session's last life may come only now
			m = k.next()
		}
		m.Want(t, "35=8 150=0")
		k.leave()
	}
}
