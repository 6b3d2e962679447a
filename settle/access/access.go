package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/persist/kv"
)

// Limits fixed by docs/specification.md, section 8.
const (
	// TokenLifetime is how long a token is valid.
	TokenLifetime = 7 * 24 * time.Hour
	// IssueWindow is the least time between two tokens of a client, unless
	// Options.IssueWindow is shorter.
	IssueWindow = time.Hour
)

// Limits, our choice.
const (
	// MaxTokens bounds the tokens of the last seven days, revoked ones included.
	MaxTokens = 262_144
	// MaxUsedNonces bounds the nonces presented in the last two minutes.
	MaxUsedNonces = 131_072
	// Retention is how long the log keeps an issue and its revocation.
	Retention = 90 * 24 * time.Hour
	// MaxName bounds the name of the operator who revokes, in bytes.
	MaxName = 64
	// MaxPage bounds what List returns.
	MaxPage = 1000
)

const (
	// maintainEvery is the pause between two writes of the time. pruneEvery is how
	// much of the log must be old before it is pruned.
	maintainEvery = time.Minute
	pruneEvery    = 24 * time.Hour

	// The text of a secret is a prefix, so that a leaked token is recognised, and
	// random bytes in the URL alphabet without padding.
	secretPrefix = "dvp_"
	secretBytes  = 32
	secretText   = len(secretPrefix) + (secretBytes*8+5)/6
)

// Errors of an Access. Errors of the store are wrapped.
var (
	// ErrNonceExpired and ErrNonceUsed are kinds of desk.ErrBadNonce.
	ErrNonceExpired = fmt.Errorf("%w: it has expired: request a new one", desk.ErrBadNonce)
	ErrNonceUsed    = fmt.Errorf("%w: it was used before: request a new one", desk.ErrBadNonce)
	// ErrUnknownToken: the log has no token of this id.
	ErrUnknownToken = errors.New("access: no such token")
	// ErrName: the operator's name is empty or longer than MaxName bytes.
	ErrName = errors.New("access: the operator's name is empty or too long")
	// ErrLayout: the store has an entry that this version cannot read.
	ErrLayout = errors.New("access: record cannot be read")
	// ErrOptions: an option is out of its range.
	ErrOptions = errors.New("access: an option is out of range")
)

// Options of an Access. The zero value of a field is its default.
type Options struct {
	// Now returns Unix nanoseconds. Default: the system's clock.
	Now func() int64
	// Elapsed returns the time since some moment by a monotonic clock. Default: since
	// Open.
	Elapsed func() time.Duration
	// MaxTokens and MaxUsedNonces are limits, at least 1. Default: the constants.
	MaxTokens     int
	MaxUsedNonces int
	// IssueWindow is the least time between two tokens of a client, from a millisecond
	// to an hour. Default: the constant. Demos have a shorter one.
	IssueWindow time.Duration
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Elapsed == nil {
		start := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(start) }
	}
	o.MaxTokens = cmp.Or(o.MaxTokens, MaxTokens)
	o.MaxUsedNonces = cmp.Or(o.MaxUsedNonces, MaxUsedNonces)
	o.IssueWindow = cmp.Or(o.IssueWindow, IssueWindow)
	return o
}

// Validate reports the first field that is out of its range. Errors: [ErrOptions].
func (o Options) Validate() error {
	o = o.withDefaults()
	if o.MaxTokens < 1 || o.MaxUsedNonces < 1 {
		return fmt.Errorf("%w: %d tokens, %d used nonces: must be 1 or more", ErrOptions, o.MaxTokens, o.MaxUsedNonces)
	}
	if o.IssueWindow < time.Millisecond || o.IssueWindow > IssueWindow {
		return fmt.Errorf("%w: issue window %s: must be 1ms to %s", ErrOptions, o.IssueWindow, IssueWindow)
	}
	return nil
}

