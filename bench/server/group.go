package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Group is the processes of one quorum, on this machine.
type Group []*Server

// StartGroup runs n processes of exe, each in a folder of its own in dir, as the
// nodes of one quorum: config (YAML) and what makes a node of each. A leader may be
// silent for timeout; 0 = the program's default. StartGroup returns when all answer;
// none of them need lead yet.
func StartGroup(ctx context.Context, exe, dir, config string, n int, timeout time.Duration) (g Group, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Kill())
			g = nil
		}
	}()
	var peers strings.Builder
	peers.WriteString("peers:\n")
	binds := make([]string, n)
	for i := range n {
		s, err := prepared(exe, filepath.Join(dir, fmt.Sprintf("n%d", i+1)))
		if err != nil {
			return nil, err
		}
		s.member = true
		port, held, err := FreePort()
		if err != nil {
			return nil, err
		}
		s.held = append(s.held, held)
		binds[i] = fmt.Sprintf("127.0.0.1:%d", port)
		a := &s.Addresses
		fmt.Fprintf(&peers, "  - {id: n%d, address: %q, base_url: %q, api_url: %q, ws_url: %q, fix: %q, admin_url: %q}\n",
			i+1, binds[i], a.Base, a.API, a.WS, a.FIX, a.Admin)
		g = append(g, s)
	}
	for i, s := range g {
		limit := ""
		if timeout > 0 {
			limit = fmt.Sprintf(", timeout_ms: %d", timeout.Milliseconds())
		}
		own := fmt.Sprintf("%s\njournal: {kind: raft}\ncluster: {id: n%d, bind: %q%s}\n%s", config, i+1, binds[i], limit, &peers)
		if err := os.WriteFile(s.config, []byte(own), 0o600); err != nil {
			return nil, err
		}
		if err := s.run(ctx); err != nil {
			return g, fmt.Errorf("node n%d: %w", i+1, err)
		}
	}
	return g, nil
}

// prepared returns a server that has its folder and its ports and does not run yet, so
// that other configurations can name its addresses.
func prepared(exe, dir string) (*Server, error) {
	s := &Server{exe: exe, dir: dir, core: -1, config: filepath.Join(dir, "config.yaml")}
	return s, errors.Join(os.MkdirAll(dir, 0o700), s.choosePorts())
}

// Kill ends all nodes at once.
func (g Group) Kill() error {
	var errs []error
	for _, s := range g {
		if s.cmd != nil && s.cmd.Process != nil {
			errs = append(errs, s.Kill())
		}
	}
	return errors.Join(errs...)
}

// answers reports whether the admin address answers, ready or not.
func (s *Server) answers() bool { return s.readyz() != 0 }
