package programtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/servicetest"
)

// The traders of these tests. AA and BB are firms; AA-2 is a second session of
// the first one.
const (
	FirmA, FirmA2, FirmB = servicetest.FirmA, servicetest.FirmA2, servicetest.FirmB
	Password             = servicetest.Password
	Symbol               = "SLUSD/USDC"
	OtherSymbol          = "92C/SLUSD"
)

// Config returns a configuration with two firms and without limits that would slow a
// test down. more is YAML for its end.
func Config(t testing.TB, more string) string {
	t.Helper()
	return fmt.Sprintf(`fix:
  participants_file: %q
  messages_per_second: 100000
http:
  market_data_per_minute: 0
%s`, servicetest.Participants(t), more)
}

// ParticipantsFile returns the path of the participants file of a Config.
func ParticipantsFile(config string) string { return strings.Split(config, `"`)[1] }

// DeskConfig is a desk that sells the first pair at 0.999 and has enough of it.
const DeskConfig = `rfq:
  quote_ttl_s: 3600
  pay_to: {USDC: PLaceho1derPaytoUSDCxxxxxxxxxxxxxxxxxxxxxxx}
  pairs:
    - {symbol: SLUSD/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC],
       price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: 3600, inventory: "1000000"}
`

// Instruments returns the configuration of instruments with these symbols.
func Instruments(symbols ...string) string {
	text := "instruments:\n"
	for _, s := range symbols {
		text += `  - {symbol: ` + s + `, price_decimals: 2, qty_decimals: 2, tick: "0.01", lot: "0.01", ` +
			`min_qty: "0.01", max_qty: "1000", max_price: "1000", book_source: matched}` + "\n"
	}
	return text
}

// Start runs the service with this configuration, and returns when it is ready. When the
// test ends the service is stopped, unless it has ended before, and must end cleanly.
func Start(t testing.TB, config string) *server.Server {
	t.Helper()
	exe := Binary(t)
	s, err := server.Start(context.Background(), exe, t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(errors.Join(err, s.Kill()))
		}
	})
	return s
}

// Service is a running service, mostly a demo.
type Service struct {
	At   operator.Addresses
	PID  int
	Data string
	Out  *Buffer      // what it prints
	Stop func() error // by SIGTERM
}

// StartDemo runs the demo on free ports until the test ends or Stop is called,
// without a chain unless more sets the folder of the chain's server. Its tickets are
// posted when StartDemo returns.
func StartDemo(t *testing.T, more ...string) *Service {
	t.Helper()
	d := StartDemoOn(t, t.TempDir(), more...)
	d.AwaitTickets(t)
	return d
}

// StartDemoOn runs the demo on a data folder, and returns when it listens.
func StartDemoOn(t *testing.T, data string, more ...string) *Service {
	t.Helper()
	return StartServe(t, data, append([]string{"--demo"}, more...)...)
}

// StartServe runs the service on free ports until the test ends or Stop is called.
func StartServe(t *testing.T, data string, more ...string) *Service {
	t.Helper()
	exe := Binary(t)
	if err := os.Remove(filepath.Join(data, operator.AddressesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := &Service{Data: data, Out: &Buffer{}}
	args := append([]string{"serve", "--data", data}, FreePorts...)
	cmd := exec.Command(exe, append(args, more...)...)
	cmd.Dir = t.TempDir() // no blockdesk.yaml of this checkout
	cmd.Stdout, cmd.Stderr = d.Out, d.Out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	d.Stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(runtest.HangTimeout):
			return errors.Join(fmt.Errorf("not stopped %v after SIGTERM", runtest.HangTimeout), cmd.Process.Kill(), <-ended)
		}
	}
	t.Cleanup(func() {
		if err := d.Stop(); err != nil {
			t.Errorf("%v\n%s", err, d.Out)
		}
	})
	await.True(t, "addresses.json", func() bool {
		text, err := os.ReadFile(filepath.Join(d.Data, operator.AddressesFile))
		return err == nil && json.Unmarshal(text, &d.At) == nil
	})
	d.PID = cmd.Process.Pid
	return d
}

