package fixgw

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
)

// acceptanceTime bounds one lane of scripts: 6_SendTestRequest alone waits for
// some 40 s of heartbeats.
const acceptanceTime = 3 * time.Minute

// lane is scripts that run one after the other against a gateway of their own.
type lane struct {
	set      string // folder of the module's definitions
	only     string // name of the one script; "" = all that no other lane has
	settings map[string]string
}

// TestAcceptance runs the acceptance scripts that the quickfix module ships for
// FIX 4.4 against our door, gate, store and session. Above them is what the
// module's own test server has: an echo, the stock dictionary and ResetOnLogon.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skipf("the scripts' runner needs ruby: %v", err)
	}
	module := quickfixModule(t)
	slow := []string{"6_SendTestRequest.def", "4a_NoDataSentDuringHeartBtInt.def"}
	reset := map[string]string{config.ResetOnLogon: "Y"}
	for i, l := range []lane{
		{"server", "", reset},
		{"server", slow[0], reset},
		{"server", slow[1], reset},
		{"lastseqnumprocessed", "", map[string]string{config.ResetOnLogon: "Y", config.EnableLastMsgSeqNumProcessed: "Y"}},
		{"nextexpectedseqnum", "", map[string]string{config.EnableNextExpectedMsgSeqNum: "Y"}},
		{"resendreqchunksize", "", map[string]string{config.ResetOnLogon: "Y", config.ResendRequestChunkSize: "5"}},
	} {
		scripts, err := filepath.Glob(filepath.Join(module, "_test", "definitions", l.set, "fix44", "*.def"))
		if err != nil {
			t.Fatal(err)
		}
		scripts = slices.DeleteFunc(scripts, func(path string) bool {
			name := filepath.Base(path)
			return l.only != name && (l.only != "" || slices.Contains(slow, name))
		})
		if len(scripts) == 0 {
			t.Fatalf("the module has no scripts for %s %s", l.set, l.only)
		}
		t.Run(strings.TrimSuffix(l.set+"/"+l.only, "/"), func(t *testing.T) {
			t.Parallel()
			// quickfix keeps its sessions in a registry of the process, so each
			// lane has a CompID of its own, as long as the scripts' for the sake
			// of their BodyLengths.
			runLane(t, ruby, module, fmt.Sprintf("ISL%d", i), l, scripts)
		})
	}
}

func quickfixModule(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/quickfixgo/quickfix").Output()
	if err != nil {
		t.Skipf("where is the quickfix module: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// runLane runs the scripts. All must pass.
func runLane(t *testing.T, ruby, module, compID string, l lane, scripts []string) {
	g := echoGateway(t, compID, l.settings)
	host, port, _ := strings.Cut(g.Addr().String(), ":")
	dir := t.TempDir()
	// The runner says numbers to a server at a fixed address: not so here.
	prelude := filepath.Join(dir, "numbers.rb")
	writeFile(t, prelude, []byte("require 'uri'\nmodule Kernel\n  alias fixed_uri URI\n"+
		"  def URI(at) = fixed_uri(at.sub('http://localhost:8095', ENV.fetch('NUMBERS')))\nend\n"))
	numbers := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { setNumbers(t, g, r) }))
	defer numbers.Close()
	args := []string{"-I.", "-r", prelude, "Runner.rb", host, port}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		own := filepath.Join(dir, filepath.Base(path))
		writeFile(t, own, bytes.ReplaceAll(text, []byte("ISLD"), []byte(compID)))
		args = append(args, own)
	}
	ctx, cancel := context.WithTimeout(context.Background(), acceptanceTime)
	defer cancel()
	c := exec.CommandContext(ctx, ruby, args...)
	c.Dir, c.Env = filepath.Join(module, "_test"), append(os.Environ(), "NUMBERS="+numbers.URL)
	var failed *exec.ExitError
	out, err := c.Output()
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		t.Fatalf("the runner: %v\n%s", err, out)
	}
	results := scriptResults(out)
	for _, path := range scripts {
		name := filepath.Base(path)
		text, ran := results[name]
		if !ran {
			t.Errorf("%s has no result:\n%s", name, out)
		} else if text != "" {
			t.Errorf("%s failed: %s", name, text)
		}
	}
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// scriptResults returns what the runner says of each script: "" = passed.
func scriptResults(out []byte) map[string]string {
	head := regexp.MustCompile(`<test name='(?:.*/)?([^/']+)' result='(success|failure)'`)
	results := map[string]string{}
	name := ""
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := head.FindStringSubmatch(lines.Text()); m != nil {
			name = m[1]
			results[name] = ""
			if m[2] == "failure" {
				results[name] = "failure"
			}
		} else if results[name] != "" {
			results[name] += "\n" + lines.Text()
		}
	}
	return results
}

