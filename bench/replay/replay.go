// Package replay sends a recorded order flow through the FIX gateway of a running
// server and compares the book that comes out of the WebSocket feed and of REST
// with the recorded true book, row by row.
//
// One order message is in flight at a time and the next waits for its report,
// so that every recorded row has a moment of its own in the feed. A report's
// ExecID begins with the engine's sequence number, and so does every feed
// message's engine_seq: this is how a row finds its book.
package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"blockdesk/bench/flow"
	"blockdesk/fixgw/fixclient"
	"blockdesk/market"
)

// Options of a run. Two participants trade, one a side, so that self-trade
// prevention has nothing to do.
type Options struct {
	Buyer, Seller fixclient.Options
	WSURL         string // ws://host:port/ws/rfq
	RESTURL       string // http://host:port
	Symbol        string
	// PriceDecimals of the instrument; recorded prices are $ × 10,000.
	PriceDecimals int
	Rows          []flow.LobsterRow
	Levels        int // levels that the recorded book has
	// RESTEvery compares REST with the true book every so many rows; 0 = never.
	RESTEvery int
	// CrashAt has row numbers in ascending order. After the first message of such a
	// row (or of the next row that has one), and before its report is read, Crash is
	// called: it kills the server and starts it again on the same addresses and data.
	CrashAt  []int
	Crash    func(row int) error
	Progress func(rows int)
}

// Result has the counts of a run.
type Result struct {
	Rows     int `json:"rows"`
	Messages int `json:"messages"` // FIX order messages sent
	Trades   int `json:"trades"`   // fills reported to takers
	// Exact rows: all levels of both sides as recorded, from the feed.
	Exact int `json:"exact"`
	// Unaided rows needed no level that the file does not have, and
	// UnaidedExact of them were exact.
	Unaided      int           `json:"unaided"`
	UnaidedExact int           `json:"unaided_exact"`
	RESTChecked  int           `json:"rest_checked"`
	RESTExact    int           `json:"rest_exact"`
	Crashes      int           `json:"crashes"`
	FeedGaps     int           `json:"feed_gaps"` // prev_seq that did not follow
	Snapshots    int           `json:"snapshots"` // from the feed, a connection's first included
	Elapsed      time.Duration `json:"elapsed_ns"`
	FirstWrong   string        `json:"first_wrong,omitempty"`
}

// reportTimeout bounds the wait for one report, and for the feed to show it.
const reportTimeout = 10 * time.Second

type player struct {
	opts    Options
	traders [2]*trader // by side - 1
	feed    *watcher
	result  Result
	orders  map[int]*orderState
}

// orderState has the current ClOrdID of an order.
type orderState struct {
	version int
	total   int64
}

// Run plays all rows. A refused message, a missing report or a broken
// connection is an error that names the row; a wrong book is counted.
func Run(ctx context.Context, o Options) (Result, error) {
	p := &player{opts: o, orders: map[int]*orderState{}}
	start := time.Now()
	if err := p.connect(ctx, false); err != nil {
		return p.result, err
	}
	defer p.close()
	planner := flow.NewPlanner()
	if _, err := p.send(ctx, planner.Start(&o.Rows[0]), -1); err != nil {
		return p.result, fmt.Errorf("first row: %w", err)
	}
	for i := 1; i < len(o.Rows); i++ {
		actions, unaided := planner.Step(&o.Rows[i-1], &o.Rows[i])
		seq, err := p.send(ctx, actions, i)
		if err != nil {
			return p.result, fmt.Errorf("row %d: %w", i+1, err)
		}
		p.feed.expect(expected{row: i, seq: seq, unaided: unaided})
		if o.RESTEvery > 0 && i%o.RESTEvery == 0 && len(actions) > 0 {
			if err := p.checkREST(ctx, i, seq); err != nil {
				return p.result, fmt.Errorf("row %d: %w", i+1, err)
			}
		}
		if o.Progress != nil {
			o.Progress(i)
		}
	}
	p.result.Rows = len(o.Rows) - 1
	if err := p.feed.finish(ctx, &p.result); err != nil {
		return p.result, err
	}
	p.result.Elapsed = time.Since(start)
	return p.result, nil
}

func (p *player) connect(ctx context.Context, again bool) error {
	for i, opts := range []fixclient.Options{p.opts.Buyer, p.opts.Seller} {
		if again {
			opts.KeepSequence = true
			opts.NextSender, opts.NextTarget = p.traders[i].client.NextSequence()
		}
		t, err := newTrader(ctx, opts)
		if err != nil {
			return fmt.Errorf("%s: %w", opts.SenderCompID, err)
		}
		p.traders[i] = t
	}
	if p.feed == nil {
		p.feed = newWatcher(p.opts)
	}
	return p.feed.connect(ctx)
}

func (p *player) close() {
	for _, t := range p.traders {
		if t != nil {
			t.close()
		}
	}
	p.feed.close()
}

// send sends each action and waits for its report; it returns the engine's
// sequence number of the last one (0 where there was none).
func (p *player) send(ctx context.Context, actions []flow.Action, row int) (uint64, error) {
	var seq uint64
	for n, a := range actions {
		msgType, body, id := p.encode(a)
		t := p.traders[a.Side-1]
		if err := t.client.Send(msgType, body); err != nil {
			return seq, err
		}
		p.result.Messages++
		if n == 0 && p.opts.Crash != nil && len(p.opts.CrashAt) > 0 && row >= p.opts.CrashAt[0] {
			p.opts.CrashAt = p.opts.CrashAt[1:]
			if err := p.crash(ctx, row); err != nil {
				return seq, err
			}
			// The order may or may not have arrived: send it again under the same
			// id, as a client does that does not know the outcome.
			t = p.traders[a.Side-1]
			if err := t.client.Send(msgType, append([]byte("97=Y\x01"), body...)); err != nil {
				return seq, err
			}
		}
		r, err := t.await(ctx, id, a.Act)
		if err != nil {
			return seq, fmt.Errorf("%s %s: %w", msgType, id, err)
		}
		p.result.Trades += r.trades
		seq = max(seq, r.seq)
	}
	return seq, nil
}

