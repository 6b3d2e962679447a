package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/browsertest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// boardShown has the texts of the board as a user sees them.
type boardShown struct {
	Book, Tape, Ticker struct{ Epoch, Seq string }
	Asks, Bids         [][3]string // price, quantity, total; asks worst first
	Trades             [][4]string // price, quantity, time, side; newest first
	Last, High, Low    string
	Offers             [][4]string // order_id, available, best price, verified
	Layers             []string
	Ladder             [][3]string // fill, price, amount; of fills that can be had
}

// readBoard reads the whole board at once.
const readBoard = `
const texts = (e) => [...e.children].map((c) => c.dataset.exact ?? c.textContent);
const rows = (id) => [...document.getElementById(id).children];
const place = (id) => ({ epoch: document.getElementById(id).dataset.epoch ?? '', seq: document.getElementById(id).dataset.seq ?? '' });
const say = (id) => document.getElementById(id).textContent;
return {
  book: place('book'), tape: place('tape'), ticker: place('ticker'), asks: rows('asks').map(texts), bids: rows('bids').map(texts),
  trades: rows('trades').map((r) => [...texts(r), r.firstElementChild.dataset.side]), last: say('last'), high: say('high'), low: say('low'),
  offers: rows('ticket-rows').map((r) => [r.dataset.order, r.querySelector('.amount').textContent, r.querySelector('.best').textContent, r.querySelector('.chip:last-child').textContent]),
  layers: [...['layer-1', 'layer-2', 'layer-3'].map(say), document.getElementById('layer-3').dataset.verified],
  ladder: rows('ladder-rows').filter((r) => r.dataset.off === undefined).map((r) => { const [fill, , price, base] = texts(r); return [fill, price, base]; }),
};`

// plain removes the separators from a number.
func plain(text string) string { return strings.ReplaceAll(text, ",", "") }

// sameNumber compares decimals by value.
func sameNumber(a, b string) bool {
	x, ok := new(big.Rat).SetString(plain(a))
	y, alsoOK := new(big.Rat).SetString(plain(b))
	return ok && alsoOK && x.Cmp(y) == 0
}

// boardRest has the same data from REST.
type boardRest struct {
	Epoch      string
	Seq        uint64
	Bids, Asks [][2]string
	Trades     []struct{ Price, Qty, Side, TS string }
	Last       string
	High       string `json:"high_24h"`
	Low        string `json:"low_24h"`
}

func (r *boardRest) place() struct{ Epoch, Seq string } {
	return struct{ Epoch, Seq string }{r.Epoch, fmt.Sprint(r.Seq)}
}

// boardEquals waits until the board has the state of REST, and compares all numbers.
func boardEquals(t *testing.T, p *browsertest.Tab, s *server.Server) {
	t.Helper()
	var shown boardShown
	var depth, trades, ticker boardRest
	await.True(t, "the board where REST is", func() bool {
		for name, into := range map[string]*boardRest{"depth": &depth, "trades": &trades, "ticker": &ticker} {
			*into = boardRest{}
			programtest.GetJSON(t, s.Addresses.Base+"/api/v1/market/"+name+"?symbol="+programtest.Symbol, into)
		}
		shown = boardShown{}
		p.Read(readBoard, &shown)
		return shown.Book == depth.place() && shown.Tape == trades.place() && shown.Ticker == ticker.place()
	})
	slices.Reverse(shown.Asks)
	for side, levels := range map[string][2]any{"bids": {shown.Bids, depth.Bids}, "asks": {shown.Asks, depth.Asks}} {
		sameLevels(t, side, levels[0].([][3]string), levels[1].([][2]string))
	}
	if len(shown.Trades) != len(trades.Trades) {
		t.Errorf("%d trades are shown, REST has %d", len(shown.Trades), len(trades.Trades))
	}
	for i, x := range shown.Trades[:min(len(shown.Trades), len(trades.Trades))] {
		if want := trades.Trades[i]; plain(x[0]) != want.Price || plain(x[1]) != want.Qty || !strings.Contains(want.TS, "T"+x[2]) || x[3] != want.Side {
			t.Errorf("trade %d: %q is shown, REST has %+v", i, x, want)
		}
	}
	if plain(shown.Last) != ticker.Last || plain(shown.High) != ticker.High || plain(shown.Low) != ticker.Low {
		t.Errorf("ticker: %s %s %s is shown, REST has %s %s %s", shown.Last, shown.High, shown.Low, ticker.Last, ticker.High, ticker.Low)
	}
}

