package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/market"
	"blockdesk/sdk"
	"blockdesk/sdk/openapitest"
)

// specChecker reads a live feed and holds every message to the AsyncAPI document.
type specChecker struct {
	t     *testing.T
	d     *asyncAPI
	first map[string]string // by the message's name, in the order of the session
	codes map[string]bool
}

// take checks one message of the service.
func (a *specChecker) take(channel, text string) (name string) {
	a.t.Helper()
	name, err := a.d.check(channel, text)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.first[name] == "" {
		a.first[name] = text
	}
	for _, code := range regexp.MustCompile(`"code":"(\w+)"`).FindAllStringSubmatch(text, -1) {
		a.codes[code[1]] = true
	}
	return name
}

// readUntil reads from c until a message of that name.
func (a *specChecker) readUntil(c *client, name string) {
	a.t.Helper()
	for a.take("rfq", c.next().raw) != name {
	}
}

// request sends one of the document's requests and reads until the expected messages.
func (a *specChecker) request(c *client, request string, follow ...string) {
	a.t.Helper()
	if !a.d.accepts(request) {
		a.t.Fatalf("no message of the document is %s", request)
	}
	for _, name := range a.d.requests() {
		if a.first[name] == "" && a.d.schemas.ValidateAs(a.d.Components.Messages[name].Payload.name(), []byte(request)) == nil {
			a.first[name] = request
		}
	}
	c.send(request)
	for _, name := range follow {
		a.readUntil(c, name)
	}
}

