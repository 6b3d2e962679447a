package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a table with every kind of member.
var sample = []Member{
	{Name: "order_id", Kind: TextMember, MaxLen: 8},
	{Name: "fill_usd", Kind: IntegerMember, MaxLen: 8},
	{Name: "rail", Kind: TextMember, MaxLen: 4, Optional: true},
}

// TestLongMembers: a long value at its own limit and above it, an empty one that
// counts as absent, and short ones beside them.
func TestLongMembers(t *testing.T) {
	table := []Member{
		{Name: "a", Kind: TextMember, MaxLen: 8, EmptyIsAbsent: true, Optional: true},
		{Name: "tx", Kind: LongMember, MaxLen: 1000, EmptyIsAbsent: true},
		{Name: "b", Kind: TextMember, MaxLen: 8, Optional: true},
	}
	for _, c := range []struct {
		size   int
		reason string
	}{{1, ""}, {MaxMemberValue + 1, ""}, {1000, ""}, {1001, "too_long"}, {5000, "too_long"}} {
		var m Members
		text := strings.Repeat("x", c.size)
		problem := DecodeObject([]byte(`{"b":"beta","tx":"`+text+`","a":""}`), table, &m)
		switch {
		case c.reason == "" && (problem != nil || string(m.Get(1)) != text || string(m.Get(2)) != "beta" || m.Get(0) != nil):
			t.Errorf("%d bytes: %+v, %q %q", c.size, problem, m.Get(1), m.Get(2))
		case c.reason != "" && (problem == nil || problem.Reason != c.reason || problem.Field != "tx"):
			t.Errorf("%d bytes: %+v", c.size, problem)
		}
	}
	for _, body := range []string{`{"tx":""}`, `{"tx":null,"a":"x"}`, `{}`} {
		var m Members
		if problem := DecodeObject([]byte(body), table, &m); problem == nil || problem.Code != CodeMissingField || problem.Field != "tx" {
			t.Errorf("%s: %+v", body, problem)
		}
	}
}

