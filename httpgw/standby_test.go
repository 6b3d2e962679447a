package httpgw

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/desk"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/gatewaytest"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist/leadership"
)

var theLeader = leadership.Leader{ID: "b", Base: "http://10.0.0.2:8080", API: "https://api.example", WS: "ws://10.0.0.2:8081", FIX: "10.0.0.2:9878"}

// startStandby runs a standby until the test ends. It allows slow clients unless o
// says otherwise.
func startStandby(t *testing.T, o StandbyOptions) (*Standby, func()) {
	t.Helper()
	for _, d := range []*time.Duration{&o.ReadTimeout, &o.WriteTimeout, &o.IdleTimeout, &o.CloseTimeout} {
		*d = cmp.Or(*d, runtest.HangTimeout)
	}
	o.Base, o.API, o.WS = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	s, err := NewStandby(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, runtest.Start(t, s.Run)
}

// TestStandby: the answer of each address to each kind of request, with and without a
// known leader.
func TestStandby(t *testing.T) {
	leader := theLeader
	var known atomic.Pointer[leadership.Leader]
	known.Store(&leader)
	s, _ := startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return *known.Load() }})
	const post = "Content-Type: application/json\r\nContent-Length: 2\r\n"
	for _, c := range []struct {
		addr                    net.Addr
		method, target, headers string
		status                  int
		location                string
	}{
		{s.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD%2FUSDC&limit=5", "", 307, "http://10.0.0.2:8080/api/v1/market/depth?symbol=SLUSD%2FUSDC&limit=5"},
		{s.BaseAddr(), "HEAD", "/", "", 307, "http://10.0.0.2:8080/"},
		{s.BaseAddr(), "POST", rfqapi.PathRFQ + "quote", post, 307, "http://10.0.0.2:8080" + rfqapi.PathRFQ + "quote"},
		{s.BaseAddr(), "POST", rfqapi.PathRFQ + "quote", post + "Expect: 100-continue\r\n", 307, "http://10.0.0.2:8080" + rfqapi.PathRFQ + "quote"},
		{s.APIAddr(), "GET", "/api/v1/market/stream?symbol=X", "", 307, "https://api.example/api/v1/market/stream?symbol=X"},
		{s.WSAddr(), "GET", pathWebSocket, "", 307, "http://10.0.0.2:8081" + pathWebSocket},
		{s.BaseAddr(), "GET", "//evil.example/x", "", 307, "http://10.0.0.2:8080//evil.example/x"},
		{s.BaseAddr(), "GET", "/@evil.example", "", 307, "http://10.0.0.2:8080/@evil.example"},
		{s.BaseAddr(), "GET", "http://evil.example/x?y", "", 307, "http://10.0.0.2:8080/x?y"},
		{s.BaseAddr(), "GET", "/%0d%0aSet-Cookie:x", "", 307, "http://10.0.0.2:8080/%0d%0aSet-Cookie:x"},
		{s.BaseAddr(), "GET", "/\\evil.example", "", 404, ""},
		{s.BaseAddr(), "GET", "/\x7f\x01", "", 400, ""},
		{s.BaseAddr(), "GET", "/\xc3\xa9", "", 404, ""},
		{s.BaseAddr(), "GET", "@evil.example/", "", 400, ""},
		{s.BaseAddr(), "OPTIONS", rfqapi.PathRFQ + "quote", "", 204, ""},
		{s.BaseAddr(), "DELETE", "/", "", 405, ""},
		{s.BaseAddr(), "POST", "/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", 400, ""},
	} {
		name := c.method + " " + c.target
		if strings.HasPrefix(c.headers, "Content-Type") && !strings.Contains(c.headers, "Expect") {
			c.headers += "\r\n{}"
		}
		resp, body := gatewaytest.Do(t, c.addr, c.method, c.target, c.headers)
		if resp.StatusCode != c.status || resp.Header.Get("Location") != c.location {
			t.Errorf("%s: status %d, location %q, want %d %q", name, resp.StatusCode, resp.Header.Get("Location"), c.status, c.location)
			continue
		}
		checkHeaders(t, name, resp.Header)
		if c.status != 307 || c.method == "HEAD" {
			continue
		}
		e := gatewaytest.DecodeError(t, body)
		if e.Code != wire.CodeLeaderChanged || e.Leader == nil || e.Leader.ID != "b" || !strings.HasPrefix(c.location, e.Leader.URL+"/") ||
			resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v %s", name, resp.Header, body)
		}
	}
	for name, l := range map[string]leadership.Leader{
		"none": {}, "no address of this kind": {ID: "b", API: "http://x"}, "no URL": {ID: "b", Base: "10.0.0.2:8080"},
		"a header more": {ID: "b", Base: "http://x\r\nSet-Cookie: y"}, "another scheme": {ID: "b", Base: "javascript://x"},
	} {
		known.Store(&l)
		resp, body := gatewaytest.Do(t, s.BaseAddr(), "GET", "/", "")
		if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 503 || e.Code != wire.CodeLeaderChanged || e.Leader != nil ||
			resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Location") != "" {
			t.Errorf("%s: status %d %v: %s", name, resp.StatusCode, resp.Header, body)
		}
	}
	if n := s.metrics.panics; counted(t, n) != 0 {
		t.Error("a handler has panicked")
	}
}