func sameLevels(t *testing.T, side string, shown [][3]string, want [][2]string) {
	t.Helper()
	if len(shown) == 0 || len(shown) > len(want) {
		t.Errorf("%s: %d levels are shown, REST has %d", side, len(shown), len(want))
		return
	}
	total := new(big.Rat)
	for i, level := range shown {
		qty, _ := new(big.Rat).SetString(want[i][1])
		total.Add(total, qty)
		if plain(level[0]) != want[i][0] || plain(level[1]) != want[i][1] || plain(level[2]) != total.FloatString(6) {
			t.Errorf("%s %d: %q is shown, REST has %q, %s in all", side, i, level, want[i], total.FloatString(6))
		}
	}
}

// offersEqual compares offers, qualification and ladder with the API, and the ladder
// with a quote.
func offersEqual(t *testing.T, p *browsertest.Tab, s *server.Server, chosen string) {
	t.Helper()
	type board struct {
		Offers []struct {
			OrderID  string                   `json:"order_id"`
			Left     string                   `json:"available_usd"`
			Best     string                   `json:"best_price_usd"`
			Verified bool                     `json:"montant_verifie_independamment"`
			By       struct{ Libelle string } `json:"guaranteed_by"`
			Declared struct {
				Operateur, Nature string
				Capacity          string `json:"capacity_usd"`
			} `json:"operator_declared"`
		}
	}
	reported := await.Value(t, "best prices of both offers", func() (b board) {
		programtest.GetJSON(t, s.Addresses.Base+"/api/v1/exchange/board", &b)
		return b
	}, func(b board) bool {
		priced := 0
		for _, o := range b.Offers {
			if o.Best != "" {
				priced++
			}
		}
		return priced == 2
	})
	var shown boardShown
	p.Await("offers", fmt.Sprintf("document.querySelectorAll('#ticket-rows tr').length === %d && "+ // of the feed
		"[...document.querySelectorAll('#ticket-rows .best')].every((b) => /^[0-9]/.test(b.textContent)) && "+ // of REST
		"/^[0-9]/.test(document.querySelector('#ladder-rows .best')?.textContent)", len(reported.Offers)))
	p.Read(readBoard, &shown)
	for i, o := range reported.Offers {
		x := shown.Offers[i]
		if x[0] != o.OrderID || !sameNumber(x[1], o.Left) || !sameNumber(x[2], o.Best) || x[3] != "not verified" || o.Verified {
			t.Errorf("offer %d: %q is shown, the API has %+v", i, x, o)
		}
		if o.OrderID != chosen {
			continue
		}
		if shown.Layers[0] != o.By.Libelle || !strings.Contains(shown.Layers[1], o.Declared.Operateur) || !strings.Contains(shown.Layers[1], o.Declared.Nature) ||
			!strings.HasPrefix(shown.Layers[2], "No") || shown.Layers[3] != "false" {
			t.Errorf("qualification: %q is shown, the API has %+v", shown.Layers, o)
		}
	}
	if len(shown.Ladder) == 0 {
		t.Error("no ladder")
	}
	for _, level := range shown.Ladder {
		body := fmt.Sprintf(`{"order_id":%q,"tranche_id":"%s-1","fill_usd":%q,"rail":"USDC"}`, chosen, chosen, plain(level[0]))
		resp, err := http.Post(s.Addresses.Base+"/api/v1/rfq/quote", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var quote struct {
			Price string `json:"price_usd"`
			Base  string `json:"base_amount"`
		}
		err = json.NewDecoder(resp.Body).Decode(&quote)
		resp.Body.Close()
		if err != nil || !sameNumber(level[1], quote.Price) || plain(level[2]) != quote.Base {
			t.Errorf("ladder: %q is shown, the quote says %+v (%v)", level, quote, err)
		}
	}
}

// firms has a FIX session per side: the first buys, the second sells.
type firms [2]*fixtest.Session

func boardFirms(t *testing.T, s *server.Server) firms {
	t.Helper()
	return firms{fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmA), fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmB)}
}

