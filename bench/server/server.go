// Package server runs the real program as a child process, so that benchmarks
// and the recorded-flow player measure what users run, and can kill it.
package server

import (
	"bytes"
	"context"
	"encoding/json"
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
	"syscall"
	"time"

	"blockdesk/fixgw"
)

// Addresses are where a running server listens, as its addresses.json says.
type Addresses struct {
	Base  string `json:"base_url"`
	API   string `json:"api_url"`
	WS    string `json:"ws_url"`
	FIX   string `json:"fix"`
	Admin string `json:"admin_url"`
	PID   int    `json:"pid"`
}

// startTimeout bounds the wait for a started server to be ready.
const startTimeout = 60 * time.Second

// Server is one child process at a time, on one data folder.
type Server struct {
	exe, dir, config string
	core             int // that it is bound to; negative = any
	sets             []string
	cmd              *exec.Cmd
	exited           chan error
	log              *bytes.Buffer
	Addresses        Addresses
}

// Start writes config (YAML) into dir, runs exe with it on free ports, and
// returns when the server says that it is ready.
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
	s.sets = s.sets[:0]
	for _, name := range []string{"base", "api", "ws", "fix", "admin"} {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.sets = append(s.sets, fmt.Sprintf("listen.%s=127.0.0.1:%d", name, port))
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

func freePort() (int, error) {
	var err error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port in %d tries: %w", portTries, err)
}

// WriteParticipants makes dir and writes a participants file into it: one
// participant and session for each CompID, numbered from 1, all with the same
// password. It returns the file's path.
func WriteParticipants(dir, password string, compIDs ...string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	hash, err := fixgw.HashPassword(password)
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

// DataDir is the server's data folder.
func (s *Server) DataDir() string { return filepath.Join(s.dir, "data") }

// PID is the child's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

func (s *Server) run(ctx context.Context) error {
	args := []string{"serve", "--config", s.config, "--data", s.DataDir()}
	for _, set := range s.sets {
		args = append(args, "--set", set)
	}
	s.log = &bytes.Buffer{}
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
		if s.ready() {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("server not ready in %v", startTimeout), s.Kill())
		}
	}
}

func (s *Server) ready() bool {
	text, err := os.ReadFile(filepath.Join(s.DataDir(), "addresses.json"))
	if err != nil || json.Unmarshal(text, &s.Addresses) != nil || s.Addresses.PID != s.cmd.Process.Pid {
		return false
	}
	resp, err := http.Get(s.Addresses.Admin + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
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
	case <-time.After(20 * time.Second):
		return errors.Join(errors.New("server did not stop in 20 s"), s.Kill())
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