// TestStandbyWebSocket: the handshake completes, and the close names the leader.
func TestStandbyWebSocket(t *testing.T) {
	long := theLeader
	long.WS = "ws://" + strings.Repeat("h", MaxCloseReason)
	fits := theLeader
	fits.WS = "ws://" + strings.Repeat("h", MaxCloseReason-len("LEADER_CHANGED: ws:///ws/rfq"))
	for name, c := range map[string]struct {
		leader leadership.Leader
		reason string
	}{
		"known":    {theLeader, "LEADER_CHANGED: ws://10.0.0.2:8081/ws/rfq"},
		"unknown":  {leadership.Leader{}, "LEADER_CHANGED"},
		"too long": {long, "LEADER_CHANGED"},
		"fits":     {fits, "LEADER_CHANGED: " + fits.WS + "/ws/rfq"},
	} {
		s, _ := startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return c.leader }})
		conn, resp, err := websocket.DefaultDialer.Dial("ws://"+s.WSAddr().String()+pathWebSocket, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id := resp.Header.Get("X-Request-Id"); !gatewaytest.RequestIDForm.MatchString(id) {
			t.Errorf("%s: headers %v", name, resp.Header)
		}
		_ = conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
		_, _, err = conn.ReadMessage()
		var closed *websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.CloseServiceRestart || closed.Text != c.reason {
			t.Errorf("%s: %v", name, err)
		}
		_ = conn.Close()
		await.Equal(t, "the number of connections", 0, s.conns.Count)
	}
	s, _ := startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return theLeader }})
	resp, body := gatewaytest.Do(t, s.WSAddr(), "GET", pathWebSocket, "Connection: Upgrade\r\nUpgrade: websocket\r\n")
	if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 400 || e.Reason != "websocket_upgrade" {
		t.Errorf("no key: status %d %s", resp.StatusCode, body)
	}
}

// TestStandbyLimits: connections are counted, including closing WebSockets, and slow
// senders are answered in time.
func TestStandbyLimits(t *testing.T) {
	s, _ := startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return theLeader }, Options: Options{MaxConns: 2}})
	waiting, _, err := websocket.DefaultDialer.Dial("ws://"+s.BaseAddr().String()+pathWebSocket, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	idle, err := net.Dial("tcp", s.APIAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	await.Equal(t, "the number of connections", 2, s.conns.Count)
	resp, body := gatewaytest.Do(t, s.BaseAddr(), "GET", "/", "")
	if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 503 || e.Code != wire.CodeOverloaded || e.Reason != "connections" {
		t.Errorf("one more: status %d: %s", resp.StatusCode, body)
	}

	s, _ = startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return theLeader }, CloseTimeout: 50 * time.Millisecond})
	mute, _, err := websocket.DefaultDialer.Dial("ws://"+s.BaseAddr().String()+pathWebSocket, nil) // reads no close
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	await.Equal(t, "the number of connections", 0, s.conns.Count)

	s, _ = startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return theLeader }, Options: Options{ReadTimeout: 300 * time.Millisecond}})
	silent, err := net.Dial("tcp", s.WSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	slow, err := net.Dial("tcp", s.APIAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nX"); err != nil {
		t.Fatal(err)
	}
	_ = slow.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	if all, err := io.ReadAll(slow); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 408 ") {
		t.Errorf("slow: %q, %v", all, err)
	}
	await.Equal(t, "the number of connections", 0, s.conns.Count) // the silent one has had its time too
}

