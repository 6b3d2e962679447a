package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// ticketFeed is a client that follows the channel tickets of the test's pair.
type ticketFeed struct {
	t                *testing.T
	conn             *websocket.Conn
	epoch            string
	seq, engineSeq   uint64
	ids              []string          // as they came first
	records          map[string][]byte // by order_id
	snapshots, moves int
}

// followTickets subscribes; resume is the request's member, or "".
func followTickets(t *testing.T, s *server.Server, resume string) *ticketFeed {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(s.Addresses.WS+"/ws/rfq", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	request := fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["tickets"],"symbols":[%q]%s}`, programtest.Symbol, resume)
	if err := conn.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
		t.Fatal(err)
	}
	return &ticketFeed{t: t, conn: conn}
}

// next takes one message of the channel and holds it against the one before.
func (f *ticketFeed) next() {
	f.t.Helper()
	var m struct {
		Channel   string            `json:"channel"`
		Type      string            `json:"type"`
		Epoch     string            `json:"epoch"`
		Seq       uint64            `json:"seq"`
		PrevSeq   uint64            `json:"prev_seq"`
		EngineSeq uint64            `json:"engine_seq"`
		Tickets   []json.RawMessage `json:"tickets"`
		Removed   []string          `json:"gone"`
	}
	for m.Channel != "tickets" {
		if err := f.conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
			f.t.Fatal(err)
		}
		_, data, err := f.conn.ReadMessage()
		if err != nil {
			f.t.Fatal(err)
		}
		if err := json.Unmarshal(data, &m); err != nil {
			f.t.Fatalf("%v: %s", err, data)
		}
	}
	if m.Type == "snapshot" {
		f.ids, f.records = nil, map[string][]byte{}
		f.snapshots++
	} else if f.moves++; m.PrevSeq != f.seq || m.Seq != f.seq+1 || m.Epoch != f.epoch {
		f.t.Fatalf("a gap: at %s %d, then %s %d behind %d", f.epoch, f.seq, m.Epoch, m.Seq, m.PrevSeq)
	}
	f.epoch, f.seq, f.engineSeq = m.Epoch, m.Seq, m.EngineSeq
	for _, text := range m.Tickets {
		var head struct {
			ID string `json:"order_id"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			f.t.Fatal(err)
		}
		if f.records[head.ID] == nil {
			f.ids = append(f.ids, head.ID)
		}
		f.records[head.ID] = text
	}
	if len(m.Removed) > 0 {
		f.t.Fatalf("gone after seconds: %v", m.Removed)
	}
}

// agree reads on until the client has the book of REST, byte for byte, at its seq.
func (f *ticketFeed) agree(s *server.Server) {
	f.t.Helper()
	var book struct {
		Seq     uint64          `json:"seq"`
		Tickets json.RawMessage `json:"tickets"`
	}
	programtest.GetJSON(f.t, s.Addresses.Base+"/api/v1/rfq/market-tickets", &book)
	for f.records == nil || !bytes.Equal(f.list(), book.Tickets) {
		if f.engineSeq > book.Seq {
			f.t.Fatalf("at %d the client has\n%s\nthe book of %d is\n%s", f.engineSeq, f.list(), book.Seq, book.Tickets)
		}
		f.next()
	}
}

// list returns the records as market-tickets lists them: the pair is the only one
// that is sold, and tickets come in the order of their ids.
func (f *ticketFeed) list() []byte {
	out := []byte{'['}
	for i, id := range f.ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, f.records[id]...)
	}
	return append(out, ']')
}

// An operator's tickets come through the WebSocket as they are in market-tickets,
// also when only their price has changed, after a lost line, and after a crash.
func TestTicketsThroughTheFeed(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	f := followTickets(t, s, "")
	f.agree(s) // nothing yet
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block A", "--tranches", "250000,1000", "--expires", "48h")
	f.agree(s)
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block B", "--tranches", "25000")
	f.agree(s)
	before := string(f.records["T2"])
	programtest.CLI(t, s, "price", "set", "--pair", programtest.Symbol, "--usd", "0.997")
	f.agree(s)
	if string(f.records["T2"]) == before {
		t.Errorf("another anchor, and the record is still %s", before)
	}
	if f.snapshots != 1 || f.moves != 3 {
		t.Errorf("%d snapshots and %d updates; want one and one for each command", f.snapshots, f.moves)
	}

	left := fmt.Sprintf(`,"resume":{"epoch":%q,"tickets:%s":%d}`, f.epoch, programtest.Symbol, f.seq)
	f.conn.Close()
	programtest.CLI(t, s, "ticket", "withdraw", "T1")
	back := followTickets(t, s, left)
	back.epoch, back.seq, back.ids, back.records = f.epoch, f.seq, f.ids, f.records
	back.agree(s)
	// The numbers of tickets count one process's looks: a resume begins with a snapshot.
	if back.snapshots != 1 || back.moves != 0 || !bytes.Contains(back.records["T1"], []byte(`"state":"withdrawn"`)) {
		t.Errorf("%d snapshots, %d updates, %s", back.snapshots, back.moves, back.records["T1"])
	}

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	again := followTickets(t, s, left)
	again.agree(s)
	if again.snapshots != 1 || again.epoch == f.epoch || !bytes.Equal(again.list(), back.list()) {
		t.Errorf("after the crash, in epoch %s: %s\nit was %s", again.epoch, again.list(), back.list())
	}
}

// Where the desk is not enabled there is no such channel.
func TestNoTicketsWithoutDesk(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, "rfq: {enabled: false}\n"))
	conn := followTickets(t, s, "").conn
	for {
		if err := conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
			t.Fatal(err)
		}
		_, data, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(`"type":"ack"`)) {
			if !bytes.Contains(data, []byte(`"rejected":[{"channel":"tickets","code":"UNKNOWN_CHANNEL"}]`)) {
				t.Errorf("%s", data)
			}
			return
		}
	}
}
