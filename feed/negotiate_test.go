package feed

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestNegotiate(t *testing.T) {
	const yes = deflateAnswer
	tests := []struct {
		name   string
		offers []string // header lines
		want   string   // the response's header; "" = declined
	}{
		{"none", nil, ""},
		{"bare", []string{"permessage-deflate"}, yes},
		{"browser, npm ws", []string{"permessage-deflate; client_max_window_bits"}, yes},
		{"python websockets", []string{"permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"}, yes + "; server_max_window_bits=12"},
		{"gorilla", []string{"permessage-deflate; server_no_context_takeover; client_no_context_takeover"}, yes},
		{"smallest window", []string{"permessage-deflate; server_max_window_bits=8"}, yes + "; server_max_window_bits=8"},
		{"largest window", []string{"permessage-deflate;server_max_window_bits=15"}, yes + "; server_max_window_bits=15"},
		{"quoted", []string{`permessage-deflate; server_max_window_bits="10"`}, yes + "; server_max_window_bits=10"},
		{"case and spaces", []string{"  PerMessage-Deflate ;\tServer_Max_Window_Bits = 9 "}, yes + "; server_max_window_bits=9"},
		{"other extension first", []string{"x-webkit-deflate-frame, permessage-deflate"}, yes},
		{"second line", []string{"foo; bar", "permessage-deflate"}, yes},
		{"bad offer, then a good one", []string{"permessage-deflate; mode=1, permessage-deflate"}, yes},
		{"first good one", []string{"permessage-deflate; server_max_window_bits=11, permessage-deflate"}, yes + "; server_max_window_bits=11"},

		{"only begins like it", []string{"permessage-deflateX"}, ""},
		{"unknown parameter", []string{"permessage-deflate; mode=1"}, ""},
		{"empty parameter", []string{"permessage-deflate;"}, ""},
		{"named twice", []string{"permessage-deflate; client_max_window_bits; client_max_window_bits=9"}, ""},
		{"value where none may be", []string{"permessage-deflate; server_no_context_takeover=1"}, ""},
		{"client's, the same", []string{"permessage-deflate; client_no_context_takeover="}, ""},
		{"no value where one must be", []string{"permessage-deflate; server_max_window_bits"}, ""},
		{"too small a window", []string{"permessage-deflate; server_max_window_bits=7"}, ""},
		{"too large a window", []string{"permessage-deflate; server_max_window_bits=16"}, ""},
		{"client's window", []string{"permessage-deflate; client_max_window_bits=16"}, ""},
		{"empty client's window", []string{"permessage-deflate; client_max_window_bits="}, ""},
		{"leading zero", []string{"permessage-deflate; server_max_window_bits=09"}, ""},
		{"sign", []string{"permessage-deflate; server_max_window_bits=+9"}, ""},
		{"half a quote", []string{`permessage-deflate; server_max_window_bits="`}, ""},
		{"not a number", []string{"permessage-deflate; server_max_window_bits=1x"}, ""},
		{"beyond any number", []string{"permessage-deflate; server_max_window_bits=" + strings.Repeat("9", 99)}, ""},
	}
	for _, test := range tests {
		var ctx fasthttp.RequestCtx
		for _, line := range test.offers {
			ctx.Request.Header.Add(extensionsHeader, line)
		}
		d := negotiate(&ctx)
		got := string(ctx.Response.Header.Peek(extensionsHeader))
		if got != test.want || (d == deflated) != (test.want != "") {
			t.Errorf("%s: answered %q (encoding %d), want %q", test.name, got, d, test.want)
		}
	}
}

// The answer is a subset of one offer, and no bytes of the client reach the response.
func FuzzAnswerOffer(f *testing.F) {
	f.Add([]byte("permessage-deflate; client_max_window_bits"))
	f.Add([]byte(`permessage-deflate; server_max_window_bits="12"; server_no_context_takeover`))
	f.Fuzz(func(t *testing.T, offer []byte) {
		answer := answerOffer(offer)
		if answer == "" {
			return
		}
		bits, windowed := strings.CutPrefix(answer, deflateAnswer+"; server_max_window_bits=")
		switch n, ok := windowBits([]byte(bits)); {
		case !strings.Contains(strings.ToLower(string(offer)), "permessage-deflate"):
			t.Fatalf("%q answered without an offer", offer)
		case !windowed && answer != deflateAnswer:
			t.Fatalf("%q answered by %q", offer, answer)
		case windowed && (!ok || n < minWindowBits || n > maxWindowBits):
			t.Fatalf("%q answered by %q", offer, answer)
		}
	})
}
