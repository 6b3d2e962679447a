// Package sandbox runs the local Solana chain of the demo and of the tests: a Node
// server in this folder that serves Solana's JSON-RPC on top of LiteSVM, which really
// executes transactions. README.md says what the server answers, how to make it fail,
// and how it differs from a validator.
//
// Options.Dir is a folder with server.mjs and node_modules: that of the source tree, where
// make sandbox installs the latter, or one that Unpack has written. Check says in one
// line what is missing.
//
// Concurrency: a Node's methods may be called from any goroutine.
package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MinNodeVersion is the oldest major version of Node that runs the server.
	MinNodeVersion = 20

	// These timeouts only end a hang. They are long because a loaded machine is slow.
	readyTimeout = 5 * time.Minute
	stopTimeout  = 2 * time.Minute // then it is killed
	callTimeout  = 2 * time.Minute
	// idleTimeout is below the server's idle timeout, so that the server does not close a
	// connection that the client is about to use.
	idleTimeout = time.Minute
	maxAnswer   = 64 << 20
	maxStderr   = 4 << 10
	readyPrefix = "sandbox ready "
)

// ErrUnavailable says that the chain cannot run on this machine, and why.
var ErrUnavailable = errors.New("local chain unavailable")

// Options are the options of a chain. The zero value of a field means its default.
type Options struct {
	Dir  string // folder of server.mjs; required
	Node string // the node command; default "node"
	Addr string // host:port to listen on; default 127.0.0.1 and any free port

	SlotTime      time.Duration // whole milliseconds; default 400 ms
	ManualSlots   bool          // slots pass only by sandbox_advance
	ConfirmSlots  int           // slots until a block is confirmed; default 1
	FinalizeSlots int           // slots until a block is finalized; default 31
	// BlockhashSlots is the life of a blockhash in slots, at most 100,000; default 150,
	// as on mainnet. Set it higher in tests on a chain whose slots pass by themselves,
	// so that nothing expires because the machine is slow.
	BlockhashSlots int
	History        int // transactions kept, about 11 KB each; default 20,000

	Seed      string // makes genesis, blockhashes and new keys reproducible; default random
	StateFile string // keeps the chain over restarts; default: in memory only
	SetupDir  string // folder to create mints, desk, treasury and wallets in; default: none
	Wallets   int    // demo wallets of the setup; default 3

	Stderr io.Writer // of the server; default discarded
}

