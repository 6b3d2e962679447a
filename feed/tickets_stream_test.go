package feed

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// ticketStream reads the channel tickets as server-sent events.
type ticketStream struct {
	t     *testing.T
	lines *bufio.Scanner
	end   context.CancelFunc
	id    string // the last that was set
}

func openTicketStream(t *testing.T, address, id string) *ticketStream {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), runtest.HangTimeout)
	t.Cleanup(end)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/?channels=tickets&symbols=SLUSD/USDC", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", id)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
	return &ticketStream{t: t, lines: bufio.NewScanner(answer.Body), end: end}
}

// next returns the next message of the channel.
func (s *ticketStream) next() *msg {
	s.t.Helper()
	for s.lines.Scan() {
		if id, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			s.id = id
		}
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok {
			continue
		}
		m := &msg{raw: data}
		if err := json.Unmarshal([]byte(data), m); err != nil {
			s.t.Fatal(err)
		}
		if m.Channel == "tickets" {
			return m
		}
	}
	s.t.Fatalf("the stream has ended: %v", s.lines.Err())
	return nil
}

// A stream has the WebSocket's tickets. Its ids do not cover tickets, so a client that
// resumes gets a snapshot.
func TestTicketsStream(t *testing.T) {
	d, s := newTicketFeed(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: d.feed.Stream, KeepHijackedConns: true}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})

	stream, r := openTicketStream(t, listener.Addr().String(), ""), &ticketList{}
	for n := range 4 {
		if m := stream.next(); r.apply(m) != nil || len(r.tickets) != n {
			t.Fatal(m.raw)
		}
		id := market.TicketID(1 + n)
		s.change(d, 0, id, record(id, "open", 0))
	}
	stream.end()
	s.settle(d)
	back := openTicketStream(t, listener.Addr().String(), stream.id)
	if m := back.next(); m.Type != "snapshot" || r.apply(m) != nil || len(r.tickets) != 4 {
		t.Error(m.raw)
	}
	s.change(d, 0, 1, record(1, "withdrawn", 0))
	if m := back.next(); m.Type != "update" || r.apply(m) != nil {
		t.Error(m.raw)
	}
}