func (p *player) crash(ctx context.Context, row int) error {
	p.result.Crashes++
	p.feed.settle()
	for _, t := range p.traders {
		t.close()
	}
	p.feed.close()
	if err := p.opts.Crash(row); err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	return p.connect(ctx, true)
}

// encode returns the FIX message of an action and the ClOrdID that its report
// will carry.
func (p *player) encode(a flow.Action) (msgType string, body []byte, id string) {
	name := func(version int) string { return "P" + strconv.Itoa(a.Order) + "-" + strconv.Itoa(version) }
	st := p.orders[a.Order]
	if st == nil {
		st = &orderState{}
		p.orders[a.Order] = st
	}
	id = name(st.version)
	b := make([]byte, 0, 200)
	switch a.Act {
	case flow.Rest, flow.TakeIOC:
		msgType, st.total = "D", a.Qty
		b = append(append(append(b, "11="...), id...), '\x01')
	case flow.Shrink, flow.Remove:
		msgType = "G"
		if a.Act == flow.Remove {
			msgType = "F"
			delete(p.orders, a.Order)
		} else {
			st.total = a.Total
		}
		orig := id
		st.version++
		id = name(st.version)
		b = append(append(append(b, "41="...), orig...), '\x01')
		b = append(append(append(b, "11="...), id...), '\x01')
	}
	b = append(append(append(b, "55="...), p.opts.Symbol...), '\x01')
	b = append(b, "54="...)
	b = append(b, '0'+byte(a.Side), '\x01')
	b = time.Now().UTC().AppendFormat(append(b, "60="...), "20060102-15:04:05.000")
	b = append(strconv.AppendInt(append(b, "\x0138="...), st.total, 10), '\x01')
	if a.Act != flow.Remove {
		b = append(b, "40=2\x0144="...)
		b = append(p.appendPrice(b, a.Price), '\x01')
		if a.Act == flow.TakeIOC {
			b = append(b, "59=3\x01"...)
			delete(p.orders, a.Order)
		} else {
			b = append(b, "59=1\x01"...)
		}
	}
	return msgType, b, id
}

func (p *player) appendPrice(b []byte, price int64) []byte {
	// $ × 10,000 has four decimals; the instrument may have more, not fewer.
	return market.AppendDecimal(b, uint64(price), 4)
}

// report is the outcome of one message.
type report struct {
	seq    uint64
	trades int
}

// trader is one FIX session and the reports that came for it.
type trader struct {
	client *fixclient.Client
	cancel context.CancelFunc
	came   chan execution
	ended  chan error
}

// execution has the fields that are used of an execution report or a cancel reject.
type execution struct {
	id, execType, status, text string
	seq                        uint64
	refused                    bool
}

// traderQueue bounds the unread reports: a maker's fills arrive without a request.
const traderQueue = 1 << 16

func newTrader(ctx context.Context, o fixclient.Options) (*trader, error) {
	client, err := fixclient.Dial(ctx, o)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(ctx)
	t := &trader{client: client, cancel: cancel, came: make(chan execution, traderQueue), ended: make(chan error, 1)}
	go func() { t.ended <- client.Run(run, t.receive) }()
	return t, nil
}

func (t *trader) close() {
	t.cancel()
	<-t.ended //nolint:errcheck // await returned the end, or Close causes it
}

func (t *trader) receive(m *fixclient.Message) error {
	var e execution
	switch m.Type() {
	case "8":
		e = execution{execType: string(m.Get(150)), status: string(m.Get(39))}
		number, _, _ := strings.Cut(string(m.Get(17)), "-")
		seq, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return fmt.Errorf("ExecID %q does not begin with a number", m.Get(17))
		}
		e.seq = seq
		e.refused = e.execType == "8"
	case "9", "3", "j":
		e.refused = true
	default:
		return nil
	}
	e.id, e.text = string(m.Get(11)), string(m.Raw())
	select {
	case t.came <- e:
		return nil
	default:
		return errors.New("too many reports unread")
	}
}

// await returns after the last report of the message with ClOrdID id: its
// acknowledgement, or for an immediate order its end.
func (t *trader) await(ctx context.Context, id string, act flow.Act) (report, error) {
	timeout := time.NewTimer(reportTimeout)
	defer timeout.Stop()
	var r report
	for {
		select {
		case e := <-t.came:
			if e.refused && (e.id == id || e.id == "") {
				return r, fmt.Errorf("refused: %s", strings.ReplaceAll(e.text, "\x01", "|"))
			}
			if e.id != id {
				continue // a maker's fill
			}
			r.seq = max(r.seq, e.seq)
			if e.execType == "F" {
				r.trades++
			}
			ends := e.status == "2" || e.status == "4"
			if act != flow.TakeIOC || ends {
				return r, nil
			}
		case err := <-t.ended:
			t.ended <- err
			return r, fmt.Errorf("session ended: %w", err)
		case <-timeout.C:
			return r, fmt.Errorf("no report in %v", reportTimeout)
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
