package settle

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/sdk"
)

// TestNothingFirmThatDoesNotSell walks all surfaces in each state in which the desk sells
// nothing: without a chain, without a price, locked in each way, with too little on the
// chain, sold out. No document, stream, quote or FIX message may say that something sells,
// and no claim is taken. Before and after each state the same walk must find that it sells.
func TestNothingFirmThatDoesNotSell(t *testing.T) {
	runtest.SkipUnderRace(t, "it reads the surfaces one after the other; the tests of httpgw, feed and fixgw race the same code")
	t.Parallel()
	w := newWalk(t, chaintest.Options{Wallets: 1, FirmWallet: true})
	cli := func(args ...string) { programtest.CLI(t, w.Server, args...) }
	both := func(args ...string) {
		for _, pair := range []string{programtest.Symbol, programtest.OtherSymbol} {
			cli(append(args, "--pair", pair)...)
		}
	}
	rails := func(args ...string) {
		for _, rail := range []string{"USDC", "SOL"} {
			cli(append(args, "--rail", rail)...)
		}
	}
	w.sells()
	for _, s := range []struct {
		name, reason string
		enter, leave func()
	}{
		{noChain, "not_ready", func() { w.Control("setNode", map[string]any{"mode": "503"}) }, func() { w.Control("heal", map[string]any{}) }},
		{"global lock", "locked", func() { cli("lock", "--reason", "a test") }, func() { cli("unlock") }},
		{"both pairs locked", "locked", func() { both("lock", "--reason", "a test") }, func() { both("unlock") }},
		{"both rails locked", "locked", func() { rails("lock", "--reason", "a test") }, func() { rails("unlock") }},
		{"nothing on the chain", "inventory", func() { w.hold(0) }, func() { w.hold(100_000_000_000_000) }},
		{"sold out", "no_open_ticket", w.buyAll, nil},
	} {
		s.enter()
		w.sellsNothing(s.name, s.reason)
		if s.leave != nil {
			s.leave()
			w.sells()
		}
	}
}

// TestNothingFirmWithoutPrice is the same walk once the operator's prices are too old.
func TestNothingFirmWithoutPrice(t *testing.T) {
	runtest.SkipUnderRace(t, "it reads the surfaces one after the other; the tests of httpgw, feed and fixgw race the same code")
	t.Parallel()
	w := newWalk(t, chaintest.Options{Wallets: 1, FirmWallet: true, MaxAge: 10})
	records, done := w.tickets() // subscribed while there is a price, as a rule
	w.sellsNothing("no price", "price_stale")
	for !strings.Contains(records(), `"reference_price_usd":null`) {
	}
	done()
}

// walk reads every surface of a desk.
type walk struct {
	*chaintest.Rig
	buyer *chaintest.Buyer
	fix   *fixtest.Session
	paths []string
	round int
}

func newWalk(t *testing.T, o chaintest.Options) *walk {
	r := chaintest.Start(t, o)
	w := &walk{Rig: r, buyer: r.Wallet(1).Handshake(), fix: fixtest.LogOn(t, r.Server.Addresses.FIX, programtest.FirmA)}
	var api struct {
		Paths map[string]struct {
			Get *struct {
				Parameters []struct{ Required bool }
			}
		}
	}
	if err := json.Unmarshal(programtest.Must(sdk.Files.ReadFile(sdk.Specification)), &api); err != nil {
		t.Fatal(err)
	}
	for path, methods := range api.Paths {
		// The stream and the WebSocket are read apart; the API's description shows examples.
		if methods.Get != nil && !strings.Contains(path, "{") && path != "/ws/rfq" && !strings.HasSuffix(path, "/stream") && !strings.Contains(path, "openapi") &&
			!slices.ContainsFunc(methods.Get.Parameters, func(p struct{ Required bool }) bool { return p.Required }) {
			w.paths = append(w.paths, path)
		}
	}
	w.paths = append(w.paths, "/board/config.json")
	slices.Sort(w.paths)
	return w
}

// noChain is the state in which tickets stay listed with their prices, none of which is firm:
// accepting is false, and a quote is indicative (docs/specification.md C.4).
const noChain = "no chain"

// listed reports whether a member lists a ticket or its price.
func listed(name string) bool {
	return slices.ContainsFunc([]string{" ticket", " current_sellable_ticket", " best_price_usd", " row"}, func(member string) bool { return strings.HasSuffix(name, member) })
}

