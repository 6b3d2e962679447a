package docs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// onDuty is the person who follows docs/runbook.md, with a desk and its chain.
type onDuty struct {
	*chaintest.Rig
	term      *terminal
	bin       string         // /usr/local/bin
	backup    string         // /var/backups/blockdesk
	served    *server.Server // what systemctl commands just now
	system    string         // where the stand-in for systemd listens
	client    *chaintest.Buyer
	bought    []string // claims that are settled
	unmatched string   // signature of a payment that names no claim
	disk      string   // a small one; "" where none can be mounted
	small     *server.Server
}

// runbookPrints is what the lines of the runbook have to print.
var runbookPrints = []expectation{
	{in: "--check", prints: `configuration is valid`},
	{in: "is-active", prints: `inactive`, fails: true},
	{in: "systemctl status", prints: `active`},
	{in: "systemctl", prints: ``},
	{in: "grep -c panic", prints: `^0\n`, fails: true},
	{in: "journalctl", prints: `level=INFO`},
	{in: "blockdesk_mirror_", fails: true}, // nothing is mirrored here
	{in: "dmesg", prints: ``},
	{in: "/readyz", prints: `\{"ok":true`},
	{in: "/metrics", prints: `(?m)^(blockdesk_\w+(\{[^}]*\})? [0-9.e+-]+|[1-9][0-9]*|0)$`},
	{in: "pprof/goroutine", prints: `goroutine [0-9]+ \[`},
	{in: "mv ", prints: ``},
	{in: "cp ", prints: ``},
}

// scenes are what happens before the lines of an entry, and what has to be true after
// them. Where the entry needs a line to say something of its own, it is in prints.
func (d *onDuty) scenes() map[string]scene {
	return map[string]scene{
		"Start":   {before: d.stopped},
		"Stop":    {prints: []expectation{{in: "journalctl", prints: `clean=true`}}, after: d.started},
		"Back up": {before: d.buys},
		"Restore": {before: d.loses, after: d.restored},
		"Upgrade": {before: d.newProgram, after: d.buys},
		"Key rotation": {at: map[string]func(){"--check": d.newKey}, prints: []expectation{
			{in: "settlement_tracked", prints: `(?m)^blockdesk_settlement_tracked 0$`},
		}, after: d.buys},
		"Lock the desk": {at: map[string]func(){"--list": d.isLocked}, prints: []expectation{{in: "--list", prints: `price feed down`}}, after: d.buys},
		"Money that needs a person": {before: d.paysUnmatched, prints: []expectation{
			{in: "--kind refunding", prints: `none of this kind`}, // only the unmatched payment is there
			{in: "--kind strays", prints: `nothing needs an operator`},
			{in: "money list", prints: `strays`},
			{in: "/metrics", prints: `blockdesk_settlement_unmatched_payments 1`},
		}},
		"Disk full": {before: d.diskFills, at: map[string]func(){"systemctl": d.makesRoom}, after: d.diskIsBack, prints: []expectation{
			{in: "/readyz", prints: `"name":"disk","ok":(true|false)`}, // the hooks wait for either
		}},
		"Chain outage": {before: d.chainGoes, at: map[string]func(){"money list": d.chainComes}, after: d.buys, prints: []expectation{
			{in: "/readyz", prints: `"name":"chain","ok":false`}, {in: "node_", prints: `blockdesk_settlement_node_available\{[^}]*\} 0`},
		}},
		"Refused logons": {before: d.guesses, prints: []expectation{{in: "logons_refused", prints: `blockdesk_fix_logons_refused_total [1-9]`}}},
	}
}

type scene struct {
	before, after func()
	at            map[string]func() // before a line with this in it
	prints        []expectation
}

