package feed

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestInflate(t *testing.T) {
	hello := []byte("Hello")
	tests := []struct {
		name    string
		message string
		want    string
		err     error
	}{
		// The examples of RFC 7692, section 7.2.3.
		{"one block", "\xf2\x48\xcd\xc9\xc9\x07\x00", "Hello", nil},
		{"stored block", "\x00\x05\x00\xfa\xffHello\x00", "Hello", nil},
		{"marked as last", "\xf3\x48\xcd\xc9\xc9\x07\x00\x00", "Hello", nil},
		{"two blocks", "\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", "Hello", nil},
		{"nothing", "\x00", "", nil},
		{"last block without its padding", "\xf3\x48\xcd\xc9\xc9\x07\x00", "Hello", nil},
		{"last block that ends with what was left out", "\x01", "", nil},
		{"something behind the last block", "\xf3\x48\xcd\xc9\xc9\x07\x00\x00\x00", "", errDeflate},
		{"not padding behind the last block", "\xf3\x48\xcd\xc9\xc9\x07\x00\x01", "", errDeflate},
		{"not even an empty block", "", "", errDeflate},
		{"no such block", "\x07", "", errDeflate},
		{"stored length that does not agree", "\x00\x05\x00\xfa\xfeHello", "", errDeflate},
		{"stored block cut short", "\x00\xff\x00\x00\xffHel", "", errDeflate},
		{"reference before the beginning", "\x1a\x03\x00", "", errDeflate},
		{"text", `{"action":"PING"}`, "", errDeflate},
	}
	var z inflater
	for _, test := range tests {
		got, err := z.inflate(nil, []byte(test.message), MaxFrame)
		if !errors.Is(err, test.err) || err == nil && string(got) != test.want {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
		// The bytes after it are unchanged.
		if got, err := z.inflate(nil, zip(t, hello, 6), MaxFrame); err != nil || string(got) != "Hello" {
			t.Errorf("after %s: %q, %v", test.name, got, err)
		}
	}
}

func TestInflateLimit(t *testing.T) {
	var z inflater
	for _, n := range []int{MaxFrame - 1, MaxFrame, MaxFrame + 1, 100 << 20} {
		bomb := zip(t, make([]byte, n), 9)
		got, err := z.inflate(nil, bomb, MaxFrame)
		if n <= MaxFrame && (err != nil || len(got) != n) {
			t.Errorf("%d bytes: %d, %v", n, len(got), err)
		}
		if n > MaxFrame && (!errors.Is(err, errInflated) || len(got) > MaxFrame || cap(got) > 2*MaxFrame) {
			t.Errorf("%d bytes in %d: %d of %d, %v", n, len(bomb), len(got), cap(got), err)
		}
	}
	// The limit applies to the appended bytes.
	if got, err := z.inflate([]byte("ab"), zip(t, []byte("cde"), 6), 3); err != nil || string(got) != "abcde" {
		t.Errorf("%q, %v", got, err)
	}
}

// A warmed-up reader does not allocate.
func TestInflateMemory(t *testing.T) {
	var z inflater
	bomb, small := zip(t, make([]byte, 10<<20), 9)[:MaxFrame/2], zip(t, []byte(`{"action":"PING"}`), 6)
	buf, _ := z.inflate(nil, bomb, MaxFrame)
	for what, in := range map[string][]byte{"a bomb": bomb, "a request": small, "blocks without end": blocks()} {
		if n := leastAllocs(func() { buf, _ = z.inflate(buf[:0], in, MaxFrame) }); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}

// leastAllocs returns the average allocations of f in the quietest of a few short
// measurements, because goroutines of earlier tests are counted too.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(10, f)
	for range 9 {
		if least == 0 {
			break
		}
		least = min(least, testing.AllocsPerRun(10, f))
	}
	return least
}

// blocks returns a message of MaxFrame with as many blocks as possible, each with its own
// code of 258 symbols, which is the most expensive input for a decoder.
func blocks() []byte {
	number := func(v, bits int) string {
		var b strings.Builder
		for range bits {
			b.WriteByte('0' + byte(v&1))
			v >>= 1
		}
		return b.String()
	}
	var words strings.Builder // lengths of the code of words: 16, 1, 2 and 10 have one
	for _, length := range []int{1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 3, 0, 2} {
		words.WriteString(number(length, 3))
	}
	block := "0" + number(2, 2) + number(1, 5) + number(0, 5) + number(14, 4) + words.String() +
		"111" + strings.Repeat("0"+number(3, 2), 42) + "0" + number(0, 2) + // 256 lengths of 10
		"10" + "110" + // of 1 and 2
		"10" + // a distance of 1
		"0" // the end of the block
	var message []byte
	all := strings.Repeat(block, 8*(MaxFrame-1)/len(block))
	for i := 0; i < len(all); i += 8 {
		b := byte(0)
		for j, bit := range all[i:min(i+8, len(all))] {
			b |= byte(bit-'0') << j
		}
		message = append(message, b)
	}
	return append(message, 0)
}

// Our reader agrees with the standard library's, never returns more than the limit, and
// reads what the library writes.
func FuzzInflate(f *testing.F) {
	f.Add([]byte("\xf2\x48\xcd\xc9\xc9\x07\x00"))
	f.Add([]byte("\xf3\x48\xcd\xc9\xc9\x07\x00\x00"))
	f.Add(zip(f, bytes.Repeat([]byte("0.999"), 5000), 9))
	f.Add(zip(f, []byte(`{"action":"PING"}`), 1))
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > MaxFrame {
			return
		}
		var z inflater
		got, err := z.inflate(nil, message, MaxFrame)
		if len(got) > MaxFrame {
			t.Fatalf("%d bytes", len(got))
		}
		theirs, theirErr := unzip(message) // at most 1,032 times as long
		switch {
		case err == nil && (theirErr != nil || !bytes.Equal(got, theirs)):
			t.Fatalf("%q, theirs %q, %v", got, theirs, theirErr)
		case errors.Is(err, errInflated) && len(theirs) <= MaxFrame:
			t.Fatalf("too big: %d bytes", len(theirs))
		case err != nil && !errors.Is(err, errInflated) && !errors.Is(err, errDeflate):
			t.Fatal(err)
		}
		// The same bytes as a text.
		got, err = z.inflate(got[:0], zip(t, message, 1+len(message)%9), len(message))
		if err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func BenchmarkInflate(b *testing.B) {
	for _, test := range []struct {
		name    string
		message []byte
	}{
		{"request", zip(b, []byte(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades","ticker"],"symbols":["SLUSD/USDC"],"depth":50}`), 6)},
		{"bomb", zip(b, make([]byte, 10<<20), 9)[:8<<10]},
		{"blocks", blocks()},
	} {
		b.Run(test.name, func(b *testing.B) {
			var z inflater
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = z.inflate(buf[:0], test.message, MaxFrame)
			}
		})
	}
}
