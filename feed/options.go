package feed

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/market"
)

// Limits that no option changes (docs/specification.md C.7).
const (
	// MaxFrame is the size in bytes of the largest message, and so of the largest frame,
	// that a client may send. A larger one closes the connection with code 4009.
	MaxFrame = 16 << 10
	// MaxResume is the number of updates of one (symbol, channel) that a client may have
	// missed and still resume.
	MaxResume = 1024
	// maxResumeBytes bounds those updates in bytes.
	maxResumeBytes = 512 << 10
	// maxChannels and maxSymbols bound the lists of one request.
	maxChannels = 8
	maxSymbols  = 100
	// maxText bounds a channel, symbol, action or id of a request, in bytes of its JSON.
	maxText = 64
	// maxDepthJSON bounds the nesting of a request.
	maxDepthJSON = 8
	// maxInflight bounds a connection's requests that its shard has not handled yet.
	maxInflight = 64
	// maxInbox bounds the publications in a shard's inbox.
	maxInbox = 4096
	// maxPendingFrames bounds the pending updates of a connection, beside
	// Options.MaxPending.
	maxPendingFrames = 1024
	// maxPendingAll bounds the pending bytes of a connection, answers and resumed updates
	// included. A connection beyond it is closed as too slow.
	maxPendingAll = 2 << 20
	// maxBacklog bounds the answers, in bytes, that may stay pending for longer than
	// backlogWithin. Otherwise a client that reads a byte now and then would hold
	// megabytes forever.
	maxBacklog    = 64 << 10
	backlogWithin = 30 * time.Second
	// maxDrain bounds the input that is discarded while a connection closes, in bytes.
	// maxStreamInput bounds the input of a stream, which is then closed.
	maxDrain       = 1 << 20
	maxStreamInput = 16 << 10
	// receiveBuffer is the kernel's receive buffer of a connection in bytes, which Linux
	// doubles. It holds the largest request.
	receiveBuffer = 2 * MaxFrame
)

// Close codes (docs/specification.md C.7; 1000 to 1013 are IANA's).
const (
	CloseNormal         = 1000
	CloseProtocol       = 1002
	CloseBadData        = 1007
	ClosePolicy         = 1008
	CloseRestart        = 1012
	CloseTryAgain       = 1013
	CloseNoSubscription = 4001
	CloseSlowConsumer   = 4008
	CloseFrameTooBig    = 4009
	CloseTooManyMessage = 4029
)

// Options are the settings of a Feed. The zero value of a field means its
// default.
type Options struct {
	// MaxConnections bounds all connections. Default 10,000.
	MaxConnections int
	// MaxPerIP bounds the connections of one client address. Default 10.
	MaxPerIP int
	// MaxSubscriptions bounds the (channel, symbol) pairs of one connection. Default 300.
	MaxSubscriptions int
	// MessagesPerSecond bounds the messages of one client, control frames included.
	// Default 20, which is also the burst.
	MessagesPerSecond int
	// MaxPending bounds the pending updates of a connection, in bytes. Beyond it they are
	// replaced by snapshots. Default 128 KiB.
	MaxPending int
	// Shards is the number of goroutines that write. Default GOMAXPROCS, at most 8.
	Shards int
	// Heartbeat is the time between two heartbeats. Default 1 s.
	Heartbeat time.Duration
	// SubscribeWithin is how long a connection may have no subscription. Default 10 s.
	SubscribeWithin time.Duration
	// SlowAfter is how long a socket with pending messages may accept no byte. Default 5
	// s.
	SlowAfter time.Duration
	// MessageWithin is how long a client may take to send a message. Default 5 s. It is
	// checked at heartbeats, so the limit may be one interval longer.
	MessageWithin time.Duration
	// AheadWithin is how long a client that resumes may be ahead of this feed before it
	// gets a snapshot. Default two heartbeats.
	AheadWithin time.Duration
	// CloseWithin is how long a closing connection may take to accept its last message
	// and to answer. Default 1 s.
	CloseWithin time.Duration
	// DrainWithin is how long Run waits for the end of the events after its context has
	// ended. Default 3 s.
	DrainWithin time.Duration
	// QuietAfter is how long the market may be without events before the clock advances
	// the 24 h windows. Default 10 s (docs/specification.md 8).
	QuietAfter time.Duration
	// SendBuffer is the kernel's send buffer of a connection in bytes, which Linux
	// doubles. Default 32 KiB. A larger one hides a slow reader for longer.
	SendBuffer int
	// ClientIP returns the client's address. Default: the socket's peer.
	ClientIP func(*fasthttp.RequestCtx) netip.Addr
	// OtherShards are the addresses of other shards by symbol; nil = none. Their URLs
	// need no escapes in JSON.
	OtherShards map[string]*market.Shard
	// Logger logs for the operator. Default slog.Default.
	Logger *slog.Logger
	// Clock is the wall clock of messages without an event (pong, heartbeat) and of the
	// 24 h windows. Default time.Now.
	Clock func() time.Time
}

