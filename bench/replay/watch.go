package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/bench/flow"
	"blockdesk/market"
)

// expected is a row whose book has not been compared yet.
type expected struct {
	row     int
	seq     uint64
	unaided bool
}

// state is the best levels that the feed showed after engine_seq.
type state struct {
	seq        uint64
	bids, asks []flow.LobsterLevel
}

// watcher follows the feed of one symbol and compares its book with the rows.
type watcher struct {
	opts Options
	conn *websocket.Conn
	done chan struct{}

	mu      sync.Mutex // guards all below
	changed *sync.Cond
	book    [2]map[int64]int64
	last    state // what the feed shows now
	chain   uint64
	rows    []expected
	result  Result
	err     error
}

type feedMessage struct {
	Channel   string      `json:"channel"`
	Type      string      `json:"type"`
	Seq       uint64      `json:"seq"`
	PrevSeq   uint64      `json:"prev_seq"`
	EngineSeq uint64      `json:"engine_seq"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
}

func newWatcher(o Options) *watcher {
	w := &watcher{opts: o}
	w.changed = sync.NewCond(&w.mu)
	return w
}

func (w *watcher) connect(ctx context.Context) error {
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, w.opts.WSURL, nil)
	if err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	subscribe, err := json.Marshal(map[string]any{
		"action": "SUBSCRIBE_MARKET", "channels": []string{"l2"}, "symbols": []string{w.opts.Symbol}, "depth": 25, "id": "play",
	})
	if err != nil {
		return err
	}
	if err := conn.WriteMessage(websocket.TextMessage, subscribe); err != nil {
		return fmt.Errorf("feed: %w", err)
	}
	w.mu.Lock()
	w.conn, w.done, w.chain = conn, make(chan struct{}), 0
	w.mu.Unlock()
	go w.run(conn, w.done)
	return w.waitFor(func() bool { return w.chain > 0 }, "first snapshot")
}

func (w *watcher) close() {
	if w == nil || w.conn == nil {
		return
	}
	w.conn.Close()
	<-w.done
}

func (w *watcher) run(conn *websocket.Conn, done chan struct{}) {
	defer close(done)
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return // closed, by us or by the server; waitFor has the timeout
		}
		var m feedMessage
		if err := json.Unmarshal(data, &m); err != nil {
			w.fail(fmt.Errorf("feed: %w", err))
			return
		}
		if m.Channel == "l2" && (m.Type == "snapshot" || m.Type == "update") {
			if err := w.apply(&m); err != nil {
				w.fail(err)
				return
			}
		}
	}
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
	w.changed.Broadcast()
}

func (w *watcher) apply(m *feedMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge(m.EngineSeq)
	if m.Type == "snapshot" {
		w.book = [2]map[int64]int64{{}, {}}
		w.result.Snapshots++
	} else if m.PrevSeq != w.chain {
		w.result.FeedGaps++
	}
	w.chain = m.Seq
	for side, levels := range [][][2]string{m.Bids, m.Asks} {
		for _, l := range levels {
			price, err := w.price(l[0])
			if err != nil {
				return err
			}
			size, err := market.ParseDecimal([]byte(l[1]), 0)
			if err != nil {
				return fmt.Errorf("feed: quantity %q: %w", l[1], err)
			}
			if size == 0 {
				delete(w.book[side], price)
			} else {
				w.book[side][price] = int64(size)
			}
		}
	}
	w.last = state{m.EngineSeq, best(w.book[0], market.Buy, w.opts.Levels), best(w.book[1], market.Sell, w.opts.Levels)}
	w.changed.Broadcast()
	return nil
}

func (w *watcher) price(text string) (int64, error) {
	n, err := market.ParseDecimal([]byte(text), 4)
	if err != nil {
		return 0, fmt.Errorf("feed: price %q: %w", text, err)
	}
	return int64(n), nil
}

// judge compares the rows before engine sequence number next with the current book. The
// caller holds mu.
func (w *watcher) judge(next uint64) {
	for len(w.rows) > 0 && w.rows[0].seq < next {
		e := w.rows[0]
		w.rows = w.rows[1:]
		if e.unaided {
			w.result.Unaided++
		}
		row := &w.opts.Rows[e.row]
		if same(w.last.bids, row.Bids) && same(w.last.asks, row.Asks) {
			w.result.Exact++
			if e.unaided {
				w.result.UnaidedExact++
			}
		} else if w.result.FirstWrong == "" {
			w.result.FirstWrong = fmt.Sprintf("row %d (engine_seq %d, book of %d): bids %v, recorded %v; asks %v, recorded %v",
				e.row+1, e.seq, w.last.seq, w.last.bids, row.Bids, w.last.asks, row.Asks)
		}
	}
}

func (w *watcher) expect(e expected) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.seq == 0 && len(w.rows) > 0 {
		e.seq = w.rows[len(w.rows)-1].seq // nothing was sent: the position of the row before
	} else if e.seq == 0 {
		e.seq = w.last.seq
	}
	w.rows = append(w.rows, e)
}

// settle compares all remaining rows, once the feed has shown the last of them.
func (w *watcher) settle() {
	w.mu.Lock()
	due := uint64(0)
	if n := len(w.rows); n > 0 {
		due = w.rows[n-1].seq
	}
	w.mu.Unlock()
	// A row that changed nothing in the feed's window has no message of its own.
	_ = w.waitShort(func() bool { return w.last.seq >= due })
	w.mu.Lock()
	w.judge(^uint64(0))
	w.mu.Unlock()
}

func (w *watcher) finish(_ context.Context, into *Result) error {
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	into.Exact, into.Unaided, into.UnaidedExact = w.result.Exact, w.result.Unaided, w.result.UnaidedExact
	into.FeedGaps, into.Snapshots, into.FirstWrong = w.result.FeedGaps, w.result.Snapshots, w.result.FirstWrong
	return w.err
}

func (w *watcher) waitFor(ready func() bool, what string) error {
	deadline := time.Now().Add(reportTimeout)
	wake := time.AfterFunc(reportTimeout, w.changed.Broadcast)
	defer wake.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ready() {
		if w.err != nil {
			return w.err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("feed: no %s in %v", what, reportTimeout)
		}
		w.changed.Wait()
	}
	return nil
}

func (w *watcher) waitShort(ready func() bool) bool {
	deadline := time.Now().Add(100 * time.Millisecond)
	wake := time.AfterFunc(100*time.Millisecond, w.changed.Broadcast)
	defer wake.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ready() && time.Now().Before(deadline) {
		w.changed.Wait()
	}
	return ready()
}

// checkREST reads the book over REST once the feed has shown the row, and
// compares it with the recorded one.
func (p *player) checkREST(ctx context.Context, row int, seq uint64) error {
	if !p.feed.waitShort(func() bool { return p.feed.last.seq >= seq }) {
		return nil // the row changed nothing that is shown: nothing to wait for
	}
	target := p.opts.RESTURL + "/api/v1/market/depth?limit=" + strconv.Itoa(p.opts.Levels) + "&symbol=" + url.QueryEscape(p.opts.Symbol)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	var m feedMessage
	if err := json.Unmarshal(body, &m); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("rest: status %d: %.200s", resp.StatusCode, body)
	}
	p.result.RESTChecked++
	var sides [2][]flow.LobsterLevel
	for side, levels := range [][][2]string{m.Bids, m.Asks} {
		for _, l := range levels {
			price, err := p.feed.price(l[0])
			if err != nil {
				return err
			}
			size, err := market.ParseDecimal([]byte(l[1]), 0)
			if err != nil {
				return err
			}
			sides[side] = append(sides[side], flow.LobsterLevel{Price: price, Size: int64(size)})
		}
	}
	if same(sides[0], p.opts.Rows[row].Bids) && same(sides[1], p.opts.Rows[row].Asks) {
		p.result.RESTExact++
	}
	return nil
}

func best(book map[int64]int64, side market.Side, n int) []flow.LobsterLevel {
	out := make([]flow.LobsterLevel, 0, n+1)
	for price, size := range book {
		i := len(out)
		for i > 0 && (side == market.Buy) == (price > out[i-1].Price) {
			i--
		}
		if i == n {
			continue
		}
		out = append(out, flow.LobsterLevel{})
		copy(out[i+1:], out[i:])
		out[i] = flow.LobsterLevel{Price: price, Size: size}
		out = out[:min(len(out), n)]
	}
	return out
}

func same(a, b []flow.LobsterLevel) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
