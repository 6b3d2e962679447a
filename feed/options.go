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

// Limits that no option moves (contract, section G).
const (
	// MaxFrame is the largest message a client may send, in bytes, and so the
	// largest frame. Beyond it: close code 4009.
	MaxFrame = 16 << 10
	// MaxResume is the number of updates of one (symbol, channel) that a client
	// can be behind and still resume.
	MaxResume = 1024
	// maxResumeBytes bounds the same updates in bytes.
	maxResumeBytes = 512 << 10
	// maxChannels and maxSymbols bound the lists of one request.
	maxChannels = 8
	maxSymbols  = 100
	// maxText bounds a channel, a symbol, an action or an id in a request, in
	// bytes as they stand in the JSON.
	maxText = 64
	// maxDepthJSON bounds the nesting of a request.
	maxDepthJSON = 8
	// maxInflight bounds the requests of one connection that its shard has not
	// served yet.
	maxInflight = 64
	// maxInbox bounds the updates that a shard has not taken yet.
	maxInbox = 4096
	// maxPendingFrames bounds what waits for one connection's socket in updates,
	// beside Options.MaxPending.
	maxPendingFrames = 1024
	// maxPendingAll bounds what waits for one connection's socket with answers
	// and resumed updates, in bytes; beyond it the connection is slow and closed.
	maxPendingAll = 2 << 20
	// maxBacklog bounds the part of it that may wait for longer than backlogWithin: a
	// client that takes a byte now and then would hold megabytes for ever.
	maxBacklog    = 64 << 10
	backlogWithin = 30 * time.Second
	// maxDrain bounds what is read and thrown away from a connection that is
	// being closed, in bytes; maxStreamInput, from a stream of server-sent events,
	// which is then closed.
	maxDrain       = 1 << 20
	maxStreamInput = 16 << 10
	// receiveBuffer is the kernel's receive buffer of a connection in bytes, which
	// Linux doubles: it holds the largest request. All of it is read at once.
	receiveBuffer = 2 * MaxFrame
)

// Close codes (contract, section G; 1000 to 1012 are RFC 6455's).
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
	// MaxConnections bounds all connections; default 10,000.
	MaxConnections int
	// MaxPerIP bounds the connections of one client address; default 10.
	MaxPerIP int
	// MaxSubscriptions bounds the (channel, symbol) pairs of one connection;
	// default 300.
	MaxSubscriptions int
	// MessagesPerSecond bounds what one connection may send, control frames
	// included; default 20, which is also the burst.
	MessagesPerSecond int
	// MaxPending bounds the updates that wait for one connection's socket, in
	// bytes; beyond it they collapse into snapshots. Default 128 KiB.
	MaxPending int
	// Shards is the number of goroutines that write; default GOMAXPROCS, at
	// most 8.
	Shards int
	// Heartbeat is the time between two heartbeats; default 1 s.
	Heartbeat time.Duration
	// SubscribeWithin is how long a connection may have no subscription;
	// default 10 s.
	SubscribeWithin time.Duration
	// SlowAfter is how long a connection with something to send may accept no
	// byte; default 5 s.
	SlowAfter time.Duration
	// MessageWithin is how long a message may take from its first byte to its last;
	// default 5 s. It is checked at heartbeats, so it may be one interval more.
	MessageWithin time.Duration
	// AheadWithin is how long a client that resumes may be ahead of this feed; then
	// it gets a snapshot. Default two heartbeats.
	AheadWithin time.Duration
	// CloseWithin is how long a connection that is being closed may take to
	// accept its last message and to answer; default 1 s.
	CloseWithin time.Duration
	// DrainWithin is how long Run follows the events after its context has
	// ended, waiting for their end; default 3 s.
	DrainWithin time.Duration
	// QuietAfter is how long a market may have no event before the 24 h figures
	// are brought up to date without one; default 10 s (spec, part 8).
	QuietAfter time.Duration
	// SendBuffer is the kernel's send buffer of a connection in bytes, which
	// Linux doubles; default 32 KiB. More of it hides a slow reader for longer.
	SendBuffer int
	// Tickets tells the desk's tickets; nil = there is no desk, and no channel
	// tickets. See also Feed.TicketsChanged.
	Tickets Tickets
	// ClientIP tells whose connection it is; default: the socket's peer.
	ClientIP func(*fasthttp.RequestCtx) netip.Addr
	// OtherShards tells, by symbol, where other groups serve what is not here; nil =
	// there are none. Its URLs need no escapes in JSON.
	OtherShards map[string]*market.Shard
	// Logger takes what an operator should see; default slog.Default.
	Logger *slog.Logger
	// Clock is the wall clock of what no event causes (pong, heartbeat, trades
	// that grow older than a day); default time.Now.
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

// Validate reports the first setting that is out of range. Zero is a default
// and in range.
func (o Options) Validate() error {
	numbers := []struct {
		name  string
		value int
		most  int
	}{
		{"max_connections", o.MaxConnections, 1_000_000},
		{"max_per_ip", o.MaxPerIP, 1_000_000},
		{"max_subscriptions", o.MaxSubscriptions, 10_000},
		{"messages_per_second", o.MessagesPerSecond, 10_000},
		{"max_pending", o.MaxPending, maxPendingAll},
		{"shards", o.Shards, 64},
		{"send_buffer", o.SendBuffer, 16 << 20},
	}
	for _, n := range numbers {
		if n.value < 0 || n.value > n.most {
			return fmt.Errorf("feed: %s %d: must be 1 to %d", n.name, n.value, n.most)
		}
	}
	durations := []struct {
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
	}
	for _, d := range durations {
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
