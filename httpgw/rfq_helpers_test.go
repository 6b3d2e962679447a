package httpgw

import (
	"testing"

	"blockdesk/catalog"
)

// pagesOf makes the pages of a desk beside any gateway.
func pagesOf(t testing.TB, desk deskReader, c *deskClock) *rfqPages {
	t.Helper()
	b := newBooks(t)
	about := &Description{}
	about.ApplyDefaults()
	return newRFQPages(deskSource{desk, b.set, b}, &rfqOptions{
		About: about, Now: c.now,
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