// The runbook's lines, in their order, against a desk in the trouble that they are
// about. systemd and its journal are a stand-in's: it starts and stops the service.
func TestRunbook(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	for _, name := range []string{"curl", "grep"} {
		programtest.Tool(t, name)
	}
	d := newOnDuty(t)
	const file = "docs/runbook.md"
	document := strings.Split(readTracked(t, file), "\n")
	scenes, heading, run := d.scenes(), "", 0
	played := map[string]bool{}
	for _, p := range findPrinted(file, strings.Join(document, "\n")) {
		if p.block != "sh" {
			continue
		}
		if now := headingOf(document, p.line); now != heading {
			d.leave(scenes[heading])
			heading = now
			played[heading] = true
			if before := scenes[heading].before; before != nil {
				before()
			}
		}
		s := scenes[heading]
		for part, happens := range s.at {
			if strings.Contains(p.text, part) {
				happens()
			}
		}
		if err := d.term.follow(p, append(slices.Clone(s.prints), runbookPrints...)); err != nil {
			t.Fatal(err)
		}
		run++
	}
	d.leave(scenes[heading])
	for name := range scenes {
		if !played[name] {
			t.Errorf("the runbook has no lines under %s", name)
		}
	}
	if run < 80 {
		t.Errorf("only %d lines are run", run)
	}
}

func (d *onDuty) leave(s scene) {
	if s.after != nil {
		s.after()
	}
}

// headingOf returns the heading that a line stands under.
func headingOf(document []string, line int) string {
	for i := line - 1; i >= 0; i-- {
		if name, ok := strings.CutPrefix(document[i], "## "); ok {
			return name
		}
	}
	return ""
}

// Every alert and document that names an entry of the runbook names one that there is.
func TestRunbookHasEntries(t *testing.T) {
	entries := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(readTracked(t, "docs/runbook.md"), -1) {
		entries[strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(m[1], "'", "")), " ", "-")] = true
	}
	named := 0
	for _, name := range tracked(t, "*.md", "docs/deploy", "cmd/blockdesk/*.go") {
		for _, m := range regexp.MustCompile(`runbook\.md#([a-z-]+)`).FindAllStringSubmatch(readTracked(t, name), -1) {
			if named++; !entries[m[1]] {
				t.Errorf("%s: the runbook has no entry %s", name, m[1])
			}
		}
	}
	t.Logf("%d entries, named %d times", len(entries), named)
}

// The runbook's paths are those of the unit.
func TestRunbookFitsTheUnit(t *testing.T) {
	unit := readTracked(t, "docs/deploy/systemd/blockdesk.service")
	config := readTracked(t, "docs/deploy/single-desk.yaml")
	for _, c := range []struct{ text, has string }{
		{unit, "\nExecStart=/usr/local/bin/blockdesk serve --config /etc/blockdesk/blockdesk.yaml"},
		{config, "data_dir: /var/lib/blockdesk\n"},
		// The running service writes the backup, and may write nowhere else; serve
		// --check reads the certificate's key while no service runs.
		{unit, "\nReadWritePaths=-/var/backups/blockdesk\n"},
		{config, "tls_key_file: /etc/blockdesk/fix.key"},
	} {
		if !strings.Contains(c.text, c.has) {
			t.Errorf("no %q in\n%s", c.has, c.text)
		}
	}
}

