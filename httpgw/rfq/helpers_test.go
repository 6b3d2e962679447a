package rfq

import (
	"testing"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// pagesOf returns the pages of a desk without a gateway.
func pagesOf(t testing.TB, desk DeskReader, c *gatewaytest.DeskClock) *pages {
	t.Helper()
	b := gatewaytest.NewBooks(t)
	about := &wire.Description{}
	about.ApplyDefaults()
	return newPages(DeskSource{desk, b.Set, b}, &Options{
		About: about, Now: c.Now, Network: func() string { return catalog.ExecutionNetwork },
		URLs: catalog.URLs{
			Base: "https://desk.example", API: "https://api.example", WS: "wss://ws.example",
			Mirror: "https://mirror.example", Native: "https://native.example",
		},
	})
}

func (d document) String() string {
	return [documentCount]string{
		"status", "sellable", "tickets", "compact", "levels", "pairs", "tokens", "rails", "manifest", "discovery",
		"board", "desk",
	}[d]
}
