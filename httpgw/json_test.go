package httpgw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is a table with every kind of member.
var sample = []member{
	{name: "order_id", kind: textMember, most: 8},
	{name: "fill_usd", kind: wholeMember, most: 8},
	{name: "rail", kind: textMember, most: 4, optional: true},
}

// TestLongMembers: a long value up to its own limit and not past it, a blank one
// that counts as none, and the short ones beside them.
func TestLongMembers(t *testing.T) {
	table := []member{
		{name: "a", kind: textMember, most: 8, blank: true, optional: true},
		{name: "tx", kind: longMember, most: 1000, blank: true},
		{name: "b", kind: textMember, most: 8, optional: true},
	}
	for _, c := range []struct {
		size   int
		reason string
	}{{1, ""}, {maxValue + 1, ""}, {1000, ""}, {1001, "too_long"}, {5000, "too_long"}} {
		var m members
		text := strings.Repeat("x", c.size)
		bad := decodeObject([]byte(`{"b":"beta","tx":"`+text+`","a":""}`), table, &m)
		switch {
		case c.reason == "" && (bad != nil || string(m.get(1)) != text || string(m.get(2)) != "beta" || m.get(0) != nil):
			t.Errorf("%d bytes: %+v, %q %q", c.size, bad, m.get(1), m.get(2))
		case c.reason != "" && (bad == nil || bad.reason != c.reason || bad.field != "tx"):
			t.Errorf("%d bytes: %+v", c.size, bad)
		}
	}
	for _, body := range []string{`{"tx":""}`, `{"tx":null,"a":"x"}`, `{}`} {
		var m members
		if bad := decodeObject([]byte(body), table, &m); bad == nil || bad.code != codeMissingField || bad.field != "tx" {
			t.Errorf("%s: %+v", body, bad)
		}
	}
}

// TestDecodeObject: what each body gives, by code, field and reason.
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

		{body: ``, code: codeInvalidJSON, reason: jsonEmpty},
		{body: " \n ", code: codeInvalidJSON, reason: jsonEmpty},
		{body: "\xef\xbb\xbf" + head + "}", code: codeInvalidJSON, reason: jsonBOM},
		{body: `[]`, code: codeInvalidJSON, reason: jsonNoObject},
		{body: `"order_id"`, code: codeInvalidJSON, reason: jsonNoObject},
		{body: `null`, code: codeInvalidJSON, reason: jsonNoObject},
		{body: "\x00", code: codeInvalidJSON, reason: jsonNoObject},
		{body: `{`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head + `,}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head + `,,"rail":"SOL"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head + ` "rail":"SOL"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head + `]`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{'order_id':'T1'}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{order_id:"T1"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id" "T1"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"T1}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"T` + "\n" + `1"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"T` + "\x00" + `1"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"\x"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"\u12g4"}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"\u12`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"order_id":"\`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":007}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":+1}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":-}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":1.}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":1e}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":.5}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":NaN}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":Infinity}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":-Infinity}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":0x10}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"fill_usd":nul}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"x":[1,2,]}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"x":[1,{"a":1]}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: `{"x":{"a"}}`, code: codeInvalidJSON, reason: jsonSyntax},
		{body: head + `} {}`, code: codeInvalidJSON, reason: jsonTrailing},
		{body: head + "}\x00", code: codeInvalidJSON, reason: jsonTrailing},
		{body: head + `} // x`, code: codeInvalidJSON, reason: jsonTrailing},
		{body: `{"order_id":"` + "\xff" + `"}`, code: codeInvalidJSON, reason: jsonUTF8},
		{body: `{"order_id":"` + "\xed\xa0\x80" + `"}`, code: codeInvalidJSON, reason: jsonUTF8},
		{body: `{"order_id":"` + "\xc0\xaf" + `"}`, code: codeInvalidJSON, reason: jsonUTF8},
		{body: `{"` + "\xc3" + `":1}`, code: codeInvalidJSON, reason: jsonUTF8},
		{body: `{"order_id":"\ud800"}`, code: codeInvalidJSON, reason: jsonSurrogate},
		{body: `{"order_id":"\udc00\ud800"}`, code: codeInvalidJSON, reason: jsonSurrogate},
		{body: `{"order_id":"\ud800\u0041"}`, code: codeInvalidJSON, reason: jsonSurrogate},
		{body: `{"x":{"y":["\ud800"]}}`, code: codeInvalidJSON, reason: jsonSurrogate},
		{body: `{"x":` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + `}`, code: codeInvalidField, reason: "unknown_field"},
		{body: `{"x":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, code: codeInvalidJSON, reason: jsonTooDeep},
		{body: `{"order_id":` + strings.Repeat(`{"a":`, 30000), code: codeInvalidJSON, reason: jsonTooDeep},

		{body: `{}`, code: codeMissingField, field: "order_id"},
		{body: `{"fill_usd":250}`, code: codeMissingField, field: "order_id"},
		{body: `{"order_id":"T1","rail":"SOL"}`, code: codeMissingField, field: "fill_usd"},
		{body: `{"order_id":null,"fill_usd":250}`, code: codeMissingField, field: "order_id"},
		{body: head + `,"order_id":"T2"}`, code: codeInvalidField, field: "order_id", reason: "repeated"},
		{body: head + `,"\u006frder_id":"T1"}`, code: codeInvalidField, field: "order_id", reason: "repeated"},
		{body: head + `,"rail":null,"rail":"SOL"}`, code: codeInvalidField, field: "rail", reason: "repeated"},
		{body: head + `,"Order_ID":"T1"}`, code: codeInvalidField, reason: "unknown_field"},
		{body: head + `,"":"T1"}`, code: codeInvalidField, reason: "unknown_field"},
		{body: head + `,"` + strings.Repeat("order_id", 1000) + `":[{"a":[true,false,null,-1.5e+3,"x",{}],"b":{}},[]]}`, code: codeInvalidField, reason: "unknown_field"},
		{body: `{"order_id":7,"fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":true,"fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":["T1"],"fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":{"a":{"b":1}},"fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "wrong_type"},
		{body: `{"order_id":"T1","fill_usd":false}`, code: codeInvalidField, field: "fill_usd", reason: "wrong_type"},
		{body: `{"order_id":"T1","fill_usd":-250}`, code: codeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":-0}`, code: codeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":250.0}`, code: codeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":25e1}`, code: codeInvalidField, field: "fill_usd", reason: "not_whole"},
		{body: `{"order_id":"T1","fill_usd":123456789}`, code: codeInvalidField, field: "fill_usd", reason: "too_long"},
		{body: `{"order_id":"123456789","fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "too_long"},
		{body: `{"order_id":"` + strings.Repeat("é", 30000) + `","fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "too_long"},
		{body: `{"order_id":"","fill_usd":250}`, code: codeInvalidField, field: "order_id", reason: "empty"},
		// The first wrong member decides.
		{body: `{"fill_usd":false,"order_id":7}`, code: codeInvalidField, field: "fill_usd", reason: "wrong_type"},
	} {
		var m members
		bad := decodeObject([]byte(c.body), sample, &m)
		if c.code == "" {
			got := [3]string{string(m.get(0)), string(m.get(1)), string(m.get(2))}
			if bad != nil || got != c.want {
				t.Errorf("%.80q: %q, %+v", c.body, got, bad)
			}
			continue
		}
		if bad == nil || bad.status != 400 || bad.code != c.code || bad.field != c.field || bad.reason != c.reason {
			t.Errorf("%.80q: %+v, want %s %s %s", c.body, bad, c.code, c.field, c.reason)
		}
	}
}

