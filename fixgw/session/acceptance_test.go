package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/participants/participantstest"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// TestAcceptance runs the acceptance scripts that the quickfix module ships for
// FIX 4.4 against our listener, logon check, store and session. Above them are the parts
// of the module's own test server: an echo, the stock dictionary and ResetOnLogon.
//
// The scripts wait for heartbeats of 2 and 6 seconds and answer them in time, so they
// run in virtual time, by scriptRun in the place of the module's runner in ruby.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	module := quickfixModule(t)
	patterns := readPatterns(t, filepath.Join(module, "_test", "definitions", "fields.fmt"))
	for i, l := range []struct {
		set      string // folder of the module's definitions
		scripts  int
		settings map[string]string
	}{
		{"server", 59, map[string]string{config.ResetOnLogon: "Y"}},
		{"lastseqnumprocessed", 1, map[string]string{config.ResetOnLogon: "Y", config.EnableLastMsgSeqNumProcessed: "Y"}},
		{"nextexpectedseqnum", 4, map[string]string{config.EnableNextExpectedMsgSeqNum: "Y"}},
		{"resendreqchunksize", 2, map[string]string{config.ResetOnLogon: "Y", config.ResendRequestChunkSize: "5"}},
	} {
		paths, err := filepath.Glob(filepath.Join(module, "_test", "definitions", l.set, "fix44", "*.def"))
		if err != nil || len(paths) != l.scripts {
			t.Fatalf("%d scripts for %s, want %d: %v", len(paths), l.set, l.scripts, err)
		}
		t.Run(l.set, func(t *testing.T) {
			t.Parallel()
			// The dictionaries of all lanes are read in real time.
			dictionary, err := ReadDictionary()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				// quickfix keeps its sessions in a registry of the process, so each
				// lane has a CompID of its own, as long as the scripts' for the sake
				// of their BodyLengths.
				runLane(t, fmt.Sprintf("ISL%d", i), dictionary, l.settings, patterns, paths)
			})
		})
	}
}

func quickfixModule(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/quickfixgo/quickfix").Output()
	if err != nil {
		runtest.SkipMissing(t, "quickfix module", "go mod download")
	}
	return strings.TrimSpace(string(out))
}

// runLane runs scripts one after the other against one gateway, in a bubble. All
// must pass.
func runLane(t *testing.T, compID string, dictionary *Dictionary, settings map[string]string, patterns map[string]*regexp.Regexp, paths []string) {
	pipes := sessiontest.NewPipes()
	v := echoServer(t, compID, dictionary, settings, pipes)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		run := scriptRun{server: v, pipes: pipes, patterns: patterns, conns: map[byte]*scriptConn{}}
		if err := run.all(bytes.ReplaceAll(text, []byte("ISLD"), []byte(compID))); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
		run.close()
		await.True(t, "the session to be free", func() bool { return !v.SessionNamed("TW").Connected() })
	}
	// A timer of quickfix's for each Logout of ours sends to the session that it was
	// made for: while the session runs.
	await.VirtualSleep(t, time.Minute)
}

// scriptRun runs one script. Its lines are: I sends a message and E expects one,
// iCONNECT and iDISCONNECT do so, eDISCONNECT expects the end of a connection, and
// iSET_SESSION sets a number of the gateway's. A digit and a comma after the first
// letter name one of several connections.
type scriptRun struct {
	server   *Server
	pipes    *sessiontest.Pipes
	patterns map[string]*regexp.Regexp // of values, by tag
	conns    map[byte]*scriptConn
}

type scriptConn struct {
	net.Conn
	in *bufio.Reader
}

// scriptSilence is how long a script waits for a message, in virtual time.
const scriptSilence = time.Hour

var scriptLine = regexp.MustCompile(`^([IEie])(?:(\d),)?(.*)$`)

