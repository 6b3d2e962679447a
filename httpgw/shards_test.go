package httpgw

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/shardwire"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

const usTicket = market.TicketsPerShard + 7

// TestShardsAnswerForEachOther: a client gets the same answer from either shard about
// everything.
func TestShardsAnswerForEachOther(t *testing.T) {
	t.Parallel()
	claim := market.ClaimID(market.ShardWord(2, 99))
	eu, us := startShards(t, func(_, us *shardRig) {
		c := rfq.Claim{ID: claim, State: rfq.ClaimReserved, Mode: rfq.Modular, Terms: gatewaytest.Grant(us.desk.Current, &rfq.RequestQuote{
			Ticket: usTicket, Tranche: 2, Fill: 1, Rail: market.RailUSDC,
		}).Quote.Terms}
		us.desk.History[claim] = &desk.History{Claim: c, States: []rfq.Claim{c}}
	})
	for _, raw := range []string{
		"GET /api/v1/market/depth?symbol=XSLUSD/USDC&limit=5",
		"GET /api/v1/market/depth?symbol=XSLUSD%2FUSDC",
		"GET /api/v1/market/depth?symbol=XSLUSD/USDC&limit=0",
		"GET /api/v1/market/trades?symbol=X92C/SLUSD&limit=3",
		"HEAD /api/v1/market/ticker?symbol=X92C/SLUSD",
		"GET /trades.json?symbol=X92C/SLUSD",
		"GET /api/v1/market/adapters/coingecko/orderbook?ticker_id=XSLUSD_USDC",
		"GET /api/v1/market/adapters/coinmarketcap/orderbook/XSLUSD_USDC",
		"GET " + claimsPath + gatewaytest.ClaimText(claim),
	} {
		method, target, _ := strings.Cut(raw, " ")
		there, want := gatewaytest.Do(t, us.g.BaseAddr(), method, target, "")
		here, got := gatewaytest.Do(t, eu.g.BaseAddr(), method, target, "")
		if here.StatusCode != there.StatusCode || !bytes.Equal(withoutID(got), withoutID(want)) || here.Header.Get("X-Group") != "us" ||
			here.Header.Get("ETag") != there.Header.Get("ETag") || here.Header.Get("Cache-Control") != there.Header.Get("Cache-Control") ||
			here.Header.Get("Content-Type") != there.Header.Get("Content-Type") || here.ContentLength != there.ContentLength {
			t.Errorf("%s\nhere  %v %.300s\nthere %v %.300s", raw, here, got, there, want)
		}
		if tag := there.Header.Get("ETag"); tag != "" {
			if again, _ := gatewaytest.Do(t, eu.g.BaseAddr(), method, target, "If-None-Match: "+tag+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: known, and %d", raw, again.StatusCode)
			}
		}
	}
	got, body := eu.send(t, postText(rfqapi.PathRFQ+"quote", quoteOf(usTicket), "Idempotency-Key: k1"))
	if got.StatusCode != 200 || !bytes.Contains(body, []byte(`"order_id":"T1000000007"`)) {
		t.Errorf("quote: %v %s", got, body)
	}
	if r, ok := us.desk.Last().(*rfq.RequestQuote); !ok || r.Ticket != usTicket || r.Key == (rfq.IdempotencyKey{}) {
		t.Errorf("the other desk was asked %+v", us.desk.Last())
	}
	if eu.desk.Last() != nil {
		t.Errorf("our desk was asked %+v", eu.desk.Last())
	}
	here, _ := eu.get(t, "/api/v1/market/depth?symbol=SLUSD/USDC")
	if here.Header.Get("X-Group") != "eu" {
		t.Errorf("ours: %v", here.Header)
	}
}

// withoutID removes the request_id from an error.
func withoutID(body []byte) []byte {
	head, rest, ok := bytes.Cut(body, []byte(`"request_id":"`))
	if !ok {
		return body
	}
	_, rest, _ = bytes.Cut(rest, []byte(`"`))
	return append(bytes.Clone(head), rest...)
}

