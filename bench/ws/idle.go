package ws

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/clients"
	"blockdesk/feed"
)

// errNotDeflated means that the server did not agree to compress.
var errNotDeflated = errors.New("the server does not compress")

// idle measures what a client costs that subscribes to one order book, with
// heartbeats, and then only listens.
func (b *wsBench) idle(ctx context.Context) error {
	for _, kind := range []struct {
		name  string
		group func(*wsFeed) clients.Group
	}{
		{"WebSocket", func(f *wsFeed) clients.Group { return f.subscribers("idle", b.o.Many, true) }},
		{"WebSocket with compression", func(f *wsFeed) clients.Group { return f.deflated("idle", b.o.Many) }},
		{"server-sent events", func(f *wsFeed) clients.Group { return f.streamed("idle", b.o.Many) }},
	} {
		perConn, goroutines, inKernel, err := b.idleOf(ctx, kind.group)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		b.report.Ratios = append(b.report.Ratios, bench.Ratio{Name: "bytes an idle connection, " + kind.name, Value: perConn, Goal: goalIdle, AtMost: true})
		b.report.Notes = append(b.report.Notes, fmt.Sprintf("idle, %s: %d connections, heap and stacks in use after a collection, less what was in use before; %d goroutines more; the kernel's own memory grew by %.0f bytes a connection, both of its ends together, and by what else this machine did", kind.name, b.o.Many, goroutines, inKernel))
	}
	return nil
}

// idleOf returns the bytes of one group's heap and stacks, and of the kernel's
// memory, for each connection, and how many goroutines they all take.
func (b *wsBench) idleOf(ctx context.Context, group func(*wsFeed) clients.Group) (perConn float64, goroutines int, inKernel float64, err error) {
	f, err := startFeed(ctx, feed.Options{Heartbeat: b.o.Hold / 4})
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	before, running := bench.HeapInUse(), runtime.NumGoroutine()
	kernel, err := bench.KernelBytes()
	if err != nil {
		return 0, 0, 0, err
	}
	if err := b.clients.Join(group(f)); err != nil {
		return 0, 0, 0, err
	}
	a, err := b.clients.Answer()
	if err != nil {
		return 0, 0, 0, err
	}
	if g := group(f); strings.Contains(string(g.Request), deflateOffer) && !strings.Contains(a.Head, "permessage-deflate") {
		return 0, 0, 0, errNotDeflated
	}
	time.Sleep(b.o.Hold * 5 / 8) // more than two heartbeats
	perConn = (bench.HeapInUse() - before) / float64(b.o.Many)
	goroutines = runtime.NumGoroutine() - running
	grown, err := bench.KernelBytes()
	inKernel = float64(grown-kernel) / float64(b.o.Many)
	return perConn, goroutines, inKernel, errors.Join(err, b.leave("idle"))
}

// deflateOffer is the request header of a client that takes compressed frames.
const deflateOffer = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"

// deflated is subscribers with compression.
func (w *wsFeed) deflated(name string, conns int) clients.Group {
	g := w.subscribers(name, conns, true)
	g.Request = []byte(strings.Replace(string(g.Request), "\r\n", "\r\n"+deflateOffer, 1))
	return g
}