// TestStandbyEnds: Run ends at once whatever is open, and frees its addresses.
func TestStandbyEnds(t *testing.T) {
	s, stop := startStandby(t, StandbyOptions{Leader: func() leadership.Leader { return theLeader }})
	idle, err := net.Dial("tcp", s.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+s.WSAddr().String()+pathWebSocket, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	await.Equal(t, "the number of connections", 2, s.conns.Count)
	stop()
	if n := s.conns.Count(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	again, err := net.Listen("tcp", s.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

// TestStandbyOptions: options that are refused.
func TestStandbyOptions(t *testing.T) {
	if _, err := NewStandby(StandbyOptions{}); err == nil {
		t.Error("no leader function")
	}
	if _, err := NewStandby(StandbyOptions{Leader: func() leadership.Leader { return leadership.Leader{} }, Options: Options{MaxConns: -1}}); err == nil {
		t.Error("a limit below 1")
	}
}

// FuzzRedirectTarget: a Location is one line and names the configured host, whatever the
// target.
func FuzzRedirectTarget(f *testing.F) {
	for _, seed := range []string{"/", "//evil/x", "/@evil", "\\evil", "/a?b#c", "/\r\nX: y", ".evil", ":80@evil/", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := redirectToLeader(theLeader, wire.OnAPI, raw)
		if p.Location == "" {
			if p.Status != 404 {
				t.Fatalf("%q: status %d", raw, p.Status)
			}
			return
		}
		if strings.ContainsAny(p.Location, "\r\n\x00 ") || p.Location != theLeader.API+string(raw) {
			t.Fatalf("%q: location %q", raw, p.Location)
		}
		if u, err := url.Parse(p.Location); err == nil && (u.Host != "api.example" || u.User != nil || u.Scheme != "https") {
			t.Fatalf("%q: location %q", raw, p.Location)
		}
	})
}

// followerLeadership is the leadership of a follower.
func followerLeadership(known leadership.Leader) *leadership.Leadership {
	return &leadership.Leadership{Leader: func() leadership.Leader { return known }, ReadOnly: true}
}

// TestReadOnly: a follower answers what its views have and redirects the rest to the
// leader, route by route.
func TestReadOnly(t *testing.T) {
	w := newWriter(t, nil)
	w.g.opts.Leadership = followerLeadership(theLeader)
	leaders := map[string]bool{
		"POST " + rfqapi.PathRFQ + "quote": true, "POST " + rfqapi.PathNativeModular: true, "POST " + rfqapi.PathModular: true, "POST " + rfqapi.PathNativeAtomic: true,
		"POST " + rfqapi.PathAtomic: true, "POST " + rfqapi.PathNativeVerify: true, "POST " + rfqapi.PathAliasVerify: true, "POST " + rfqapi.PathFallbackVerify: true,
		"POST " + terms.PathHandshake: true, "POST " + terms.PathBuild: true, "POST " + terms.PathSubmit: true,
		"GET " + rfqapi.PathRFQ + "claims/{claim_id}": true, "GET " + rfqapi.PathRFQ + "claims/{claim_id}/transaction": true,
		"GET " + rfqapi.PathRFQ + "claims/{claim_id}/pay": true, "POST " + rfqapi.PathRFQ + "claims/{claim_id}/pay": true, "GET " + rfqapi.PathTrades: true,
		"GET " + terms.PathBuilds + terms.BuildSegment: true,
		"GET " + rfqapi.PathStatus:                     true, "GET " + rfqapi.PathDeskStatus: true,
	}
	seen := 0
	deps := testDependencies()
	deps.Desk = w.desk
	for _, r := range w.g.routes(deps) {
		name := wire.MethodNames[r.Method] + " " + r.Path
		if r.LeaderOnly != leaders[name] || r.Post != nil && !r.LeaderOnly {
			t.Errorf("%s: leader %t", name, r.LeaderOnly)
		}
		if r.Raw != nil || r.Stream != nil {
			continue
		}
		seen++
		path, query, _ := strings.Cut(strings.NewReplacer("{claim_id}", gatewaytest.ClaimText(78), terms.BuildSegment, "B1", marketapi.PoolSegment, "P1").Replace(r.Path), "?")
		for i, on := range []wire.Surface{wire.OnBase, wire.OnAPI, wire.OnWS} {
			if r.On&on == 0 {
				continue
			}
			raw := wire.MethodNames[r.Method] + " " + path + "?" + query + " HTTP/1.1\r\nHost: x\r\n\r\n"
			if r.Post != nil {
				raw = postText(path, "no JSON, which is for the leader to say")
			}
			got := do(t, w.handlers[i], raw)
			if (got.status == 307) != (r.LeaderOnly || r.NotOnFollower) {
				t.Errorf("%s %s: status %d: %.200s", wire.SurfaceNames[on], name, got.status, got.body)
			}
			if got.status == 307 && !strings.HasPrefix(got.header.Get("Location"), urlOf(theLeader, on, false)+path) {
				t.Errorf("%s %s: location %q", wire.SurfaceNames[on], name, got.header.Get("Location"))
			}
		}
	}
	if seen < len(leaders) || w.desk.Last() != nil {
		t.Errorf("%d routes, desk asked %v", seen, w.desk.Last())
	}
	// The history of a follower begins where it has joined, and it reads no chain.
	for _, path := range []string{marketapi.PathMarket + "status", marketapi.PathMarket + "tokenlist", marketapi.PathPools + strings.Repeat("1", 32), site.PathWallet} {
		if got := do(t, w.handlers[0], "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); got.status != 307 {
			t.Errorf("the document %s: status %d", path, got.status)
		}
	}
	w.g.opts.Leadership = followerLeadership(leadership.Leader{})
	if got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody); got.status != 503 || gatewaytest.DecodeError(t, got.body).Code != wire.CodeLeaderChanged {
		t.Errorf("no leader: status %d: %s", got.status, got.body)
	}
}

// leaderOnlyHistory is the History of a follower that has just joined.
type leaderOnlyHistory struct{ marketapi.History }

func (leaderOnlyHistory) Trades(market.InstrumentID, market.TradeID, int) ([]marketdata.Trade, error) {
	return nil, fmt.Errorf("since noon: %w", marketapi.ErrLeaderOnly)
}

func (leaderOnlyHistory) Candles(market.InstrumentID, archive.Interval, int64, int) ([]archive.Candle, error) {
	return nil, fmt.Errorf("since noon: %w", marketapi.ErrLeaderOnly)
}
func (leaderOnlyHistory) Version() uint64 { return 1 }
func (leaderOnlyHistory) Cursor() uint64  { return 1 }

// TestLeaderOnlyHistory: history that a follower does not have is redirected with the
// unchanged path and query, or refused if the leader is unknown.
func TestLeaderOnlyHistory(t *testing.T) {
	deps := testDependencies()
	deps.Desk, deps.History = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}, leaderOnlyHistory{}
	w := newWriterOf(t, deps)
	for name, leader := range map[string]leadership.Leader{"a leader": theLeader, "none": {}} {
		w.g.opts.Leadership = followerLeadership(leader)
		for _, path := range []string{
			"/api/v1/market/klines?symbol=SLUSD/USDC&limit=7", "/api/v1/market/candles", "/api/v1/market/trades?symbol=SLUSD/USDC&before=3",
		} {
			got := do(t, w.handlers[0], "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n")
			if leader.ID == "" && (got.status != 503 || gatewaytest.DecodeError(t, got.body).Code != wire.CodeLeaderChanged) ||
				leader.ID != "" && (got.status != 307 || got.header.Get("Location") != theLeader.Base+path) {
				t.Errorf("%s, %s: status %d: %v", name, path, got.status, got.header)
			}
		}
	}
}

// TestBarrier: a claim is served once a majority confirms that this node leads, and
// otherwise redirected.
func TestBarrier(t *testing.T) {
	w := newWriter(t, nil)
	var leads error
	asked := 0
	w.g.opts.Leadership = &leadership.Leadership{
		Leader:  func() leadership.Leader { return theLeader },
		Deposed: func() bool { return false },
		Barrier: func() error { asked++; return leads },
	}
	get := func(path string) reply { return do(t, w.handlers[0], "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n") }
	claim := claimsPath + gatewaytest.ClaimText(78)
	if got := get(claim); got.status != http.StatusNotFound || asked != 1 {
		t.Fatalf("status %d after %d questions: %s", got.status, asked, got.body)
	}
	leads = errors.New("nobody confirms")
	got := get(claim)
	if got.status != http.StatusTemporaryRedirect || got.header.Get("Location") != theLeader.Base+claim {
		t.Fatalf("status %d: %v", got.status, got.header)
	}
	w.g.opts.Leadership.Barrier = func() error { t.Error("the market is no secret of the leader's"); return nil }
	get("/api/v1/market/symbols")
}

// TestDeposed: the answers of a deposed leader to requests with unknown outcomes.
func TestDeposed(t *testing.T) {
	unknown := errors.Join(desk.ErrReadOnly, desk.ErrUnknown)
	for name, c := range map[string]struct {
		over         bool
		err          error
		status       int
		code, reason string
	}{
		"journal failed under it":    {true, unknown, 503, wire.CodeLeaderChanged, "outcome_unknown"},
		"before the term is over":    {false, unknown, 503, wire.CodeLeaderChanged, "outcome_unknown"},
		"stopped under it":           {false, errors.Join(desk.ErrStopped, desk.ErrUnknown), 503, wire.CodeLeaderChanged, "outcome_unknown"},
		"stopped before it":          {false, desk.ErrStopped, 503, wire.CodeLeaderChanged, "outcome_unknown"},
		"a store has gone":           {true, errors.New("not the leader"), 503, wire.CodeLeaderChanged, "outcome_unknown"},
		"too slow, and still leads":  {false, desk.ErrTimeout, 503, wire.CodeOverloaded, "outcome_unknown"},
		"full, and still leads":      {false, desk.ErrReadOnly, 503, wire.CodeReadOnly, ""},
		"a conflict is one for good": {true, desk.ErrConflict, 409, wire.CodeIdempotencyConflict, ""},
	} {
		w := newWriter(t, nil)
		var asked atomic.Bool // the leader is deposed while the desk works
		w.g.opts.Leadership = &leadership.Leadership{
			Leader:  func() leadership.Leader { return theLeader },
			Deposed: func() bool { return c.over && asked.Load() },
			Barrier: func() error { return nil },
		}
		w.desk.Result = func(rfq.Request) (*desk.Result, error) { asked.Store(true); return nil, c.err }
		got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody)
		e := gatewaytest.DecodeError(t, got.body)
		if got.status != c.status || e.Code != c.code || e.Reason != c.reason || got.header.Get("Location") != "" {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
		if c.code == wire.CodeLeaderChanged && (e.Leader == nil || e.Leader.URL != theLeader.Base || got.header.Get("Retry-After") != "1") {
			t.Errorf("%s: %v %s", name, got.header, got.body)
		}
		if !c.over {
			continue
		}
		// Later bytes are forwarded unread.
		if got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody); got.status != http.StatusTemporaryRedirect {
			t.Errorf("%s, the next: status %d: %s", name, got.status, got.body)
		}
	}
}
