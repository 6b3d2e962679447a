package fixgw

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// trader is a client of the soak test. It sends random messages, correct or not, but it
// processes the received ones in the order of their numbers and requests missing ones.
// One goroutine.
type trader struct {
	soak         *soak
	compID, user string
	r            *rand.Rand
	book         *ledger

	conn   net.Conn
	in     []byte
	logged bool // the gateway's Logon has come
	over   bool // the connection has ended, or is about to

	nextOut, nextIn int
	high            int       // largest number seen
	askAt           time.Time // of the next ResendRequest, if one is needed
	lastReceived    time.Time // when the last message came
	lastHeartbeatID string    // TestReqID (112) of the last Heartbeat

	sent  map[int]sentMessage     // application messages, by number
	asked map[string]*openRequest // requests, by ClOrdID
	ids   []string                // of asked, oldest first
	steps int
	trace []string // the newest messages and ends, shown when a check fails
}

// maxTrace is how many lines of trace a trader keeps, maxPrinted how many it prints.
const (
	maxTrace   = 200
	maxPrinted = 50
)

// note adds a line to the trace.
func (k *trader) note(what string, m sessiontest.Message) {
	if len(k.trace) >= maxTrace {
		k.trace = append(k.trace[:0], k.trace[maxTrace/2:]...)
	}
	k.trace = append(k.trace, what+" "+m.Pick(34, 35, 43, 97, 7, 16, 36, 11, 17, 150, 58))
}

// sentMessage is an application message as it can be sent again.
type sentMessage struct{ msgType, body string }

// openRequest is a request that must be answered in the end.
type openRequest struct{ msgType, body, symbol, side string }

func newTrader(s *soak, compID, user string, seed uint64) *trader {
	return &trader{
		soak: s, compID: compID, user: user, r: rand.New(rand.NewPCG(s.seed, seed)), book: newLedger(s.desk.set),
		nextOut: 1, nextIn: 1, sent: map[int]sentMessage{}, asked: map[string]*openRequest{},
	}
}

// run is the trader's life: connections that end at random, and a last one in which it
// gets all missing reports.
func (k *trader) run() error {
	defer k.drop()
	err := k.lead()
	if err != nil {
		return fmt.Errorf("%w\n%s: the newest messages:\n%s", err, k.compID, strings.Join(k.trace[max(0, len(k.trace)-maxPrinted):], "\n"))
	}
	return nil
}

// lead is run without its last words.
func (k *trader) lead() error {
	for !k.soak.finishing() {
		if err := k.connect(k.r.IntN(3) > 0); err != nil {
			return err
		}
		for n := 20 + k.r.IntN(200); n > 0 && !k.over && !k.soak.finishing(); n-- {
			if err := k.step(); err != nil {
				return err
			}
		}
		if err := k.part(); err != nil {
			return err
		}
	}
	return k.finish()
}

// connect logs on, or leaves over set: the gateway may be down, or still have the
// last connection.
func (k *trader) connect(keepOrders bool) error {
	k.in, k.logged, k.over, k.askAt = k.in[:0], false, false, time.Time{}
	if !k.dial() {
		k.over = true
		k.soak.pause(50 * time.Millisecond)
		return nil
	}
	more := "8013=Y|"
	if keepOrders {
		more = "8013=N|"
	}
	k.send("A", "", "98=0|108=30|553="+k.user+"|554="+sessiontest.Password+"|"+more)
	for end := time.Now().Add(maxRepeatPause); !k.logged && !k.over && time.Now().Before(end); {
		if err := k.receive(50 * time.Millisecond); err != nil {
			return err
		}
	}
	if !k.logged {
		k.drop()
		k.soak.pause(time.Duration(k.r.IntN(50)) * time.Millisecond)
	}
	return nil
}