// TestShardsCountOnce: a forwarded request counts where it comes in, for the client,
// and not again.
func TestShardsCountOnce(t *testing.T) {
	t.Parallel()
	eu, us := startShards(t, func(eu, us *shardRig) {
		for _, r := range []*shardRig{eu, us} {
			r.o.NoLimits, r.o.Market = false, wire.Rate{PerMinute: 1, Burst: 3}
			r.o.RFQWrite = wire.Rate{PerMinute: 1, Burst: 1}
		}
	})
	const target = "/api/v1/market/ticker?symbol=XSLUSD/USDC"
	for i, want := range []int{200, 200, 200, 429} {
		got, _ := eu.get(t, target)
		if got.StatusCode != want || got.Header.Get("X-Ratelimit-Remaining") != fmt.Sprint(max(0, 2-i)) {
			t.Errorf("request %d: %d %v", i, got.StatusCode, got.Header)
		}
	}
	if got, _ := us.get(t, target); got.StatusCode != 200 || got.Header.Get("X-Ratelimit-Remaining") != "2" {
		t.Errorf("over there: %d %v", got.StatusCode, got.Header)
	}
}

// TestShardsForwardTheTaker: a token is known to the shard that issued it; the other
// shard gets its owner.
func TestShardsForwardTheTaker(t *testing.T) {
	t.Parallel()
	eu, us := startShards(t, func(_, us *shardRig) { us.deps.Handshake = nil })
	body := strings.ReplaceAll(buildBody, "T7", "T1000000007")
	if got, text := us.send(t, postText(terms.PathBuild, body, bearer)); got.StatusCode != 403 {
		t.Fatalf("a token that it does not know: %d %s", got.StatusCode, text)
	}
	if got, text := eu.send(t, postText(terms.PathBuild, body, bearer)); got.StatusCode != 200 {
		t.Errorf("with a token of ours: %d %s", got.StatusCode, text)
	}
	if got, text := eu.send(t, postText(terms.PathBuild, body, "Authorization: Bearer nobodys")); got.StatusCode != 403 {
		t.Errorf("with nobody's: %d %s", got.StatusCode, text)
	}
	if r, ok := us.desk.Last().(*rfq.TakeClaim); !ok || r.Wallet != takerKey() {
		t.Errorf("asked %+v", us.desk.Last())
	}
}

// TestInternalRequestsAreSigned: outsiders cannot pass for a gateway, and no request
// is forwarded twice.
func TestInternalRequestsAreSigned(t *testing.T) {
	t.Parallel()
	eu, us := startShards(t, nil)
	const target = "/api/v1/market/ticker?symbol=XSLUSD/USDC"
	for name, lines := range map[string][]string{
		"not signed":  {internalHeader + ": v1 1 2 1 192.0.2.1 -"},
		"empty":       {internalHeader + ":"},
		"wrong mac":   {internalHeader + ": v1 1 2 1 192.0.2.1 - " + strings.Repeat("0", 64)},
		"short mac":   {internalHeader + ": v1 1 2 1 192.0.2.1 - 00"},
		"no mac":      {internalHeader + ": v1 1 2 1 192.0.2.1 - " + strings.Repeat("g", 64)},
		"endless":     {internalHeader + ": " + strings.Repeat("v1 ", maxInternalHeader)},
		"said twice":  {internalHeader + ": v1", internalHeader + ": v1"},
		"odd letters": {strings.ToLower(internalHeader) + ": v1 1 2 1 ::1 -"},
	} {
		for _, r := range []*shardRig{eu, us} {
			got, body := r.get(t, target, lines...)
			if e := gatewaytest.DecodeError(t, body); got.StatusCode != 400 || e.Code != wire.CodeInvalidField || e.Field != internalHeader {
				t.Errorf("%s: %d %s", name, got.StatusCode, body)
			}
		}
	}
	for _, path := range []string{pathPartialDesk, pathPartialFacts, pathPartials + "x"} {
		if got, body := us.get(t, path); got.StatusCode != 404 || gatewaytest.DecodeError(t, body).Code != wire.CodeUnknownRoute {
			t.Errorf("%s for a client: %d %s", path, got.StatusCode, body)
		}
	}
	// A forged client changes nothing either.
	if got, _ := eu.get(t, target, "X-Forwarded-For: 203.0.113.9", "X-Group: eu"); got.StatusCode != 200 {
		t.Errorf("%d", got.StatusCode)
	}
}

