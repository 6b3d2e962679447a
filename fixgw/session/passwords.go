package session

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
)

// A check of a password takes a core for some 40 ms, because its hash is made to be slow.
// So that neither a storm of reconnects nor a client that guesses keeps others out:
//
//   - All cores check, and a check is dropped if its client has gone meanwhile.
//   - The password that a session was authenticated by is remembered, as a keyed hash in memory:
//     the next Logon with it costs a microsecond.
//   - An address with too many wrong passwords waits, longer each time, before another one
//     is checked. A remembered password is not affected: it may come from the same address.
//
// An address is the peer's, or its /64 for IPv6.

const (
	// freeFailures is how many wrong passwords of an address have no consequence.
	freeFailures = 5
	// firstWait doubles with each further one, up to maxWait.
	firstWait = time.Second
	maxWait   = 64 * time.Second
	// forgiveAfter is how long after its last wrong password an address is as new.
	forgiveAfter = 10 * time.Minute
	// maxAddresses limits the addresses that are remembered, of either kind.
	maxAddresses = 4096
)

// errClientClosed ends a Logon whose client has closed the connection.
var errClientClosed = errors.New("client is gone")

// passwords checks passwords and remembers the results. Any goroutine.
type passwords struct {
	slots chan struct{} // one for each check
	key   [sha256.Size]byte

	mu     sync.Mutex
	failed map[netip.Addr]failures
	known  map[netip.Addr]time.Time // addresses that have logged on, and when last
}

// failures are the wrong passwords of an address.
type failures struct {
	count int
	last  time.Time
	until time.Time // no check before it
}

func newPasswords() (*passwords, error) {
	p := &passwords{
		slots:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		failed: make(map[netip.Addr]failures), known: make(map[netip.Addr]time.Time),
	}
	_, err := rand.Read(p.key[:])
	return p, err
}

func (p *passwords) mac(password []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, p.key[:])
	h.Write(password) // never fails
	h.Sum(sum[:0])
	return sum
}

// check returns whether password has the hash. s is nil if the CompID is unknown; then
// hash is one that no password has. The error is for the client, or errClientClosed.
func (p *passwords) check(c *conn, s *Session, hash *participants.PasswordHash, password []byte) (right bool, err error) {
	if len(password) > participants.MaxPassword {
		password = password[:participants.MaxPassword]
	}
	mac := p.mac(password)
	if s != nil {
		if was := s.lastPassword.Load(); was != nil && was.hash == hash.String() && hmac.Equal(was.mac[:], mac[:]) {
			return true, nil
		}
	}
	if err := p.mayTry(c.address, c.host.options.Now()); err != nil {
		return false, err
	}
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	if c.clientGone() {
		return false, errClientClosed
	}
	if err := p.mayTry(c.address, c.host.options.Now()); err != nil { // others of it have failed meanwhile
		return false, err
	}
	right = hash.Verify(password)
	if right && s != nil {
		s.lastPassword.Store(&lastPassword{hash: hash.String(), mac: mac})
	}
	return right, nil
}

// mayTry returns the refusal of an address that must wait.
func (p *passwords) mayTry(address netip.Addr, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := p.failed[address].until.Sub(now); wait > 0 {
		return fmt.Errorf("%s: too many wrong passwords from your address, try again in %d s", wire.CodeRateLimited, int64(wait/time.Second)+1)
	}
	return nil
}

// wrong counts a wrong password.
func (p *passwords) wrong(address netip.Addr, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.failed[address]
	if now.Sub(f.last) > forgiveAfter {
		f.count = 0
	}
	f.count++
	f.last = now
	if over := f.count - freeFailures; over > 0 {
		f.until = now.Add(min(maxWait, firstWait<<min(over-1, 10)))
	}
	if len(p.failed) >= maxAddresses {
		p.forget(now)
	}
	p.failed[address] = f
}

// forget makes room for another failed address: it drops those that are forgiven, or any
// half if there are none. It needs mu.
func (p *passwords) forget(now time.Time) {
	for address, f := range p.failed {
		if now.Sub(f.last) > forgiveAfter {
			delete(p.failed, address)
		}
	}
	for address := range p.failed {
		if len(p.failed) <= maxAddresses/2 {
			return
		}
		delete(p.failed, address)
	}
}

// right remembers an address that has logged on. A client that guesses right at last
// is as patient as before: its failures stay.
func (p *passwords) right(address netip.Addr, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.known[address]; !ok && len(p.known) >= maxAddresses {
		oldest := address
		at := now
		for a, t := range p.known {
			if t.Before(at) {
				oldest, at = a, t
			}
		}
		delete(p.known, oldest)
	}
	p.known[address] = now
}

// isKnown reports whether an address has logged on.
func (p *passwords) isKnown(address netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.known[address]
	return ok
}
