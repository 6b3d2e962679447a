package config

import (
	"strings"
	"testing"
)

// An address that no listener could take is refused with its key, as is an entry of
// trusted_proxies that is neither an address nor a prefix.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"listen: {fix: '127.0.0.1:99999'}":                    "listen.fix: \"127.0.0.1:99999\": want host:port",
		"listen: {base: '127.0.0.1'}":                         "listen.base: ",
		"listen: {api: '127.0.0.1:-1'}":                       "listen.api: ",
		"listen: {ws: '::1:80'}":                              "listen.ws: ",
		"listen: {admin: '127.0.0.1:65536'}":                  "listen.admin: ",
		"listen: {chain: '127.0.0.1:x'}":                      "listen.chain: ",
		"listen: {fix: ':0', base: '[::1]:65535', api: 'a:'}": "",
		"trusted_proxies: [10.0.0.0/8, '::1']":                "",
		"trusted_proxies: [10.0.0.0/8, nobody]":               "trusted_proxies: ParseAddr(\"nobody\"): unable to parse IP",
		"trusted_proxies: [10.0.0.0/33]":                      "trusted_proxies: netip.ParsePrefix(\"10.0.0.0/33\"): ",
	} {
		cfg, err := loadYAML(t, text)
		if want == "" && err == nil {
			_, err = cfg.ProxyPrefixes()
		}
		if (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