func newOnDuty(t *testing.T) *onDuty {
	t.Helper()
	root := t.TempDir()
	d := &onDuty{Rig: chaintest.Start(t, chaintest.Options{Wallets: 1}), backup: filepath.Join(root, "backups")}
	d.served, d.disk = d.Server, mountSmall(t)
	d.client = d.Wallet(1).Handshake()
	d.bin = programFolder(t, root)
	d.Server.Replace(filepath.Join(d.bin, "blockdesk"))
	stand := httptest.NewServer(http.HandlerFunc(d.systemd))
	t.Cleanup(stand.Close)
	d.system = stand.URL
	for name, line := range map[string]string{"systemctl": "/$1", "journalctl": "/log"} {
		script := "#!/bin/sh\nexec curl -s --fail-with-body " + d.system + line + "\n"
		if err := os.WriteFile(filepath.Join(d.bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.term = openTerminalIn(t, root, d.places(), "PATH="+d.bin+":"+os.Getenv("PATH"))
	return d
}

// places are what the runbook's paths and addresses are here, as they are now.
func (d *onDuty) places() *strings.Replacer {
	return strings.NewReplacer(
		"/etc/blockdesk/blockdesk.yaml", filepath.Join(filepath.Dir(d.served.DataDir()), "config.yaml"),
		"/var/lib/blockdesk-signer/key.json", d.KeyFile("desk"), "/var/lib/blockdesk-signer/new.json", d.KeyFile("desk-new"),
		"/var/lib/blockdesk", d.served.DataDir(), "/var/backups/blockdesk", d.backup, "/usr/local/bin", d.bin,
		"http://127.0.0.1:8090", d.served.Addresses.Admin, "http://127.0.0.1:8080", d.served.Addresses.Base, "SIGNATURE", d.unmatched,
	)
}

// systemd does what the verb says to the service, and prints its log.
func (d *onDuty) systemd(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/start":
		err = d.served.Restart(r.Context())
	case "/stop":
		err = d.served.Stop()
	case "/restart":
		if err = d.served.Stop(); err == nil {
			err = d.served.Restart(r.Context())
		}
	case "/is-active", "/status":
		if status := syscall.Kill(d.served.PID(), 0); status != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "in")
		}
		fmt.Fprintln(w, "active")
	case "/log":
		fmt.Fprint(w, d.served.Log())
	default:
		err = fmt.Errorf("no verb %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (d *onDuty) must(err error) {
	d.T.Helper()
	if err != nil {
		d.T.Fatal(err)
	}
}

func (d *onDuty) stopped() { d.T.Helper(); d.must(d.served.Stop()) }

func (d *onDuty) started() { d.T.Helper(); d.must(d.served.Restart(d.T.Context())) }

// buys buys something, and looks at what was bought before.
func (d *onDuty) buys() {
	d.T.Helper()
	x := d.client.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild)
	if got := d.client.Submit(x); got.Status != http.StatusOK {
		d.T.Fatalf("submit: %s", got)
	}
	d.client.AwaitClaim(x.ClaimID, "settled")
	d.bought = append(d.bought, x.ClaimID)
	for _, id := range d.bought {
		if state, a := d.client.Claim(id); state != "settled" {
			d.T.Errorf("claim %s: %s", id, a)
		}
	}
}

// loses makes a ticket that no backup has.
func (d *onDuty) loses() {
	d.T.Helper()
	programtest.CLI(d.T, d.Server, "ticket", "post", "--pair", programtest.Symbol, "--label", "after the backup", "--tranches", "1000000")
}

func (d *onDuty) restored() {
	d.T.Helper()
	if out := programtest.CLI(d.T, d.Server, "ticket", "list"); strings.Contains(out, "after the backup") || !strings.Contains(out, "T1-1") {
		d.T.Errorf("these tickets are restored:\n%s", out)
	}
	d.buys()
}

// newProgram puts a program where a new one is before an upgrade.
func (d *onDuty) newProgram() {
	d.T.Helper()
	d.must(os.Symlink(programtest.Binary(d.T), filepath.Join(d.bin, "blockdesk.new")))
}

// newKey does what the runbook leaves to a person: it moves the assets, and edits the
// configuration.
func (d *onDuty) newKey() {
	d.T.Helper()
	address := strings.TrimSpace(programtest.CLI(d.T, d.Server, "key", "show", d.KeyFile("desk-new")))
	for _, symbol := range []string{"SLUSD", "92C"} {
		d.Control("fund", map[string]any{"wallet": address, "symbol": symbol, "amount": 1_000_000_000_000})
	}
	var signature string
	d.Query("requestAirdrop", &signature, address, 100_000_000_000)
	d.Finalize()
	config := filepath.Join(filepath.Dir(d.Server.DataDir()), "config.yaml")
	text, err := os.ReadFile(config)
	d.must(err)
	now := strings.Replace(string(text), "desk.json\"", "desk-new.json\", treasury: "+d.Setup.Desk.Address, 1)
	if now == string(text) {
		d.T.Fatalf("no key in %s", text)
	}
	d.must(os.WriteFile(config, []byte(now), 0o600))
}

func (d *onDuty) isLocked() {
	d.T.Helper()
	if got := d.client.Call("POST", chaintest.PathBuild, d.client.Order(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild), d.client.Bearer()...); got.Code != "LOCKED" && got.Reason != "locked" {
		d.T.Errorf("a build while the desk is locked: %s", got)
	}
}

// paysUnmatched pays without saying what for.
func (d *onDuty) paysUnmatched() {
	d.T.Helper()
	payment := d.client.Pays(chaintest.OwnPayment{Memo: "for nothing", Reference: solana.Base58(solana.Address{7}), Rail: market.RailUSDC, Atoms: 5_000_000})
	d.MustBroadcast(payment.Raw)
	d.Finalize()
	d.unmatched = payment.Signature
	await.True(d.T, "the unmatched payment", func() bool {
		return strings.Contains(programtest.CLI(d.T, d.Server, "money", "list"), d.unmatched)
	})
	d.term.places = d.places()
}

func (d *onDuty) chainGoes() {
	d.T.Helper()
	d.Control("setNode", map[string]any{"mode": "503"})
	d.readyz("a service that misses the chain", `"name":"chain","ok":false`)
}

func (d *onDuty) chainComes() {
	d.T.Helper()
	d.Control("heal", map[string]any{})
	d.readyz("the chain", `"name":"chain","ok":true`)
}

func (d *onDuty) readyz(what, part string) {
	d.T.Helper()
	await.True(d.T, what, func() bool {
		resp, err := http.Get(d.served.Addresses.Admin + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), part)
	})
}

