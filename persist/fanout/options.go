package fanout

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"blockdesk/engine"
)

// Limits. Those of a queue say what happens past them.
const (
	// MaxURLs is the most servers that an Options names.
	MaxURLs = 16
	// LiveQueueMessages and LiveQueueBytes bound what waits at a follower: past
	// them live messages are dropped, which its chain sees as a gap.
	LiveQueueMessages = 1 << 16
	LiveQueueBytes    = 64 << 20
	// CacheWindow is the most messages that the stream has not acknowledged yet;
	// past it the cache's cursor waits, and nobody else.
	CacheWindow = 256
	// RequestQueue bounds the requests for a snapshot's pieces that wait; past it they
	// are dropped, and the follower asks again.
	RequestQueue = 64
	// MaxSnapshotTries is how often a join begins a snapshot anew that is gone or
	// damaged on arrival.
	MaxSnapshotTries = 5

	MinStreamBytes = 16 << 20
	MaxStreamBytes = 1 << 40
	MinHeartbeat   = 10 * time.Millisecond
	MaxHeartbeat   = 10 * time.Second

	firstPause  = 50 * time.Millisecond // between two tries of anything; doubles
	lastPause   = 2 * time.Second
	dialTimeout = 2 * time.Second
	// writeTimeout ends a connection whose server takes nothing any more.
	writeTimeout = 5 * time.Second
	// pingEvery times two is how long a dead connection goes unnoticed.
	pingEvery = 5 * time.Second
	// answerTimeout bounds one request to a server or to the leader.
	answerTimeout = 2 * time.Second
)

// Auth says who this process is to the server. At most one of User, Token,
// Credentials and Seed is set; none: nobody in particular.
type Auth struct {
	User, Password string
	Token          string
	// Credentials is the content of a .creds file: a JWT and its seed.
	Credentials []byte
	// Seed is an nkey seed (S…).
	Seed []byte
}

// Options of a Publisher and of a Follower. The zero value of a field is its
// default.
type Options struct {
	// URLs of the servers, 1 to MaxURLs: nats://host:port or tls://host:port.
	URLs []string
	Auth Auth
	// TLS, if set, is used with every server.
	TLS *tls.Config
	// Name is how this process calls itself to the server. Default "blockdesk".
	Name string
	// Prefix begins all subjects, and names the stream: letters, digits, - and _,
	// 1 to 64. All of one cluster share it, and no two clusters. Default
	// "blockdesk".
	Prefix string
	// Beat is the time between two beats of the leader. Default 100 ms.
	Heartbeat time.Duration

	// StreamBytes and StreamAge are what the cache keeps at most. Defaults 1 GiB
	// and 24 h. It should hold more than the journal between two snapshots.
	StreamBytes int64
	StreamAge   time.Duration
	// StreamReplicas is 1 by default; odd, at most 5.
	StreamReplicas int
	// StreamInMemory keeps the cache in the server's memory.
	StreamInMemory bool

	// MaxStale is how long a follower may be without what the leader has said,
	// and still be ready. Default 2 s; at least three beats.
	MaxStale time.Duration
	// RefillTimeout is how long a gap may stay unfilled, with a leader that is
	// heard, until Run gives up with ErrBehind. Default 30 s.
	RefillTimeout time.Duration
	// State is how a follower's replica is made.
	State engine.StateOptions
	// Clock is the time, for lags and beats. Default the system's.
	Clock func() time.Time
	// Logger is slog's default by default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Heartbeat = cmp.Or(o.Heartbeat, 100*time.Millisecond)
	o.StreamAge = cmp.Or(o.StreamAge, 24*time.Hour)
	o.MaxStale = cmp.Or(o.MaxStale, 2*time.Second)
	o.RefillTimeout = cmp.Or(o.RefillTimeout, 30*time.Second)
	o.Name = cmp.Or(o.Name, "blockdesk")
	o.Prefix = cmp.Or(o.Prefix, "blockdesk")
	o.StreamBytes = cmp.Or(o.StreamBytes, 1<<30)
	o.StreamReplicas = cmp.Or(o.StreamReplicas, 1)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Validate reports the first option that is out of its range.
func (o *Options) Validate() error {
	d := o.withDefaults()
	switch {
	case len(d.URLs) < 1 || len(d.URLs) > MaxURLs:
		return fmt.Errorf("nats urls: %d of them: must be 1 to %d", len(d.URLs), MaxURLs)
	case !prefixPattern.MatchString(d.Prefix):
		return fmt.Errorf("nats prefix %q: must be 1 to 64 letters, digits, - or _", d.Prefix)
	case d.Heartbeat < MinHeartbeat || d.Heartbeat > MaxHeartbeat:
		return fmt.Errorf("beat %v: must be %v to %v", d.Heartbeat, MinHeartbeat, MaxHeartbeat)
	case d.StreamBytes < MinStreamBytes || d.StreamBytes > MaxStreamBytes:
		return fmt.Errorf("stream bytes %d: must be %d to %d", d.StreamBytes, MinStreamBytes, int64(MaxStreamBytes))
	case d.StreamAge < time.Minute:
		return fmt.Errorf("stream age %v: must be 1m at least", d.StreamAge)
	case d.StreamReplicas < 1 || d.StreamReplicas > 5 || d.StreamReplicas%2 == 0:
		return fmt.Errorf("stream replicas %d: must be 1, 3 or 5", d.StreamReplicas)
	case d.MaxStale < 3*d.Heartbeat:
		return fmt.Errorf("max stale %v: must be three beats of %v at least", d.MaxStale, d.Heartbeat)
	case d.RefillTimeout < 0:
		return fmt.Errorf("refill patience %v: must not be negative", d.RefillTimeout)
	}
	_, err := d.Auth.option()
	return err
}

// option is a's part of a connection.
func (a *Auth) option() (nats.Option, error) {
	ways := 0
	for _, given := range []bool{a.User != "", a.Token != "", len(a.Credentials) > 0, len(a.Seed) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, errors.New("nats: more than one of user, token, credentials and seed")
	case a.User != "":
		return nats.UserInfo(a.User, a.Password), nil
	case a.Token != "":
		return nats.Token(a.Token), nil
	case len(a.Credentials) > 0:
		return nats.UserCredentialBytes(a.Credentials), nil
	case len(a.Seed) > 0:
		pair, err := nkeys.FromSeed(a.Seed)
		if err != nil {
			return nil, errors.New("nats: the seed is not that of an nkey") // its error may show it
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, errors.New("nats: the seed is not that of an nkey")
		}
		return nats.Nkey(public, pair.Sign), nil
	}
	return func(*nats.Options) error { return nil }, nil
}

func (o *Options) liveSubject() string     { return o.Prefix + ".live" }
func (o *Options) cacheSubject() string    { return o.Prefix + ".cache" }
func (o *Options) snapshotSubject() string { return o.Prefix + ".snapshot" }

// stream is the name of the cache.
func (o *Options) stream() string { return o.Prefix + "-cache" }

// pause is how long to wait before try n, from 0: doubling, with a share of chance
// so that many do not come at once.
func pause(n int) time.Duration {
	d := min(lastPause, firstPause<<min(n, 10))
	return d/2 + rand.N(d/2)
}