// order sends orders, each with side, quantity and price, and waits for the answers.
func (f firms) order(prefix string, list [][3]string) {
	for i, o := range list {
		firm := f[map[string]int{"1": 0, "2": 1}[o[0]]]
		firm.T.Helper()
		firm.Order(fmt.Sprintf("%s-%d", prefix, i), o[0], o[1], o[2])
		firm.Expect(map[int]string{35: "8"})
	}
}

// TestBoard: a user's whole visit to the board, in a real browser.
func TestBoard(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	s := programtest.Start(t, programtest.Config(t, "  rfq_writes_per_minute: 0\n"+programtest.DeskConfig))
	for _, label := range []string{"First <b>block</b>", "Second block"} {
		programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", label, "--tranches", "30000,5000")
	}
	p := c.Open(s.Addresses.Base+"/board", "")
	t.Run("open", func(t *testing.T) { // the orders end with their sessions
		firms, p := boardFirms(t, s), p.In(t)
		firms.order("seed", [][3]string{{"1", "1500.5", "0.998"}, {"1", "20000", "0.9975"}, {"2", "7.25", "0.999"}, {"2", "1234567.000001", "1.01"}, {"1", "2.25", "0.999"}})
		boardEquals(t, p, s)
		offersEqual(t, p, s, "T1")
		if text := p.Text("#ticket-rows button"); text != "First <b>block</b>" {
			t.Errorf("the label is shown as %q", text)
		}
		checkBanners(t, p, s)
		firms.order("live", [][3]string{{"2", "10", "0.998"}, {"1", "3", "0.9971"}})
		boardEquals(t, p, s)
		programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Third block", "--tranches", "1000")
		p.Await("the third offer", "document.querySelectorAll('#ticket-rows tr').length === 3")
		keysWork(t, p)
	})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Await("word of the break", "document.querySelector('#banners').textContent.includes('Disconnected.') && document.querySelector('#age').dataset.state === 'down'")
	browsertest.NothingSerious(t, p, "disconnected")
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Await("the feed again", "document.querySelector('#age').dataset.state === 'live' && !document.querySelector('#banners').textContent.includes('Disconnected.')")
	t.Run("again", func(t *testing.T) {
		p := p.In(t)
		boardFirms(t, s).order("again", [][3]string{{"2", "5.5", "0.9995"}, {"1", "8", "0.9985"}, {"1", "1", "0.9995"}})
		boardEquals(t, p, s)
		if text := p.Text("#integrity"); !strings.Contains(text, "checksum holds · 0 gaps") || strings.Contains(text, " 1 connection,") {
			t.Errorf("the page says of itself: %s", text)
		}
		accessible(t, p)
	})
	checkTraffic(t, p, s)
	cut := c.Open(s.Addresses.Base+"/board", noSockets)
	cut.Await("word of no feed at all", "document.querySelector('#banners').textContent.includes('Disconnected.The live feed has sent no data yet.') && document.querySelector('#age').dataset.state === 'down'")
	api := c.Open(s.Addresses.API+"/board", "")
	api.Await("the board on the api address", "document.querySelectorAll('#ladder-rows .best').length === 6 && document.querySelector('#wallet').href.startsWith('"+s.Addresses.Base+"/')")
	checkTraffic(t, api, s, s.Addresses.API)
	w := c.Open(s.Addresses.Base+"/wallet", "")
	w.Await("no wallet", "!document.querySelector('#no-wallet').hidden && document.querySelector('#order').options.length === 3")
	accessible(t, w)
	checkTraffic(t, w, s)
}

// noSockets makes every WebSocket fail.
const noSockets = `globalThis.WebSocket = class { constructor() { setTimeout(() => this.onclose()); } close() {} };`

// TestBoardWithoutDesk: without a desk the board shows only the market.
func TestBoardWithoutDesk(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	s := programtest.Start(t, programtest.Config(t, "rfq: {enabled: false}\n"))
	p := c.Open(s.Addresses.Base+"/board", "")
	p.Await("a board without offers", "getComputedStyle(document.querySelector('#offers')).display === 'none' && document.querySelector('#book').dataset.seq && document.querySelector('#age').dataset.state === 'live'")
	if text := p.Text("#banners"); strings.Contains(text, "Some data is missing") {
		t.Errorf("the page says %q", text)
	}
	checkTraffic(t, p, s)
}

