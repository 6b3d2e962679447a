package site

import (
	"testing"

	"blockdesk/catalog"
)

// TestPublish: members keep their order, white space goes, and the default addresses
// are replaced everywhere, each by its own URL.
func TestPublish(t *testing.T) {
	urls := catalog.URLs{Base: "https://desk.example/a", API: "http://127.0.0.1:8080", WS: `wss://"quoted"\`}
	const in = `{
  "z": "http://127.0.0.1:8080",
  "b": ["curl 'http://127.0.0.1:8000/x y' <&>", "ws://127.0.0.1:8081/ws"],
  "a": 1.50, "c": "http://127.0.0.1:8090 http://127.0.0.1"
}`
	const want = `{"z":"https://desk.example/a","b":["curl 'http://127.0.0.1:8080/x y' <&>","wss://\"quoted\"\\/ws"],` +
		`"a":1.50,"c":"http://127.0.0.1:8090 http://127.0.0.1"}`
	if got := string(Publish([]byte(in), &urls)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestPublishServers: a server of an AsyncAPI document, which has no URL, gets this
// service's address, also with TLS and a path.
func TestPublishServers(t *testing.T) {
	const in = `{"a": {"host": "127.0.0.1:8081", "protocol": "ws"}, "b": {"host": "127.0.0.1:8080", "protocol": "ws"},
		"c": {"host": "127.0.0.1:8080", "protocol": "http", "x": 1}, "d": {"host": "127.0.0.1:8000", "protocol": "http"}}`
	const want = `{"a":{"host":"ws.example","protocol":"wss"},"b":{"host":"desk.example","protocol":"wss","pathname":"/a"},` +
		`"c":{"host":"desk.example","protocol":"https","pathname":"/a","x":1},"d":{"host":"127.0.0.1:9","protocol":"http"}}`
	urls := catalog.URLs{Base: "https://desk.example/a", API: "http://127.0.0.1:9", WS: "wss://ws.example"}
	if got := string(Publish([]byte(in), &urls)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
