package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/bench/clients"
	"blockdesk/bench/server"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/feed"
	"blockdesk/market"
)

const (
	// wsLevels is the number of levels of a side of the book.
	wsLevels = 100
	// wsNear is the number of best levels at which orders are added and cancelled.
	wsNear = 10
	// wsFirstSeq and wsFirstAt give numbers and times of a usual length.
	wsFirstSeq = 1_000_000_000
	wsFirstAt  = int64(1_800_000_000_000_000_000)
	wsBestBid  = market.Price(999_000)
	wsBestAsk  = market.Price(1_001_000)
	wsLotsHeld = 5_000_000
)

// wsFeed is a running feed behind a server, in this process, with a source of
// events that the benchmark writes itself, so that the CPU time is the feed's and the
// content of each batch is known.
type wsFeed struct {
	*feed.Feed
	addr   string
	events wsScript
	seq    uint64
	stop   func() error
}

// wsScript is a source of events. It ends when its channel is closed.
type wsScript chan []event.Event

func (s wsScript) Next(ctx context.Context) ([]event.Event, error) {
	select {
	case slice, more := <-s:
		if !more {
			return nil, io.EOF
		}
		return slice, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (wsScript) Poll() []event.Event { return nil }
func (wsScript) Release(int)         {}
func (wsScript) AtBatchEnd() bool    { return true }

// startFeed runs a feed with a full book. It raises the limits that would end a quiet
// client, and keeps the other options of o.
func startFeed(ctx context.Context, o feed.Options) (*wsFeed, error) {
	o.MaxConnections, o.MaxPerIP = wsMostClients, wsMostClients
	o.SubscribeWithin = time.Minute // many clients need a while to join
	o.Logger = slog.New(slog.DiscardHandler)
	f, err := feed.New(o, []market.Instrument{wsInstrument()}, marketdata.New(), 1)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == streamPath {
				f.Stream(ctx)
			} else {
				f.Handler(ctx)
			}
		},
		KeepHijackedConns:     true,
		MaxIdleWorkerDuration: 100 * time.Millisecond, // default 10 s; an idle one is not the feed's memory
	}
	w := &wsFeed{Feed: f, addr: listener.Addr().String(), events: make(wsScript), seq: wsFirstSeq}
	var running sync.WaitGroup
	var ran error
	running.Go(func() { ran = f.Run(ctx, w.events) })
	running.Go(func() { _ = server.Serve(listener) })
	w.stop = func() error {
		close(w.events)
		err := server.Shutdown()
		running.Wait()
		return errors.Join(ran, err)
	}
	for !f.Health().OK {
		time.Sleep(time.Millisecond)
	}
	w.events <- w.opening()
	return w, nil
}

func wsInstrument() market.Instrument {
	return market.Instrument{
		Symbol: server.Symbol, Base: "SLUSD", Quote: "USDC", PriceDecimals: 6, QtyDecimals: 6, Tick: 1, Lot: 1,
		MinQty: 1, MaxQty: 1 << 40, MaxPrice: 1 << 40, Source: market.Matched,
	}
}

// opening begins the epoch and fills the book.
func (w *wsFeed) opening() []event.Event {
	list := []event.Event{{Seq: w.seq, At: wsFirstAt, Kind: event.EpochStarted, Other: 1}}
	for i := range market.Price(wsLevels) {
		list = append(list,
			event.Event{Seq: w.seq, At: wsFirstAt, Kind: event.Accepted, Side: market.Buy, Price: wsBestBid - i*7, Qty: wsLotsHeld, Aux: wsLotsHeld},
			event.Event{Seq: w.seq, At: wsFirstAt, Kind: event.Accepted, Side: market.Sell, Price: wsBestAsk + i*7, Qty: wsLotsHeld, Aux: wsLotsHeld})
	}
	return list
}

// tick gives the feed n commands at once, a batch of its own each: an order at
// one of the first levels, or the cancel of the one before. Each is one update.
func (w *wsFeed) tick(n int) {
	slice := make([]event.Event, n)
	for i := range slice {
		w.seq++
		step := w.seq - wsFirstSeq - 1
		slice[i] = event.Event{
			Seq: w.seq, At: wsFirstAt + int64(step+1)*1000, Kind: event.Accepted, Side: market.Buy,
			Price: wsBestBid - market.Price(step/2%wsNear)*7, Qty: 1_000_000, Aux: 1_000_000,
		}
		if step%2 == 1 {
			slice[i].Kind = event.Cancelled
		}
	}
	w.events <- slice
}

// size is the mean number of bytes of what the feed has written since before.
func (w *wsFeed) size(before feed.Stats) int {
	after := w.Stats()
	return int((after.BytesOut - before.BytesOut) / max(after.MessagesOut-before.MessagesOut, 1))
}

// subscribers is a group of clients of one l2 stream. With the stream's
// snapshot they have read three messages.
func (w *wsFeed) subscribers(name string, conns int, heartbeat bool) clients.Group {
	return clients.Group{
		Name: name, Addr: w.addr, Conns: conns, Form: clients.Frames,
		Request: []byte("GET /ws/rfq HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"),
		Then: clientFrame(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":[%q],"heartbeat":%t}`, server.Symbol, heartbeat)),
		Skip: 3, // welcome, acknowledgement, snapshot
	}
}

const streamPath = "/api/v1/market/stream"

// streamed is subscribers by server-sent events.
func (w *wsFeed) streamed(name string, conns int) clients.Group {
	return clients.Group{
		Name: name, Addr: w.addr, Conns: conns, Form: clients.Events,
		Request: []byte("GET " + streamPath + "?channels=l2&symbols=" + server.Symbol + " HTTP/1.1\r\nHost: bench\r\n\r\n"),
		Skip:    2, // welcome, snapshot
	}
}

// clientFrame is a text message of at most 65,535 bytes as a client must send it,
// masked, with a mask of zeros.
func clientFrame(text string) []byte {
	n := len(text)
	head := []byte{0x81, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}
	if n < 126 {
		head = []byte{0x81, 0x80 | byte(n), 0, 0, 0, 0}
	}
	return append(head, text...)
}