// checkBanners checks the banners against /api/v1/market/status.
func checkBanners(t *testing.T, p *browsertest.Tab, s *server.Server) {
	t.Helper()
	var status struct {
		State struct {
			Degraded bool
			Reasons  []string
		} `json:"degradation_state"`
	}
	programtest.GetJSON(t, s.Addresses.Base+"/api/v1/market/status", &status)
	p.Await("banners", "document.querySelector('#banners').textContent.includes('No claims now.')")
	text := p.Text("#banners")
	const network = "not_mainnet" // has a banner of its own
	others := slices.DeleteFunc(slices.Clone(status.State.Reasons), func(reason string) bool { return reason == network })
	if strings.Contains(text, "Degraded.") != (len(others) > 0) || strings.Contains(text, "Not mainnet.") != (len(others) < len(status.State.Reasons)) {
		t.Errorf("degraded is %v, the page says %q", status.State.Degraded, text)
	}
	for _, reason := range others {
		if !strings.Contains(text, strings.ReplaceAll(reason, "_", " ")) {
			t.Errorf("the page does not say %s: %q", reason, text)
		}
	}
}

// keysWork uses the board by keys only, and fills the form by a click.
func keysWork(t *testing.T, p *browsertest.Tab) {
	t.Helper()
	chosen := "document.querySelector('#ticket-rows tr[data-chosen]').dataset.order"
	for _, step := range []struct{ key, then string }{
		{"2", "document.querySelector('#book-base').textContent === '92C'"},
		{"1", "document.querySelector('#book-base').textContent === 'SLUSD'"},
		{"j", chosen + " === 'T2'"},
		{"j", chosen + " === 'T3'"},
		{"j", chosen + " === 'T3'"},
		{"k", chosen + " === 'T2'"},
		{"?", "document.querySelector('#help').open"},
		{"Escape", "!document.querySelector('#help').open"},
		{"/", "document.activeElement.id === 'filter'"},
		{"T", "document.querySelectorAll('#ticket-rows tr').length === 3"},
		{"3", "document.querySelectorAll('#ticket-rows tr').length === 1"},
		{"Escape", "document.activeElement.id !== 'filter' && document.querySelectorAll('#ticket-rows tr').length === 3"},
		{"Enter", "document.querySelector('#quote-terms')?.textContent.includes('250.000000 USDC')"},
	} {
		p.Press(step.key)
		p.Await("what "+step.key+" does", step.then)
		if step.key == "?" {
			browsertest.NothingSerious(t, p, "the keys")
		}
	}
	p.Click(`#ladder-rows tr[data-fill="25000"]`)
	p.Await("the fill in the form", "document.querySelector('#quote-fill').value === '25000' && !document.querySelector('#quote-terms')")
	p.Click("#quote-ask")
	// There is no chain here; TestBoardSettles confirms a firm quote.
	p.Await("a quote that is not firm", "document.querySelector('#quote-left')?.textContent.startsWith('not firm') && document.querySelector('#quote-confirm').disabled && document.querySelector('#quote-take').href.includes('order=T2&tranche=T2-1&fill=25000&rail=USDC')")
	p.Click(`[data-view="depth"]`)
	p.Await("the depth curve", "document.querySelectorAll('#curve path').length === 4 && document.querySelector('#curve .mid')")
	browsertest.NothingSerious(t, p, "a quote and the depth curve")
}

// checkTraffic checks that the page contacted only the service and violated no policy.
func checkTraffic(t *testing.T, p *browsertest.Tab, s *server.Server, more ...string) {
	t.Helper()
	ours := append([]string{s.Addresses.Base, s.Addresses.WS}, more...)
	requests, faults := p.Observed()
	for _, r := range requests {
		u, err := url.Parse(r)
		if err != nil || !slices.Contains(ours, u.Scheme+"://"+u.Host) {
			t.Errorf("the page asks for %s", r)
		}
	}
	if len(requests) < 5 || len(faults) > 0 {
		t.Errorf("%d requests, and %q", len(requests), faults)
	}
}

// standardWallet is a browser wallet as an extension registers it, before the page's
// own script.
const standardWallet = `
const account = { address: '3qL15Uq8Uux4QotxejMsLRu15eoA2L7vxfwQsj9d4uEG', publicKey: new Uint8Array(32), chains: ['solana:mainnet'], features: [] };
const wallet = { version: '1.0.0', name: 'Extension', icon: '', chains: account.chains, accounts: [], features: {
  'standard:connect': { connect: async () => ({ accounts: [account] }) },
  'solana:signMessage': { signMessage: async ({ message }) => [{ signedMessage: message, signature: new Uint8Array(64) }] },
  'solana:signTransaction': { signTransaction: async () => { throw new Error('the user has refused'); } } } };
const unfit = { ...wallet, name: 'Unfit', features: {} };
addEventListener('wallet-standard:app-ready', (event) => event.detail.register(wallet, unfit));`

