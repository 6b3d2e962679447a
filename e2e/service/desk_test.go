package service

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
)

// An operator posts a ticket and locks the pair; clients see both, and so they do
// after a crash.
func TestDeskOverACrash(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	var posted struct{ Ticket operator.Ticket }
	text := programtest.CLI(t, s, "ticket", "post", "--json", "--pair", programtest.Symbol, "--label", "Block A",
		"--tranches", "250000,1000", "--priority", "7", "--expires", "48h")
	if err := json.Unmarshal([]byte(text), &posted); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if k := posted.Ticket; k.OrderID != "T1" || k.PostedBy != config.LocalOperator || len(k.Tranches) != 2 || k.Priority != 7 || k.State != "open" {
		t.Fatalf("posted: %+v", k)
	}
	url := s.Addresses.Base + "/api/v1/rfq/quote"
	const body = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC"}`
	quote := programtest.Post(t, url, "key-1", body)
	// 0.999 less 25 basis points is 0.9965025.
	if quote.Status != http.StatusOK || quote.Fields.QuoteID == "" || quote.Fields.Price != "0.996502500" {
		t.Fatalf("quote: %d %s", quote.Status, quote.Body)
	}
	locked := programtest.CLI(t, s, "lock", "--pair", programtest.Symbol, "--reason", "feed down")
	if !strings.Contains(locked, "pair:"+programtest.Symbol) || !strings.Contains(locked, "LOCKED") || !strings.Contains(locked, "feed down") {
		t.Fatalf("lock: %s", locked)
	}
	refused := func() {
		t.Helper()
		if r := programtest.Post(t, url, "", body); r.Status != http.StatusConflict || r.Fields.Code != "REFUS_DVP" || r.Fields.Reason != "locked" {
			t.Fatalf("a quote while the pair is locked: %d %s", r.Status, r.Body)
		}
	}
	refused()
	book := programtest.Tickets(t, s)

	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	programtest.VerifyJournal(t, s)
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if now := programtest.Tickets(t, s); now != book {
		t.Fatalf("after the crash the book is\n%s\nit was\n%s", now, book)
	}
	if now := programtest.CLI(t, s, "lock", "--list"); now != locked {
		t.Fatalf("after the crash the locks are\n%s\nthey were\n%s", now, locked)
	}
	refused()
	again := programtest.Post(t, url, "key-1", body)
	if again.Status != quote.Status || again.Body != quote.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Fatalf("the same key after the crash: %d %v\n%s\nit was\n%s", again.Status, again.Header, again.Body, quote.Body)
	}
	if r := programtest.Post(t, url, "key-1", strings.Replace(body, "1000", "250", 1)); r.Fields.Code != "IDEMPOTENCY_CONFLICT" {
		t.Fatalf("the same key with another body: %d %s", r.Status, r.Body)
	}
	programtest.CLI(t, s, "unlock", "--pair", programtest.Symbol)
	if r := programtest.Post(t, url, "", body); r.Status != http.StatusOK || r.Fields.QuoteID == quote.Fields.QuoteID {
		t.Fatalf("a quote after the unlock: %d %s", r.Status, r.Body)
	}
	programtest.CLI(t, s, "ticket", "withdraw", "T1")
	if r := programtest.Post(t, url, "", body); r.Fields.Reason != "ticket_withdrawn" {
		t.Fatalf("a quote of a ticket that was withdrawn: %d %s", r.Status, r.Body)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	programtest.VerifyJournal(t, s)
	checkAudit(t, s)
}