// TestShardOfAnotherVersion: a document of an unknown version is logged and not used.
func TestShardOfAnotherVersion(t *testing.T) {
	t.Parallel()
	newer := shardwire.AppendDesk(nil, testPartialDesk(gatewaytest.FixedView()))
	newer[4]++
	var log syncText
	eu := beside(t, func(eu *shardRig) { eu.o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(newer)
	})
	await.True(t, "the version to be logged", func() bool {
		return strings.Contains(log.String(), fmt.Sprintf("shard document has version %d, this program reads version %d", shardwire.Version+1, shardwire.Version))
	})
	if to := eu.g.shards.all[0]; to.last.desk.Load() != nil || to.last.facts.Load() != nil {
		t.Error("it is shown")
	}
}

// TestShardsThatDisagree: two shards that each believe the other has a symbol do not
// forward for ever, and the client gets no definite answer.
func TestShardsThatDisagree(t *testing.T) {
	t.Parallel()
	eu, _ := startShards(t, func(eu, us *shardRig) {
		stranger := market.Instrument{
			Symbol: "A/B", Base: "A", Quote: "B", Source: market.Matched, Tick: 1, Lot: 1, MinQty: 1, MaxQty: 10, MaxPrice: 10,
		}
		for _, g := range []struct {
			of    *shardRig
			other int
		}{{eu, 1}, {us, 0}} {
			g.of.o.Shards.All[g.other].Instruments = append(g.of.o.Shards.All[g.other].Instruments, stranger)
		}
	})
	got, body := eu.get(t, "/api/v1/market/ticker?symbol=A/B")
	if e := gatewaytest.DecodeError(t, body); got.StatusCode != 502 || e.Code != wire.CodeGroupUnreachable || e.Reason != "bad_answer" || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.StatusCode, body)
	}
}

// TestShardsWithOtherSecrets: a shard with another secret is refused.
func TestShardsWithOtherSecrets(t *testing.T) {
	t.Parallel()
	eu, _ := startShards(t, func(_, us *shardRig) { us.o.Shards.Secret = bytes.Repeat([]byte{8}, minShardSecret) })
	got, body := eu.get(t, "/api/v1/market/ticker?symbol=XSLUSD/USDC")
	if e := gatewaytest.DecodeError(t, body); got.StatusCode != 502 || e.Code != wire.CodeGroupUnreachable {
		t.Errorf("%d %s", got.StatusCode, body)
	}
}

// TestShardsThatFail: the answers of a scripted node, and what the client gets.
func TestShardsThatFail(t *testing.T) {
	t.Parallel()
	const read = "/api/v1/market/ticker?symbol=XSLUSD/USDC"
	write := postText(rfqapi.PathRFQ+"quote", quoteOf(usTicket))
	answer := func(status int, body string, more ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if isPartialRequest(r) {
				w.WriteHeader(404)
				return
			}
			for i := 0; i < len(more); i += 2 {
				w.Header().Set(more[i], more[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	slow := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}
	id := wire.NewRequestIDs().Next()
	none := redirectToLeader(leadership.Leader{}, wire.OnBase, nil)
	leaderless := string(none.Append(nil, &id))
	none.Reason = "outcome_unknown"
	unknown := string(none.Append(nil, &id))
	for name, c := range map[string]struct {
		nodes                  []http.HandlerFunc
		status, posted         int
		code, reason, onWrites string
	}{
		"nobody":     {nil, 503, 503, wire.CodeGroupUnreachable, "no_answer", "no_answer"},
		"slow":       {[]http.HandlerFunc{slow}, 503, 503, wire.CodeGroupUnreachable, "no_answer", "outcome_unknown"},
		"huge":       {[]http.HandlerFunc{answer(200, strings.Repeat("x", maxShardAnswer+1))}, 502, 503, wire.CodeGroupUnreachable, "bad_answer", "outcome_unknown"},
		"limits":     {[]http.HandlerFunc{answer(429, `{}`)}, 502, 502, wire.CodeGroupUnreachable, "bad_answer", "bad_answer"},
		"misrouted":  {[]http.HandlerFunc{answer(421, `{}`)}, 502, 502, wire.CodeGroupUnreachable, "bad_answer", "bad_answer"},
		"sends away": {[]http.HandlerFunc{answer(307, ``, "Location", "http://attacker.example/api")}, 502, 502, wire.CodeGroupUnreachable, "bad_answer", "bad_answer"},
		"leaderless": {[]http.HandlerFunc{answer(503, leaderless)}, 503, 503, wire.CodeLeaderChanged, "", ""},
		"unknown": {
			[]http.HandlerFunc{answer(503, unknown)},
			503, 503, wire.CodeLeaderChanged, "outcome_unknown", "outcome_unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eu := beside(t, func(eu *shardRig) {
				if name == "slow" {
					eu.o.Shards.Timeout = 500 * time.Millisecond
				}
			}, c.nodes...)
			got, body := eu.get(t, read)
			if e := gatewaytest.DecodeError(t, body); got.StatusCode != c.status || e.Code != c.code || e.Reason != c.reason {
				t.Errorf("read: %d %.300s", got.StatusCode, body)
			}
			if got, body = eu.send(t, write); got.StatusCode != c.posted || gatewaytest.DecodeError(t, body).Reason != c.onWrites {
				t.Errorf("write: %d %.300s", got.StatusCode, body)
			}
		})
	}
}

