package feed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// The examples of docs/websocket.md are right: its requests are accepted, its messages
// are those of a book with their checksums, and its tables are complete.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/websocket.md")
	if err != nil {
		t.Fatal(err)
	}
	sent, received, book, orders := 0, 0, &clientBook{}, &clientOrders{}
	for line := range strings.Lines(string(text)) {
		if request, ok := strings.CutPrefix(line, "C→ "); ok {
			sent++
			if r := parseRequest([]byte(request), testSet(t), testChannels); r.errorMessage != nil || len(r.rejected) > 0 || len(r.topics) == 0 {
				t.Errorf("%+v: %s", r, request)
			}
		}
		if message, ok := strings.CutPrefix(line, "S→ "); ok {
			received++
			var m msg
			if err := json.Unmarshal([]byte(message), &m); err != nil {
				t.Errorf("%v: %s", err, message)
			}
			if m.Channel == "l2" {
				if err := book.apply(&m); err != nil {
					t.Error(err)
				}
			}
			if m.Channel == "l3" {
				if err := orders.apply([]byte(message)); err != nil {
					t.Error(err)
				}
			}
			if _, known := parseChannel([]byte(m.Channel), defaultDepth); !known && m.Channel != "control" && m.Channel != "heartbeat" {
				t.Errorf("no such channel: %s", message)
			}
		}
	}
	if sent < 3 || received < 5 {
		t.Errorf("%d requests and %d messages: not the page that this test is for", sent, received)
	}
	for _, code := range []int{
		CloseNormal, CloseProtocol, CloseBadData, ClosePolicy, CloseRestart, CloseTryAgain,
		CloseNoSubscription, CloseSlowConsumer, CloseFrameTooBig, CloseTooManyMessage,
	} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("close code %d is not documented", code)
		}
	}
	for _, a := range []action{subscribe, unsubscribe, resync, list, ping} {
		if !strings.Contains(string(text), "\n| `"+a.String()+"` | ") {
			t.Errorf("%v is not documented", a)
		}
	}
}

// The examples of docs/stream.md are right: its events parse, its book has its checksums,
// its id is valid.
func TestStreamGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/stream.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "```sse\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	s, book := &sseClient{t: t, conn: near, lines: bufio.NewReader(strings.NewReader(shown))}, &clientBook{}
	_ = far.Close()
	var channels []string
	for {
		m, err := s.tryMessage()
		if err != nil {
			break
		}
		channels = append(channels, m.Channel)
		if m.Channel == "l2" {
			if err := book.apply(m); err != nil {
				t.Error(err)
			}
		}
	}
	if got := strings.Join(channels, " "); got != "status control l2 l2 heartbeat" || s.retry != "1000" || parseEventID([]byte(s.id)) != (enginePos{7, 90214}) {
		t.Errorf("%s, retry %s, id %s", got, s.retry, s.id)
	}
}
