// Package server runs the real program as a child process, so that benchmarks, the player
// of recorded flows and the end-to-end tests use what users run, and can stop, kill and
// restart it.
//
// A Server is one process at a time on one data folder; a Group is the nodes of a raft
// group on this machine. Driver and Line are minimal clients of FIX and HTTP whose own
// cost is small. Ports are free ones that FreePort reserves until the child has bound
// them. startTimeout and stopTimeout bound the waits.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"blockdesk/fixgw/participants"
	"blockdesk/service/operator"
)

// output is the child's output; it may be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startTimeout bounds the wait for a started server to be ready.
const startTimeout = 4 * time.Minute

// stopTimeout bounds the wait for a server's orderly end.
const stopTimeout = 4 * time.Minute

// Server is one child process at a time, on one data folder.
type Server struct {
	exe, dir, config string
	core             int // that it is bound to; negative = any
	sets             []string
	member           bool             // of a group: up before it is ready, which only a leader is
	held             []net.PacketConn // see FreePort
	cmd              *exec.Cmd
	exited           chan error
	log              *output
	Addresses        operator.Addresses
}

// Start writes config (YAML) into dir, runs exe with it on free ports, and
// returns when the server reports that it is ready.
func Start(ctx context.Context, exe, dir, config string) (*Server, error) {
	return StartOn(ctx, -1, exe, dir, config)
}

// StartOn is Start with the server bound to one core by taskset.
func StartOn(ctx context.Context, core int, exe, dir, config string) (*Server, error) {
	s := &Server{exe: exe, dir: dir, core: core, config: filepath.Join(dir, "config.yaml")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		return nil, err
	}
	var err error
	for range startTries {
		if err = s.choosePorts(); err != nil {
			return nil, err
		}
		if err = s.run(ctx); err == nil {
			return s, nil
		}
		if !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			break
		}
	}
	return nil, err
}

// startTries bounds the starts of a server whose ports others took between their
// choice and its start, as servers do that start beside it.
const startTries = 5

// choosePorts gives the server ports that are free now.
func (s *Server) choosePorts() error {
	s.sets, s.held = s.sets[:0], nil
	a := &s.Addresses
	for _, at := range []struct {
		name, scheme string
		url          *string
	}{{"base", "http://", &a.Base}, {"api", "http://", &a.API}, {"ws", "ws://", &a.WS}, {"fix", "", &a.FIX}, {"admin", "http://", &a.Admin}} {
		port, held, err := FreePort()
		if err != nil {
			return err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		*at.url = at.scheme + address
		s.sets, s.held = append(s.sets, "listen."+at.name+"="+address), append(s.held, held)
	}
	return nil
}

// Ports are taken from below the range that kernels give to connections and to
// port 0: a restart takes the same ports, as an operator's would, and nothing
// else may have taken one in between.
const (
	firstPort = 20_000
	lastPort  = 32_000
	portTries = 100
)

// FreePort returns a TCP port without a listener and reserves it against other callers
// of FreePort, those of other processes too, for as long as held is open: FreePort binds
// the UDP port of the same number. So a server that is killed finds its port free when
// it starts again. The garbage collector closes a held that its caller has lost.
func FreePort() (port int, held net.PacketConn, err error) {
	for range portTries {
		port = firstPort + rand.IntN(lastPort-firstPort)
		at := fmt.Sprintf("127.0.0.1:%d", port)
		if held, err = net.ListenPacket("udp", at); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", at); err == nil {
			return port, held, l.Close()
		}
		_ = held.Close() // no harm is done while it stays open
	}
	return 0, nil, fmt.Errorf("no free port in %d tries: %w", portTries, err)
}

// WriteParticipants makes dir and writes a participants file into it: one
// participant and session for each CompID, numbered from 1, all with the same
// password. It returns the file's path.
func WriteParticipants(dir, password string, compIDs ...string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	hash, err := participants.HashPassword(password)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("participants:\n")
	for i, id := range compIDs {
		fmt.Fprintf(&text, "  - {name: %s, number: %d, comp_ids: [%s], password_hash: %q}\n", id, i+1, id, hash)
	}
	path = filepath.Join(dir, "participants.yaml")
	return path, os.WriteFile(path, []byte(text.String()), 0o600)
}

// Log is what the child has written to its standard error since its last start.
func (s *Server) Log() string { return s.log.String() }

// Replace sets the program that the next start runs.
func (s *Server) Replace(exe string) { s.exe = exe }

// DataDir is the server's data folder.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

// PID is the child's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

func (s *Server) run(ctx context.Context) error {
	args := []string{"serve", "--config", s.config, "--data", s.DataDir()}
	for _, set := range s.sets {
		args = append(args, "--set", set)
	}
	s.log = &output{}
	s.cmd = exec.Command(s.exe, args...)
	if s.core >= 0 {
		// taskset becomes the server, under the same PID.
		s.cmd = exec.Command("taskset", append([]string{"-c", strconv.Itoa(s.core), s.exe}, args...)...)
	}
	s.cmd.Stdout, s.cmd.Stderr = nil, s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) { exited <- cmd.Wait() }(s.cmd, s.exited)
	deadline := time.Now().Add(startTimeout)
	for {
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("server ended while starting: %w\n%s", err, s.log)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Kill())
		case <-time.After(10 * time.Millisecond):
		}
		if s.member && s.answers() || !s.member && s.ready() {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("server not ready in %v\n%s", startTimeout, s.log), s.Kill())
		}
	}
}

func (s *Server) ready() bool {
	at, err := operator.ReadAddresses(s.DataDir())
	if err != nil || at.PID != s.cmd.Process.Pid {
		return false
	}
	s.Addresses = at
	return s.readyz() == http.StatusOK
}

// readyz returns the HTTP status of /readyz on the admin address; 0 without an answer.
func (s *Server) readyz() int {
	resp, err := http.Get(s.Addresses.Admin + "/readyz")
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Kill ends the child at once (SIGKILL) and waits for it.
func (s *Server) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := <-s.exited
	s.exited <- err
	return nil
}

// Stop ends the child by SIGTERM and returns an error unless it ended by itself
// and cleanly.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.exited:
		s.exited <- err
		if err != nil {
			return fmt.Errorf("server: %w\n%s", err, s.log)
		}
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("server did not stop in %v", stopTimeout), s.Kill())
	}
}

// Restart starts the child again on the same data and ports after Kill or Stop.
func (s *Server) Restart(ctx context.Context) error { return s.run(ctx) }

// CPU returns the user and system time that the child has used so far.
func (s *Server) CPU() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0
	}
	const ticksPerSecond = 100 // USER_HZ
	return time.Duration(user+system) * time.Second / ticksPerSecond
}
