package fixtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/runtest"
)

// Session is a session whose messages a test reads one by one.
type Session struct {
	T        *testing.T
	Client   *fixclient.Client
	messages chan map[int]string
}

// LogOn logs a firm on.
func LogOn(t *testing.T, address, name string) *Session {
	t.Helper()
	return LogOnAs(t, fixclient.Options{
		Addr: address, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: programtest.Password,
	})
}

// LogOnAs logs on by o, whose Timeout is runtest.HangTimeout if it is 0.
func LogOnAs(t *testing.T, o fixclient.Options) *Session {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, runtest.HangTimeout)
	client, err := fixclient.Dial(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{T: t, Client: client, messages: make(chan map[int]string, 100)}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- client.Run(ctx, func(m *fixclient.Message) error {
			fields := map[int]string{}
			m.Fields(func(tag int, value []byte) bool {
				fields[tag] = string(value)
				return true
			})
			s.messages <- fields
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// Order sends a GTC limit order on the first symbol.
func (s *Session) Order(clOrdID, side, qty, price string) {
	s.T.Helper()
	body := fmt.Sprintf("11=%s|55=%s|54=%s|38=%s|40=2|44=%s|59=1|60=%s|", clOrdID, programtest.Symbol, side, qty, price,
		time.Now().UTC().Format("20060102-15:04:05"))
	if err := s.Client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		s.T.Fatal(err)
	}
}

// Expect returns the next message, which must have these fields.
func (s *Session) Expect(want map[int]string) map[int]string {
	s.T.Helper()
	select {
	case m := <-s.messages:
		for tag, value := range want {
			if m[tag] != value {
				s.T.Fatalf("tag %d is %q, want %q: %v", tag, m[tag], value, m)
			}
		}
		return m
	case <-time.After(runtest.HangTimeout):
		s.T.Fatalf("no message; want %v", want)
		return nil
	}
}

// Firm is a session that a test reads to its end.
type Firm struct {
	t      *testing.T
	client *fixclient.Client
	in     chan *fixclient.Message
	ended  chan error
}

// Order sends a GTC buy of one and returns ExecType and text of the answer.
func (f *Firm) Order(clOrdID string) string {
	f.t.Helper()
	body := fmt.Sprintf("11=%s|55=%s|54=1|38=1|40=2|44=1|59=1|60=20260101-00:00:00|", clOrdID, programtest.Symbol)
	if err := f.client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		f.t.Fatal(err)
	}
	m := f.Next()
	return fmt.Sprintf("%s %s", m.Get(150), m.Get(58))
}

// Next waits for the next message.
func (f *Firm) Next() *fixclient.Message {
	f.t.Helper()
	select {
	case m := <-f.in:
		return m
	case err := <-f.ended:
		f.t.Fatalf("ended: %v", err)
	case <-time.After(runtest.HangTimeout):
		f.t.Fatal("no message")
	}
	return nil
}

// LoggedOut waits for the Logout that ends the session, and returns its text.
func (f *Firm) LoggedOut() string {
	f.t.Helper()
	select {
	case err := <-f.ended:
		if !errors.Is(err, fixclient.ErrLogout) {
			f.t.Fatalf("ended with %v", err)
		}
		return err.Error()
	case <-time.After(runtest.HangTimeout):
		f.t.Fatal("not logged out")
	}
	return ""
}

// NewFirm logs a firm on.
func NewFirm(t *testing.T, address, name string) (*Firm, error) {
	t.Helper()
	client, err := fixclient.Dial(t.Context(), fixclient.Options{
		Addr: address, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: programtest.Password, Timeout: runtest.HangTimeout,
	})
	if err != nil {
		return nil, err
	}
	f := &Firm{t: t, client: client, in: make(chan *fixclient.Message, 100), ended: make(chan error, 1)}
	go func() {
		f.ended <- client.Run(context.Background(), func(m *fixclient.Message) error {
			f.in <- fixclient.AsMessage(bytes.Clone(m.Raw())) // the client reuses its buffer
			return nil
		})
	}()
	t.Cleanup(func() { _ = client.Close() })
	return f, nil
}