// Access issues, admits and revokes tokens.
type Access struct {
	kv         kv.Store
	clock      clock
	process    [32]byte // key of the nonces' tags
	usedNonces usedNonces
	maxTokens  int
	window     int64 // ns between two tokens of a client

	// writer is held while the log and the tables that mirror it in memory change,
	// until the change is on disk.
	writer sync.Mutex
	last   int64 // the newest token's number
	pruned int64 // issues before this number are deleted
	// queue has every token of the last seven days, the oldest first. The first
	// pastWindow tokens of it are older than the window.
	queue      []issue
	pastWindow int

	// mu is held for one look into a map, or one change.
	mu         sync.RWMutex
	live       map[[32]byte]token // by hash; removed when revoked, and some time after expiry
	lastIssued map[[16]byte]int64 // by client, within the window
}

// token is the part of an issue that Admit needs.
type token struct {
	key  solana.Address
	ends int64
}

// Open reads the tokens that have not expired. No one else may write to this package's
// part of store. Errors: [ErrOptions], [ErrLayout], errors of the store.
func Open(o Options, store kv.Store) (*Access, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	a := &Access{
		kv: store, clock: clock{wall: o.Now, elapsed: o.Elapsed}, maxTokens: o.MaxTokens, window: int64(o.IssueWindow),
		live: map[[32]byte]token{}, lastIssued: map[[16]byte]int64{},
	}
	a.usedNonces = usedNonces{clock: &a.clock, max: o.MaxUsedNonces}
	rand.Read(a.process[:]) // it never fails: it would end the process
	if err := kv.CheckLayout(kv.Named(store, "access: store"), keyVersion, layoutVersion, ErrLayout); err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, fmt.Errorf("access: open: %w", err)
	}
	return a, nil
}

func (a *Access) load() error {
	latest, err := readTime(a.kv)
	if err != nil {
		return err
	}
	a.clock.startAt(latest)
	now := a.clock.now()
	err = eachIssue(a.kv, now-int64(TokenLifetime), func(i *issue) error {
		_, revoked, err := readRevocation(a.kv, i.at)
		a.addIssue(i, revoked)
		return err
	})
	if err == nil {
		a.sweep(now)
	}
	return err
}

// Challenge returns a new nonce for a key and stores nothing. Errors:
// [desk.ErrBadKey].
func (a *Access) Challenge(key solana.Address) (desk.Challenge, error) {
	if !eddsa.ValidKey(key) {
		return desk.Challenge{}, desk.ErrBadKey
	}
	n := newNonce(key, a.clock.now())
	n.seal(a.process)
	return desk.Challenge{Nonce: n.text(), ExpiresAt: n.expires()}, nil
}

// Issue verifies the proof that a client has a key, its signature over the nonce's
// text, and returns a token that is bound to the key and on disk. client is an IPv4
// address in its IPv6 form, or the first eight bytes of an IPv6 address. It waits for
// the disk. Errors, in the order of the checks: [desk.ErrBadNonce],
// [desk.ErrTokensFull], [*desk.TooSoon], [desk.ErrBadProof], errors of the store; a
// valid nonce is used up by any of them.
func (a *Access) Issue(key solana.Address, nonce string, signature [64]byte, client [16]byte) (desk.Grant, error) {
	n, ok := parseNonce(nonce)
	if !ok || !n.sealed(a.process) {
		return desk.Grant{}, desk.ErrBadNonce
	}
	if err := a.usedNonces.use(&n); err != nil {
		return desk.Grant{}, err
	}
	if n.key() != key {
		return desk.Grant{}, desk.ErrBadNonce
	}
	if err := a.checkInterval(client, a.clock.now()); err != nil {
		return desk.Grant{}, err
	}
	if !eddsa.Verify(key, []byte(nonce), signature) {
		return desk.Grant{}, desk.ErrBadProof
	}
	return a.grant(key, client)
}