func (o Options) withDefaults() Options {
	o.MaxConnections = cmp.Or(o.MaxConnections, 10_000)
	o.MaxPerIP = cmp.Or(o.MaxPerIP, 10)
	o.MaxSubscriptions = cmp.Or(o.MaxSubscriptions, 300)
	o.MessagesPerSecond = cmp.Or(o.MessagesPerSecond, 20)
	o.MaxPending = cmp.Or(o.MaxPending, 128<<10)
	o.Shards = cmp.Or(o.Shards, min(runtime.GOMAXPROCS(0), 8))
	o.SendBuffer = cmp.Or(o.SendBuffer, 32<<10)
	o.Heartbeat = cmp.Or(o.Heartbeat, time.Second)
	o.SubscribeWithin = cmp.Or(o.SubscribeWithin, 10*time.Second)
	o.MessageWithin = cmp.Or(o.MessageWithin, 5*time.Second)
	o.AheadWithin = cmp.Or(o.AheadWithin, 2*o.Heartbeat)
	o.SlowAfter = cmp.Or(o.SlowAfter, 5*time.Second)
	o.CloseWithin = cmp.Or(o.CloseWithin, time.Second)
	o.DrainWithin = cmp.Or(o.DrainWithin, 3*time.Second)
	o.QuietAfter = cmp.Or(o.QuietAfter, 10*time.Second)
	if o.ClientIP == nil {
		o.ClientIP = peerIP
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

// Validate returns the first setting that is out of range. Zero means the default.
func (o Options) Validate() error {
	for _, n := range []struct {
		name       string
		value, max int
	}{
		{"max_connections", o.MaxConnections, 1_000_000},
		{"max_per_ip", o.MaxPerIP, 1_000_000},
		{"max_subscriptions", o.MaxSubscriptions, 10_000},
		{"messages_per_second", o.MessagesPerSecond, 10_000},
		{"max_pending", o.MaxPending, maxPendingAll},
		{"shards", o.Shards, 64},
		{"send_buffer", o.SendBuffer, 16 << 20},
	} {
		if n.value < 0 || n.value > n.max {
			return fmt.Errorf("feed: %s %d: must be 1 to %d", n.name, n.value, n.max)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"heartbeat", o.Heartbeat},
		{"subscribe_within", o.SubscribeWithin},
		{"quiet_after", o.QuietAfter},
		{"slow_after", o.SlowAfter},
		{"message_within", o.MessageWithin},
		{"ahead_within", o.AheadWithin},
		{"close_within", o.CloseWithin},
		{"drain_within", o.DrainWithin},
	} {
		if d.value != 0 && (d.value < time.Millisecond || d.value > time.Hour) {
			return fmt.Errorf("feed: %s %v: must be 1ms to 1h", d.name, d.value)
		}
	}
	return nil
}

func peerIP(ctx *fasthttp.RequestCtx) netip.Addr {
	addr, ok := netip.AddrFromSlice(ctx.RemoteIP())
	if !ok {
		return netip.Addr{}
	}
	return addr.Unmap()
}
