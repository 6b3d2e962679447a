package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// Limits of the test with clients of which every tenth stops reading.
const (
	stalledClients = 5000
	stalledEvery   = 10
	// filesPerClient is the number of file descriptors of a connection: both ends.
	filesPerClient = 2
)

// clientPool is a feed of scripted events with its clients.
type clientPool struct {
	t       *testing.T
	feed    *Feed
	events  *scriptedEvents
	addr    string
	healthy []*lineReader
	stalled []net.Conn
	seq     uint64
}

// newClientPool starts a feed and connects that many clients, or as many as the limit of
// open files allows.
func newClientPool(t *testing.T, size int, change feedOption) *clientPool {
	t.Helper()
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if room := int(min(files.Cur, 1<<20))/filesPerClient - 200; room < size {
		t.Logf("%d connections instead of %d: the process may have %d files open", room, size, files.Cur)
		size = room
	}
	o := Options{}
	longTimeouts(&o)
	change(&o)
	o.MaxPerIP, o.Shards, o.Logger = stalledClients, 2, slog.New(slog.DiscardHandler)
	f, err := New(o, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &fasthttp.Server{Handler: f.Handler, KeepHijackedConns: true, Logger: slog.NewLogLogger(slog.DiscardHandler, 0)}
	c := &clientPool{t: t, feed: f, events: &scriptedEvents{slices: make(chan []event.Event)}, addr: listener.Addr().String(), seq: 1}
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(context.Background(), c.events); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		close(c.events.slices)
		_ = server.Shutdown()
		running.Wait()
	})
	c.until("the feed to run", func(Stats) bool { return f.running.Load() })
	c.events.slices <- []event.Event{{Seq: 1, At: 1, Kind: event.EpochStarted, Other: 1}}
	for i := range size {
		conn := c.dial(i%stalledEvery == 0)
		if i%stalledEvery == 0 {
			c.stalled = append(c.stalled, conn)
		} else {
			c.healthy = append(c.healthy, &lineReader{in: bufio.NewReaderSize(conn, 2<<10)})
		}
	}
	c.until("all to be subscribed", func(s Stats) bool { return s.Subscriptions == int64(size) })
	return c
}