// TestShardsFollowTheLeader: the leader is found among the nodes, a write is sent to
// each until one accepts it, and nodes that redirect to each other are given up after
// maxForwards.
func TestShardsFollowTheLeader(t *testing.T) {
	t.Parallel()
	var first, second atomic.Int64
	var leader, other atomic.Pointer[string] // a URL: that node sends there
	done := func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) }
	to := func(url *atomic.Pointer[string], count *atomic.Int64, leads http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			// Parts are asked for beside, and a node that does not lead sends them on as well.
			part, at := isPartialRequest(r), url.Load()
			if !part {
				count.Add(1)
			}
			switch {
			case at != nil:
				w.Header().Set("Location", *at+r.URL.String())
				w.WriteHeader(307)
			case part:
				w.WriteHeader(404)
			default:
				leads(w, r)
			}
		}
	}
	eu := beside(t, nil, to(&leader, &first, done), to(&other, &second, done))
	nodes := eu.o.Shards.All[1].Nodes
	leader.Store(&nodes[1].Base)
	for range 2 {
		if got, body := eu.send(t, postText(rfqapi.PathRFQ+"quote", quoteOf(usTicket))); got.StatusCode != 200 || string(body) != `{"ok":true}` {
			t.Fatalf("%d %s", got.StatusCode, body)
		}
	}
	// A part may have found the leader before, and then the follower is not asked.
	if first.Load() > 1 || second.Load() != 2 {
		t.Errorf("%d times the follower, %d times the leader", first.Load(), second.Load())
	}
	before := first.Load() + second.Load()
	other.Store(&nodes[0].Base)
	if got, body := eu.send(t, postText(rfqapi.PathRFQ+"quote", quoteOf(usTicket))); got.StatusCode != 503 || gatewaytest.DecodeError(t, body).Reason != "no_answer" {
		t.Errorf("%d %s", got.StatusCode, body)
	}
	if more := first.Load() + second.Load() - before; more < 2 || more > maxForwards {
		t.Errorf("asked %d times more, at most %d", more, maxForwards)
	}
}

// TestShardLimits: a request above MaxOpen is refused at once; a body above the limit
// is not forwarded.
func TestShardLimits(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 16), make(chan struct{})
	eu := beside(t, func(eu *shardRig) { eu.o.Shards.MaxOpen = 2 }, func(w http.ResponseWriter, r *http.Request) {
		if isPartialRequest(r) {
			w.WriteHeader(404)
			return
		}
		entered <- struct{}{}
		<-release
	})
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo)
	const target = "/api/v1/market/ticker?symbol=XSLUSD/USDC"
	answered := make(chan int, 2)
	for range 2 {
		go func() {
			got, _ := eu.get(t, target)
			answered <- got.StatusCode
		}()
	}
	for range 2 {
		await.Receive(t, "as many requests as may be under way", entered)
	}
	got, body := eu.get(t, target)
	if e := gatewaytest.DecodeError(t, body); got.StatusCode != 503 || e.Code != wire.CodeOverloaded || e.Reason != "group" {
		t.Errorf("one more: %d %s", got.StatusCode, body)
	}
	letGo()
	if a, b := <-answered, <-answered; a != 200 || b != 200 {
		t.Errorf("those before: %d %d", a, b)
	}
	long := strings.Replace(quoteOf(usTicket), `"rail"`, `"x":"`+strings.Repeat("x", wire.DefaultMaxBodyBytes)+`","rail"`, 1)
	if got, _ := eu.send(t, postText(rfqapi.PathRFQ+"quote", long)); got.StatusCode != 413 || len(entered) != 0 {
		t.Errorf("a body over the limit: %d", got.StatusCode)
	}
	for _, bad := range []string{`{`, `[]`, `{"order_id":7}`, `{"order_id":"T1000000007"} x`, `{"order_id":"` + strings.Repeat("T", 100) + `"}`, ``} {
		got, _ := eu.send(t, postText(rfqapi.PathRFQ+"quote", bad))
		if got.StatusCode != 400 || got.Header.Get("X-Group") != "eu" {
			t.Errorf("%q: %d %v", bad, got.StatusCode, got.Header)
		}
	}
}