func (k *trader) dial() bool {
	addr, secure := k.soak.where()
	conn, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return false
	}
	conn.(*net.TCPConn).SetReadBuffer(8 << 10) // a small one: slow reading shows
	if secure != nil {
		conn.SetDeadline(time.Now().Add(wait))
		t := tls.Client(conn, secure)
		if t.Handshake() != nil {
			conn.Close()
			return false
		}
		conn.SetDeadline(time.Time{})
		conn = t
	}
	k.conn = conn
	return true
}

// drop closes the connection without a word.
func (k *trader) drop() {
	if k.conn != nil {
		k.conn.Close()
		k.conn = nil
		k.note("end", nil)
	}
	k.over, k.logged = true, false
}

// frame builds a message; body is fields with | after each, head the further
// fields of the header.
func (k *trader) frame(msgType string, seq int, head, body string) []byte {
	return wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s%s", msgType, seq, k.compID,
		time.Now().UTC().Format("20060102-15:04:05.000"), k.soak.desk.options.CompID, head, body))
}

// send sends the next message.
func (k *trader) send(msgType, head, body string) {
	k.write(k.take(msgType, head, body))
}

// take gives a message the next number.
func (k *trader) take(msgType, head, body string) []byte {
	if !strings.Contains("A012345HV", msgType) { // what is asked for now is not worth a replay
		k.sent[k.nextOut] = sentMessage{msgType, body}
	}
	k.nextOut++
	b := k.frame(msgType, k.nextOut-1, head, body)
	k.note(">", b)
	return b
}

func (k *trader) write(b []byte) {
	if k.over {
		return
	}
	k.conn.SetWriteDeadline(time.Now().Add(maxRepeatPause)) // it reads nothing meanwhile
	if _, err := k.conn.Write(b); err != nil {
		k.drop()
	}
}

// receive reads for at most d and handles what has come whole.
func (k *trader) receive(d time.Duration) error {
	if k.over {
		return nil
	}
	k.conn.SetReadDeadline(time.Now().Add(d))
	var buf [16 << 10]byte
	n, err := k.conn.Read(buf[:])
	k.in = append(k.in, buf[:n]...)
	for {
		skip, n, bad := wire.ScanFrame(k.in, 1<<20)
		if bad != nil || skip > 0 {
			return fmt.Errorf("%s: the gateway sent %q", k.compID, k.in)
		}
		if n == 0 {
			break
		}
		m := sessiontest.Message(bytes.Clone(k.in[:n]))
		k.in = k.in[:copy(k.in, k.in[n:])]
		k.note("<", m)
		k.lastReceived = time.Now()
		if bad := k.handle(m); bad != nil {
			return fmt.Errorf("%s: %w: %s", k.compID, bad, m)
		}
	}
	if ne := net.Error(nil); err != nil && (!errors.As(err, &ne) || !ne.Timeout()) {
		k.drop()
	}
	if k.logged && k.nextIn <= k.high {
		k.askResend()
	}
	return nil
}

// handle takes one message, in its turn or not.
func (k *trader) handle(m sessiontest.Message) error {
	if err := wiretest.StockChecker().Check(m); err != nil {
		return fmt.Errorf("breaks the stock dictionary: %w", err)
	}
	typ, seqText := m.Get(35), m.Get(34)
	seq, err := strconv.Atoi(seqText)
	if err != nil {
		return err
	}
	switch {
	case !k.logged && typ == "5" && seq == 1:
		k.over = true // refused before the session: counts for nothing
		return nil
	case typ == "4":
		return k.gapFilled(m, seq)
	}
	if err := k.book.number(seq, m); err != nil {
		return err
	}
	k.high = max(k.high, seq)
	switch typ {
	case "A":
		k.logged = true
	case "5":
		if strings.Contains(m.Get(58), "too low") {
			return fmt.Errorf("the gateway has numbers that were never sent")
		}
		k.over = true
	case "2":
		if m.Get(43) != "Y" {
			k.resend(m)
		}
	}
	switch {
	case seq > k.nextIn:
		return nil // comes again
	case seq < k.nextIn && m.Get(43) != "Y":
		return fmt.Errorf("number %d after %d", seq, k.nextIn-1)
	case seq < k.nextIn:
		return nil
	}
	k.nextIn++
	switch typ {
	case "0":
		k.lastHeartbeatID = m.Get(112)
	case "1":
		k.send("0", "", "112="+m.Get(112)+"|")
	case "3":
		if m.Get(372) != "" && strings.Contains("DFGHqV", m.Get(372)) {
			return fmt.Errorf("a good message is rejected")
		}
	}
	before := len(k.book.answers)
	err = k.book.take(m)
	k.soak.answered.Add(int64(len(k.book.answers) - before))
	return err
}

