package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/fixgw/wire/wiretest"
)

func TestScanFrame(t *testing.T) {
	t.Parallel()
	whole := string(wiretest.Message("35=0|34=1|"))
	padded := strings.Replace(whole, "9=", "9=00000", 1)
	padded = padded[:len(padded)-4] + fmt.Sprintf("%03d\x01", wiretest.SumOf(padded[:len(padded)-7]))
	for _, c := range []struct {
		name, in string
		skip, n  int
		err      error
	}{
		{"whole", whole, 0, len(whole), nil},
		{"whole and more", whole + "8=F", 0, len(whole), nil},
		{"length filled with zeros", padded, 0, len(padded), nil},
		{"nothing", "", 0, 0, nil},
		{"begin only", "8=FIX", 0, 0, nil},
		{"cut in the length", whole[:13], 0, 0, nil},
		{"cut in the body", whole[:20], 0, 0, nil},
		{"cut in the trailer", whole[:len(whole)-1], 0, 0, nil},
		{"garbage", "GET / HTTP/1.1\r\n\r\n", 14, 0, nil},
		{"garbage, then a begin", "abc" + whole, 3, 0, nil},
		{"begin string too long", "8=FIX" + strings.Repeat("4", 40), 5, 0, nil},
		{"begin string too long, ended", "8=FIX" + strings.Repeat("4", 20) + "\x019=5\x01", 5, 0, nil},
		{"no length", "8=FIX.4.4\x0135=A\x01", 5, 0, nil},
		{"empty length", "8=FIX.4.4\x019=\x0135=A\x01", 5, 0, nil},
		{"length not a number", "8=FIX.4.4\x019=1x\x01", 5, 0, nil},
		{"negative length", "8=FIX.4.4\x019=-1\x01", 5, 0, nil},
		{"length of too many digits", "8=FIX.4.4\x019=00000000001\x01", 5, 0, nil},
		{"at the limit", "8=FIX.4.4\x019=100\x01", 0, 0, nil},
		{"one above the limit", "8=FIX.4.4\x019=101\x01", 0, 0, ErrTooLarge},
		{"two thousand million", "8=FIX.4.4\x019=2000000000\x01", 0, 0, ErrTooLarge},
		{"wrong checksum", whole[:len(whole)-2] + "x\x01", len(whole) - len("10=000|"), 0, nil},
		{"wrong length", strings.Replace(whole, "9=10", "9=11", 1) + "abcd", len(whole) - len("10=000|") + 1, 0, nil},
		{"a message inside a garbled one", "8=FIX.4.4\x019=37\x0195=25\x0196=" + whole + "\x0110=000\x01", len("8=FIX.4.4|9=37|") + 37, 0, nil},
	} {
		skip, n, err := ScanFrame([]byte(c.in), 100)
		if skip != c.skip || n != c.n || !errorIs(err, c.err) {
			t.Errorf("%s: skip %d, n %d, %v; want %d, %d, %v", c.name, skip, n, err, c.skip, c.n, c.err)
		}
	}
}

func errorIs(err, want error) bool {
	if want == nil {
		return err == nil
	}
	return err != nil && strings.HasPrefix(err.Error(), want.Error())
}

func TestCheckFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fields, want string }{
		{"35=D|34=7|", ""},
		{"35=AE|34=7|", ""},
		{"35=D|34=999999999|", ""},
		{"35=D|34=1|58=|", ""}, // for the session to answer
		{"34=1|58|", "INVALID_FIELD: a field is not tag=value"},
		{"34=1|=x|", "INVALID_FIELD: a field is not tag=value"},
		{"34=1|5a=x|", "INVALID_FIELD: a field is not tag=value"},
		{"35=D|34=1|-5=x|0=x|", ""},
		{"34=1|--5=x|", "INVALID_FIELD: a field is not tag=value"},
		{"34=1|-=x|", "INVALID_FIELD: a field is not tag=value"},
		{"34=1|1234567890=x|", "INVALID_FIELD: a field is not tag=value"},
		{"34=1||", "INVALID_FIELD: a field is not tag=value"},
		{"34=|", `INVALID_FIELD: MsgSeqNum (34) "" must be 1 to 999999999`},
		{"35=4|34=0|36=5|", ""}, // a SequenceReset's counts for nothing
		{"34=00|", `INVALID_FIELD: MsgSeqNum (34) "00" must be 1 to 999999999`},
		{"34=-1|", `INVALID_FIELD: MsgSeqNum (34) "-1" must be 1 to 999999999`},
		{"34=1000000000|", `INVALID_FIELD: MsgSeqNum (34) "1000000000" must be 1 to 999999999`},
		{"34=99999999999999999999|", `INVALID_FIELD: MsgSeqNum (34) "99999999999999999999" must be 1 to 999999999`},
		{"34=1|35=|", "INVALID_FIELD: MsgType (35) is empty"},
		{"34=1|58=x|", "INVALID_FIELD: MsgType (35) is missing"},
		{"35=D|", "INVALID_FIELD: MsgSeqNum (34) is missing"},
		{"34=1|212=5|213=a=b|", "INVALID_FIELD: XmlData (213) is not supported"},
		{"34=1|10=000|", "INVALID_FIELD: CheckSum (10) is not the last field"},
	} {
		_, err := CheckFrame(wiretest.Message(c.fields))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.fields, got, c.want)
		}
	}
}

// TestFramesSurviveCutting: whatever the pieces in which bytes come, the same
// messages are found, and garbage between them costs none.
func TestFramesSurviveCutting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []string
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			if rapid.Bool().Draw(t, "garbage") {
				stream = append(stream, rapid.StringMatching(`[a-z0-9=|]{0,20}`).Draw(t, "noise")...)
			}
			m := wiretest.Message(fmt.Sprintf("35=D|34=%d|58=%s|", rapid.IntRange(1, 1e6).Draw(t, "seq"), rapid.StringMatching(`[a-zA-Z0-9 ]{0,60}`).Draw(t, "text")))
			stream = append(stream, m...)
			want = append(want, string(m))
		}
		var got []string
		var buf []byte
		for rest := stream; ; {
			skip, n, err := ScanFrame(buf, 1000)
			switch {
			case err != nil:
				t.Fatal(err)
			case n > 0:
				got = append(got, string(buf[:n]))
				buf = buf[n:]
				continue
			case skip > 0:
				buf = buf[skip:]
				continue
			}
			if len(rest) == 0 {
				break
			}
			cut := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			buf, rest = append(bytes.Clone(buf), rest[:cut]...), rest[cut:]
		}
		if strings.Join(got, "") != strings.Join(want, "") {
			t.Fatalf("found %q, want %q", got, want)
		}
	})
}

// FuzzScanFrame: no input panics, asks to drop more than there is, or passes as
// a message that is not one; and the logon and field scanners stand whatever
// passes.
func FuzzScanFrame(f *testing.F) {
	f.Add(wiretest.Message("35=A|34=1|49=MM|56=BLOCKDESK|98=0|108=30|553=mm|554=x|8013=N|"))
	f.Add([]byte("8=FIX.4.4\x019=2000000000\x01"))
	f.Add([]byte("garbage 8=FIX8=FIX.4.4\x019=5\x0135=0\x0110=000\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		skip, n, err := ScanFrame(data, 4096)
		set := 0
		for _, b := range []bool{skip > 0, n > 0, err != nil} {
			if b {
				set++
			}
		}
		if set > 1 || skip < 0 || n < 0 || skip > len(data) || n > len(data) {
			t.Fatalf("skip %d, n %d, %v", skip, n, err)
		}
		if n == 0 {
			return
		}
		if !bytes.HasPrefix(data, beginStringPrefix) || data[n-1] != SOH {
			t.Fatalf("%q passed", data[:n])
		}
		if _, err := CheckFrame(data[:n]); err == nil {
			ParseLogon(data[:n], "BLOCKDESK", MinHeartBtInt)
		}
	})
}