// Find returns the sandbox folder of the first source tree that contains one of the
// folders, or "".
func Find(from ...string) string {
	for _, start := range from {
		for dir := filepath.Clean(start); ; dir = filepath.Dir(dir) {
			found := filepath.Join(dir, "internal", "sandbox")
			if _, err := os.Stat(filepath.Join(found, "server.mjs")); err == nil {
				return found
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

// Check reports whether the chain can run here. Its error is ErrUnavailable
// with the reason.
func (o Options) Check(ctx context.Context) error {
	path, err := exec.LookPath(o.node())
	if err != nil {
		return fmt.Errorf("%w: Node.js %d or later is not in PATH: install it", ErrUnavailable, MinNodeVersion)
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return fmt.Errorf("%w: %s --version: %w", ErrUnavailable, path, err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < MinNodeVersion {
		return fmt.Errorf("%w: Node %s is older than %d", ErrUnavailable, strings.TrimSpace(string(out)), MinNodeVersion)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "server.mjs")); err != nil {
		return fmt.Errorf("%w: no server.mjs in %q", ErrUnavailable, o.Dir)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "node_modules", "litesvm-linux-x64-gnu")); err != nil {
		return fmt.Errorf("%w: LiteSVM is not installed: npm ci in %s", ErrUnavailable, o.Dir)
	}
	return nil
}

// serverFolder, in Options.SetupDir, has the server that the program contains.
const serverFolder = "server"

// Unpacked returns the options of a chain whose server is there: without a Dir it unpacks
// the program's own into a folder of SetupDir, which must be given.
func (o Options) Unpacked() (Options, error) {
	if o.Dir != "" {
		return o, nil
	}
	o.Dir = filepath.Join(o.SetupDir, serverFolder)
	return o, Unpack(o.Dir)
}

func (o Options) node() string { return cmp.Or(o.Node, "node") }

func (o Options) args() ([]string, error) {
	args := []string{filepath.Join(o.Dir, "server.mjs"), "--exit-with-stdin"}
	set := func(name, value string) { args = append(args, "--"+name, value) }
	addr := cmp.Or(o.Addr, "127.0.0.1:0")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: address %q: %w", addr, err)
	}
	set("host", host)
	set("port", port)
	if o.SlotTime%time.Millisecond != 0 || o.SlotTime < 0 {
		return nil, fmt.Errorf("sandbox: slot time %s: must be whole milliseconds", o.SlotTime)
	}
	if o.ManualSlots {
		set("slot-ms", "0")
	} else if o.SlotTime > 0 {
		set("slot-ms", strconv.FormatInt(o.SlotTime.Milliseconds(), 10))
	}
	for name, n := range map[string]int{
		"confirm-slots": o.ConfirmSlots, "finalize-slots": o.FinalizeSlots, "blockhash-slots": o.BlockhashSlots,
		"history": o.History, "wallets": o.Wallets,
	} {
		if n != 0 {
			set(name, strconv.Itoa(n))
		}
	}
	for name, text := range map[string]string{"seed": o.Seed, "state": o.StateFile, "setup": o.SetupDir} {
		if text != "" {
			set(name, text)
		}
	}
	return args, nil
}

// Node is a running chain.
type Node struct {
	url    string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	client *http.Client
	wait   func() error
	killed atomic.Bool
}

// Start starts the chain and returns when it answers. The chain ends with ctx, with
// Stop, and with this process, however that ends.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	args, err := o.args()
	if err != nil {
		return nil, err
	}
	stdin, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		stdin.Close()
		hold.Close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, o.node(), args...)
	stderr := &lastOutput{also: o.Stderr}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Cancel = hold.Close // the server saves its state and exits
	cmd.WaitDelay = stopTimeout
	n := &Node{cmd: cmd, cancel: cancel, client: &http.Client{Timeout: callTimeout, Transport: &http.Transport{IdleConnTimeout: idleTimeout}}}
	n.wait = sync.OnceValue(func() error {
		err := cmd.Wait()
		hold.Close()
		out.Close()
		n.client.CloseIdleConnections()
		if errors.Is(err, context.Canceled) || n.killed.Load() {
			return nil
		}
		return err
	})
	err = cmd.Start()
	stdin.Close()
	stdout.Close()
	if err != nil {
		cancel()
		hold.Close()
		out.Close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := n.awaitReady(out); err != nil {
		return nil, errors.Join(err, n.Stop(), errors.New(stderr.String()))
	}
	return n, nil
}

// lastOutput keeps the last maxStderr bytes written, and forwards everything to also.
type lastOutput struct {
	mu   sync.Mutex
	text []byte
	also io.Writer
}

func (t *lastOutput) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxStderr):]
	if t.also == nil {
		return len(p), nil
	}
	return t.also.Write(p)
}

func (t *lastOutput) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

func (n *Node) awaitReady(out *os.File) error {
	if err := out.SetReadDeadline(time.Now().Add(readyTimeout)); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), readyPrefix)
	if !ok {
		return fmt.Errorf("sandbox: not ready: %q: %w", line, err)
	}
	n.url = url
	return nil
}

// URL returns the chain's JSON-RPC endpoint.
func (n *Node) URL() string { return n.url }

// Run waits until the chain has ended, and stops it when ctx ends. It returns nil if ctx
// or Stop ended the chain, else the error that did.
func (n *Node) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, n.cancel)
	defer stop()
	if err := n.wait(); err != nil {
		return fmt.Errorf("sandbox: the chain ended: %w", err)
	}
	return nil
}

// Stop makes the chain save its state and end, and waits for it. A chain that does not
// end within stopTimeout is killed.
func (n *Node) Stop() error {
	n.cancel()
	if err := n.wait(); err != nil {
		return fmt.Errorf("sandbox: stop: %w", err)
	}
	return nil
}

// Kill ends the chain like a crash: it saves nothing.
func (n *Node) Kill() error {
	n.killed.Store(true)
	err := n.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	return errors.Join(err, n.Stop())
}

// Error is an error answer of the chain.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Call calls a method, usually one of the sandbox_ controls, and decodes its result
// into result unless that is nil. If the chain refuses, the error is an *Error.
func (n *Node) Call(ctx context.Context, method string, params, result any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sandbox: %s: %w", method, err)
		}
	}()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *Error          `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if answer.Error != nil {
		return answer.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, result)
}
