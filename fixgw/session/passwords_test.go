package session

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/participants/participantstest"
)

// TestBackOff: an address with wrong passwords waits longer each time, alone, up to a
// limit, and is forgiven.
func TestBackOff(t *testing.T) {
	t.Parallel()
	p, err := newPasswords()
	if err != nil {
		t.Fatal(err)
	}
	bad, good, now := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), time.Unix(1_800_000_000, 0)
	for n := range freeFailures {
		p.wrong(bad, now)
		if err := p.mayTry(bad, now); err != nil {
			t.Fatalf("%d wrong passwords: %v", n+1, err)
		}
	}
	for wait := firstWait; ; wait *= 2 {
		p.wrong(bad, now)
		wait = min(wait, maxWait)
		if err := p.mayTry(bad, now.Add(wait-time.Nanosecond)); err == nil || !strings.HasPrefix(err.Error(), "RATE_LIMITED: ") {
			t.Fatalf("just before %v: %v", wait, err)
		}
		if err := p.mayTry(bad, now.Add(wait)); err != nil {
			t.Fatalf("after %v: %v", wait, err)
		}
		if now = now.Add(wait); wait == maxWait {
			break
		}
	}
	if err := p.mayTry(good, now); err != nil {
		t.Errorf("another address: %v", err)
	}
	now = now.Add(forgiveAfter + time.Second)
	p.wrong(bad, now)
	if err := p.mayTry(bad, now); err != nil {
		t.Errorf("forgiven: %v", err)
	}
}

// TestAddressesAreBounded: the memory of addresses has a limit, and the newest are in it.
func TestAddressesAreBounded(t *testing.T) {
	t.Parallel()
	p, err := newPasswords()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	for n := range 3 * maxAddresses {
		a := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		now = now.Add(time.Millisecond)
		p.wrong(a, now)
		p.right(a, now)
		if len(p.failed) > maxAddresses || len(p.known) > maxAddresses || !p.isKnown(a) || p.failed[a].count != 1 {
			t.Fatalf("after %d: %d and %d addresses", n, len(p.failed), len(p.known))
		}
	}
}

// TestRememberedPassword: a password that was right once is right again without a check,
// also from an address that has to wait, until the hash changes.
func TestRememberedPassword(t *testing.T) {
	t.Parallel()
	p, err := newPasswords()
	if err != nil {
		t.Fatal(err)
	}
	hashed := (&participants.Participant{PasswordHash: participantstest.Hash("secret")})
	hash, _, err := hashed.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c, s := bareConn(Options{}, ours), &Session{}
	if right, err := p.check(c, s, hash, []byte("secret")); !right || err != nil {
		t.Fatalf("%v, %v", right, err)
	}
	for range freeFailures + 7 {
		p.wrong(c.address, time.Now())
	}
	if right, err := p.check(c, s, hash, []byte("secret")); !right || err != nil {
		t.Errorf("again: %v, %v", right, err)
	}
	if right, err := p.check(c, s, hash, []byte("secreT")); right || err == nil {
		t.Errorf("a wrong one: %v, %v", right, err)
	}
	if hashed.PasswordHash, err = participants.HashPassword("secret"); err != nil { // another salt
		t.Fatal(err)
	}
	if hash, _, err = hashed.Credentials(); err != nil {
		t.Fatal(err)
	}
	if right, err := p.check(c, s, hash, []byte("secret")); right || err == nil {
		t.Errorf("with another hash: %v, %v", right, err)
	}
}
