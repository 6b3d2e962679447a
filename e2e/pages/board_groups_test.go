package pages

import (
	"slices"
	"testing"

	"blockdesk/e2e/browsertest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// TestBoardOfGroups: a shard's board is live for all shards' pairs, each from its own
// feed, and names those that are not.
func TestBoardOfGroups(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	here, there := programtest.StartTwoGroups(t)
	p := c.Open(here.At.Base+"/board", "")
	live := func(symbol string) {
		t.Helper()
		p.Await("the book of "+symbol, "document.getElementById('where').textContent.startsWith('"+symbol+" ') && "+
			"document.getElementById('asks').children.length > 0 && document.getElementById('age').dataset.state === 'live'")
	}
	live("SLUSD/USDC")
	p.Await("offers of both groups", "['SLUSD/USDC', '92C/SLUSD'].every((pair) => "+
		"[...document.querySelectorAll('#ticket-rows tr')].some((row) => row.textContent.includes(pair)))")
	p.Click("#pairs [data-symbol='92C/SLUSD']")
	live("92C/SLUSD")
	requests, faults := p.Observed()
	if len(faults) > 0 {
		t.Errorf("faults: %q", faults)
	}
	for _, feed := range []string{here.At.WS, there.At.WS} {
		if !slices.Contains(requests, feed+"/ws/rfq") {
			t.Errorf("%s/ws/rfq is not among %q", feed, requests)
		}
	}
	p.Await("no banner", "!document.getElementById('banners').textContent.includes('Not live')")

	if err := there.Stop(); err != nil {
		t.Fatal(err)
	}
	// A slow machine may find the other book late too, for a moment.
	p.Await("what is not live, and where it is", "document.getElementById('banners').textContent.includes('Not live: 92C/SLUSD.') && "+
		"!document.getElementById('banners').textContent.includes('SLUSD/USDC') && document.querySelector('#banners a').href === '"+there.At.Base+"/board'")
	p.Click("#pairs [data-symbol='SLUSD/USDC']")
	live("SLUSD/USDC")
}
