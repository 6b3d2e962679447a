package feed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
)

// sent returns a masked frame with the shortest header.
func sent(head byte, payload string) []byte {
	frame := []byte{head}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	case n < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(n))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	frame = append(frame, mask[:]...)
	for i := range len(payload) {
		frame = append(frame, payload[i]^mask[i&3])
	}
	return frame
}

// decoded is a decoder's output: each message as opcode and data, then the error's code.
// within: the input ends within a header.
type decoded struct {
	messages []string
	code     uint16
	within   bool
}

// decodeAll decodes input in pieces of at most size bytes.
func decodeAll(d *decoder, data []byte, size int) (s decoded) {
	for len(data) > 0 {
		buf := bytes.Clone(data[:min(size, len(data))])
		data = data[len(buf):]
		for len(buf) > 0 {
			m, rest, err := d.next(buf)
			if err != nil {
				if b := (*protocolError)(nil); errors.As(err, &b) {
					s.code = b.code
				}
				return s
			}
			if m.opcode != 0 {
				text := string('0'+rune(m.opcode)) + string(m.data)
				if m.deflated {
					text = "z" + text
				}
				s.messages = append(s.messages, text)
			}
			buf = rest
		}
	}
	s.within = d.partial != nil && d.partial.have > 0
	return s
}

func frames(all ...[]byte) []byte { return bytes.Join(all, nil) }

func TestDecoder(t *testing.T) {
	long := strings.Repeat("x", MaxFrame)
	declared := func(length uint64) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, length), 0, 0, 0, 0)
	}
	fragments := func(n int) []byte {
		all := sent(0x01, "")
		for range n - 2 {
			all = append(all, sent(0x00, "")...)
		}
		return append(all, sent(0x80, "end")...)
	}
	tests := []struct {
		name    string
		data    []byte
		deflate bool
		want    []string
		code    uint16
	}{
		{name: "text", data: sent(0x81, "hello"), want: []string{"1hello"}},
		{name: "empty text", data: sent(0x81, ""), want: []string{"1"}},
		{name: "binary", data: sent(0x82, "\x00\xff"), want: []string{"2\x00\xff"}},
		{name: "largest", data: sent(0x81, long), want: []string{"1" + long}},
		{name: "126 bytes", data: sent(0x81, long[:126]), want: []string{"1" + long[:126]}},
		{name: "largest control", data: sent(0x89, long[:125]), want: []string{"9" + long[:125]}},
		{
			name: "fragments with a ping between",
			data: frames(sent(0x01, "one "), sent(0x89, "beep"), sent(0x00, "two "), sent(0x80, "three"), sent(0x8a, "")),
			want: []string{"9beep", "1one two three", ":"},
		},
		{name: "empty fragments", data: frames(sent(0x02, ""), sent(0x00, ""), sent(0x80, "")), want: []string{"2"}},
		{name: "most fragments", data: fragments(maxFragments), want: []string{"1end"}},
		{name: "one fragment more", data: fragments(maxFragments + 1), code: CloseTooManyMessage},
		{name: "largest in two", data: frames(sent(0x01, long[1:]), sent(0x80, "x")), want: []string{"1" + long}},
		{name: "one byte more in two", data: frames(sent(0x01, long), sent(0x80, "x")), code: CloseFrameTooBig},
		{name: "one byte more", data: sent(0x81, long+"x"), code: CloseFrameTooBig},
		{name: "64 KiB", data: declared(1 << 16), code: CloseFrameTooBig},
		{name: "2^62", data: declared(1 << 62), code: CloseFrameTooBig},
		{name: "2^63", data: declared(1 << 63), code: CloseProtocol},
		{name: "16 bit for 125", data: []byte{0x81, 0xfe, 0, 125, 0, 0, 0, 0}, code: CloseProtocol},
		{name: "64 bit for 65535", data: declared(1<<16 - 1), code: CloseProtocol},
		{name: "no mask", data: []byte{0x81, 2, '{', '}'}, code: CloseProtocol},
		{name: "RSV1", data: sent(0xc1, "{}"), code: CloseProtocol},
		{name: "RSV1, agreed", data: sent(0xc1, "{}"), deflate: true, want: []string{"z1{}"}},
		{
			name: "RSV1 on the first of two", deflate: true,
			data: frames(sent(0x41, "a"), sent(0x80, "b"), sent(0x81, "c")), want: []string{"z1ab", "1c"},
		},
		{name: "RSV1 on the second of two", deflate: true, data: frames(sent(0x01, "a"), sent(0xc0, "b")), code: CloseProtocol},
		{name: "RSV1 on a control frame", deflate: true, data: sent(0xc9, ""), code: CloseProtocol},
		{name: "RSV2", deflate: true, data: sent(0xa1, "{}"), code: CloseProtocol},
		{name: "RSV3", deflate: true, data: sent(0x91, "{}"), code: CloseProtocol},
		{name: "opcode 3", data: sent(0x83, ""), code: CloseProtocol},
		{name: "opcode 11", data: sent(0x8b, ""), code: CloseProtocol},
		{name: "long control", data: sent(0x89, long[:126]), code: CloseProtocol},
		{name: "control in fragments", data: sent(0x09, ""), code: CloseProtocol},
		{name: "continuation of nothing", data: sent(0x80, "{}"), code: CloseProtocol},
		{name: "continuation after the end", data: frames(sent(0x81, "a"), sent(0x80, "b")), want: []string{"1a"}, code: CloseProtocol},
		{name: "message in a message", data: frames(sent(0x01, "a"), sent(0x81, "b")), code: CloseProtocol},
	}
	for _, test := range tests {
		for _, size := range []int{len(test.data), 1, 2, 3, 7, 13, 4096} {
			d := &decoder{deflate: test.deflate}
			got := decodeAll(d, test.data, size)
			if got.code != test.code || strings.Join(got.messages, "|") != strings.Join(test.want, "|") {
				t.Errorf("%s by %d: %.80q, code %d", test.name, size, got.messages, got.code)
			}
			if test.code == 0 && d.partial != nil {
				t.Errorf("%s by %d: it still holds %+v", test.name, size, d.partial)
			}
		}
	}
}