// TestDecodeObject: code, field and reason of each body.
func TestDecodeObject(t *testing.T) {
	const head = `{"order_id":"T1","fill_usd":"250"`
	for _, c := range []struct {
		body                string
		code, field, reason string
		want                [3]string
	}{
		{body: head + "}", want: [3]string{"T1", "250"}},
		{body: `{"fill_usd":250,"order_id":"T1"}`, want: [3]string{"T1", "250"}},
		{body: `{"fill_usd":0,"order_id":"T1"}`, want: [3]string{"T1", "0"}},
		{body: head + `,"rail":"SOL"}`, want: [3]string{"T1", "250", "SOL"}},
		{body: head + `,"rail":null}`, want: [3]string{"T1", "250"}},
		{body: " \t\r\n" + `{ "order_id" : "T1" , "fill_usd" : 250 } ` + "\n", want: [3]string{"T1", "250"}},
		{body: `{"\u006frder_id":"\u00541","fill_usd":"\/\"\\\b\f\n\r\t"}`, want: [3]string{"T1", "/\"\\\b\f\n\r\t"}},
		{body: `{"order_id":"\ud83d\ude00\u00e9","fill_usd":"é"}`, want: [3]string{"😀é", "é"}},
		{body: `{"order_id":"12345678","fill_usd":12345678}`, want: [3]string{"12345678", "12345678"}},

		{body: ``, code: CodeInvalidJSON, reason: EmptyBody},
		{body: " \n ", code: CodeInvalidJSON, reason: EmptyBody},
		{body: "\xef\xbb\xbf" + head + "}", code: CodeInvalidJSON, reason: ByteOrderMark},
		{body: `[]`, code: CodeInvalidJSON, reason: NotAnObject},
		{body: `"order_id"`, code: CodeInvalidJSON, reason: NotAnObject},
		{body: `null`, code: CodeInvalidJSON, reason: NotAnObject},
		{body: "\x00", code: CodeInvalidJSON, reason: NotAnObject},
		{body: `{`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head + `,}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head + `,,"rail":"SOL"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head + ` "rail":"SOL"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head + `]`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{'order_id':'T1'}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{order_id:"T1"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id" "T1"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"T1}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"T` + "\n" + `1"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"T` + "\x00" + `1"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"\x"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"\u12g4"}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"\u12`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"order_id":"\`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":007}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":+1}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":-}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":1.}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":1e}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":.5}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":NaN}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":Infinity}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":-Infinity}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":0x10}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"fill_usd":nul}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"x":[1,2,]}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"x":[1,{"a":1]}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: `{"x":{"a"}}`, code: CodeInvalidJSON, reason: BadSyntax},
		{body: head + `} {}`, code: CodeInvalidJSON, reason: TrailingData},
		{body: head + "}\x00", code: CodeInvalidJSON, reason: TrailingData},
		{body: head + `} // x`, code: CodeInvalidJSON, reason: TrailingData},
		{body: `{"order_id":"` + "\xff" + `"}`, code: CodeInvalidJSON, reason: InvalidUTF8},
		{body: `{"order_id":"` + "\xed\xa0\x80" + `"}`, code: CodeInvalidJSON, reason: InvalidUTF8},
		{body: `{"order_id":"` + "\xc0\xaf" + `"}`, code: CodeInvalidJSON, reason: InvalidUTF8},
		{body: `{"` + "\xc3" + `":1}`, code: CodeInvalidJSON, reason: InvalidUTF8},
		{body: `{"order_id":"\ud800"}`, code: CodeInvalidJSON, reason: LoneSurrogate},
		{body: `{"order_id":"\udc00\ud800"}`, code: CodeInvalidJSON, reason: LoneSurrogate},
		{body: `{"order_id":"\ud800\u0041"}`, code: CodeInvalidJSON, reason: LoneSurrogate},
		{body: `{"x":{"y":["\ud800"]}}`, code: CodeInvalidJSON, reason: LoneSurrogate},
		{body: `{"x":` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + `}`, code: CodeInvalidField, field: "x", reason: "unknown_field"},
		{body: `{"x":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, code: CodeInvalidJSON, reason: TooDeep},
		{body: `{"order_id":` + strings.Repeat(`{"a":`, 30000), code: CodeInvalidJSON, reason: TooDeep},

		{body: `{}`, code: CodeMissingField, field: "order_id"},
		{body: `{"fill_usd":250}`, code: CodeMissingField, field: "order_id"},
		{body: `{"order_id":"T1","rail":"SOL"}`, code: CodeMissingField, field: "fill_usd"},
		{body: `{"order_id":null,"fill_usd":250}`, code: CodeMissingField, field: "order_id"},
		{body: head + `,"order_id":"T2"}`, code: CodeInvalidField, field: "order_id", reason: "repeated"},
		{body: head + `,"\u006frder_id":"T1"}`, code: CodeInvalidField, field: "order_id", reason: "repeated"},
		{body: head + `,"rail":null,"rail":"SOL"}`, code: CodeInvalidField, field: "rail", reason: "repeated"},
		{body: head + `,"Order_ID":"T1"}`, code: CodeInvalidField, field: "Order_ID", reason: "unknown_field"},
		{body: head + `,"":"T1"}`, code: CodeInvalidField, reason: "unknown_field"},
		{body: head + `,"<b>":"T1"}`, code: CodeInvalidField, reason: "unknown_field"},
		{body: head + `,"` + strings.Repeat("a", maxEchoedName) + `":1}`, code: CodeInvalidField, field: strings.Repeat("a", maxEchoedName), reason: "unknown_field"},
		{body: head + `,"` + strings.Repeat("a", maxEchoedName+1) + `":1}`, code: CodeInvalidField, reason: "unknown_field"},
		{body: head + `,"` + strings.Repeat("order_id", 1000) + `":[{"a":[true,false,null,-1.5e+3,"x",{}],"b":{}},[]]}`, code: CodeInvalidField, reason: "unknown_field"},
		{body: `{"order_id":7,"fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":true,"fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":["T1"],"fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":{"a":{"b":1}},"fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":"T1","fill_usd":false}`, code: CodeInvalidField, field: "fill_usd", reason: "wrong_type"},
		{body: `{"order_id":"T1","fill_usd":-250}`, code: CodeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":-0}`, code: CodeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":250.0}`, code: CodeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":25e1}`, code: CodeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":123456789}`, code: CodeInvalidField, field: "fill_usd", reason: "too_long"},
		{body: `{"order_id":"123456789","fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "too_long"},
		{body: `{"order_id":"` + strings.Repeat("é", 30000) + `","fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "too_long"},
		{body: `{"order_id":"","fill_usd":250}`, code: CodeInvalidField, field: "order_id", reason: "empty"},
		// The first wrong member decides.
		{body: `{"fill_usd":false,"order_id":7}`, code: CodeInvalidField, field: "fill_usd", reason: "wrong_type"},
	} {
		var m Members
		problem := DecodeObject([]byte(c.body), sample, &m)
		if c.code == "" {
			got := [3]string{string(m.Get(0)), string(m.Get(1)), string(m.Get(2))}
			if problem != nil || got != c.want {
				t.Errorf("%.80q: %q, %+v", c.body, got, problem)
			}
			continue
		}
		if problem == nil || problem.Status != 400 || problem.Code != c.code || problem.Field != c.field || problem.Reason != c.reason {
			t.Errorf("%.80q: %+v, want %s %s %s", c.body, problem, c.code, c.field, c.reason)
		}
	}
}

