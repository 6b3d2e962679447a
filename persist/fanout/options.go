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

// Limits.
const (
	// MaxURLs is the largest number of servers.
	MaxURLs = 16
	// LiveQueueMessages and LiveQueueBytes bound a follower's receive queue. Above them
	// live messages are dropped, which the follower detects as a gap.
	LiveQueueMessages = 1 << 16
	LiveQueueBytes    = 64 << 20
	// CacheWindow is the largest number of messages that the stream has not
	// acknowledged. Above it filling the stream waits, and nothing else.
	CacheWindow = 256
	// RequestQueue bounds the waiting requests for snapshot pieces. Above it they are
	// dropped, and the follower asks again.
	RequestQueue = 64
	// MaxSnapshotTries is how often Join tries a snapshot that was pruned or damaged on
	// arrival.
	MaxSnapshotTries = 5

	MinStreamBytes = 16 << 20
	MaxStreamBytes = 1 << 40
	MinHeartbeat   = 10 * time.Millisecond
	MaxHeartbeat   = 10 * time.Second

	firstPause  = 50 * time.Millisecond // between two tries of anything; it doubles
	lastPause   = 2 * time.Second
	dialTimeout = 2 * time.Second
	// writeTimeout closes a connection whose server accepts no data.
	writeTimeout = 5 * time.Second
	// Twice pingEvery is how long a dead connection goes unnoticed.
	pingEvery = 5 * time.Second
	// answerTimeout bounds one request to a server or to the leader.
	answerTimeout = 2 * time.Second
)

// Auth authenticates this process to the server. At most one of User, Token,
// Credentials and Seed is set; none means anonymous.
type Auth struct {
	User, Password string
	Token          string
	// Credentials is the content of a .creds file: a JWT and its seed.
	Credentials []byte
	// Seed is an nkey seed (S…).
	Seed []byte
}

// Options are the options of a Publisher and a Follower. The zero value of a field
// means its default.
type Options struct {
	// URLs of the servers, 1 to MaxURLs: nats://host:port or tls://host:port.
	URLs []string
	Auth Auth
	// TLS, if set, is used with every server.
	TLS *tls.Config
	// Name is this process's connection name. Default "blockdesk".
	Name string
	// Prefix begins all subjects and names the stream: 1 to 64 letters, digits, - and
	// _. All members of one cluster share it, and no two clusters. Default "blockdesk".
	Prefix string
	// Heartbeat is the interval of the leader's heartbeats. Default 100 ms.
	Heartbeat time.Duration

	// StreamBytes and StreamAge bound the stream. Defaults 1 GiB and 24 h. It should
	// hold more than the journal between two snapshots.
	StreamBytes int64
	StreamAge   time.Duration
	// StreamReplicas is 1 by default; odd, at most 5.
	StreamReplicas int
	// StreamInMemory keeps the stream in the server's memory.
	StreamInMemory bool

	// MaxStale is how long a follower may be out of sync and still be ready. Default 2
	// s; at least three heartbeats.
	MaxStale time.Duration
	// MaxBehind is how long a follower may be out of sync before Run returns ErrBehind, so
	// that nothing serves its old views. 0: for ever; else at least MaxStale.
	MaxBehind time.Duration
	// RefillTimeout is how long a gap may stay open, while the leader sends, before
	// Run returns ErrBehind. Default 30 s.
	RefillTimeout time.Duration
	// State configures a follower's replica.
	State engine.StateOptions
	// Clock returns the time, for lags and heartbeats. Default: the system's.
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

// Validate returns an error for the first option that is out of range.
func (o *Options) Validate() error {
	d := o.withDefaults()
	switch {
	case len(d.URLs) < 1 || len(d.URLs) > MaxURLs:
		return fmt.Errorf("nats: %d urls: must be 1 to %d", len(d.URLs), MaxURLs)
	case !prefixPattern.MatchString(d.Prefix):
		return fmt.Errorf("nats: prefix %q: must be 1 to 64 letters, digits, '-' or '_'", d.Prefix)
	case d.Heartbeat < MinHeartbeat || d.Heartbeat > MaxHeartbeat:
		return fmt.Errorf("heartbeat %v: must be %v to %v", d.Heartbeat, MinHeartbeat, MaxHeartbeat)
	case d.StreamBytes < MinStreamBytes || d.StreamBytes > MaxStreamBytes:
		return fmt.Errorf("stream bytes %d: must be %d to %d", d.StreamBytes, MinStreamBytes, int64(MaxStreamBytes))
	case d.StreamAge < time.Minute:
		return fmt.Errorf("stream age %v: must be at least 1m", d.StreamAge)
	case d.StreamReplicas < 1 || d.StreamReplicas > 5 || d.StreamReplicas%2 == 0:
		return fmt.Errorf("stream replicas %d: must be 1, 3 or 5", d.StreamReplicas)
	case d.MaxStale < 3*d.Heartbeat:
		return fmt.Errorf("max stale %v: must be at least three heartbeats of %v", d.MaxStale, d.Heartbeat)
	case d.MaxBehind != 0 && d.MaxBehind < d.MaxStale:
		return fmt.Errorf("max behind %v: must be at least max stale, %v", d.MaxBehind, d.MaxStale)
	case d.RefillTimeout < 0:
		return fmt.Errorf("refill timeout %v: must not be negative", d.RefillTimeout)
	}
	_, err := d.Auth.option()
	return err
}

// option returns the connection option for a.
func (a *Auth) option() (nats.Option, error) {
	ways := 0
	for _, given := range []bool{a.User != "", a.Token != "", len(a.Credentials) > 0, len(a.Seed) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, errors.New("nats: more than one of user, token, credentials and seed is set: set one")
	case a.User != "":
		return nats.UserInfo(a.User, a.Password), nil
	case a.Token != "":
		return nats.Token(a.Token), nil
	case len(a.Credentials) > 0:
		return nats.UserCredentialBytes(a.Credentials), nil
	case len(a.Seed) > 0:
		pair, err := nkeys.FromSeed(a.Seed)
		if err != nil {
			return nil, errors.New("nats: the seed is not a valid nkey seed") // the library's error may contain the seed
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, errors.New("nats: the seed is not a valid nkey seed")
		}
		return nats.Nkey(public, pair.Sign), nil
	}
	return func(*nats.Options) error { return nil }, nil
}

func (o *Options) liveSubject() string     { return o.Prefix + ".live" }
func (o *Options) cacheSubject() string    { return o.Prefix + ".cache" }
func (o *Options) snapshotSubject() string { return o.Prefix + ".snapshot" }

// stream returns the name of the stream.
func (o *Options) stream() string { return o.Prefix + "-cache" }

// pause returns how long to wait before try n, from 0: it doubles, with a random share
// so that many processes do not retry together.
func pause(n int) time.Duration {
	d := min(lastPause, firstPause<<min(n, 10))
	return d/2 + rand.N(d/2)
}