// restTickets returns the ticket records of the OpenAPI document's example of
// market-tickets.
func restTickets(t *testing.T) []string {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	var rest struct {
		Components struct {
			Examples struct {
				MarketTickets struct {
					Value struct {
						Tickets []json.RawMessage `json:"tickets"`
					} `json:"value"`
				}
			} `json:"examples"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &rest); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, record := range rest.Components.Examples.MarketTickets.Value.Tickets {
		var compact bytes.Buffer
		if err := json.Compact(&compact, record); err != nil {
			t.Fatal(err)
		}
		all = append(all, compact.String())
	}
	if len(all) < 2 {
		t.Fatalf("%d tickets", len(all))
	}
	return all
}

// market places an order and waits until the feed publishes it.
func (a *specChecker) market(d *testFeed, side market.Side, price market.Price, qty market.Qty) {
	a.t.Helper()
	d.order(0, side, price, qty)
	d.settle()
}

// TestAsyncAPISession makes a live feed send every kind of message and checks each
// against the document, which must have no others. The first message of each kind is its
// example. After an intended change: UPDATE_GOLDEN=1 go test ./feed -run AsyncAPISession
func TestAsyncAPISession(t *testing.T) {
	t.Parallel()
	s, records := &ticketSource{}, restTickets(t)
	source := func(each func(market.InstrumentID, market.TicketID, []byte)) (uint64, int64) {
		seq, _ := s.tickets(each)
		return seq, time.Now().UnixNano()
	}
	sold := &saleSource{record: restSale(t)}
	d := newTestFeedWith(t, func(f *Feed) { f.ServeTickets(source, forHours); f.ServeSales(sold.sales) }, func(o *Options) {
		o.MaxSubscriptions, o.Heartbeat = 6, 50*time.Millisecond
		o.OtherShards = map[string]*market.Shard{"E/F": {Name: "us", WS: "ws://127.0.0.2:8081"}}
	})
	a := &specChecker{t: t, d: readAsyncAPI(t), first: map[string]string{}, codes: map[string]bool{}}
	a.welcomed()
	s.change(d, 0, 1, records[0])
	s.settle(d)
	a.market(d, market.Buy, 998_900, 12_000_500_000)
	a.market(d, market.Sell, 999_100, 5_000_000_000)
	a.market(d, market.Buy, 999_100, 1_500_000_000)
	a.follows(d, s, records)
	a.sales(d, sold)
	a.orders(d)
	a.errs(d)
	a.isSlow()
	a.streams(d)
	for name := range a.d.Components.Messages {
		if a.first[name] == "" {
			t.Errorf("no message %s was sent", name)
		}
	}
	for _, code := range slices.Concat(a.d.enum(t, "Error", "code"), a.d.enum(t, "Rejection", "code")) {
		if !a.codes[code] {
			t.Errorf("the code %s was not received", code)
		}
	}
	a.checkStrict()
	a.golden()
}

// welcomed checks the welcome of a feed with default limits.
func (a *specChecker) welcomed() {
	c, err := newTestFeed(a.t, func(o *Options) { o.SubscribeWithin, o.SlowAfter = 0, 0 }).tryDial()
	if err != nil {
		a.t.Fatal(err)
	}
	a.readUntil(c, "welcome")
}

// follows is a client that subscribes to everything, resumes and unsubscribes.
func (a *specChecker) follows(d *testFeed, s *ticketSource, records []string) {
	c, err := d.tryDial()
	if err != nil {
		a.t.Fatal(err)
	}
	a.readUntil(c, "welcome")
	a.request(c, `{"action":"PING","id":1}`, "pong")
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["ticker","l2","trades","tickets"],"symbols":["SLUSD/USDC"],"id":2,"depth":10,"heartbeat":true}`,
		"acknowledgement", "tickerSnapshot", "bookSnapshot", "tradesSnapshot", "ticketsSnapshot", "heartbeat")
	a.market(d, market.Sell, 999_000, 750_000_000)
	a.readUntil(c, "bookUpdate")
	a.readUntil(c, "tickerUpdate")
	a.market(d, market.Buy, 999_000, 250_000_000)
	a.readUntil(c, "tradesUpdate")
	s.put(0, 1, "")
	s.change(d, 0, 2, records[1])
	a.readUntil(c, "ticketsUpdate")
	a.request(c, `{"action":"LIST_SUBSCRIPTIONS","id":3}`, "acknowledgement")
	a.request(c, `{"action":"RESYNC","channels":["l2","trades"],"symbols":["SLUSD/USDC"],"id":4}`, "acknowledgement", "bookSnapshot", "tradesSnapshot")
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["SLUSD/USDC"],"id":5,"depth":10,"resume":{"epoch":"e1","l2:SLUSD/USDC":4,"trades:SLUSD/USDC":2}}`,
		"acknowledgement", "bookUpdate", "tradesUpdate")
	a.request(c, `{"action":"UNSUBSCRIBE_MARKET","channels":["ticker"],"symbols":["SLUSD/USDC"],"id":6}`, "unsubscribed")
}

// sales is a client of the desk's sales.
func (a *specChecker) sales(d *testFeed, sold *saleSource) {
	c := d.dial()
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["rfq_trades"],"symbols":["SLUSD/USDC"],"id":2}`, "acknowledgement", "rfqTradesSnapshot")
	sold.add(0)
	d.feed.SalesChanged(0)
	a.readUntil(c, "rfqTradesUpdate")
}

// orders is a client of the orders.
func (a *specChecker) orders(d *testFeed) {
	c := d.dial()
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["l3"],"symbols":["SLUSD/USDC"],"id":2}`, "acknowledgement", "ordersSnapshot")
	a.market(d, market.Sell, 999_300, 2_000_000_000)
	a.readUntil(c, "ordersUpdate")
}

// restSale returns the record of the OpenAPI document's example of the desk's sales.
func restSale(t *testing.T) string {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	var rest struct {
		Components struct {
			Examples struct {
				RfqTrades struct {
					Value struct {
						Trades []json.RawMessage `json:"rfq_trades"`
					} `json:"value"`
				}
			} `json:"examples"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &rest); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, rest.Components.Examples.RfqTrades.Value.Trades[0]); err != nil {
		t.Fatal(err)
	}
	return compact.String()
}

