package httpgw

import (
	"cmp"
	"net"
	"strings"

	"blockdesk/catalog"
)

// publicURLs returns u with empty URLs replaced by those of the listeners, and without
// slashes at the end.
func publicURLs(u catalog.URLs, base, api, ws net.Addr) catalog.URLs {
	u.Base = cmp.Or(u.Base, "http://"+printable(base))
	u.API = cmp.Or(u.API, "http://"+printable(api))
	u.WS = cmp.Or(u.WS, "ws://"+printable(ws))
	u.Mirror = cmp.Or(u.Mirror, u.Base)
	u.Native = cmp.Or(u.Native, u.Base)
	for _, text := range []*string{&u.Base, &u.API, &u.WS, &u.Mirror, &u.Native} {
		*text = strings.TrimRight(*text, "/")
	}
	return u
}

// printable returns a listener's address as a client on this machine reaches it.
func printable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
