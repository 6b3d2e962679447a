package settle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
)

// searchedNode counts the questions to every node about transactions: of those that can
// still land, only audits ask that.
type searchedNode struct {
	settle.Node
	searches atomic.Int64
}

func (n *searchedNode) StatusesFromEach(ctx context.Context, list []solana.Signature) ([]rpc.NodeStatuses, error) {
	if len(list) > 0 {
		defer n.searches.Add(1)
	}
	return n.Node.StatusesFromEach(ctx, list)
}

// TestAuditWaits: money that has come too late by an old journal is not listed as
// due while the delivery that it has bought may still land, over a restart too; it
// is once that cannot land any more.
func TestAuditWaits(t *testing.T) {
	c := startChain(t)
	disk := vfs.FS(vfs.NewMem())
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	c.control("pause", nil)
	paid := c.send(w.fill(t, p.Transaction))
	c.control("dropSends", map[string]any{"count": 1_000_000}) // before the payment is final
	c.control("resume", nil)
	await.True(l.t, "the payment", func() bool {
		_, known, err := c.client.Transaction(t.Context(), paid, rpc.Finalized)
		return known && err == nil
	})
	r := &desk.PaymentProof{Ticket: 1, Tranche: 1, Signature: paid}
	await.True(l.t, "a delivery", func() bool {
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
	node := new(searchedNode)
	c.control("pause", nil) // however slow the machine is, the delivery does not expire
	for range 2 {
		l = begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock, node: func(n settle.Node) settle.Node {
			node.Node = n
			return node
		}})
		await.True(l.t, "a verdict", func() bool {
			v, err := l.settle.Verify(t.Context(), r)
			return err == nil && v.Payment != nil
		})
		from := node.searches.Load()
		await.True(t, "two more audits", func() bool {
			if n := due(); n != 0 {
				t.Fatalf("%d due while the delivery may land", n)
			}
			return node.searches.Load() >= from+3
		})
		if state := l.claim(claim.ID).State; state != rfq.ClaimRefundDue {
			t.Fatalf("state %d", state)
		}
		if refunds := l.settle.MoneyCounts().RefundsDue; refunds != 0 {
			t.Errorf("%d refunds are counted", refunds)
		}
		l.end()
	}
	c.control("resume", nil)
	l = begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock})
	l.expire()
	await.Equal(t, "refunds that are due", 1, due)
	if list := l.unmatched(); len(list) != 0 {
		t.Errorf("unmatched %+v", list)
	}
	l.end()
}
