package settle_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// TestStoreLost: a claim is paid while the service is down, and settlement's store
// is lost with its cursors. What was paid is no history.
func TestStoreLost(t *testing.T) {
	c := startChain(t, 50*time.Millisecond)
	disk := vfs.FS(vfs.NewMem())
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.end()
	paid := c.send(w.fill(t, p.Raw))
	l.await("the payment", func() bool {
		_, known, err := c.client.Transaction(t.Context(), paid, rpc.Finalized)
		return known && err == nil
	})
	x, _, _ := c.client.Transaction(t.Context(), paid, rpc.Finalized)
	t.Log("lag", x.BlockTime-time.Now().Unix())
	clock := new(atomic.Int64)
	clock.Store(int64(5 * time.Minute))
	l = begin(t, c, lifeOptions{fs: copyOf(t, map[string]vfs.FS{"journal": disk, "desk": disk}), dir: "data", clock: clock})
	l.delivered(claim, 0)
	l.end()
}