func (r *scriptRun) all(script []byte) error {
	for i, line := range strings.Split(string(script), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		m := scriptLine.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("line %d: unknown: %q", i+1, line)
		}
		if err := r.line(m[1], m[2]+"1", m[3]); err != nil {
			return fmt.Errorf("line %d: %w\n%s", i+1, err, wiretest.Show([]byte(line)))
		}
	}
	return nil
}

func (r *scriptRun) line(kind, conn, body string) error {
	c := r.conns[conn[0]]
	switch {
	case kind == "i" && body == "CONNECT":
		client, err := r.pipes.Dial()
		if err != nil {
			return err
		}
		r.conns[conn[0]] = &scriptConn{client, bufio.NewReader(client)}
		return client.SetReadDeadline(time.Now().Add(scriptSilence))
	case kind == "i" && strings.HasPrefix(body, "SET_SESSION "):
		return r.setNumber(body)
	case c == nil:
		return errors.New("there is no connection")
	case kind == "i" && body == "DISCONNECT":
		delete(r.conns, conn[0])
		return c.Close()
	case kind == "e" && body == "DISCONNECT":
		more, err := io.ReadAll(c.in)
		switch {
		case err != nil:
			return fmt.Errorf("the connection does not end: %w", err)
		case len(more) > 0:
			return fmt.Errorf("the connection goes on: %s", wiretest.Show(more))
		}
		return nil
	case kind == "I":
		// Where the gateway has closed the connection, the next E does not hold.
		_, _ = c.Write(completed(withTimes(body)))
		return nil
	case kind == "E":
		got, err := c.next()
		if err != nil {
			return err
		}
		return r.compare(completed(body), got)
	}
	return fmt.Errorf("unknown action %s%s", kind, body)
}

// next returns the next message.
func (c *scriptConn) next() ([]byte, error) {
	var in []byte
	for {
		field, err := c.in.ReadBytes(wire.SOH)
		if in = append(in, field...); err != nil {
			return nil, fmt.Errorf("%w instead of a message: %s", err, wiretest.Show(in))
		}
		if bytes.HasPrefix(field, []byte("10=")) {
			if skip, n, err := wire.ScanFrame(in, 1<<20); skip != 0 || n != len(in) || err != nil {
				return nil, fmt.Errorf("not one message: %s", wiretest.Show(in))
			}
			return in, nil
		}
	}
}

var scriptTime = regexp.MustCompile(`<TIME([+-]\d+)?>`)

// withTimes writes the time, or one so many seconds before or after it, for <TIME>.
func withTimes(body string) string {
	return scriptTime.ReplaceAllStringFunc(body, func(placeholder string) string {
		seconds, _ := strconv.Atoi(scriptTime.FindStringSubmatch(placeholder)[1]) // "" is 0
		return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format("20060102-15:04:05")
	})
}

var (
	scriptHead = regexp.MustCompile("^8=.*?\x01")
	scriptSum  = regexp.MustCompile("\x0110=[^\x01]*\x01$")
)

// completed adds the BodyLength and the CheckSum that a message does not have.
func completed(body string) []byte {
	head := scriptHead.FindString(body)
	rest := body[len(head):]
	if head != "" && !strings.Contains(body, "\x019=") {
		size := len(rest)
		if at := scriptSum.FindStringIndex(rest); at != nil {
			size = at[0] + 1
		}
		rest = fmt.Sprintf("9=%d\x01%s", size, rest)
	}
	if head != "" && !scriptSum.MatchString(rest) {
		rest += fmt.Sprintf("10=%03d\x01", wiretest.SumOf(head+rest))
	}
	return []byte(head + rest)
}

// compare reports where a message has not the fields of another, in their order.
func (r *scriptRun) compare(want, got []byte) error {
	left, right := strings.Split(string(want), "\x01"), strings.Split(string(got), "\x01")
	if len(left) != len(right) {
		return fmt.Errorf("%d fields, want %d: %s", len(right)-1, len(left)-1, wiretest.Show(got))
	}
	for i := range left {
		tag, value, _ := strings.Cut(left[i], "=")
		gotTag, gotValue, _ := strings.Cut(right[i], "=")
		pattern := r.patterns[tag]
		if tag != gotTag || pattern == nil && value != gotValue || pattern != nil && !pattern.MatchString(gotValue) {
			return fmt.Errorf("%s, want %s: %s", right[i], left[i], wiretest.Show(got))
		}
	}
	return nil
}