// TestDecodeObjectCost: no allocation for a body that is right, a constant
// number for one that is wrong, however long it is; and time that grows as the
// body does.
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
			var m members
			decodeObject([]byte(body), sample, &m)
		})
		if allocs > 4 {
			t.Errorf("%s: %.0f allocations", name, allocs)
		}
	}
	body := []byte(`{"order_id":"T1","fill_usd":"250","rail":"SOL"}`)
	if allocs := testing.AllocsPerRun(100, func() {
		var m members
		if decodeObject(body, sample, &m) != nil {
			t.Fatal("refused")
		}
	}); allocs != 0 {
		t.Errorf("a right body: %.0f allocations", allocs)
	}
}

// FuzzDecodeObject compares the decoder with encoding/json: what is taken is
// valid JSON there with the same values, each once; what is refused as no JSON
// is either none there, or one of the few things that are stricter here.
func FuzzDecodeObject(f *testing.F) {
	for _, seed := range []string{
		`{"order_id":"T1","fill_usd":250,"rail":null}`, `{"order_id":"\ud83d\ude00","fill_usd":"\u0000"}`, `{"x":[[{"a":1.5e-3}]]}`,
		`{"order_id":"T1","order_id":"T2"}`, "\xef\xbb\xbf{}", `{"fill_usd":-0.0}`, `[`, `{"a":{"b":[true,false,null]}}{`, `{"order_id":"\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		var m members
		bad := decodeObject(body, sample, &m)
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
		if bad != nil {
			checkRefusedBody(t, body, bad)
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
			if v := theirs[sample[i].name]; v != nil {
				want = fmt.Sprint(v)
			}
			if got := string(m.get(i)); got != want || len(got) > sample[i].most {
				t.Fatalf("%s: %q, encoding/json %q", sample[i].name, got, want)
			}
			delete(theirs, sample[i].name)
		}
		if len(theirs) > 0 {
			t.Fatalf("took unknown members %v", theirs)
		}
	})
}

func checkRefusedBody(t *testing.T, body []byte, bad *problem) {
	t.Helper()
	if bad.status != 400 || bad.reason == "" && bad.code != codeMissingField {
		t.Fatalf("%q: %+v", body, bad)
	}
	if bad.code == codeInvalidJSON {
		switch bad.reason {
		case jsonEmpty, jsonBOM, jsonSyntax, jsonTrailing:
			if json.Valid(body) {
				t.Fatalf("%q: %s, but it is valid", body, bad.reason)
			}
		case jsonUTF8:
			if utf8.Valid(body) {
				t.Fatalf("%q: it is UTF-8", body)
			}
		case jsonNoObject, jsonTooDeep, jsonSurrogate:
		default:
			t.Fatalf("reason %s", bad.reason)
		}
		return
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("%q: %s, but it is no JSON", body, bad.code)
	}
	for i := range sample {
		if bad.field == sample[i].name {
			return
		}
	}
	if bad.field != "" || bad.reason != "unknown_field" {
		t.Fatalf("%q: %+v", body, bad)
	}
}
