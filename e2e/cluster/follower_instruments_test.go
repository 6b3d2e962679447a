package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// TestFollowerLacksInstrument: a leader is restarted with one instrument more than
// its follower's configuration names. The follower serves the others' books and says which
// one it lacks, also after it has begun anew from a snapshot that has it.
func TestFollowerLacksInstrument(t *testing.T) {
	t.Parallel()
	port, held, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	exe := programtest.Binary(t)
	instrument := func(symbol string) string {
		return fmt.Sprintf("  - {symbol: %s, price_decimals: 6, qty_decimals: 6, tick: '0.01', lot: '1', min_qty: '1', max_qty: '100', max_price: '10', book_source: matched}\n", symbol)
	}
	const added = "NEW/USDC"
	one := "log: {level: warn}\nrfq: {enabled: false}\nfanout: nats\n%s\ninstruments:\n" + instrument(programtest.Symbol)
	leads := programtest.Config(t, fmt.Sprintf(one, fmt.Sprintf("nats: {embedded: true, listen: '127.0.0.1:%d'}", port)))
	dirs := [2]string{t.TempDir(), t.TempDir()}
	start := func(dir, config string) *server.Server {
		t.Helper()
		s, err := server.Start(t.Context(), exe, dir, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Kill() })
		return s
	}
	leader := start(dirs[0], leads)
	follows := programtest.Config(t, fmt.Sprintf(one, fmt.Sprintf("role: follower\nnats: {urls: ['nats://127.0.0.1:%d'], max_behind_ms: 3000}\npeers: [{id: a, address: '127.0.0.1:1', base_url: %q, api_url: %q}]",
		port, leader.Addresses.Base, leader.Addresses.API)))
	follower := start(dirs[1], follows)

	rewrite := func(dir, config string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config+instrument(added)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(dirs[0], leads)
	if err := errors.Join(leader.Stop(), leader.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	lacks := func() {
		t.Helper()
		await.True(t, "a follower that names what it lacks", func() bool {
			text := programtest.Answered(follower.Addresses.Admin + "/readyz")
			return strings.HasPrefix(text, "503 ") && strings.Contains(text, added+": defined by the leader, missing in instruments")
		})
		await.True(t, "its log", func() bool { return strings.Contains(follower.Log(), added) })
		await.True(t, "the other book", func() bool {
			return strings.HasPrefix(programtest.Answered(follower.Addresses.API+"/api/v1/market/depth?symbol="+programtest.Symbol), "200 ")
		})
	}
	lacks()
	if err := leader.Stop(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a follower that begins anew", func() bool { return strings.Contains(follower.Log(), "rejoining from a snapshot") })
	if err := leader.Restart(t.Context()); err != nil { // whose snapshot has it now
		t.Fatal(err)
	}
	lacks()
	if err := follower.Stop(); err != nil {
		t.Fatal(err)
	}
	rewrite(dirs[1], follows)
	if err := follower.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := programtest.Status(t, follower.Addresses.API+"/api/v1/market/depth?symbol="+added); code != http.StatusOK {
		t.Errorf("the new book: status %d", code)
	}
	if err := errors.Join(follower.Stop(), leader.Stop()); err != nil {
		t.Error(err)
	}
}