// setNumber does what the module's server does for "SET_SESSION <session> <name>=<number>".
func (r *scriptRun) setNumber(body string) error {
	words := strings.Fields(body)
	name, text, _ := strings.Cut(words[len(words)-1], "=")
	number, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	messages := r.server.SessionNamed("TW").Messages
	switch name {
	case "NEXTTARGETSEQNUM":
		return messages.SetNextTargetMsgSeqNum(number)
	case "NEXTSENDERSEQNUM":
		return messages.SetNextSenderMsgSeqNum(number)
	}
	return fmt.Errorf("unknown number %s", name)
}

func (r *scriptRun) close() {
	for _, c := range r.conns {
		_ = c.Close() // many have ended
	}
}

// readPatterns reads what the module's runner does not compare byte by byte.
func readPatterns(t *testing.T, path string) map[string]*regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string]*regexp.Regexp{}
	for line := range strings.Lines(string(text)) {
		tag, pattern, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok {
			patterns[tag] = regexp.MustCompile("^(?:" + pattern + ")")
		}
	}
	if len(patterns) != 5 {
		t.Fatalf("%d patterns", len(patterns))
	}
	return patterns
}

// noHandler handles nothing.
type noHandler struct{ Handler }

func (noHandler) LogonFlagsChanged() {}
func (noHandler) LoggedOut()         {}
func (noHandler) CancelOrders()      {}

// opened returns a server whose sessions handle nothing.
func opened(o Options, store kv.Store) (*Server, error) {
	v, err := New(o, store)
	if err == nil {
		err = v.Open(func(*Session) Handler { return noHandler{} })
	}
	return v, err
}

// echoServer runs a server whose application is an echo.
func echoServer(t *testing.T, compID string, dictionary *Dictionary, settings map[string]string, l net.Listener) *Server {
	t.Helper()
	hash, _, err := (&participants.Participant{PasswordHash: participantstest.Hash("")}).Credentials()
	if err != nil {
		t.Fatal(err)
	}
	v, err := opened(Options{
		Address: "127.0.0.1:0", CompID: compID, Participants: sessiontest.Participants("TW"),
		RefuseDelay: time.Millisecond, LogonTimeout: time.Second, Dictionary: dictionary,
		Listen: func(string, string) (net.Listener, error) { return l, nil },
	}.WithDefaults(), kvtest.New())
	if err == nil {
		err = v.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	// The scripts' Logons have neither user nor password.
	tw := v.SessionNamed("TW")
	tw.Participant.Name = ""
	tw.terms.Store(&terms{Participant: tw.terms.Load().Participant, hash: hash})
	v.profile = profile{
		application: &echo{app: app{&v.host, &v.sessions}}, settings: map[string]string{config.DataDictionary: "FIX44.xml"},
		minHeartBt: 1, silentRefuse: true,
	}
	for name, value := range settings {
		v.profile.settings[name] = value
	}
	runtest.Start(t, func(ctx context.Context) error { return runServer(ctx, v) })
	return v
}

// runServer does what a gateway does of the life of its server.
func runServer(ctx context.Context, v *Server) error {
	if err := v.StartSessions(); err != nil {
		return err
	}
	serving, cutConns := context.WithCancel(context.WithoutCancel(ctx))
	defer cutConns()
	var conns sync.WaitGroup
	conns.Go(func() { v.Serve(serving, &conns) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-v.FirstError():
	}
	v.StopAccepting()
	v.LogOut()
	cutConns()
	conns.Wait()
	return errors.Join(err, v.CloseStores())
}

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
		e.Fail(err)
	}
	return nil
}