// dial connects and subscribes. A stalled client has a small kernel buffer.
func (c *clientPool) dial(stalled bool) net.Conn {
	c.t.Helper()
	dialer := net.Dialer{}
	if stalled {
		dialer = tight
	}
	conn, err := dialer.Dial("tcp4", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	_, _ = conn.Write(masked(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`))
	return conn
}

func (c *clientPool) until(what string, done func(Stats) bool) {
	c.t.Helper()
	await.Value(c.t, what, c.feed.Stats, done)
}

// burst publishes updates, which reach the shards at once.
func (c *clientPool) burst(updates int) {
	var slice []event.Event
	for range updates {
		c.seq++
		slice = append(slice, restingOrder(c.seq))
	}
	c.events.slices <- slice
}

// lineReader reads one connection frame by frame without decoding JSON.
type lineReader struct {
	in        *bufio.Reader
	at        atomic.Uint64 // the last seq
	snapshots int
	err       error
	frame     []byte
}

// next returns the next frame.
func (r *lineReader) next() (opcode byte, payload []byte, err error) {
	head := make([]byte, 2, 8)
	if _, err := io.ReadFull(r.in, head); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	if more := map[uint64]int{126: 2, 127: 8}[size]; more > 0 {
		length := make([]byte, 8)
		if _, err := io.ReadFull(r.in, length[8-more:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(length)
	}
	if uint64(cap(r.frame)) < size {
		r.frame = make([]byte, size)
	}
	r.frame = r.frame[:size]
	_, err = io.ReadFull(r.in, r.frame)
	return head[0], r.frame, err
}

var errChain = errors.New("the chain of numbers is broken")

// follow reads until seq last and checks that each update follows the one before.
func (r *lineReader) follow(last uint64) error {
	if _, err := skipHead(r.in); err != nil {
		return err
	}
	for {
		_, m, err := r.next()
		switch {
		case err != nil:
			return err
		case !bytes.HasPrefix(m, []byte(`{"channel":"l2"`)):
			continue
		case bytes.Contains(m[:40], []byte(`"snapshot"`)):
			r.snapshots++
		case number(m, `"prev_seq":`) != r.at.Load():
			return fmt.Errorf("%w: at %d, then %.120s", errChain, r.at.Load(), m)
		}
		r.at.Store(number(m, `"seq":`))
		if r.at.Load() == last {
			return nil
		}
	}
}

// skipHead reads the response to the upgrade.
func skipHead(in *bufio.Reader) (status string, err error) {
	for line := ""; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			return status, err
		}
		if status == "" {
			status = line
		}
	}
	return status, nil
}

// number returns the number after name, 0 if there is none.
func number(m []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(m, []byte(name))
	end := bytes.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	n, _ := strconv.ParseUint(string(rest[:max(end, 0)]), 10, 64)
	return n
}

// resumeReading lets the stalled clients read again once all were detected. Each must
// find an error message.
func (c *clientPool) resumeReading() {
	c.until("the stalled readers to be found", func(s Stats) bool { return s.SlowConsumers == uint64(len(c.stalled)) })
	var readers sync.WaitGroup
	for i, conn := range c.stalled {
		readers.Go(func() {
			if code, slow, err := readClose(conn); err != nil || code != CloseSlowConsumer || !slow {
				c.t.Errorf("stalled reader %d: code %d, SLOW_CONSUMER sent: %v, %v", i, code, slow, err)
			}
		})
	}
	readers.Wait()
}

// readClose reads a stalled connection to the end and returns the close code and whether
// SLOW_CONSUMER came before it.
func readClose(conn net.Conn) (code uint16, slow bool, err error) {
	_ = conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	r := &lineReader{in: bufio.NewReader(conn)}
	if _, err := skipHead(r.in); err != nil {
		return 0, false, err
	}
	for {
		opcode, m, err := r.next()
		if err != nil {
			return 0, slow, err
		}
		slow = slow || bytes.Contains(m, []byte(`"code":"SLOW_CONSUMER"`))
		if opcode == finClose && len(m) >= 2 {
			return binary.BigEndian.Uint16(m), slow, nil
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

const stalledPending = 16 << 10 // MaxPending

// follow sends bursts until every healthy client has them all, and returns the growth of
// memory in bytes.
func (c *clientPool) follow(bursts, perBurst int) (grown int64) {
	c.t.Helper()
	before := heap()
	last := uint64(bursts * perBurst)
	var readers sync.WaitGroup
	for _, r := range c.healthy {
		readers.Go(func() { r.err = r.follow(last) })
	}
	for n := range bursts {
		c.burst(perBurst)
		want := uint64((n + 1) * perBurst)
		c.until("the healthy readers to be there", func(Stats) bool {
			return !slices.ContainsFunc(c.healthy, func(r *lineReader) bool { return r.at.Load() < want })
		})
	}
	grown = int64(heap()) - int64(before)
	readers.Wait()
	for i, r := range c.healthy {
		if r.err != nil || r.snapshots != 1 {
			c.t.Fatalf("reader %d: %v, %d snapshots", i, r.err, r.snapshots)
		}
	}
	return grown
}

// checkFreed checks that the stalled clients left nothing behind.
func (c *clientPool) checkFreed() {
	c.t.Helper()
	c.until("the stalled readers to be gone", func(s Stats) bool { return s.Connections == len(c.healthy) })
	s := c.feed.Stats()
	if s.Subscriptions != int64(len(c.healthy)) || s.SlowConsumers != uint64(len(c.stalled)) || s.Overruns != 0 {
		c.t.Errorf("%+v", s)
	}
}

// One in ten of 5,000 clients stops reading. The others get every update in order and no
// snapshot, memory does not grow by the unread updates, and the stalled clients find an
// error when they read again.
func TestStalledReadersAmongMany(t *testing.T) {
	c := newClientPool(t, stalledClients, func(o *Options) {
		o.SendBuffer, o.MaxPending, o.SlowAfter = 4<<10, stalledPending, 200*time.Millisecond
	})
	grown := c.follow(30, 10)
	if most := int64(len(c.stalled))*stalledPending + int64(len(c.healthy))*8<<10; grown > most {
		t.Errorf("memory has grown by %d bytes, want %d at most", grown, most)
	}
	c.resumeReading()
	for _, conn := range c.stalled {
		_ = conn.Close()
	}
	c.checkFreed()
	t.Logf("%d healthy and %d stalled readers, memory grew by %d bytes an open connection", len(c.healthy), len(c.stalled),
		grown/int64(len(c.healthy)+len(c.stalled)))
}

// Stalled clients that do not read within CloseWithin are aborted.
func TestStalledReadersAreCutOff(t *testing.T) {
	c := newClientPool(t, stalledClients/10, func(o *Options) {
		o.SendBuffer, o.MaxPending = 4<<10, stalledPending
		o.SlowAfter, o.CloseWithin = 50*time.Millisecond, 50*time.Millisecond
	})
	c.follow(30, 10)
	c.checkFreed()
}
