package fixclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// over reads messages from bytes, without a connection.
func over(data []byte) *Client { return &Client{in: bufio.NewReader(bytes.NewReader(data))} }

func encode(msgType string, body string) []byte {
	c := &Client{opts: Options{SenderCompID: "A", TargetCompID: "B"}}
	return c.append(nil, msgType, 7, []byte(body))
}

func TestWhatIsSentCanBeRead(t *testing.T) {
	raw := encode("D", "11=x\x0155=A/B\x01")
	m, err := over(append(raw, encode("0", "")...)).read()
	if err != nil {
		t.Fatal(err)
	}
	if m.Type() != "D" || string(m.Get(11)) != "x" || string(m.Get(55)) != "A/B" || m.Int(34) != 7 || m.Get(9999) != nil || m.Int(11) != 0 {
		t.Errorf("%q", m.Raw())
	}
	if !bytes.Equal(m.Raw(), raw) {
		t.Errorf("read %q, sent %q", m.Raw(), raw)
	}
}

func TestDamagedMessagesAreRefused(t *testing.T) {
	good := string(encode("D", "11=x\x01"))
	for name, text := range map[string]string{
		"checksum":    strings.Replace(good, "11=x", "11=y", 1),
		"version":     strings.Replace(good, "FIX.4.4", "FIX.4.2", 1),
		"length text": strings.Replace(good, "9=000", "9=0x0", 1),
		"too long":    "8=FIX.4.4\x019=1048577\x01",
		"endless":     "8=FIX.4.4\x019=0000000000\x01",
	} {
		if _, err := over([]byte(text)).read(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := range len(good) {
		if _, err := over([]byte(good[:cut])).read(); err == nil {
			t.Errorf("a message cut at %d was read", cut)
		}
	}
}

// The client keeps what it sends for a resend, up to a limit.
func TestKeptMessagesAreBounded(t *testing.T) {
	c := &Client{opts: Options{KeepSequence: true}}
	for range MaxKept + 1 {
		c.keep("D", []byte("11=x\x01"))
		c.nextOut++
	}
	c.keep("0", nil)
	if len(c.kept) != MaxKept || c.kept[0].seq != 1 {
		t.Errorf("%d kept, from %d", len(c.kept), c.kept[0].seq)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode("D", "11=x\x01"))
	f.Add([]byte("8=FIX.4.4\x019=999999999\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := over(data)
		for {
			m, err := c.read()
			if err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				return
			}
			m.Fields(func(int, []byte) bool { return true })
		}
	})
}
