package feed

import (
	"testing"

	"github.com/valyala/fasthttp"

	"blockdesk/market"
)

// A symbol of another group is not unknown: the refusal says which group has it.
func TestSymbolsOfOtherGroups(t *testing.T) {
	us := &market.Shard{Name: "us", Base: "http://us:8080", WS: "ws://us:8081"}
	set := testSet(t).WithOtherShards(map[string]*market.Shard{"X/Y": us})
	r := parseRequest([]byte(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["X/Y","A/B"]}`), set, otherChannels{})
	if r.errorMessage != nil || len(r.topics) != 0 || len(r.rejected) != 4 {
		t.Fatalf("%+v", r)
	}
	var e encoder
	e.openAck(subscribe, nil, false)
	got := string(e.closeAck(r.rejected))
	const want = `"rejected":[{"channel":"l2","symbol":"X/Y","code":"OTHER_GROUP","ws_url":"ws://us:8081"},` +
		`{"channel":"trades","symbol":"X/Y","code":"OTHER_GROUP","ws_url":"ws://us:8081"},` +
		`{"channel":"l2","symbol":"A/B","code":"UNKNOWN_SYMBOL"},{"channel":"trades","symbol":"A/B","code":"UNKNOWN_SYMBOL"}]}`
	if len(got) < len(want) || got[len(got)-len(want):] != want {
		t.Errorf("the answer is %s", got)
	}
	var args fasthttp.Args
	args.Parse("symbols=X/Y")
	_, bad := parseStream(&args, set, 10, otherChannels{})
	if bad == nil || bad.code != "OTHER_GROUP" || bad.text != "X/Y is served at http://us:8080. A stream carries symbols of one group." {
		t.Errorf("a stream of it: %+v", bad)
	}
}