// TestDecodeObjectCost: no allocation for a valid body, a constant number for an
// invalid one of any length, and linear time.
func TestDecodeObjectCost(t *testing.T) {
	long := func(n int) map[string]string {
		return map[string]string{
			"unknown members": "{" + strings.Repeat(`"x":1,`, n/6) + `"x":1}`,
			"one name":        `{"` + strings.Repeat(`\u0061`, n/6) + `":1}`,
			"one value":       `{"order_id":"` + strings.Repeat("a", n) + `"}`,
			"nesting":         `{"x":[` + strings.Repeat("[[[[{}]]]],", n/11) + `1]}`,
			"too deep":        strings.Repeat(`{"order_id":`, n/12),
			"digits":          `{"fill_usd":` + strings.Repeat("1", n) + `}`,
			"space":           strings.Repeat(" ", n),
		}
	}
	for name, body := range long(DefaultMaxBodyBytes) {
		allocs := testing.AllocsPerRun(5, func() {
			var m Members
			DecodeObject([]byte(body), sample, &m)
		})
		if allocs > 4 {
			t.Errorf("%s: %.0f allocations", name, allocs)
		}
	}
	body := []byte(`{"order_id":"T1","fill_usd":"250","rail":"SOL"}`)
	if allocs := testing.AllocsPerRun(100, func() {
		var m Members
		if DecodeObject(body, sample, &m) != nil {
			t.Fatal("refused")
		}
	}); allocs != 0 {
		t.Errorf("a right body: %.0f allocations", allocs)
	}
}

// FuzzDecodeObject compares the decoder with encoding/json: accepted bodies are valid
// there with the same values, each once; refused ones are invalid there or one of the
// documented stricter cases.
func FuzzDecodeObject(f *testing.F) {
	for _, seed := range []string{
		`{"order_id":"T1","fill_usd":250,"rail":null}`, `{"order_id":"\ud83d\ude00","fill_usd":"\u0000"}`, `{"x":[[{"a":1.5e-3}]]}`,
		`{"order_id":"T1","order_id":"T2"}`, "\xef\xbb\xbf{}", `{"fill_usd":-0.0}`, `[`, `{"a":{"b":[true,false,null]}}{`, `{"order_id":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		var m Members
		problem := DecodeObject(body, sample, &m)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if problem != nil {
			checkRefusedBody(t, body, problem)
			return
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var theirs map[string]any
		if err := d.Decode(&theirs); err != nil || d.More() {
			t.Fatalf("took %q, of which encoding/json says %v", body, err)
		}
		for i := range sample {
			want := ""
			if v := theirs[sample[i].Name]; v != nil {
				want = fmt.Sprint(v)
			}
			if got := string(m.Get(i)); got != want || len(got) > sample[i].MaxLen {
				t.Fatalf("%s: %q, encoding/json %q", sample[i].Name, got, want)
			}
			delete(theirs, sample[i].Name)
		}
		if len(theirs) > 0 {
			t.Fatalf("took unknown members %v", theirs)
		}
	})
}

func checkRefusedBody(t *testing.T, body []byte, problem *Problem) {
	t.Helper()
	if problem.Status != 400 || problem.Reason == "" && problem.Code != CodeMissingField {
		t.Fatalf("%q: %+v", body, problem)
	}
	if problem.Code == CodeInvalidJSON {
		switch problem.Reason {
		case EmptyBody, ByteOrderMark, BadSyntax, TrailingData:
			if json.Valid(body) {
				t.Fatalf("%q: %s, but it is valid", body, problem.Reason)
			}
		case InvalidUTF8:
			if utf8.Valid(body) {
				t.Fatalf("%q: it is UTF-8", body)
			}
		case NotAnObject, TooDeep, LoneSurrogate:
		default:
			t.Fatalf("reason %s", problem.Reason)
		}
		return
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("%q: %s, but it is no JSON", body, problem.Code)
	}
	for i := range sample {
		if problem.Field == sample[i].Name {
			return
		}
	}
	if problem.Field != "" && !isPlainWord([]byte(problem.Field)) || problem.Reason != "unknown_field" {
		t.Fatalf("%q: %+v", body, problem)
	}
}
