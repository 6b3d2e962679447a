// Package fixclient is a small FIX 4.4 initiator with a codec of its own. The demo's
// traders, the replay of recorded flow and the benchmarks use it, so that they measure the
// gateway and not a second FIX engine. It does not use quickfix, so it also checks the
// gateway independently.
//
// Invariants:
//
//  1. Messages reach the handler once each and in MsgSeqNum order; a gap is
//     asked for again before anything after it is delivered.
//
//  2. Send may be called from several goroutines; the handler runs on Run's.
//
//  3. A message is at most MaxMessage bytes; a larger one ends the session.
//
//  4. With KeepSequence, the last MaxKept application messages sent since Dial
//     are kept, over a Redial too, and sent again as possible duplicates when the
//     other side asks; older ones and session messages are answered by a gap fill.
//
//  5. A number that has been used for a message is not used for another, also
//     when the message may not have arrived: the gap is filled when asked for.
//     Numbers gets it before the message is written.
//
//  6. After a HeartBtInt of silence the other side gets a TestRequest; after another one
//     the session ends with ErrSilent.
package fixclient

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxKept is how many messages are kept for a resend.
const MaxKept = 1024

// Options of a session. Addr, SenderCompID and TargetCompID are required.
type Options struct {
	Addr         string
	SenderCompID string
	TargetCompID string
	Username     string
	Password     string
	// Key signs the Logon (95, 96), instead of a password; nil = no signature.
	Key ed25519.PrivateKey
	// HeartBtInt in seconds, 10 to 60; default 30.
	HeartBtInt int
	// KeepSequence continues with NextSender and NextTarget instead of asking
	// for a reset to 1 (141=Y).
	KeepSequence           bool
	NextSender, NextTarget int
	// Reset begins at 1 on both sides (141=Y) at the first logon; with KeepSequence
	// later logons continue from there.
	Reset bool
	// Numbers gets each change of the numbers to continue with; nil = they are not kept.
	Numbers Numbers
	// Trace gets each message that is written or was read, session messages and Logons
	// with their secrets included; nil = no trace. The bytes are valid during the call.
	// Two goroutines may call it at once.
	Trace func(sent bool, message []byte)
	// LogonFields are further fields of the Logon, encoded ("8013=N\x01").
	LogonFields string
	TLS         *tls.Config // nil = plain TCP
	// Timeout of the connection and of the logon; default 5 s.
	Timeout time.Duration
	// DialContext connects to Addr; default that of a net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Numbers keeps a session's next sequence numbers over a restart of the program.
// The methods may be called by two goroutines at once; an error ends the session.
type Numbers interface {
	// SetSender gets the next number before the message with the number below it is
	// written.
	SetSender(next int) error
	// SetTarget gets the next number to expect after the messages before it have been
	// handled; after a crash before the call, they come again.
	SetTarget(next int) error
}

// Errors of Dial, Redial and Run.
var (
	// ErrLogout is wrapped when the other side logs out; the error's text carries
	// its reason.
	ErrLogout = errors.New("logged out by the other side")
	// ErrSilent means that the other side has answered neither heartbeat nor
	// TestRequest.
	ErrSilent = errors.New("the other side is silent")
	// ErrSequence is wrapped when the other side's Logon has a number that was used
	// before: it has lost messages of the session.
	ErrSequence = errors.New("the other side's sequence number is too low")
)

// Client is one session, logged on.
type Client struct {
	opts Options
	conn net.Conn
	in   *bufio.Reader

	mu      sync.Mutex // guards out and nextOut
	out     []byte
	stamp   []byte
	nextOut int
	kept    []sent // oldest first

	nextIn      int
	savedIn     int // the nextIn that Numbers has
	resendAsked int // last sequence number that a resend was requested for
	buf         []byte
	msg         Message

	received atomic.Uint64 // messages read
	silent   atomic.Bool   // closed by the heartbeat goroutine
}

// sent is an application message that may be requested again.
type sent struct {
	seq     int
	msgType string
	body    []byte
	stamp   []byte // its first SendingTime
}

// Dial connects and logs on. It returns after the other side's Logon.
func Dial(ctx context.Context, o Options) (*Client, error) {
	o.HeartBtInt = cmp.Or(o.HeartBtInt, 30)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.DialContext == nil {
		o.DialContext = (&net.Dialer{Timeout: o.Timeout}).DialContext
	}
	c := &Client{opts: o, nextOut: 1, nextIn: 1}
	if o.KeepSequence && !o.Reset {
		c.nextOut, c.nextIn = max(o.NextSender, 1), max(o.NextTarget, 1)
	}
	if err := c.open(ctx, !o.KeepSequence || o.Reset); err != nil {
		return nil, err
	}
	return c, nil
}

// Redial connects and logs on again after Run has returned: numbers and kept messages go
// on. After an error it may be called again. It needs KeepSequence; nothing may be sent
// during it.
func (c *Client) Redial(ctx context.Context) error {
	c.resendAsked = 0
	c.silent.Store(false)
	return c.open(ctx, false)
}

// open connects and logs on, with the numbers set to 1 if reset is true.
func (c *Client) open(ctx context.Context, reset bool) error {
	conn, err := c.opts.DialContext(ctx, "tcp", c.opts.Addr)
	if err != nil {
		return err
	}
	if c.opts.TLS != nil {
		conn = tls.Client(conn, c.opts.TLS)
	}
	c.mu.Lock()
	c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := c.logon(reset); err != nil {
		conn.Close()
		return err
	}
	return c.saveTarget()
}

// saveTarget gives Numbers the next expected number.
func (c *Client) saveTarget() error {
	if c.opts.Numbers == nil || c.savedIn == c.nextIn {
		return nil
	}
	c.savedIn = c.nextIn
	return c.opts.Numbers.SetTarget(c.nextIn)
}

func (c *Client) logon(reset bool) error {
	c.conn.SetDeadline(time.Now().Add(c.opts.Timeout))
	body := "98=0\x01108=" + strconv.Itoa(c.opts.HeartBtInt) + "\x01"
	if reset {
		body += "141=Y\x01"
	}
	if c.opts.Username != "" {
		body += "553=" + c.opts.Username + "\x01"
	}
	if c.opts.Password != "" {
		body += "554=" + c.opts.Password + "\x01"
	}
	if err := c.Send("A", []byte(body+c.opts.LogonFields)); err != nil {
		return err
	}
	for {
		m, err := c.next()
		if err != nil {
			return fmt.Errorf("fix logon: %w", err)
		}
		switch m.Type() {
		case "A":
			c.conn.SetDeadline(time.Time{})
			n := m.Int(34)
			switch {
			case n > c.nextIn:
				return c.askResend(n)
			case n < c.nextIn && c.opts.KeepSequence && string(m.Get(141)) != "Y":
				return fmt.Errorf("fix logon: %w: %d, expected %d", ErrSequence, n, c.nextIn)
			}
			c.nextIn = n + 1
			return nil
		case "5":
			return fmt.Errorf("fix logon: %w: %s", ErrLogout, m.Get(58))
		default:
			return fmt.Errorf("fix logon: the gateway answered with a message of type %q, not with a Logon", m.Type())
		}
	}
}

// Send encodes one message with the standard header and trailer around body
// (fields as "tag=value" with SOH after each) and writes it. Further header
// fields, such as 97=Y, come first in body. It blocks while the socket is full.
func (c *Client) Send(msgType string, body []byte) error {
	_, err := c.SendNumbered(msgType, body)
	return err
}

// SendNumbered is Send and returns the message's MsgSeqNum, by which a Reject (35=3)
// names it.
func (c *Client) SendNumbered(msgType string, body []byte) (seq int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seq = c.nextOut
	c.out = c.append(c.out[:0], msgType, seq, body)
	c.keep(msgType, body)
	c.nextOut++
	return seq, c.write()
}

// write writes out. The caller holds mu.
func (c *Client) write() error {
	if c.opts.Numbers != nil {
		if err := c.opts.Numbers.SetSender(c.nextOut); err != nil {
			return err
		}
	}
	if c.opts.Trace != nil {
		for rest := c.out; len(rest) > 0; {
			n := encodedSize(rest)
			c.opts.Trace(true, rest[:n])
			rest = rest[n:]
		}
	}
	_, err := c.conn.Write(c.out)
	return err
}

// encodedSize returns the size of the first of several messages that append has made.
func encodedSize(messages []byte) int {
	const head, trailer = len("8=FIX.4.4\x019=00000\x01"), len("10=000\x01")
	length := 0
	for _, digit := range messages[head-len("00000\x01") : head-1] {
		length = length*10 + int(digit-'0')
	}
	return head + length + trailer
}

// keep keeps the message that is about to get nextOut. The caller holds mu.
func (c *Client) keep(msgType string, body []byte) {
	if !c.opts.KeepSequence || len(msgType) == 1 && strings.Contains("A012345", msgType) {
		return
	}
	if len(c.kept) == MaxKept {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, sent{c.nextOut, msgType, slices.Clone(body), slices.Clone(c.stamp)})
}

// SendAll writes several messages of one type with one system call.
func (c *Client) SendAll(msgType string, bodies [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	for _, body := range bodies {
		c.out = c.append(c.out, msgType, c.nextOut, body)
		c.keep(msgType, body)
		c.nextOut++
	}
	return c.write()
}

func (c *Client) append(dst []byte, msgType string, seq int, body []byte) []byte {
	c.stamp = time.Now().UTC().AppendFormat(c.stamp[:0], "20060102-15:04:05.000")
	start := len(dst)
	// BodyLength is patched in: five digits cover any body we send.
	dst = append(dst, "8=FIX.4.4\x019=00000\x01"...)
	head := len(dst)
	dst = append(append(dst, "35="...), msgType...)
	dst = append(append(dst, "\x0149="...), c.opts.SenderCompID...)
	dst = append(append(dst, "\x0156="...), c.opts.TargetCompID...)
	dst = strconv.AppendInt(append(dst, "\x0134="...), int64(seq), 10)
	dst = append(append(dst, "\x0152="...), c.stamp...)
	dst = append(append(dst, soh), body...)
	if msgType == "A" && c.opts.Key != nil {
		dst = c.sign(dst, seq)
	}
	for n, i := len(dst)-head, head-2; n > 0; n, i = n/10, i-1 {
		dst[i] = byte('0' + n%10)
	}
	var sum byte
	for _, b := range dst[start:] {
		sum += b
	}
	return append(dst, '1', '0', '=', '0'+sum/100, '0'+sum/10%10, '0'+sum%10, soh)
}

// sign appends the signature over MsgType, SenderCompID, TargetCompID, MsgSeqNum
// and SendingTime, joined by SOH.
func (c *Client) sign(dst []byte, seq int) []byte {
	text := strings.Join([]string{"A", c.opts.SenderCompID, c.opts.TargetCompID, strconv.Itoa(seq), string(c.stamp)}, "\x01")
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(c.opts.Key, []byte(text)))
	return fmt.Appendf(dst, "95=%d\x0196=%s\x01", len(signature), signature)
}

// NextSequence returns the numbers to continue with after a reconnect. Call it after Run
// has returned.
func (c *Client) NextSequence() (sender, target int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextOut, c.nextIn
}

// Close cuts the connection without a Logout.
func (c *Client) Close() error { return c.conn.Close() }

// Logout asks the other side to end the session; Run then returns.
func (c *Client) Logout() error { return c.Send("5", nil) }

// Run reads until the session ends or ctx does, and calls handle for every application
// message and for Reject (35=3). The message is valid during the call. It returns nil
// after our Logout and when ctx ends.
func (c *Client) Run(ctx context.Context, handle func(*Message) error) error {
	var beat sync.WaitGroup
	defer beat.Wait() // last, because its write ends when the connection is closed
	beating, endBeat := context.WithCancel(ctx)
	defer endBeat()
	stop := context.AfterFunc(ctx, func() { c.conn.Close() })
	defer stop()
	defer c.conn.Close()
	beat.Go(func() { c.heartbeat(beating) })
	for {
		m, err := c.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil && c.silent.Load():
			return ErrSilent
		case err != nil:
			return err
		}
		ended, err := c.dispatch(m, handle)
		if err := errors.Join(err, c.saveTarget()); err != nil || ended {
			return err
		}
	}
}