// Input split at any byte decodes to the same messages.
func TestDecoderCut(t *testing.T) {
	data := frames(sent(0x81, "one"), sent(0x01, strings.Repeat("two", 50)), sent(0x89, "beep"), sent(0x00, ""),
		sent(0x80, "end"), sent(0x88, "\x03\xe8bye"))
	want := decodeAll(&decoder{}, data, len(data))
	if len(want.messages) != 4 || want.code != 0 {
		t.Fatalf("%+v", want)
	}
	for i := 1; i < len(data); i++ {
		d := &decoder{}
		got := decodeAll(d, data[:i], i)
		more := decodeAll(d, data[i:], len(data))
		got.messages = append(got.messages, more.messages...)
		if strings.Join(got.messages, "|") != strings.Join(want.messages, "|") || got.code+more.code != 0 {
			t.Errorf("cut at %d: %q", i, got.messages)
		}
	}
}

func TestDecoderAllocatesNothingForWholeFrames(t *testing.T) {
	frame := sent(0x81, strings.Repeat("x", 1000))
	buf := make([]byte, len(frame))
	d := &decoder{}
	n := testing.AllocsPerRun(100, func() {
		copy(buf, frame)
		if m, _, err := d.next(buf); err != nil || len(m.data) != 1000 {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCloseCode(t *testing.T) {
	frame := func(code uint16, text string) string { return string([]byte{byte(code >> 8), byte(code)}) + text }
	tests := []struct {
		data string
		code uint16
		err  error
	}{
		{"", CloseNormal, nil},
		{"\x03", 0, errCloseFrame},
		{frame(1000, ""), 1000, nil},
		{frame(1001, "going"), 1001, nil},
		{frame(1014, ""), 1014, nil},
		{frame(4999, ""), 4999, nil},
		{frame(999, ""), 0, errCloseFrame},
		{frame(1004, ""), 0, errCloseFrame},
		{frame(1005, ""), 0, errCloseFrame},
		{frame(1006, ""), 0, errCloseFrame},
		{frame(1015, ""), 0, errCloseFrame},
		{frame(2999, ""), 0, errCloseFrame},
		{frame(5000, ""), 0, errCloseFrame},
		{frame(1000, "\xff"), 0, errText},
	}
	for _, test := range tests {
		if code, err := closeCode([]byte(test.data)); code != test.code || !errors.Is(err, test.err) {
			t.Errorf("%q: %d, %v", test.data, code, err)
		}
	}
}

// replay is a connection that reads given bytes and discards writes.
type replay struct {
	net.Conn
	data *bytes.Reader
}

func (r *replay) Read(b []byte) (int, error)       { return r.data.Read(b) }
func (r *replay) Write(b []byte) (int, error)      { return len(b), nil }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
func (r *replay) Close() error                     { return nil }

// hijacked is the response of an upgrade that leads to a replay.
type hijacked struct {
	*httptest.ResponseRecorder
	conn *replay
}

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReaderSize(h.conn, 512), bufio.NewWriter(h.conn)), nil
}

// libraryDecode is decodeAll by the library's reader.
func libraryDecode(t testing.TB, data []byte) (s decoded) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-Websocket-Version", "13")
	r.Header.Set("Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	w := &hijacked{httptest.NewRecorder(), &replay{data: bytes.NewReader(data)}}
	ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(MaxFrame)
	note := func(opcode rune, text string) { s.messages = append(s.messages, string('0'+opcode)+text) }
	ws.SetPingHandler(func(text string) error { note(opPing, text); return nil })
	ws.SetPongHandler(func(text string) error { note(opPong, text); return nil })
	for {
		form, message, err := ws.ReadMessage()
		if err == nil {
			note(rune(form), string(message))
			continue
		}
		var closed *websocket.CloseError
		switch {
		case errors.As(err, &closed) && closed.Code == websocket.CloseNoStatusReceived:
			note(opClose, "")
		case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure: // the end of data
		case errors.As(err, &closed):
			note(opClose, string(binary.BigEndian.AppendUint16(nil, uint16(closed.Code)))+closed.Text)
		case errors.Is(err, websocket.ErrReadLimit):
			s.code = CloseFrameTooBig
		case strings.HasPrefix(err.Error(), "websocket: "):
			s.code = CloseProtocol
		}
		return s
	}
}

// toClose truncates s after its close frame, where the library stops, and validates that
// frame.
func (s decoded) toClose() decoded {
	for i, m := range s.messages {
		if m[0] != '0'+opClose {
			continue
		}
		s.messages, s.code, s.within = s.messages[:i+1], 0, false
		if _, err := closeCode([]byte(m[1:])); err != nil {
			s.messages, s.code = s.messages[:i], CloseProtocol
		}
		break
	}
	return s
}

// The decoder agrees with the library's reader but is stricter: it refuses lengths that
// are not minimal and messages of very many frames, and checks a frame's size before its
// sequence.
func FuzzDecoder(f *testing.F) {
	f.Add(sent(0x81, "hello"), 3)
	f.Add(frames(sent(0x01, "one"), sent(0x89, "beep"), sent(0x00, ""), sent(0x80, "two"), sent(0x88, "\x03\xe8bye")), 1)
	f.Add(frames(sent(0x82, strings.Repeat("x", 126)), sent(0x8a, ""), sent(0x83, "")), 5)
	f.Add(frames(sent(0x01, strings.Repeat("x", MaxFrame)), sent(0x80, "x")), 4096)
	f.Add([]byte{0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 2)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		whole := decodeAll(&decoder{}, data, max(len(data), 1))
		if cut := decodeAll(&decoder{}, data, max(size, 1)); !slices.Equal(cut.messages, whole.messages) || cut.code != whole.code {
			t.Fatalf("by %d: %.200q, code %d\nwhole: %.200q, code %d", size, cut.messages, cut.code, whole.messages, whole.code)
		}
		ours, theirs := whole.toClose(), libraryDecode(t, data)
		same := min(len(ours.messages), len(theirs.messages))
		if !slices.Equal(ours.messages[:same], theirs.messages[:same]) {
			t.Fatalf("ours: %.200q\ntheirs: %.200q", ours.messages, theirs.messages)
		}
		switch {
		case len(ours.messages) > same:
			t.Fatalf("accepted beyond the library's %d, code %d: %.200q", theirs.code, ours.code, ours.messages[same:])
		case ours.code == 0 && !ours.within && (theirs.code != 0 || len(theirs.messages) > same):
			t.Fatalf("the library's code %d, %.200q: none of ours", theirs.code, theirs.messages[same:])
		}
	})
}
