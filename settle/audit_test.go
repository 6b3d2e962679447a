package settle_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// TestAuditWaits: money that has come too late by an old journal is not listed as
// due while the delivery that it has bought may still land, over a restart too; it
// is once that cannot land any more.
func TestAuditWaits(t *testing.T) {
	c := startChain(t, 200*time.Millisecond)
	disk := vfs.FS(vfs.NewMem())
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	paid := c.send(w.fill(t, p.Raw))
	l.await("the payment", func() bool {
		_, known, err := c.client.Transaction(t.Context(), paid, rpc.Finalized)
		return known && err == nil
	})
	c.control("dropSends", map[string]any{"count": 1_000_000})
	r := &proof.Request{Ticket: 1, Tranche: 1, Signature: paid}
	l.await("a delivery", func() bool {
		_, err := l.settle.Verify(t.Context(), r)
		c.must(err)
		_, signed, err := l.settle.Delivery(claim.ID)
		c.must(err)
		return signed
	})
	l.end()
	disk = copyOf(t, apart(backup, disk))
	clock := new(atomic.Int64)
	clock.Store(int64(3 * time.Hour))
	due := func() int { return len(l.settle.RefundsDue(solana.Signature{}, 10)) }
	for range 2 {
		l = begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock})
		l.await("a verdict", func() bool {
			v, err := l.settle.Verify(t.Context(), r)
			return err == nil && v.Payment != nil
		})
		for range 50 {
			if n := due(); n != 0 {
				t.Fatalf("%d due while the delivery may land", n)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if state := l.claim(claim.ID).State; state != rfq.ClaimRefundDue {
			t.Fatalf("state %d", state)
		}
		if refunds, _, _ := l.settle.Attention(); refunds != 0 {
			t.Errorf("%d refunds are counted", refunds)
		}
		l.end()
	}
	l = begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock})
	l.advancing("a refund", func() bool { return due() == 1 })
	if list := l.strays(); len(list) != 0 {
		t.Errorf("strays %+v", list)
	}
	l.end()
}