// next reads the next message, counts and traces it.
func (c *Client) next() (*Message, error) {
	m, err := c.read()
	if err != nil {
		return nil, err
	}
	c.received.Add(1)
	if c.opts.Trace != nil {
		c.opts.Trace(false, m.Raw())
	}
	return m, nil
}

// heartbeat sends heartbeats, and ends the session when the other side sends none.
func (c *Client) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(time.Duration(c.opts.HeartBtInt) * time.Second)
	defer ticker.Stop()
	last, quiet := c.received.Load(), 0
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if now := c.received.Load(); now != last {
			last, quiet = now, 0
		} else {
			quiet++
		}
		var err error
		switch quiet {
		case 0:
			err = c.Send("0", nil)
		case 1:
			err = c.Send("1", []byte("112=still there\x01"))
		default:
			c.silent.Store(true)
			c.conn.Close()
			return
		}
		if err != nil {
			return // reading fails too
		}
	}
}

func (c *Client) dispatch(m *Message, handle func(*Message) error) (ended bool, err error) {
	seq, typ := m.Int(34), m.Type()
	if typ == "4" {
		if next := m.Int(36); next > c.nextIn && (seq == c.nextIn || string(m.Get(123)) != "Y") {
			c.nextIn = next
		}
		return false, nil
	}
	switch {
	case seq > c.nextIn && typ == "2":
		// Answered before the gap is closed: the gap fill will skip it, and the other side
		// does not ask twice.
		return false, errors.Join(c.resend(m.Int(7), m.Int(16)), c.askResend(seq))
	case seq > c.nextIn && typ != "5":
		return false, c.askResend(seq)
	case seq < c.nextIn:
		return false, nil // a duplicate
	}
	c.nextIn = seq + 1
	switch typ {
	case "0":
	case "1":
		return false, c.Send("0", append(append([]byte("112="), m.Get(112)...), soh))
	case "2":
		return false, c.resend(m.Int(7), m.Int(16))
	case "5":
		if text := m.Get(58); len(text) > 0 {
			return true, fmt.Errorf("%w: %s", ErrLogout, text)
		}
		return true, nil
	default:
		return false, handle(m)
	}
	return false, nil
}

