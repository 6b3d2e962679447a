package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// SettlementToken is the token that claims are settled in first (description, 2.5).
const SettlementToken = "USDC"

// Settles reports whether the desk settles claims on a chain.
func (c *Config) Settles() bool { return c.RFQ.Enabled && c.Chain.RPCURLs != "" }

// Budget returns the compute limit and price of our transactions.
func (s *Settle) Budget() build.Budget {
	return build.Budget{Units: uint32(s.Units), MicroLamports: uint64(s.MicroLamports)}
}

// TreasuryWallets returns the wallets of settle.treasury.
func (s *Settle) TreasuryWallets() (out []market.Address, err error) {
	for _, text := range SplitList(s.Treasury) {
		a, err := ParseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("settle.treasury: %w", err)
		}
		out = append(out, a)
	}
	return out, nil
}

// DustByRail returns the dust limits in atoms.
func (s *Settle) DustByRail() (out [market.RailCount]market.Amount, err error) {
	return dustByRail(s.DustUSDC, s.DustSOL)
}

func dustByRail(usdc, sol string) (out [market.RailCount]market.Amount, err error) {
	for rail, text := range map[market.Rail]string{market.RailUSDC: usdc, market.RailSOL: sol} {
		if out[rail], err = dustOf(rail)(text); err != nil {
			return out, err
		}
	}
	return out, nil
}

// ChainHosts returns the nodes' host and port.
func (c *Config) ChainHosts() (out []string) {
	for _, text := range SplitList(c.Chain.RPCURLs) {
		if u, err := url.Parse(text); err == nil {
			out = append(out, u.Host)
		}
	}
	return out
}

// RPCOptions returns the options of the client of these nodes.
func (c *Chain) RPCOptions() (rpc.Options, error) {
	list, err := upstreams(c.RPCURLs)
	return rpc.Options{
		Upstreams: list, Timeout: Millis(c.TimeoutMS), AttemptTimeout: Millis(c.AttemptTimeoutMS),
	}, err
}

// Seconds converts a number of seconds.
func Seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// Millis converts a number of milliseconds.
func Millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// IsLoopback reports whether a host, with or without a port, is a loopback address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// ProxyPrefixes parses trusted_proxies.
func (c *Config) ProxyPrefixes() (out []netip.Prefix, err error) {
	for _, text := range c.TrustedProxies {
		p, err := parseProxy(text)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Nanos converts seconds to nanoseconds.
func Nanos(n int) int64 { return int64(Seconds(n)) }
