package ws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/fasthttp/websocket"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

// Clients of the whole program, orders, at most 1,000, and how many are sent a
// second.
const (
	wsOrderClients = 100
	wsUpdates      = 1000
	wsPerSecond    = 200
)

// measureOrder measures the time from sending an order over FIX to a running server to
// the l2 update at each of some WebSocket clients.
func measureOrder(ctx context.Context, b *wsBench) (err error) {
	srv, stop, err := server.StartBook(ctx, b.o.Exe, b.o.Dir, "ws", "interval")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	d, err := server.DialDriver(ctx, srv.Addresses.FIX)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	conns := make([]*websocket.Conn, wsOrderClients)
	for i := range conns {
		if conns[i], err = subscribe(ctx, srv.Addresses.WS); err != nil {
			return err
		}
		defer conns[i].Close()
	}
	hist, mu := bench.NewHistogram(), sync.Mutex{}
	start := time.Now().Add(50 * time.Millisecond)
	var all sync.WaitGroup
	failed := make(chan error, len(conns))
	for _, conn := range conns {
		all.Go(func() {
			local, err := followUpdates(conn, start)
			if err != nil {
				failed <- err
				return
			}
			mu.Lock()
			hist.Merge(local)
			mu.Unlock()
		})
	}
	cpu := srv.CPU()
	s, err := b.report.Measure(fmt.Sprintf("order sent to l2 update at each of %d clients", wsOrderClients), int64(wsUpdates*wsOrderClients), hist, func() error {
		err := bench.OpenLoop(ctx, start, wsUpdates, wsPerSecond, func(int) error { return d.Next() })
		all.Wait()
		close(failed)
		return errors.Join(err, <-failed)
	})
	s.Summary, s.CPU = bench.Summarize(hist), srv.CPU()-cpu
	b.report.Notes = append(b.report.Notes, fmt.Sprintf("order to update: %d orders a second, each a new best bid; CPU is the server's, FIX and engine included; clients share the cores", wsPerSecond))
	return err
}

// followUpdates measures the time from when each order was due to the update that shows
// it. On a busy machine one update may show several orders.
func followUpdates(conn *websocket.Conn, start time.Time) (*hdrhistogram.Histogram, error) {
	hist := bench.NewHistogram()
	for seen := 0; seen < wsUpdates; {
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			return nil, err
		}
		_, data, err := conn.ReadMessage()
		if err != nil {
			return nil, fmt.Errorf("after %d orders: %w", seen, err)
		}
		newest, ok := newestOrder(data)
		if !ok {
			continue
		}
		took := time.Since(start)
		for ; seen <= newest; seen++ {
			due := time.Duration(int64(seen) * int64(time.Second) / wsPerSecond)
			_ = hist.RecordValue(max(int64(took-due), 1))
		}
	}
	return hist, nil
}

// newestOrder returns the number of the newest order that an l2 update shows:
// the best bid is its first.
func newestOrder(data []byte) (int, bool) {
	if !bytes.HasPrefix(data, []byte(`{"channel":"l2","type":"update"`)) {
		return 0, false
	}
	_, rest, found := bytes.Cut(data, []byte(`"bids":[["`+server.DriverPrice))
	if !found || len(rest) < 3 {
		return 0, false
	}
	n, err := strconv.Atoi(string(rest[:3]))
	return n, err == nil && n < wsUpdates
}

func subscribe(ctx context.Context, url string) (*websocket.Conn, error) {
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, strings.TrimSuffix(url, "/ws/rfq")+"/ws/rfq", nil)
	if err != nil {
		return nil, err
	}
	message := `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["` + server.Symbol + `"],"depth":25}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if strings.Contains(string(data), `"snapshot"`) {
			return conn, nil
		}
	}
}