// seenWords is what a surface says about what sells: "SURFACE MEMBER" and whether it sells.
type seenWords map[string]bool

// walkJSON adds what the members of a document say.
func (s seenWords) walkJSON(surface string, v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			s.walkJSON(surface, x)
		}
	case map[string]any:
		for name, x := range v {
			switch name {
			case "accepting", "firm":
				s[surface+" "+name] = s[surface+" "+name] || x == any(true)
			case "current_sellable_ticket", "best_price_usd":
				if text, _ := x.(string); strings.HasPrefix(text, "http") {
					continue // the address of the document
				}
				s[surface+" "+name] = s[surface+" "+name] || x != nil
			case "ticket":
				if strings.Contains(surface, "current-sellable-ticket") {
					s[surface+" "+name] = x != nil
				}
			case "t":
				s.rows(surface, x)
			}
			s.walkJSON(surface, x)
		}
	}
}

// rows adds what the rows of the compact book say, whose fifth column is the best price.
func (s seenWords) rows(surface string, v any) {
	rows, _ := v.([]any)
	for _, x := range rows {
		if row, ok := x.([]any); ok && len(row) == 6 {
			s[surface+" row"] = s[surface+" row"] || row[4] != nil
		}
	}
}

func (s seenWords) document(t *testing.T, surface string, body []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("%s: %v: %.200s", surface, err, body)
		return
	}
	s.walkJSON(surface, v)
}

// all reads all surfaces once.
func (w *walk) all() seenWords {
	w.T.Helper()
	w.round++
	s := seenWords{}
	for _, base := range []string{w.Server.Addresses.Base, w.Server.Addresses.API} {
		for _, path := range w.paths {
			a, err := w.buyer.Send(w.T.Context(), "GET", base+path, nil)
			if a == nil {
				w.T.Fatalf("%s: %v", path, err)
			}
			if a.Status == http.StatusOK && strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
				s.document(w.T, "GET "+path, a.Body)
			}
		}
	}
	s.document(w.T, "blockdesk status", []byte(programtest.CLI(w.T, w.Server, "status", "--json")))
	next, done := w.tickets()
	s.document(w.T, "tickets over WebSocket", []byte(next()))
	done()
	s.document(w.T, "tickets over server-sent events", w.stream())
	w.requests(s)
	w.overFIX(s)
	return s
}

// requests asks for a quote, a claim of each kind, and a build.
func (w *walk) requests(s seenWords) {
	w.T.Helper()
	deal := chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}
	quote := w.buyer.Call("POST", "/api/v1/rfq/quote", map[string]string{"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "250", "rail": "USDC"})
	s["POST quote"] = false
	if quote.Status == http.StatusOK {
		s.document(w.T, "POST quote", quote.Body)
		s["POST quote"] = s["POST quote firm"]
	}
	for _, way := range []string{chaintest.PathModular, chaintest.PathAtomic, chaintest.PathBuild} {
		s["POST "+way] = w.buyer.Call("POST", way, w.buyer.Order(deal, way), w.buyer.Bearer()...).Status < http.StatusMultipleChoices
	}
}

// overFIX asks for a quote of a ticket and one of whichever sells, and reads the book. The
// desk's tickets are not in the book, so that it must be empty in every state.
func (w *walk) overFIX(s seenWords) {
	w.T.Helper()
	send := func(msgType, body string, tag int, id string) map[int]string {
		w.T.Helper()
		if err := w.fix.Client.Send(msgType, []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
			w.T.Fatal(err)
		}
		m := w.fix.Expect(nil)
		for m[tag] != id { // of a quote of before, which has ended
			m = w.fix.Expect(nil)
		}
		return m
	}
	for name, security := range map[string]string{"a ticket": "48=T1/T1-1|22=8|", "any ticket": ""} {
		id := fmt.Sprintf("%d %s", w.round, name)
		m := send("R", "131="+id+"|146=1|55="+programtest.Symbol+"|"+security+"152=250|15=USDC|", 131, id)
		if m[35] != "S" && m[35] != "AG" {
			w.T.Fatalf("a quote of %s over FIX: %v", name, m)
		}
		s["FIX quote of "+name] = m[35] == "S" && m[537] == "1"
	}
	id := fmt.Sprint(w.round)
	if m := send("V", "262="+id+"|263=0|264=1|267=2|269=0|269=1|146=1|55="+programtest.Symbol+"|", 262, id); m[35] != "W" || m[270] != "" {
		w.T.Errorf("FIX market data has a price: %v", m)
	}
}

// tickets subscribes to the first pair's tickets, and returns what reads their next message
// and what ends the subscription.
func (w *walk) tickets() (next func() string, done func()) {
	w.T.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(w.Server.Addresses.WS+"/ws/rfq", nil)
	if err != nil {
		w.T.Fatal(err)
	}
	request := `{"action":"SUBSCRIBE_MARKET","channels":["tickets"],"symbols":["` + programtest.Symbol + `"]}`
	if err := errors.Join(conn.WriteMessage(websocket.TextMessage, []byte(request)), conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))); err != nil {
		w.T.Fatal(err)
	}
	return func() string {
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				w.T.Fatal(err)
			}
			if strings.HasPrefix(string(data), `{"channel":"tickets"`) {
				return string(data)
			}
		}
	}, func() { conn.Close() }
}

