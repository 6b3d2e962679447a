package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// TestMaskData: a data field may hold every byte, and one with a wrong length is left alone.
func TestMaskData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"35=D|34=1|354=5|355=a|1=b|11=x|", "35=D|34=1|354=5|355=a 1=b|11=x|"},
		{"35=D|34=1|354=3|355=|10|11=x|", "35=D|34=1|354=3|355= 10|11=x|"},
		{"35=A|34=1|95=3|96=a|b|93=1|89=||11=x|", "35=A|34=1|95=3|96=a b|93=1|89= |11=x|"},
		{"35=D|34=1|354=4|355=a|1=b|11=x|", "35=D|34=1|354=4|355=a|1=b|11=x|"},
		{"35=D|34=1|354=999|355=a|11=x|", "35=D|34=1|354=999|355=a|11=x|"},
		{"35=D|34=1|354=-1|355=a|11=x|", "35=D|34=1|354=-1|355=a|11=x|"},
		{"35=D|34=1|354=1|11=x|", "35=D|34=1|354=1|11=x|"},
		{"35=D|34=1|354=1|", "35=D|34=1|354=1|"},
	} {
		frame, want := wiretest.Message(c.in), wiretest.Message(c.want)
		wire.MaskData(frame)
		if !bytes.Equal(frame, want) {
			t.Errorf("%s: %q, want %q", c.in, frame, want)
		}
		if _, n, err := wire.ScanFrame(frame, len(frame)); n != len(frame) || err != nil {
			t.Errorf("%s: %d bytes of %d are a message: %v", c.in, n, len(frame), err)
		}
	}
}

func FuzzMaskData(f *testing.F) {
	f.Add([]byte("354=5|355=a|1=b|11=x"))
	f.Fuzz(func(t *testing.T, body []byte) {
		frame := wiretest.Message(strings.ReplaceAll("35=D|34=1|"+string(body)+"|", "\x01", "|"))
		before := len(frame)
		wire.MaskData(frame)
		if _, n, err := wire.ScanFrame(frame, before); n != before || err != nil {
			t.Errorf("%q: %d bytes of %d are a message: %v", frame, n, before, err)
		}
	})
}

func TestHasCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"INVALID_FIELD: x": true, "CompID problem": false, "MsgSeqNum too low": false, "": false, ": x": false, "OVERLOADED": false,
	} {
		if got := wire.HasCode([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