// TestShardStreams: a stream of another shard's symbols is redirected; one of both
// shards is not.
func TestShardStreams(t *testing.T) {
	t.Parallel()
	eu, us := startShards(t, nil)
	const path = "/api/v1/market/stream?symbols="
	got, body := eu.get(t, path+"XSLUSD/USDC,X92C/SLUSD")
	if got.StatusCode != 307 || got.Header.Get("Location") != "http://"+us.o.Base+path+"XSLUSD/USDC,X92C/SLUSD" || gatewaytest.DecodeError(t, body).Code != wire.CodeOtherGroup {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, body)
	}
	if got, _ := eu.get(t, path+"XSLUSD/USDC,SLUSD/USDC"); got.StatusCode != 200 {
		t.Errorf("of both: %d: that is the feed's to say", got.StatusCode)
	}
}

// TestShardLists: merged lists have the data of all shards. An unreachable shard is
// left out and named.
func TestShardLists(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64 // it stands still, so that what was seen once is not too old
	clock.Store(int64(time.Hour))
	eu, us := startShards(t, func(eu, _ *shardRig) { eu.o.Clock = clock.Load })
	eu.awaitMerged(t, true)
	us.awaitMerged(t, true)
	lists := []string{
		"/api/v1/market/symbols", rfqapi.PathTickets, rfqapi.PathCompact, rfqapi.PathPairs, rfqapi.PathTokens, rfqapi.PathBoard, rfqapi.PathSellable,
		"/api/v1/market/pairs", "/api/v1/market/adapters/coingecko/tickers",
	}
	for _, path := range lists {
		got, body := eu.get(t, path)
		line := got.Header.Get("X-Groups")
		if got.StatusCode != 200 || !strings.HasPrefix(line, "eu, us;age_ms=") {
			t.Errorf("%s: %d %q", path, got.StatusCode, line)
		}
		if path != rfqapi.PathSellable && path != rfqapi.PathTokens && (!bytes.Contains(body, []byte("XSLUSD")) || !bytes.Contains(body, []byte(`"SLUSD`))) {
			t.Errorf("%s has not both: %.400s", path, body)
		}
	}
	if _, body := eu.get(t, rfqapi.PathTickets); !bytes.Contains(body, []byte(`"order_id":"T7"`)) || !bytes.Contains(body, []byte(`"order_id":"T1000000007"`)) {
		t.Errorf("tickets: %.600s", body)
	}
	// The desk's own text channel has its own tickets alone.
	eu.g.Tickets(func(in market.InstrumentID, id market.TicketID, _ []byte) {
		if int(in) >= eu.books.Set.Len() || id.Shard() != 1 {
			t.Errorf("ticket %d of instrument %d", id, in)
		}
	})
	us.stop()
	clock.Add(int64(time.Hour))
	for _, path := range lists {
		got, body := eu.get(t, path)
		if line := got.Header.Get("X-Groups"); got.StatusCode != 200 || line != "eu, us;unreachable" {
			t.Errorf("%s: %d %q", path, got.StatusCode, line)
		}
		if bytes.Contains(body, []byte("T1000000007")) {
			t.Errorf("%s still offers: %.400s", path, body)
		}
	}
	if _, body := eu.get(t, "/api/v1/market/symbols"); bytes.Count(body, []byte(`"status":"unknown"`)) != 3 {
		t.Errorf("symbols: %s", body)
	}
}