// TestBoardSettles: a demo's claims are settled by clicks only, on the wallet page and on
// the board, and a wallet that proves nothing gets no token.
func TestBoardSettles(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	c := browsertest.StartChromium(t)
	servicetest.LocalChain(t)
	s := programtest.Start(t, "demo: true\ndemo_history_hours: 25\nlisten: {chain: \"127.0.0.1:0\"}\nhttp: {market_data_per_minute: 0, handshake_per_minute: 0, dvp_per_minute: 0}\n"+
		"chain: {blockhash_slots: 100000, timeout_ms: 60000, attempt_timeout_ms: 50000}\nrfq: {claim_ttl_s: 3600, quote_ttl_s: 3600, unproven_ttl_s: 3600}\n")
	var config struct {
		Chain string `json:"demo_chain_url"`
	}
	programtest.GetJSON(t, s.Addresses.Base+"/board/config.json", &config)
	hurry, err := http.Post(config.Chain, "application/json", bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"sandbox_setSlotMs","params":[{"slotMs":20}]}`))
	if err != nil {
		t.Fatal(err)
	}
	hurry.Body.Close()

	p := c.Open(s.Addresses.Base+"/wallet?order=T1&fill=1000&rail=USDC", standardWallet)
	p.Click(`[data-wallet="Extension"]`)
	p.Await("its address", "document.querySelector('#address').textContent.startsWith('3qL15U')")
	p.Click("#handshake")
	p.Await("a refusal", "document.querySelector('#step-access .error')?.textContent.length > 0")
	browsertest.NothingSerious(t, p, "a refusal")
	if names := p.Text("#wallets"); names != "ExtensionSandbox wallet" {
		t.Errorf("the wallets are %q", names)
	}

	p.Click(`[data-wallet="Sandbox wallet"]`)
	p.Click("#fund")
	p.Await("the money", "document.querySelector('#balances').textContent.includes('1,000,000 USDC')")
	p.Click("#handshake")
	p.Await("a token", "!document.querySelector('#build').disabled")
	p.Click("#build")
	p.Await("the review", "!document.querySelector('#sign').disabled")
	browsertest.NothingSerious(t, p, "the review")
	p.Click("#sign")
	p.Await("the settlement", "document.querySelector('#history li[data-state=settled]') && document.querySelector('#balances').textContent.includes('999,000 USDC')")
	if text := p.Text("#balances"); !strings.Contains(text, "1,003.509775 SLUSD") {
		t.Errorf("the wallet has %s", text)
	}
	accessible(t, p)
	checkTraffic(t, p, s, config.Chain)

	b := c.Open(s.Addresses.Base+"/board", "")
	b.Await("the price of a purchase", "/^250 USD buys /.test(document.querySelector('#headline-get').textContent)")
	boardFits(t, b) // it loads the page again
	b.Await("the price again", "/^250 USD buys /.test(document.querySelector('#headline-get').textContent)")
	b.Do("evaluate", map[string]any{"js": `const f = document.querySelector('#quote-fill'); f.value = '1,999'; f.dispatchEvent(new Event('change'));`}, nil)
	b.Await("the step of the ladder", "document.querySelector('#quote-ask').textContent === 'Buy for 1,000 USD' && document.querySelector('#quote-hint').textContent.includes('1,000')")
	b.Click("#quote-ask")
	b.Await("the countdown", `/^Confirm \(\d+\)$/.test(document.querySelector('#quote-confirm')?.textContent) && /^firm for \d+ s$/.test(document.querySelector('#quote-left').textContent)`)
	b.Click("#quote-confirm")
	b.Await("the claim's end", "document.querySelector('#claim-rows li[data-state=settled]')?.textContent.includes('1003.509775 SLUSD')")
	b.Click(`[data-list="claims"]`)
	accessible(t, b)
	checkTraffic(t, b, s, config.Chain)
	deskShowsMoney(t, c, s)
}
