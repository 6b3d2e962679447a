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
		"trusted_proxies: [10.0.0.0/8, nobody]":               "trusted_proxies: \"nobody\": want an IP address, or a prefix such as 10.0.0.0/8 (",
		"trusted_proxies: [10.0.0.0/33]":                      "trusted_proxies: \"10.0.0.0/33\": want an IP address, or a prefix such as 10.0.0.0/8 (",
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

// An unknown key of a file is reported with the name of its section that is most like it.
func TestUnknownKeys(t *testing.T) {
	for text, want := range map[string]string{
		"listen: {fxi: '127.0.0.1:0'}":                     `[1:10] unknown field "fxi": did you mean "fix"?`,
		"lisen: {fix: '127.0.0.1:0'}":                      `[1:1] unknown field "lisen": did you mean "listen"?`,
		"rfq:\n  pairs:\n    - {simbol: A/B}":              `[3:8] unknown field "simbol": did you mean "symbol"?`,
		"prices: {SOL: {max_age: 5}}":                      `[1:16] unknown field "max_age": did you mean "max_age_s"?`,
		"nothing_like_a_setting_of_this_program: {fix: 1}": `[1:1] unknown field "nothing_like_a_setting_of_this_program"`,
	} {
		if _, err := loadYAML(t, text); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