// errs is a client that sends invalid requests.
func (a *specChecker) errs(d *testFeed) {
	c := d.dial()
	for _, request := range []string{`[]`, `{"action":"FLY","id":"7"}`, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":20,"id":"8"}`} {
		c.send(request)
		a.readUntil(c, "error")
	}
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","l4"],"symbols":["SLUSD/USDC","A/B"],"id":"9"}`)
	a.readUntil(c, "acknowledgement")
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["l2","ticker","trades"],"symbols":["SLUSD/USDC","92C/SLUSD","AAA/BBB"]}`, "acknowledgement")
	a.request(c, `{"action":"SUBSCRIBE_MARKET","channels":["trades"],"symbols":["E/F"]}`, "acknowledgement")
	a.request(c, `{"action":"UNSUBSCRIBE_MARKET","channels":["tickets"],"symbols":["SLUSD/USDC"]}`, "unsubscribed")
}

// isSlow is a client that stops reading and continues later.
func (a *specChecker) isSlow() {
	d := newTestFeed(a.t, func(o *Options) {
		o.SlowAfter, o.SendBuffer = 100*time.Millisecond, 4<<10
	})
	r := d.dialRaw(a.t)
	_, _ = r.conn.Write(masked(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":100}`))
	r.until(`"type":"snapshot"`)
	for i := 0; d.feed.Stats().SlowConsumers == 0; i++ {
		d.order(0, market.Buy, market.Price(1+i), 1)
		d.settle()
	}
	got := r.until(string([]byte{CloseSlowConsumer >> 8, CloseSlowConsumer & 0xff}) + "SLOW_CONSUMER")
	got = got[bytes.Index(got, []byte(`{"channel":"control","type":"error"`)):]
	a.take("rfq", string(got[:bytes.IndexByte(got, '}')+1]))
}

// streams is a client of server-sent events until the service ends.
func (a *specChecker) streams(d *testFeed) {
	e := d.openStream("?symbols=SLUSD/USDC&channels=ticker,l2,trades,l3,tickets,rfq_trades", "")
	var last string
	for last != "heartbeat" {
		last = a.event(e)
	}
	go d.stop()
	for last != "restart" {
		last = a.event(e)
	}
}

func (a *specChecker) event(e *sseClient) string {
	a.t.Helper()
	m, err := e.tryNext()
	if err != nil {
		a.t.Fatal(err)
	}
	return a.take("stream", m.data)
}

// checkStrict: no message would pass with a member less, one more, or one of another
// type. Optional members are named.
func (a *specChecker) checkStrict() {
	a.t.Helper()
	optional := regexp.MustCompile(`^missing (/id|/rejected/\d+/symbol|/seqs/.*)$`)
	for name, text := range a.first {
		if slices.Contains(a.d.requests(), name) {
			continue
		}
		if err := openapitest.Mutants([]byte(text), func(what string, mutant []byte) bool {
			_, err := a.d.check("rfq", string(mutant))
			if name == "restart" || name == "mark" {
				_, err = a.d.check("stream", string(mutant))
			}
			if err == nil && !optional.MatchString(what) {
				a.t.Errorf("%s passes with %s", name, what)
			}
			return true
		}); err != nil {
			a.t.Error(err)
		}
	}
}

// passing matches values that differ between runs.
var passing = regexp.MustCompile(`"(ts|last_ts|session)": "[^"]*"`)

// golden compares the document's examples with the messages.
func (a *specChecker) golden() {
	a.t.Helper()
	text := a.d.text
	for name, example := range a.first {
		head := fmt.Appendf(nil, "\n      %q: {\n        \"name\": %[1]q,", name)
		start := bytes.Index(text, head)
		start += bytes.Index(text[start:], []byte(`"examples": [`))
		start += bytes.Index(text[start:], []byte(`"payload": `)) + len(`"payload": `)
		var value json.RawMessage
		in := json.NewDecoder(bytes.NewReader(text[start:]))
		if err := in.Decode(&value); err != nil {
			a.t.Fatal(err)
		}
		end := start + int(in.InputOffset())
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(example), strings.Repeat(" ", 12), "  "); err != nil {
			a.t.Fatal(err)
		}
		same := bytes.Equal(passing.ReplaceAll(text[start:end], nil), passing.ReplaceAll(want.Bytes(), nil))
		if os.Getenv("UPDATE_GOLDEN") != "" && !same {
			text = slices.Concat(text[:start], want.Bytes(), text[end:])
		} else if !same {
			a.t.Errorf("the example of %s is not what was said: %s", name, example)
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(channelsFile, text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}