// Clients ask for quotes as fast as they are answered, and the server is killed.
// Whatever was answered is answered the same after it; the rest is made then, and
// once.
func TestQuotesOverCrashesAndStops(t *testing.T) {
	runtest.SkipUnderRace(t, "it restarts the service again and again; the tests of settle and httpgw race the same code")
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, "  rfq_writes_per_minute: 0\n"+programtest.DeskConfig))
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block A", "--tranches", "250000")
	answers := map[string]string{} // by key; empty = never answered
	var mu sync.Mutex
	quoteWith := func(key string) error {
		req, err := http.NewRequest(http.MethodPost, s.Addresses.Base+"/api/v1/rfq/quote",
			strings.NewReader(`{"order_id":"T1","tranche_id":"T1-1","fill_usd":"250","rail":"USDC"}`))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil // the line broke
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
			return nil // not an answer
		}
		mu.Lock()
		defer mu.Unlock()
		if was := answers[key]; was != "" && was != string(body) || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("key %s: status %d: %s, it was %s", key, resp.StatusCode, body, was)
		}
		answers[key] = string(body)
		return nil
	}
	answered := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, body := range answers {
			if body != "" {
				n++
			}
		}
		return n
	}
	const clients = 8
	for round := range 4 {
		before, over := answered(), make(chan struct{})
		var all errgroup.Group
		for c := range clients {
			all.Go(func() error {
				for i := 0; ; i++ { // until one after the end, which is not answered
					select {
					case <-over:
						return nil
					default:
					}
					key := fmt.Sprintf("%d-%d-%d", round, c, i)
					mu.Lock()
					answers[key] = ""
					mu.Unlock()
					if err := quoteWith(key); err != nil {
						return err
					}
				}
			})
		}
		enough := before + 20 + 50*round
		await.Value(t, fmt.Sprintf("%d answers", enough), answered, func(n int) bool { return n >= enough })
		end := s.Kill
		if round%2 == 1 {
			end = s.Stop
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		close(over)
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		programtest.VerifyJournal(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		lost := len(answers) - answered()
		for key := range answers {
			await.True(t, "an answer to key "+key, func() bool { // a 503 is none
				if err := quoteWith(key); err != nil {
					t.Fatal(err)
				}
				return answers[key] != ""
			})
		}
		if lost == 0 {
			t.Errorf("round %d: all %d were answered: the end came at a bad moment", round, len(answers))
		}
	}
	quotes := map[string]bool{}
	for key, body := range answers {
		if quotes[body] {
			t.Fatalf("key %s has another key's quote: %s", key, body)
		}
		quotes[body] = true
	}
	t.Logf("%d quotes", len(quotes))
}

// checkAudit checks that the audit of TestDeskOverACrash's journal names each operator.
func checkAudit(t *testing.T, s *server.Server) {
	t.Helper()
	audit := programtest.CLI(t, s, "journal", "audit")
	for _, line := range []string{
		`set operator +id=1 name=local`,
		`\(configuration\) +set pair +instrument=SLUSD/USDC .*corridor_bps=1000 max_age=1h0m0s firm_bps_USDC=100 firm_bps_SOL=150`,
		`\(configuration\) +set anchor +instrument=SLUSD/USDC price_usd=0.999000000 source=operator`,
		`Z +local +post ticket +label=Block A instrument=SLUSD/USDC rails=\[\] priority=7 expires_at=.*Z capacities_usd=\[250000.000000,1000.000000\]`,
		`local +set lock +scope=pair instrument=SLUSD/USDC locked=true reason=feed down`,
		`local +set lock +scope=pair instrument=SLUSD/USDC locked=false`,
		`local +withdraw ticket +order_id=T1`,
	} {
		if !regexp.MustCompile(`(?m)^\d+ .*` + line + `$`).MatchString(audit) {
			t.Errorf("the audit has no %s:\n%s", line, audit)
		}
	}
	if strings.Contains(audit, "request quote") {
		t.Errorf("a client's request is in the audit:\n%s", audit)
	}
	lines := strings.Split(strings.TrimSpace(programtest.CLI(t, s, "journal", "audit", "--json")), "\n")
	if len(lines) != strings.Count(audit, "\n")-1 {
		t.Errorf("%d lines of JSON, %d of the table", len(lines), strings.Count(audit, "\n")-1)
	}
	var last struct {
		Operator string `json:"operator"`
		Command  string `json:"command"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Operator != config.LocalOperator || last.Command != "withdraw ticket" {
		t.Errorf("%v: %s", err, lines[len(lines)-1])
	}
}

// A claim says that there is no chain; it reserves nothing.
func TestClaimWithoutAChain(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block A", "--tranches", "250000")
	book := programtest.Tickets(t, s)
	for _, path := range []string{"/rfq-native/modular-claim-take", "/api/v1/rfq/modular-claim-take", "/rfq-native/atomic-claim-ticket"} {
		r := programtest.Post(t, s.Addresses.Base+path, "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
		if r.Status != http.StatusServiceUnavailable || r.Fields.Code != "CHAIN_UNAVAILABLE" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	if now := programtest.Tickets(t, s); now != book {
		t.Errorf("the book is\n%s\nit was\n%s", now, book)
	}
}

// plainDecimal drops the zeros at the end of a fraction.
func plainDecimal(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// An operator's command survives a restart, until the configuration says
// something new.
func TestOperatorsWordAgainstTheConfiguration(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	config := filepath.Join(filepath.Dir(s.DataDir()), "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	price := func() (anchor, inventory string) {
		t.Helper()
		var prices operator.PricesAnswer
		var stock struct {
			Inventory []struct{ Inventory string }
		}
		for out, v := range map[string]any{programtest.CLI(t, s, "price", "list", "--json"): &prices, programtest.CLI(t, s, "inventory", "list", "--json"): &stock} {
			if err := json.Unmarshal([]byte(out), v); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		return plainDecimal(prices.Prices[0].PriceUSD), plainDecimal(stock.Inventory[0].Inventory)
	}
	restart := func(with string) {
		t.Helper()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte(with), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, anchor, inventory string) {
		t.Helper()
		if a, i := price(); a != anchor || i != inventory {
			t.Fatalf("%s: anchor %s and inventory %s, want %s and %s", when, a, i, anchor, inventory)
		}
	}
	expect("at the first start", "0.999", "1000000")
	programtest.CLI(t, s, "price", "set", "--pair", programtest.Symbol, "--usd", "1.01")
	programtest.CLI(t, s, "inventory", "set", "--pair", programtest.Symbol, "--amount", "77.5")
	expect("after the commands", "1.01", "77.5")
	restart(string(text))
	expect("after a restart", "1.01", "77.5")
	restart(strings.Replace(string(text), `"0.999"`, `"0.95"`, 1))
	expect("after the configuration has changed", "0.95", "77.5")
	restart(strings.Replace(string(text), "corridor_bps: 1000", "corridor_bps: 500", 1))
	expect("after the configuration has changed back", "0.999", "77.5")
	if out := programtest.CLI(t, s, "price", "list"); !strings.Contains(out, "0.94905 to 1.04895") {
		t.Fatalf("the corridor did not change:\n%s", out)
	}
	if err := os.Remove(filepath.Join(s.DataDir(), "rfq.applied.json")); err != nil {
		t.Fatal(err)
	}
	restart(string(text))
	expect("after the memory was lost", "0.999", "77.5")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	out, err := programtest.Run(t, "", nil, serveArgs(s, "--set", "rfq.quote_ttl_s=0")...)
	if err == nil || !strings.Contains(out, "rfq.quote_ttl_s") {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(config, []byte(programtest.Config(t, "rfq: {pairs: []}\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := programtest.Run(t, "", nil, serveArgs(s)...); err == nil || !strings.Contains(out, "rfq.pairs: the desk has a pair for "+programtest.Symbol) {
		t.Fatalf("a pair is taken away: %v\n%s", err, out)
	}
}

// The commands say what is wrong, and where to look.
func TestOperatorCommandsRefused(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	good := []string{"ticket", "post", "--pair", programtest.Symbol, "--label", "A", "--tranches", "250"}
	with := func(args ...string) []string { return append(append([]string{}, good...), args...) }
	for name, c := range map[string]struct {
		args, want []string
	}{
		"wrong token":         {with("--operator-token", strings.Repeat("0", 64)), []string{"--operator-token", "OPERATOR_TOKEN_REFUSED", "unknown"}},
		"short token":         {with("--operator-token", "x"), []string{"OPERATOR_TOKEN_REFUSED"}},
		"nobody there":        {with("--admin", "127.0.0.1:1"), []string{"no service answers at http://127.0.0.1:1", "is it running?"}},
		"not the admin":       {with("--admin", s.Addresses.Base), []string{"is it the admin address"}},
		"unknown pair":        {[]string{"ticket", "post", "--pair", "A/B", "--label", "A", "--tranches", "250"}, []string{"UNKNOWN_SYMBOL"}},
		"pair not sold":       {[]string{"ticket", "post", "--pair", programtest.OtherSymbol, "--label", "A", "--tranches", "250"}, []string{"UNKNOWN_SYMBOL"}},
		"too small":           {[]string{"ticket", "post", "--pair", programtest.Symbol, "--label", "A", "--tranches", "250,249.99"}, []string{"INVALID_FIELD", "tranches[1]", "250 USD"}},
		"no label":            {[]string{"ticket", "post", "--pair", programtest.Symbol, "--label", "", "--tranches", "250"}, []string{"label"}},
		"nothing named":       {[]string{"ticket", "post"}, []string{"required", "pair", "tranches"}},
		"expired":             {with("--expires", "2020-01-01T00:00:00Z"), []string{"expires_at", "future"}},
		"expires when":        {with("--expires", "soon"), []string{"--expires", "48h"}},
		"negative while":      {with("--expires", "-1h"), []string{"--expires"}},
		"rail":                {with("--rails", "BTC"), []string{"rails", "USDC or SOL"}},
		"rail of the pair":    {with("--rails", "SOL"), []string{"rail_not_accepted"}},
		"priority":            {with("--priority", "65536"), []string{"priority"}},
		"price":               {with("--price", "1e3"), []string{"reference_price_usd"}},
		"no such ticket":      {[]string{"ticket", "withdraw", "T99"}, []string{"UNKNOWN_TICKET"}},
		"no ticket at all":    {[]string{"ticket", "withdraw", "../locks"}, []string{"not an order_id"}},
		"nothing to amend":    {[]string{"ticket", "amend", "T1"}, []string{"nothing to amend"}},
		"tranche":             {[]string{"ticket", "amend", "T1", "--tranche", "T1-1"}, []string{"TRANCHE_ID=CAPACITY"}},
		"lock without reason": {[]string{"lock"}, []string{"--reason"}},
		"lock of both":        {[]string{"lock", "--pair", programtest.Symbol, "--rail", "USDC", "--reason", "x"}, []string{"pair", "rail"}},
		"lock of no rail":     {[]string{"lock", "--rail", "usdc", "--reason", "x"}, []string{"rail", "USDC or SOL"}},
		"price of USDC":       {[]string{"price", "set", "--rail", "USDC", "--usd", "1"}, []string{"SOL", "dollar"}},
		"price of nothing":    {[]string{"price", "set", "--usd", "1"}, []string{"pair", "rail"}},
		"price zero":          {[]string{"price", "set", "--pair", programtest.Symbol, "--usd", "0"}, []string{"price_usd", "greater than zero"}},
		"inventory in dust":   {[]string{"inventory", "set", "--pair", programtest.Symbol, "--amount", "1.0000001"}, []string{"inventory", "decimals"}},
	} {
		// One by one: wrong tokens are few a minute.
		t.Run(name, func(t *testing.T) { programtest.CLIRefused(t, s, c.want, c.args...) })
	}
	if book := programtest.Tickets(t, s); book != "[]" {
		t.Errorf("a refused command left %s", book)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	programtest.CLIRefused(t, s, []string{"no service answers", "is it running?"}, "ticket", "list")
	out, err := programtest.Run(t, "", nil, "ticket", "list", "--data", t.TempDir())
	if err == nil || !strings.Contains(out, "no service has run") {
		t.Errorf("%v: %s", err, out)
	}
}

// A ticket is amended in all its parts, by several operators, each by his name.
func TestAmendByNamedOperators(t *testing.T) {
	t.Parallel()
	const annas, berts = "anna's token, of chance", "bert's token, of chance"
	text := programtest.DeskConfig + "operators:\n"
	for name, token := range map[string]string{"anna": annas, "bert": berts} {
		text += fmt.Sprintf("  - {name: %s, token_sha256: %x}\n", name, sha256.Sum256([]byte(token)))
	}
	s := programtest.Start(t, programtest.Config(t, text))
	if _, err := os.Stat(filepath.Join(s.DataDir(), operator.TokenFile)); err == nil {
		t.Error("a token of the local operator is there")
	}
	programtest.CLIRefused(t, s, []string{"no operator's token", config.OperatorTokenEnv}, "ticket", "list")
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "A", "--tranches", "1000,2500", "--operator-token", annas)
	out := programtest.CLI(t, s, "ticket", "amend", "T1", "--operator-token", berts, "--json",
		"--priority", "3", "--price", "0.98", "--expires", "2100-01-02T03:04:05Z", "--tranche", "T1-2=5000", "--add-tranche", "250")
	var amended struct{ Ticket operator.Ticket }
	if err := json.Unmarshal([]byte(out), &amended); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	k := amended.Ticket
	capacities := ""
	for _, tr := range k.Tranches {
		capacities += tr.TrancheID + " " + plainDecimal(tr.AvailableUSD) + ", "
	}
	if k.PostedBy != "anna" || k.Priority != 3 || plainDecimal(k.ReferencePriceUSD) != "0.98" ||
		!strings.HasPrefix(k.ExpiresAt, "2100-01-02T03:04:05") || capacities != "T1-1 1000, T1-2 5000, T1-3 250, " {
		t.Fatalf("%+v: %s", k, capacities)
	}
	out = programtest.CLI(t, s, "ticket", "amend", "T1", "--operator-token", berts, "--price", "pair", "--expires", "never")
	if !strings.Contains(out, "pair's") || !strings.Contains(out, "never") || strings.Count(out, " 3 ") != 3 {
		t.Fatalf("what is not named did not stay, or what is named did:\n%s", out)
	}
	locked, err := programtest.Run(t, "", []string{config.OperatorTokenEnv + "=" + berts}, "lock", "--rail", "SOL", "--reason", "x", "--data", s.DataDir())
	if err != nil || !strings.Contains(locked, "by bert") {
		t.Fatalf("%v: %s", err, locked)
	}
}

// logIn returns a DvP token of the demo's first wallet.
func logIn(t *testing.T, base string) string {
	t.Helper()
	keys := t.TempDir()
	if err := demo.WriteKeys(keys, 1); err != nil {
		t.Fatal(err)
	}
	out, err := programtest.Run(t, "", nil, "wallet", "login", "--base", base, "--key", demo.KeyFile(keys, demo.Wallet(1)))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(out)
}

// admitted reports whether a service without a chain takes a token: it says then
// that there is no chain, and else that the token is none.
func admitted(t *testing.T, base, token string) bool {
	t.Helper()
	const build = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"250","rail":"USDC","taker":"%s"}`
	req, err := http.NewRequest(http.MethodPost, base+"/api/v1/dvp/build", strings.NewReader(fmt.Sprintf(build, demo.Address("wallet-1"))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusForbidden {
		t.Errorf("a build without a chain: %s", resp.Status)
	}
	return resp.StatusCode == http.StatusServiceUnavailable
}

// The service copies itself while it runs; what is restored has all of it.
func TestBackupOfARunningService(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block A", "--tranches", "250000")
	const body = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"250","rail":"USDC"}`
	quote := programtest.Post(t, s.Addresses.Base+"/api/v1/rfq/quote", "key-1", body)
	token := logIn(t, s.Addresses.Base)
	a, b := tradeOnce(t, s, 1)
	copied := filepath.Join(t.TempDir(), "copy")
	if out := programtest.CLI(t, s, "backup", copied); !strings.Contains(out, "running service") {
		t.Fatal(out)
	}
	programtest.CLIRefused(t, s, []string{"must be an empty or missing folder"}, "backup", copied)
	a.Disconnect()
	b.Disconnect()
	book := programtest.Tickets(t, s)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.DataDir()); err != nil {
		t.Fatal(err)
	}
	if out := programtest.CLI(t, s, "restore", copied); !strings.Contains(out, "restored") {
		t.Fatal(out)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if now := programtest.Tickets(t, s); now != book {
		t.Fatalf("the book is\n%s\nit was\n%s", now, book)
	}
	if r := programtest.Post(t, s.Addresses.Base+"/api/v1/rfq/quote", "key-1", body); r.Body != quote.Body {
		t.Fatalf("the same key: %s, it was %s", r.Body, quote.Body)
	}
	if !admitted(t, s.Addresses.Base, token) {
		t.Error("a token is gone")
	}
	a, b = tradeOnce(t, s, 3)
	a.Disconnect()
	b.Disconnect()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	programtest.VerifyJournal(t, s)
	stopped := filepath.Join(t.TempDir(), "stopped")
	if out := programtest.CLI(t, s, "backup", stopped); !strings.Contains(out, "backed up to "+stopped) {
		t.Fatal(out)
	}
	for _, part := range []string{"desk", "fix", "settle", "journal", "rfq.applied.json"} {
		if _, err := os.Stat(filepath.Join(stopped, part)); err != nil {
			t.Error(err)
		}
	}
	if quote.Status != http.StatusOK {
		t.Error(quote.Body)
	}
}