func (k *trader) gapFilled(m sessiontest.Message, seq int) error {
	next, err := strconv.Atoi(m.Get(36))
	switch {
	case err != nil:
		return err
	case m.Get(123) != "Y" || m.Get(43) != "Y":
		return fmt.Errorf("a reset that no trader requested")
	case next <= seq:
		return fmt.Errorf("a gap fill that goes back")
	}
	k.high = max(k.high, next-1)
	if seq <= k.nextIn {
		k.nextIn = max(k.nextIn, next)
	}
	return nil
}

// askResend asks for what is missing, in pieces that a resend replays whole, and
// not more often than the gateway answers.
func (k *trader) askResend() {
	if now := time.Now(); now.After(k.askAt) {
		k.askAt = now.Add(1200 * time.Millisecond)
		k.send("2", "", fmt.Sprintf("7=%d|16=%d|", k.nextIn, k.nextIn+499))
	}
}

// resend answers a ResendRequest: with the messages, or by saying that there are
// none worth having.
func (k *trader) resend(m sessiontest.Message) {
	from, err := strconv.Atoi(m.Get(7))
	if err != nil {
		return
	}
	var out []byte
	fill := func(to int) {
		if from < to {
			out = append(out, k.frame("4", from, "43=Y|122="+stampNow()+"|", fmt.Sprintf("123=Y|36=%d|", to))...)
		}
	}
	end := k.nextOut
	if !k.soak.finishing() && k.r.IntN(3) > 0 {
		for seq := from; seq < end; seq++ {
			if s, ok := k.sent[seq]; ok {
				fill(seq)
				out = append(out, k.frame(s.msgType, seq, "43=Y|122="+stampNow()+"|", s.body)...)
				from = seq + 1
			}
		}
	}
	fill(end)
	k.write(out)
}

func stampNow() string { return time.Now().UTC().Format("20060102-15:04:05.000") }

