package sdk

import (
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
)

// TestPythonCcxt: ccxt's own checks of its structures accept what blockdesk.exchange
// returns, and its exceptions are ccxt's.
func TestPythonCcxt(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	python := programtest.Tool(t, "python3")
	if out, err := programtest.RunClient(t, python, "-c", "import ccxt.test.exchange.base.test_order"); err != nil {
		runtest.SkipMissing(t, "ccxt ("+out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]+")", "python3 -m pip install ccxt")
	}
	s := newPythonSDK(t, "--set", "http.market_data_per_minute=0") // it asks until there are prices
	at := &s.d.At
	await.True(t, "prices on both sides of the book", func() bool {
		book := programtest.Get(t, at.Base+"/api/v1/market/depth?symbol="+programtest.Symbol)
		return strings.Contains(book, `"bids":[["`) && strings.Contains(book, `"asks":[["`)
	})
	out, err := s.script(t, "", "live_ccxt.py", at.Base, at.FIX, at.Chain, demo.Address(demo.Wallet(1)))
	if err != nil || !strings.Contains(out, "all structures are sound") {
		t.Errorf("%v\n%s", err, out)
	}
}