// checkInterval returns a *TooSoon until a client's window is over.
func (a *Access) checkInterval(client [16]byte, now int64) error {
	a.mu.RLock()
	at, there := a.lastIssued[client]
	a.mu.RUnlock()
	if rest := at + a.window - now; there && rest > 0 {
		return &desk.TooSoon{RetryAfter: time.Duration(rest)}
	}
	return nil
}

// grant issues a token for a proved key. Of two concurrent proofs of a client the
// second gets a *TooSoon, unless the store has failed the first.
func (a *Access) grant(key solana.Address, client [16]byte) (desk.Grant, error) {
	a.writer.Lock()
	defer a.writer.Unlock()
	now := a.clock.now()
	a.sweep(now)
	if err := a.checkInterval(client, now); err != nil {
		return desk.Grant{}, err
	}
	if len(a.queue) >= a.maxTokens {
		return desk.Grant{}, desk.ErrTokensFull
	}
	secret := newSecret()
	// A number is used once, even if the commit fails.
	a.last = max(now, a.last+1)
	i := issue{at: a.last, ends: a.last + int64(TokenLifetime), hash: sha256.Sum256([]byte(secret)), key: key, client: client}
	err := a.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(tokenKey(keyIssue, i.at), i.value())
		set([]byte{keyTime}, timeValue(i.at))
	}, true)
	if err != nil {
		return desk.Grant{}, fmt.Errorf("access: issue: %w", err)
	}
	a.addIssue(&i, false)
	return desk.Grant{Secret: secret, ID: idOf(i.at), ExpiresAt: i.ends, Key: key}, nil
}

func newSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // it never fails: it would end the process
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// addIssue adds a token of the log to the tables in memory, in the order of the
// log. The caller holds writer, or is Open.
func (a *Access) addIssue(i *issue, revoked bool) {
	a.last = i.at
	a.queue = append(a.queue, *i)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastIssued[i.client] = i.at
	if !revoked {
		a.live[i.hash] = token{key: i.key, ends: i.ends}
	}
}

// sweep removes clients whose window is over, and expired tokens. It releases mu
// after each, so that readers do not wait for all. The caller holds writer, or is
// Open.
func (a *Access) sweep(now int64) {
	for a.pastWindow < len(a.queue) && a.queue[a.pastWindow].at+a.window <= now {
		i := &a.queue[a.pastWindow]
		a.pastWindow++
		a.mu.Lock()
		if a.lastIssued[i.client] == i.at { // load has added older ones too
			delete(a.lastIssued, i.client)
		}
		a.mu.Unlock()
	}
	for a.pastWindow > 0 && a.queue[0].ends <= now {
		a.forget(a.queue[0].hash)
		a.queue, a.pastWindow = a.queue[1:], a.pastWindow-1
	}
}

func (a *Access) forget(hash [32]byte) {
	a.mu.Lock()
	delete(a.live, hash)
	a.mu.Unlock()
}

// Admit returns the key that a token is bound to: only that key may build and sign
// with it. ok is false if the token is unknown, expired or revoked. It compares
// hashes, so its duration reveals nothing of the secrets. It allocates nothing and
// does not keep secret.
func (a *Access) Admit(secret []byte) (key solana.Address, ok bool) {
	if len(secret) != secretText {
		return key, false
	}
	hash := sha256.Sum256(secret)
	a.mu.RLock()
	t, ok := a.live[hash]
	a.mu.RUnlock()
	if !ok || a.clock.now() >= t.ends {
		return key, false
	}
	return t.key, true
}

// Live returns the number of valid tokens. An expired one counts for up to a minute
// more.
func (a *Access) Live() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.live)
}

// Run drops what has expired and stores the time, until ctx ends. It returns the
// store's error if there is one; tokens are still admitted then.
func (a *Access) Run(ctx context.Context) error {
	t := time.NewTicker(maintainEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return a.maintain()
		case <-t.C:
			if err := a.maintain(); err != nil {
				return err
			}
		}
	}
}