// waiting returns the requests without an answer, oldest first.
func (k *trader) waiting() []string {
	var ids []string
	for _, id := range k.ids {
		if _, ok := k.book.answers[id]; !ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// maxSilence is how long the gateway may leave a session that asks without an
// answer: it ends what hangs.
const maxSilence = wait

// silent reports whether the gateway does not answer the session.
func (k *trader) silent() error {
	if !k.logged || k.over || time.Since(k.lastReceived) < maxSilence {
		return nil
	}
	return fmt.Errorf("%s: no answer for %v; next number %d, largest seen %d; ours is %d, expected is %d",
		k.compID, maxSilence, k.nextIn, k.high, k.nextOut, k.soak.desk.gateway.SessionNamed(k.compID).Messages.NextTargetMsgSeqNum())
}

// repeats is how a trader that has come to its end asks again. Asked for everything
// at one pace, a gateway on a busy machine would never be through with what was
// asked before. So the pause doubles while something of the last time has no answer,
// and only then: a trader with hundreds of requests would sit out the long pauses of
// all of them while the gateway has nothing to do.
type repeats struct {
	open  []string // asked for last, as far as it has no answer
	at    time.Time
	pause time.Duration // from at to the next time
}

const minRepeatPause, maxRepeatPause = time.Second, 10 * time.Second

// next returns what of waiting, the oldest first, is asked for now: at most most, and
// nothing during a pause.
func (p *repeats) next(now time.Time, waiting []string, most int) []string {
	p.open = slices.DeleteFunc(p.open, func(id string) bool { return !slices.Contains(waiting, id) })
	if len(p.open) == 0 {
		p.pause = minRepeatPause
	}
	if now.Before(p.at.Add(p.pause)) {
		return nil
	}
	if len(p.open) > 0 {
		p.pause = min(2*p.pause, maxRepeatPause)
	}
	p.at, p.open = now, slices.Clone(waiting[:min(len(waiting), most)])
	return p.open
}

// TestRepeats: a trader asks for more as soon as it has been answered, and with
// growing pauses where it is not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	waiting := make([]string, 221)
	for i := range waiting {
		waiting[i] = strconv.Itoa(i)
	}
	silences := []time.Duration{0, 1, 3, 7, 15, 25, 35}
	heard := []time.Duration{0, 1, 2, 3, 4}
	for _, answers := range []bool{false, true} {
		var p repeats
		var asked []time.Duration
		start, waiting, want := time.Unix(1, 0), slices.Clone(waiting), silences
		if answers {
			want = heard
		}
		for at := time.Duration(0); at < 36*time.Second && len(waiting) > 0; at += 100 * time.Millisecond {
			ids := p.next(start.Add(at), waiting, 50)
			if len(ids) == 0 {
				continue
			}
			if !slices.Equal(ids, waiting[:min(50, len(waiting))]) {
				t.Fatalf("answers %v, after %v: asks for %q", answers, at, ids)
			}
			asked = append(asked, at/time.Second)
			if answers {
				waiting = waiting[len(ids):]
			}
		}
		if !slices.Equal(asked, want) {
			t.Errorf("answers %v: asks after %d s, want %d", answers, asked, want)
		}
	}
}

// finish stays until every request has its answer and every number has come,
// and everybody else is as far; then until the gateway has nothing more to say.
func (k *trader) finish() error {
	ready, tried := false, false
	var again repeats
	for !k.soak.stopped() {
		if k.conn == nil || k.over {
			k.drop()
			again.open = nil // what was not heard is not heard any more
			if err := k.connect(true); err != nil {
				return err
			}
			if k.logged && !tried { // a gap: the session has to come out of it by itself
				tried = true
				k.nextOut++
				k.newOrder()
				for range session.MaxResends + 3 {
					k.send("2", "", "7=1|16=1|")
				}
			}
			continue
		}
		waiting := k.waiting()
		for _, id := range again.next(time.Now(), waiting, k.soak.desk.options.Rate/2) { // less than the rate
			k.send(k.asked[id].msgType, "97=Y|", k.asked[id].body)
		}
		if err := k.receive(100 * time.Millisecond); err != nil {
			return err
		}
		if ready {
			continue
		}
		if err := k.silent(); err != nil {
			return err
		}
		if len(waiting) == 0 && k.nextIn > k.high {
			ready = true
			k.soak.ready.Done()
		}
	}
	if !ready {
		waiting := k.waiting()
		return fmt.Errorf("%s: %d requests without an answer, such as %q; next number %d, largest seen %d", k.compID, len(waiting), waiting[:min(1, len(waiting))], k.nextIn, k.high)
	}
	return k.readRest()
}

// readRest reads the rest of what the gateway sends: no trader requests anything any
// more, and all reports are in the store.
func (k *trader) readRest() error {
	const mark = "end"
	var again time.Time
	k.lastReceived = time.Now()
	for k.lastHeartbeatID != mark || k.nextIn <= k.high {
		if k.over {
			return fmt.Errorf("%s: the session ends before all was sent: next %d, seen %d", k.compID, k.nextIn, k.high)
		}
		if now := time.Now(); k.lastHeartbeatID != mark && now.After(again) {
			again = now.Add(time.Second)
			k.send("1", "", "112="+mark+"|")
		}
		if err := k.receive(200 * time.Millisecond); err != nil {
			return err
		}
		if err := k.silent(); err != nil {
			return err
		}
	}
	return k.part()
}
