package follower

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"blockdesk/internal/repeat"
	"blockdesk/persist/leadership"
	"blockdesk/service/config"
)

const (
	// leaderEvery is the time between two looks for the leader, and leaderTimeout
	// what a peer has to answer in.
	leaderEvery   = time.Second
	leaderTimeout = 500 * time.Millisecond
)

// leaderWatch finds out which of the peers leads, for who only reads: a node that
// does not lead sends clients to the one that does.
type leaderWatch struct {
	peers []config.Peer
	log   *slog.Logger
	known atomic.Pointer[leadership.Leader]
	http  http.Client
}

func newLeaderWatch(peers []config.Peer, log *slog.Logger) *leaderWatch {
	w := &leaderWatch{peers: peers, log: log}
	w.http = http.Client{
		Timeout:       leaderTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if len(peers) == 1 {
		w.found(&peers[0]) // who else
	}
	return w
}

// leader returns who leads; zero where that is not known. Any goroutine.
func (w *leaderWatch) leader() leadership.Leader {
	if l := w.known.Load(); l != nil {
		return *l
	}
	return leadership.Leader{}
}

// Run looks until ctx ends.
func (w *leaderWatch) Run(ctx context.Context) error {
	if len(w.peers) < 2 {
		<-ctx.Done()
		return nil
	}
	defer w.http.CloseIdleConnections()
	repeat.Every(ctx, leaderEvery, w.look)
	return nil
}

// look asks the one that led last first. Where nobody says who leads, what was known
// stays: a peer that is sent there knows better, or says so.
func (w *leaderWatch) look(ctx context.Context) {
	last := w.leader().ID
	for _, first := range []bool{true, false} {
		for i := range w.peers {
			p := &w.peers[i]
			if (p.ID == last) != first {
				continue
			}
			if leader := w.ask(ctx, p); leader != nil {
				w.found(leader)
				return
			}
		}
	}
}

// ask asks a peer who leads; nil where it does not say.
func (w *leaderWatch) ask(ctx context.Context, p *config.Peer) *config.Peer {
	if p.Base == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, p.Base+"/", nil)
	if err != nil {
		return nil
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil
	}
	err = resp.Body.Close()
	to, noPlace := resp.Location()
	switch {
	case err != nil:
		return nil
	case resp.StatusCode == http.StatusOK:
		return p
	case resp.StatusCode != http.StatusTemporaryRedirect || noPlace != nil:
		return nil
	}
	for i := range w.peers {
		if base, err := url.Parse(w.peers[i].Base); err == nil && base.Host == to.Host {
			return &w.peers[i]
		}
	}
	return nil
}

func (w *leaderWatch) found(p *config.Peer) {
	l := leadership.Leader{ID: p.ID, Base: p.Base, API: p.API, WS: p.WS, FIX: p.FIX}
	if w.leader() != l {
		w.log.Info("the leader", "id", l.ID)
		w.known.Store(&l)
	}
}