// guesses tries a password.
func (d *onDuty) guesses() {
	d.T.Helper()
	if _, err := fixclient.Dial(d.T.Context(), fixclient.Options{
		Addr: d.Server.Addresses.FIX, SenderCompID: programtest.FirmB, TargetCompID: "BLOCKDESK", Username: programtest.FirmB, Password: "guessed",
		Timeout: runtest.HangTimeout,
	}); err == nil {
		d.T.Error("a wrong password opens a session")
	}
}

// mountSmall mounts a small disk until the test ends; "" if mounting is not permitted.
func mountSmall(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Logf("no disk is filled: %v", err)
		return ""
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// diskFills has another service on a small disk, which the test fills but for its last
// percents: it takes no tickets any more, and still cancels.
func (d *onDuty) diskFills() {
	d.T.Helper()
	if d.disk == "" {
		return
	}
	// Unlike the other services of tests, this one has the default limit.
	exe := filepath.Join(d.T.TempDir(), "blockdesk")
	d.must(os.WriteFile(exe, []byte("#!/bin/sh\nexec env -u "+programtest.DiskLowPercent+" "+filepath.Join(d.bin, "blockdesk")+" \"$@\"\n"), 0o700))
	var err error
	d.served, err = server.Start(d.T.Context(), exe, filepath.Join(d.disk, "service"), programtest.Config(d.T, programtest.DeskConfig))
	d.must(err)
	d.T.Cleanup(func() { _ = d.small.Kill() })
	d.small = d.served
	d.term.places = d.places()
	var room unix.Statfs_t
	d.must(unix.Statfs(d.disk, &room))
	filler, err := os.Create(filepath.Join(d.disk, "filler"))
	d.must(err)
	d.must(unix.Fallocate(int(filler.Fd()), 0, 0, int64(room.Bavail-room.Blocks*6/100)*room.Bsize))
	d.must(filler.Close())
	d.readyz("a service that says that its disk is full", `"name":"disk","ok":false`)
	programtest.CLIRefused(d.T, d.served, []string{"READ_ONLY"}, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block", "--tranches", "1000000")
}

// makesRoom takes the filler away: orders are taken again by themselves.
func (d *onDuty) makesRoom() {
	d.T.Helper()
	if d.disk != "" {
		d.must(os.Remove(filepath.Join(d.disk, "filler")))
		d.readyz("room on the disk", `"name":"disk","ok":true`)
	}
}

func (d *onDuty) diskIsBack() {
	d.T.Helper()
	programtest.CLI(d.T, d.served, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block", "--tranches", "1000000")
	if d.disk != "" {
		d.must(d.served.Stop())
		d.served = d.Server
		d.term.places = d.places()
	}
}
