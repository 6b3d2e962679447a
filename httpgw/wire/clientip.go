package wire

import (
	"bytes"
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/valyala/fasthttp"
)

// maxForwarded bounds the addresses of a forwarding header that are read.
const maxForwarded = 32

// Proxies are the trusted peers that may name the client of a request. The zero value
// trusts none.
type Proxies struct {
	trusted []netip.Prefix
	header  string
}

// NewProxies returns the proxies at the trusted addresses. They name the client in
// header; empty means X-Forwarded-For.
func NewProxies(trusted []netip.Prefix, header string) *Proxies {
	return &Proxies{trusted: slices.Clone(trusted), header: cmp.Or(header, fasthttp.HeaderXForwardedFor)}
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, prefix := range p.trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address that a request's limits count: the peer, or, if the peer
// is a trusted proxy, the last address in the forwarding header that is not a trusted
// proxy. Each proxy appends the address it saw, so the client may have invented
// everything to the left of it. An entry that is not an address ends the search, and
// the proxy that wrote it counts.
func (p *Proxies) Client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer := peerOf(ctx.RemoteAddr())
	if len(p.trusted) == 0 || !p.trusts(peer) {
		return peer
	}
	client := peer
	lines := p.lines(&ctx.Request.Header)
	for walked := 0; len(lines) > 0; lines = lines[:len(lines)-1] {
		rest := lines[len(lines)-1]
		for more := true; more; walked++ {
			entry := rest
			comma := bytes.LastIndexByte(rest, ',')
			if more = comma >= 0; more {
				entry, rest = rest[comma+1:], rest[:comma]
			}
			addr, ok := parseForwarded(bytes.TrimSpace(entry))
			if !ok || walked == maxForwarded {
				return client
			}
			client = addr
			if !p.trusts(addr) {
				return client
			}
		}
	}
	return client
}

// lines returns the values of the forwarding header in order. fasthttp appends the
// trailers of a chunked body to the headers; lines leaves them out, because the client
// itself wrote them.
func (p *Proxies) lines(h *fasthttp.RequestHeader) [][]byte {
	all := h.PeekAll(p.header)
	raw := h.RawHeaders()
	if len(all) == 0 || len(raw) == 0 {
		return all
	}
	headers := 0
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte{'\n'})
		name, _, _ := bytes.Cut(line, []byte{':'})
		if bytes.EqualFold(name, []byte(p.header)) {
			headers++
		}
	}
	return all[:min(headers, len(all))]
}

// peerOf returns the IP address of a TCP peer. All other sockets share one address.
func peerOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.IPv6Unspecified()
	}
	return tcp.AddrPort().Addr().Unmap()
}

// parseForwarded parses an address with or without a port.
func parseForwarded(text []byte) (netip.Addr, bool) {
	if len(text) == 0 || len(text) > 64 {
		return netip.Addr{}, false
	}
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		return addr.WithZone("").Unmap(), true
	}
	withPort, err := netip.ParseAddrPort(string(text))
	return withPort.Addr().WithZone("").Unmap(), err == nil
}