// stream returns the first message of the tickets' stream.
func (w *walk) stream() []byte {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), runtest.HangTimeout)
	defer cancel()
	url := w.Server.Addresses.Base + "/api/v1/market/stream?channels=tickets&symbols=" + programtest.Symbol
	resp, err := http.DefaultClient.Do(programtest.Must(http.NewRequestWithContext(ctx, http.MethodGet, url, nil)))
	if err != nil {
		w.T.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, `"channel":"tickets"`) {
			return []byte(data)
		}
	}
	w.T.Fatalf("the stream answers %s and has no tickets", resp.Status)
	return nil
}

// status returns the reason why claims are not accepted; "" = they are.
func (w *walk) status() string {
	var status struct {
		Accepting bool
		Reason    string `json:"accepting_reason"`
	}
	programtest.GetJSON(w.T, w.Server.Addresses.Base+"/api/v1/rfq/status", &status)
	if status.Accepting != (status.Reason == "") {
		w.T.Errorf("accepting %v with the reason %q", status.Accepting, status.Reason)
	}
	return status.Reason
}

// sells waits until claims are accepted, and checks that every surface says so.
func (w *walk) sells() {
	w.T.Helper()
	await.Equal(w.T, "claims to be accepted", "", w.status)
	s := w.all()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !s[name] {
			w.T.Errorf("claims are accepted, and %s says that nothing sells", name)
		}
	}
	if len(s) < 20 {
		w.T.Errorf("only %d members say what sells: %v", len(s), s)
	}
}

// sellsNothing waits until claims are refused for a reason, and checks every surface.
func (w *walk) sellsNothing(state, reason string) {
	w.T.Helper()
	await.Equal(w.T, state, reason, w.status)
	s := w.all()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name] && !(state == noChain && listed(name)) {
			w.T.Errorf("%s: %s says that something sells", state, name)
		}
	}
}

// hold sets what the desk's wallet has on the chain of both tokens, in atoms.
func (w *walk) hold(atoms uint64) {
	w.T.Helper()
	for _, symbol := range []string{"SLUSD", "92C"} {
		address := solana.Base58(w.TokenAccount(w.Desk, symbol))
		var account struct {
			Value struct {
				Lamports uint64
				Owner    string
				Data     []string
			}
		}
		w.Query("getAccountInfo", &account, address, map[string]any{"encoding": "base64"})
		data := programtest.Must(base64.StdEncoding.DecodeString(account.Value.Data[0]))
		for i := range 8 {
			data[64+i] = byte(atoms >> (8 * i))
		}
		w.Control("setAccount", map[string]any{
			"pubkey": address, "lamports": account.Value.Lamports, "owner": account.Value.Owner, "data": base64.StdEncoding.EncodeToString(data),
		})
	}
}

// buyAll reserves what is left of both tickets, the largest fills first.
func (w *walk) buyAll() {
	w.T.Helper()
	for _, ticket := range []string{"T1", "T2"} {
		for _, fill := range []string{"2500000", "1000000", "250000", "25000", "1000", "250"} {
			deal := chaintest.Deal{Ticket: ticket, Fill: fill, Rail: "USDC"}
			for w.buyer.Call("POST", chaintest.PathModular, w.buyer.Order(deal, chaintest.PathModular), w.buyer.Bearer()...).Status < http.StatusMultipleChoices {
			}
		}
	}
}
