package session

import (
	"net"
	"net/netip"
	"testing"
)

// from is a connection of which only the peer is known.
type from struct {
	net.Conn
	peer string
}

func (f from) RemoteAddr() net.Addr { return f }
func (from) Network() string        { return "tcp" }
func (f from) String() string       { return f.peer }

// TestOneSubscriberIsOneAddress: a client that can choose among the addresses of a /64
// gets no more connections by it.
func TestOneSubscriberIsOneAddress(t *testing.T) {
	t.Parallel()
	for peer, want := range map[string]string{
		"192.0.2.7:1":            "192.0.2.7",
		"[::ffff:192.0.2.7]:1":   "192.0.2.7",
		"[2001:db8:0:1::1]:1":    "2001:db8:0:1::",
		"[2001:db8:0:1:f::2]:99": "2001:db8:0:1::",
		"[2001:db8:0:2::1]:1":    "2001:db8:0:2::",
		"[fe80::1%eth0]:1":       "fe80::",
	} {
		if got := addressOf(from{peer: peer}); got != netip.MustParseAddr(want) {
			t.Errorf("%s counts as %v, want %s", peer, got, want)
		}
	}
	if got := addressOf(from{peer: "pipe"}); got != (netip.Addr{}) {
		t.Errorf("no address counts as %v", got)
	}
}
