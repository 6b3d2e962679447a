package fix

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"blockdesk/bench/server"
)

// wire is a client of one goroutine for every server of the FIX benchmark: it
// writes requests and counts whole answers. An order and its cancel in turn.
type wire struct {
	conn     net.Conn
	compID   string
	target   string
	seq      int
	requests int
	refused  int
	stamp    string
	out      []byte
	body     []byte
	in       []byte
	from     int
}

// wireTimeout bounds every measured phase's last answer.
const wireTimeout = 60 * time.Second

// dialWire connects; logon is the body of the Logon, "" = the server does not speak FIX.
func dialWire(addr, compID, target, logon string) (*wire, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, compID: compID, target: target, seq: 1, in: make([]byte, 0, 256<<10)}
	w.tick()
	if logon == "" {
		return w, nil
	}
	w.append("A", []byte(logon))
	if err := w.write(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m, err := w.message()
	if err == nil && !bytes.Contains(m, []byte("\x0135=A\x01")) {
		err = fmt.Errorf("logon answered by %q", m)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return w, nil
}

// tick sets the time that messages carry.
func (w *wire) tick() { w.stamp = time.Now().UTC().Format("20060102-15:04:05.000") }

// append adds one message to what write sends.
func (w *wire) append(msgType string, body []byte) {
	w.body = append(append(w.body[:0], "35="...), msgType...)
	w.body = strconv.AppendInt(append(w.body, "\x0134="...), int64(w.seq), 10)
	w.body = append(append(append(w.body, "\x0149="...), w.compID...), "\x0152="...)
	w.body = append(append(append(w.body, w.stamp...), "\x0156="...), w.target...)
	w.body = append(append(w.body, '\x01'), body...)
	w.seq++
	start := len(w.out)
	w.out = strconv.AppendInt(append(w.out, "8=FIX.4.4\x019="...), int64(len(w.body)), 10)
	w.out = append(append(w.out, '\x01'), w.body...)
	sum := byte(0)
	for _, b := range w.out[start:] {
		sum += b
	}
	w.out = append(w.out, '1', '0', '=', '0'+sum/100, '0'+sum/10%10, '0'+sum%10, '\x01')
}

func (w *wire) write() error {
	_, err := w.conn.Write(w.out)
	w.out = w.out[:0]
	return err
}

// request appends the next request.
func (w *wire) request() {
	id := strconv.AppendInt([]byte{'R'}, int64(w.requests), 10)
	w.requests++
	var b [256]byte
	if w.requests%2 == 1 {
		w.append("D", fmtBody(b[:0], id, nil, w.stamp))
		return
	}
	w.append("F", fmtBody(b[:0], id, strconv.AppendInt([]byte{'R'}, int64(w.requests-2), 10), w.stamp))
}

func fmtBody(b, id, orig []byte, stamp string) []byte {
	b = append(append(b, "11="...), id...)
	if orig != nil {
		b = append(append(b, "\x0141="...), orig...)
	}
	b = append(append(b, "\x0155="+server.Symbol+"\x0154=1\x0138=10\x0160="...), stamp...)
	if orig == nil {
		b = append(b, "\x0140=2\x0159=1\x0144=0.500000"...)
	}
	return append(b, '\x01')
}

// message returns the next whole message; it is valid until the next call.
func (w *wire) message() ([]byte, error) {
	for {
		if m := w.whole(); m != nil {
			return m, nil
		}
		if w.from > 0 {
			w.in = w.in[:copy(w.in, w.in[w.from:])]
			w.from = 0
		}
		n, err := w.conn.Read(w.in[len(w.in):cap(w.in)])
		if err != nil {
			return nil, err
		}
		w.in = w.in[:len(w.in)+n]
	}
}

func (w *wire) whole() []byte {
	const begin = "8=FIX.4.4\x019="
	rest := w.in[w.from:]
	if len(rest) < len(begin)+4 {
		return nil
	}
	n, at := 0, len(begin)
	for ; at < len(rest) && rest[at] != '\x01'; at++ {
		n = 10*n + int(rest[at]-'0')
	}
	size := at + 1 + n + len("10=000\x01")
	if len(rest) < size {
		return nil
	}
	w.from += size
	return rest[:size]
}

// answer reads the next answer to a request, and skips the session's own messages.
func (w *wire) answer() error {
	for {
		m, err := w.message()
		if err != nil {
			return err
		}
		at := bytes.Index(m, []byte("\x0135=")) + 4
		switch m[at] {
		case '0', '1':
			continue
		case '5', '3', 'j', '9':
			return fmt.Errorf("request refused: %s", strings.ReplaceAll(string(m), "\x01", "|"))
		}
		if bytes.Contains(m, []byte("\x01150=8\x01")) {
			w.refused++
		}
		return nil
	}
}

// one sends a request and waits for its answer.
func (w *wire) one() error {
	w.request()
	if err := w.write(); err != nil {
		return err
	}
	return w.answer()
}

// pipeline sends n requests with window of them in flight: as many as have been
// answered go out in one write.
func (w *wire) pipeline(n, window int) error {
	if err := w.conn.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		return err
	}
	w.tick()
	sent, answered := 0, 0
	for answered < n {
		for ; sent < n && sent-answered < window; sent++ {
			w.request()
		}
		if len(w.out) > 0 {
			if err := w.write(); err != nil {
				return err
			}
		}
		if err := w.answer(); err != nil {
			return err
		}
		for answered++; answered < sent; answered++ {
			m := w.from
			if w.whole() == nil {
				break
			}
			w.from = m
			if err := w.answer(); err != nil {
				return err
			}
		}
	}
	return w.conn.SetDeadline(time.Time{})
}

func (w *wire) close() error {
	err := w.conn.Close()
	if w.refused > 0 {
		err = errors.Join(err, fmt.Errorf("%d requests were refused", w.refused))
	}
	return err
}