func (c *Client) askResend(seen int) error {
	if c.resendAsked >= seen {
		return nil
	}
	c.resendAsked = seen
	return c.Send("2", []byte("7="+strconv.Itoa(c.nextIn)+"\x0116=0\x01"))
}

// Resend requests the messages from one sequence number to another again; to = 0 is the
// newest. They come as possible duplicates, which Trace gets and which are not handled a
// second time.
func (c *Client) Resend(from, to int) error {
	return c.Send("2", []byte("7="+strconv.Itoa(from)+"\x0116="+strconv.Itoa(to)+"\x01"))
}

// resend answers a ResendRequest for the sequence numbers from to to, 0 = to the
// newest.
func (c *Client) resend(from, to int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := c.nextOut
	if to > 0 && to < end-1 {
		end = to + 1
	}
	c.out = c.out[:0]
	fill := func(from, to int) {
		if from < to {
			c.out = c.append(c.out, "4", from, []byte("43=Y\x01123=Y\x0136="+strconv.Itoa(to)+"\x01"))
		}
	}
	for _, m := range c.kept {
		if m.seq < from || m.seq >= end {
			continue
		}
		fill(from, m.seq)
		body := append(append([]byte("43=Y\x01122="), m.stamp...), soh)
		c.out = c.append(c.out, m.msgType, m.seq, append(body, m.body...))
		from = m.seq + 1
	}
	fill(from, end)
	return c.write()
}
