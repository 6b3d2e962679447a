package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// checkListenAddress checks that a listener could take host:port. It looks no host up.
func checkListenAddress(text string) error {
	if text == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q: want host:port with a port from 0 to 65535", text)
	}
	return nil
}

// ProxyPrefixes parses trusted_proxies.
func (c *Config) ProxyPrefixes() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		p, err := parseProxy(text)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

func checkProxy(text string) error {
	_, err := parseProxy(text)
	return err
}

// parseProxy parses an address or a prefix.
func parseProxy(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}
