package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"blockdesk/market"
)

func testSet(t testing.TB) *market.Instruments {
	t.Helper()
	set, err := market.NewInstruments(instruments())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestRequestLimits(t *testing.T) {
	set := testSet(t)
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	request := func(members string) string { return `{"action":"SUBSCRIBE_MARKET",` + members + `}` }
	points := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"l2:%d":1`, i))
		}
		return request(`"channels":["l2"],"symbols":["SLUSD/USDC"],"resume":{"epoch":"e1",` + strings.Join(all, ",") + `}`)
	}
	nest := func(n int) string {
		return `{"action":"PING","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	word := func(n int) string { return `"` + strings.Repeat("a", n-2) + `"` }
	tests := []struct {
		name        string
		good, wrong string
		fault       *fault
	}{
		{
			"channels", request(`"channels":` + list(maxChannels, `"l2"`) + `,"symbols":["SLUSD/USDC"]`),
			request(`"channels":` + list(maxChannels+1, `"l2"`) + `,"symbols":["SLUSD/USDC"]`), &faultChannels,
		},
		{
			"symbols", request(`"channels":["l2"],"symbols":` + list(maxSymbols, `"A/B"`)),
			request(`"channels":["l2"],"symbols":` + list(maxSymbols+1, `"A/B"`)), &faultSymbols,
		},
		{
			"a symbol", request(`"channels":["l2"],"symbols":[` + word(maxText) + `]`),
			request(`"channels":["l2"],"symbols":[` + word(maxText+1) + `]`), &faultSymbols,
		},
		{"id", `{"action":"PING","id":` + word(maxText) + `}`, `{"action":"PING","id":` + word(maxText+1) + `}`, &faultID},
		{"resume", points(maxResumePoints), points(maxResumePoints + 1), &faultResume},
		{"levels", nest(maxDepthJSON - 1), nest(maxDepthJSON), &faultJSON},
	}
	for _, test := range tests {
		if r := parseRequest([]byte(test.good), set, testChannels); r.errorMessage != nil {
			t.Errorf("%s at the limit: %+v", test.name, *r.errorMessage)
		}
		if r := parseRequest([]byte(test.wrong), set, testChannels); r.errorMessage != test.fault {
			t.Errorf("%s beyond the limit: %+v", test.name, r.errorMessage)
		}
	}
}

func TestRequestText(t *testing.T) {
	set := testSet(t)
	r := parseRequest([]byte(`{"action":"SUBSCRIBE_MARKE\u0054","channels":["\u006c2"],"symbols":["SLUSD\/USDC"],"depth":100,"heartbeat":false,`+
		`"resume":{"epoch":"e7","l2:SLUSD/USDC":18446744073709551615}}`), set, testChannels)
	if r.errorMessage != nil || r.action != subscribe || len(r.topics) != 1 || r.topics[0].kind != l2Depth100 ||
		*r.heartbeat || string(r.resumeEpoch) != "e7" || r.resume["l2:SLUSD/USDC"] != 1<<64-1 {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{
		`{"action":"PING","id":1.5}`, `{"action":"PING","id":true}`, `{"action":"PING","id":[]}`, `{"action":"PING","id":-}`,
		`{"action":"PING","heartbeat":1}`, `{"action":"PING","depth":"10"}`, `{"action":"PING","depth":10.0}`,
		`{"action":"PING","resume":{"a":-1}}`, `{"action":"PING","resume":{"a":18446744073709551616}}`, `{"action":"PING","resume":[]}`,
		`{"action":["PING"]}`, `{"action":"PING",}`, `{"action":"PING"}x`, "{\"action\":\"PING\",\"x\":\"\x01\"}",
		"{\"action\":\"PING\",\"x\":\"\xff\"}", `{"action":"PING","x":"\x"}`, `{"action":"PING","x":"\u12g4"}`, `{"action":"PING","x":01}`,
		`{"action":"PING","x":nul}`, `{'action':'PING'}`, ``, `{`, `{"a"`, `{"a":`, `"`, `{"action":"PING","x":+1}`, `{"action":"PING","x":.5}`,
	} {
		if r := parseRequest([]byte(text), set, testChannels); r.errorMessage == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

// FuzzClientMessage: parsing never panics, accepts only JSON, and echoes only JSON.
func FuzzClientMessage(f *testing.F) {
	for _, seed := range []string{
		`{"action":"SUBSCRIBE_MARKET","channels":["ticker","l2","trades"],"symbols":["SLUSD/USDC","92C/SLUSD"],"id":"1","depth":50,"heartbeat":true,"resume":{"epoch":"e7","l2:SLUSD/USDC":1042}}`,
		`{"action":"PING","id":-12}`, `{"action":"RESYNC","channels":["l2"],"symbols":["\ud83d\ude00"]}`, `{"a":{"b":[1e5,-0.1,true,false,null]}}`,
		`{"action":"UNSUBSCRIBE_MARKET","channels":["\"","l3"],"symbols":["\\","A/B"]}`, `[]`, `{"id":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	set := testSet(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := parseRequest(data, set, testChannels)
		if r.errorMessage != &faultJSON && !(json.Valid(data) && utf8.Valid(data)) {
			t.Fatalf("accepted %q", data)
		}
		if len(r.topics) > int(numKinds)*maxSymbols || len(r.rejected) > int(numKinds)*maxSymbols+maxChannels || len(r.resume) > maxResumePoints {
			t.Fatalf("%d topics, %d rejections, %d points", len(r.topics), len(r.rejected), len(r.resume))
		}
		var e encoder
		e.openAck(subscribe, r.id, false)
		if frame := e.closeAck(r.rejected); !json.Valid(framePayload(frame)) {
			t.Fatalf("echo %q", frame)
		}
	})
}

// testChannels are those of a feed with orders and a desk.
var testChannels = otherChannels{l3: true, tickets: true, sales: true}
