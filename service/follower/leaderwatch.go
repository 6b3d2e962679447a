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
	// leaderEvery is the time between two searches for the leader; leaderTimeout bounds
	// the answer of a peer.
	leaderEvery   = time.Second
	leaderTimeout = 500 * time.Millisecond
)

// leaderWatch finds the peer that leads: the other peers redirect to it.
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
		w.found(&peers[0]) // the only candidate
	}
	return w
}

// leader returns the leader; zero if it is not known. Safe for concurrent use.
func (w *leaderWatch) leader() leadership.Leader {
	if l := w.known.Load(); l != nil {
		return *l
	}
	return leadership.Leader{}
}

// Run searches until ctx ends.
func (w *leaderWatch) Run(ctx context.Context) error {
	if len(w.peers) < 2 {
		<-ctx.Done()
		return nil
	}
	defer w.http.CloseIdleConnections()
	repeat.Every(ctx, leaderEvery, w.search)
	return nil
}

// search requests the leader from the last leader first, then from the other peers. If no
// peer knows a leader the last one stays: it redirects clients itself.
func (w *leaderWatch) search(ctx context.Context) {
	last := w.leader().ID
	for _, first := range []bool{true, false} {
		for i := range w.peers {
			p := &w.peers[i]
			if (p.ID == last) != first {
				continue
			}
			if leader := w.requestLeader(ctx, p); leader != nil {
				w.found(leader)
				return
			}
		}
	}
}

// requestLeader requests the leader from a peer; nil if the peer does not know.
func (w *leaderWatch) requestLeader(ctx context.Context, p *config.Peer) *config.Peer {
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
	to, noLocation := resp.Location()
	switch {
	case err != nil:
		return nil
	case resp.StatusCode == http.StatusOK:
		return p
	case resp.StatusCode != http.StatusTemporaryRedirect || noLocation != nil:
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
		w.log.Info("leader found", "id", l.ID)
		w.known.Store(&l)
	}
}