// setNumbers does what the module's server does for SET_SESSION lines.
func setNumbers(t *testing.T, g *Gateway, r *http.Request) {
	for name, set := range map[string]func(int) error{
		"NEXTTARGETSEQNUM": g.sessionNamed("TW").messages.SetNextTargetMsgSeqNum,
		"NEXTSENDERSEQNUM": g.sessionNamed("TW").messages.SetNextSenderMsgSeqNum,
	} {
		if text := r.URL.Query().Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err == nil {
				err = set(n)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// echoGateway runs a gateway with an echo in the place of the product.
func echoGateway(t *testing.T, compID string, settings map[string]string) *Gateway {
	t.Helper()
	nothing := argonHash{memory: 8, passes: 1, lanes: 1, salt: []byte("saltsalt")}
	nothing.derived = nothing.derive(nil, 16)
	g, err := New(Options{
		Address: "127.0.0.1:0", CompID: compID, Participants: testParticipants("TW"),
		RefuseDelay: time.Millisecond, LogonTimeout: time.Second,
	}, nil, newMemStore(), Doors{MarketData: &views{}}, testInstruments(t))
	if err != nil {
		t.Fatal(err)
	}
	// The scripts' Logons have neither user nor password.
	tw := g.sessionNamed("TW")
	tw.participant.Name = ""
	tw.terms.Store(&terms{Participant: tw.terms.Load().Participant, hash: &nothing})
	g.layer = layer{
		application: &echo{app: app{g}}, settings: map[string]string{config.DataDictionary: "FIX44.xml"},
		minHeartBt: 1, silentRefuse: true,
	}
	for name, value := range settings {
		g.layer.settings[name] = value
	}
	runtest.Start(t, func(ctx context.Context) error { return g.Run(ctx, noEvents{ctx}) })
	return g
}

// noEvents is an engine that does nothing and ends with its context.
type noEvents struct{ ctx context.Context }

func (n noEvents) Next(context.Context) ([]event.Event, error) {
	<-n.ctx.Done()
	return nil, io.EOF
}

func (noEvents) Poll() []event.Event { return nil }

func (noEvents) Release(int) {}

func (noEvents) Whole() uint64 { return 0 }

// echo is the module's test application over our session callbacks: it sends
// each D and d back, but one that comes again under PossResend.
type echo struct {
	app
	seen map[string]bool // ClOrdIDs of this logon
}

func (e *echo) OnLogon(id quickfix.SessionID) {
	e.seen = make(map[string]bool)
	e.app.OnLogon(id)
}

func (*echo) FromAdmin(*quickfix.Message, quickfix.SessionID) quickfix.MessageRejectError {
	return nil
}

func (e *echo) FromApp(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	msgType, err := m.Header.GetString(35)
	if err != nil {
		return err
	}
	if msgType != "D" && msgType != "d" {
		return quickfix.UnsupportedMessageType()
	}
	again := m.Header.Has(97)
	if clOrdID, err := m.Body.GetString(11); err == nil {
		if again && e.seen[clOrdID] {
			return nil
		}
		e.seen[clOrdID] = true
	}
	m.Header.Clear()
	m.Trailer.Clear()
	m.Header.SetString(35, msgType)
	if again {
		m.Header.SetString(97, "Y")
	}
	if err := quickfix.SendToTarget(m, id); err != nil {
		e.gateway.fail(err)
	}
	return nil
}