// AwaitTickets waits until the demo's operator has posted all. It reads the admin address,
// because clients may read only a few times a minute.
func (d *Service) AwaitTickets(t *testing.T) {
	t.Helper()
	token, err := operator.LocalToken(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	c := &operator.Client{URL: d.At.Admin, Token: token, HTTP: http.DefaultClient}
	await.True(t, "the demo's tickets", func() bool {
		var have operator.TicketsAnswer
		return c.Get(t.Context(), "/desk/tickets", &have) == nil && len(have.Tickets) == demo.Tickets
	})
}

// ReadersFolder returns a folder like that of a reader of README.md, and a replacer of the
// addresses and the program in its lines by those of this service.
func (d *Service) ReadersFolder(t *testing.T) (dir string, places *strings.Replacer) {
	t.Helper()
	exe := Binary(t)
	dir = t.TempDir()
	if err := os.Symlink(d.Data, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer(
		"http://127.0.0.1:8080", d.At.Base, "http://127.0.0.1:8000", d.At.API, "http://127.0.0.1:8090", d.At.Admin,
		"bin/blockdesk", exe,
	)
}

// FreePorts are the flags that take a free port for every address, and start no local
// chain: WithChain after them does.
var FreePorts = []string{
	"--set", "listen.base=127.0.0.1:0", "--set", "listen.api=127.0.0.1:0", "--set", "listen.ws=127.0.0.1:0",
	"--set", "listen.fix=127.0.0.1:0", "--set", "listen.admin=127.0.0.1:0",
	"--set", "listen.chain=127.0.0.1:0", "--set", "chain.sandbox_dir=/nonexistent",
}

// WithChain returns the setting that starts the demo with its chain.
func WithChain(dir string) string { return "chain.sandbox_dir=" + dir }

// OpenClaims are settings of a demo in which claims without proof are as good as others:
// those of a test come from one address.
var OpenClaims = []string{
	"--set", "rfq.unproven_usd_per_ip=10000000", "--set", "rfq.unproven_share_bps=10000", "--set", "rfq.unproven_ttl_s=3600",
}

// LongLived are settings of a demo in which nothing that a client holds expires while
// the test runs: blockhashes, claims, quotes.
var LongLived = slices.Clip(append([]string{
	"--set", "chain.blockhash_slots=100000", "--set", "rfq.claim_ttl_s=3600", "--set", "rfq.quote_ttl_s=3600",
	"--set", "chain.timeout_ms=60000", "--set", "chain.attempt_timeout_ms=50000",
}, OpenClaims...)) // clipped, because tests append to it at the same time

// StartTwoGroups runs the processes of two groups: eu, which has SLUSD/USDC, and us,
// which has 92C/SLUSD.
func StartTwoGroups(t *testing.T) (eu, us *Service) {
	t.Helper()
	var ports [2][4]string
	for i := range ports[0] {
		ports[0][i], ports[1][i] = FreePort(t), FreePort(t)
	}
	node := func(p [4]string) string {
		return fmt.Sprintf(`{base_url: "http://127.0.0.1:%s", api_url: "http://127.0.0.1:%s", ws_url: "ws://127.0.0.1:%s", fix: "127.0.0.1:%s"}`, p[0], p[1], p[2], p[3])
	}
	config := filepath.Join(t.TempDir(), "groups.yaml")
	if err := os.WriteFile(config, []byte(servicetest.TwoGroups(servicetest.SecretFile(t, 32), node(ports[0]), node(ports[1]))), 0o600); err != nil {
		t.Fatal(err)
	}
	return startGroup(t, config, "eu", ports[0]), startGroup(t, config, "us", ports[1])
}

// startGroup runs a process of a group, on its configured addresses.
func startGroup(t *testing.T, config, name string, ports [4]string) *Service {
	t.Helper()
	set := func(key, value string) []string { return []string{"--set", key + "=" + value} }
	more := []string{"--config", config, "--demo"}
	more = append(more, set("routing.group", name)...)
	more = append(more, set("routing.timeout_ms", "60000")...)
	for i, key := range []string{"listen.base", "listen.api", "listen.ws", "listen.fix"} {
		more = append(more, set(key, "127.0.0.1:"+ports[i])...)
	}
	for _, key := range []string{"http.market_data_per_minute", "http.rfq_writes_per_minute"} {
		more = append(more, set(key, "0")...)
	}
	return StartServe(t, t.TempDir(), more...)
}
