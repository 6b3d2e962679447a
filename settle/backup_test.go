package settle_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle"
)

// copyOf is a disk that has some folders of others.
func copyOf(t testing.TB, folders map[string]vfs.FS) vfs.FS {
	t.Helper()
	disk := vfs.NewMem()
	for name, from := range folders {
		path := filepath.Join("data", name)
		if ok, err := vfs.Clone(from, disk, path, path); err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
	}
	return disk
}

func whole(disk vfs.FS) map[string]vfs.FS {
	return map[string]vfs.FS{"journal": disk, "desk": disk, "settle": disk}
}

// apart has the journal of one time and the store of another.
func apart(journal, store vfs.FS) map[string]vfs.FS {
	return map[string]vfs.FS{"journal": journal, "desk": journal, "settle": store}
}

// TestOldBackupDelivers: a claim was delivered after the backup was made. With
// the old journal, with or without the old store, nothing is delivered twice, and
// the claim ends as it did.
func TestOldBackupDelivers(t *testing.T) {
	c := startChain(t)
	disk, hooked := vfs.FS(vfs.NewMem()), &hookedDesk{}
	hooked.before = func(r rfq.Request) error {
		if r.Kind() == rfq.KindBeginDelivery {
			return errAway
		}
		return nil
	}
	l := begin(t, c, lifeOptions{fs: disk, dir: "data", desk: func(d settle.Desk) settle.Desk { hooked.Desk = d; return hooked }}).open()
	w := c.wallet(0)
	claim := l.payFor(1, w)
	l.becomes(claim.ID, rfq.ClaimPaid)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	l.delivered(claim, 0)
	proof := l.claim(claim.ID).Proof
	l.end()
	for name, folders := range map[string]map[string]vfs.FS{"all old": whole(backup), "the journal old": apart(backup, disk)} {
		t.Run(name, func(t *testing.T) {
			signer := newHookedSigner(t, c)
			l := begin(t, c, lifeOptions{fs: copyOf(t, folders), dir: "data", signer: signer}).ready()
			l.expiring("its end", func() bool { return l.claim(claim.ID).State == rfq.ClaimSettled })
			l.delivered(claim, 0)
			if n, now := signer.calls.Load(), l.claim(claim.ID); n != 0 || now.Proof != proof {
				t.Errorf("%d signatures; settled by %x, not %x", n, now.Proof, proof)
			}
			if unmatched := l.unmatched(); len(unmatched) != 0 {
				t.Errorf("unmatched %+v", unmatched)
			}
			l.end()
		})
	}
}

// TestLostPromise: an atomic claim was settled, and the journal has lost the desk's
// permission. The signed transaction is found; if the claim has ended meanwhile, it
// becomes an unmatched payment for a person.
func TestLostPromise(t *testing.T) {
	c := startChain(t)
	disk := vfs.FS(vfs.NewMem())
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	got, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
	if err != nil {
		t.Fatal(err)
	}
	l.delivered(claim, 0)
	l.end()
	t.Run("in time", func(t *testing.T) {
		l := begin(t, c, lifeOptions{fs: copyOf(t, apart(backup, disk)), dir: "data"}).ready()
		l.delivered(claim, 0)
		l.end()
	})
	t.Run("too late", func(t *testing.T) {
		clock := new(atomic.Int64)
		clock.Store(int64(700 * time.Second))
		l := begin(t, c, lifeOptions{fs: copyOf(t, apart(backup, disk)), dir: "data", clock: clock})
		l.becomes(claim.ID, rfq.ClaimExpired)
		await.True(l.t, "an unmatched payment", func() bool { return len(l.unmatched()) == 1 })
		x := l.unmatched()[0]
		if x.Claim != claim.ID || x.Reason != "settled_unbooked" || x.Signature != got.Signature {
			t.Errorf("%+v", x)
		}
		if err := l.settle.ResolveUnmatched(desk.OperatorRequest{Name: "ann"}, x.Signature, "booked by hand"); err != nil || len(l.unmatched()) != 0 {
			t.Errorf("%v", err)
		}
		l.end()
	})
}

// TestDeliveredRefundDue: a claim was paid and delivered, and the old journal proves
// its payment again when it is too late. The books say that a refund is due although
// the tokens were delivered: a person decides.
func TestDeliveredRefundDue(t *testing.T) {
	c := startChain(t)
	disk := vfs.FS(vfs.NewMem())
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	c.send(w.fill(t, p.Transaction))
	l.delivered(claim, 0)
	delivery, _, err := l.settle.Delivery(claim.ID)
	c.must(err)
	l.end()
	clock := new(atomic.Int64)
	clock.Store(int64(3 * time.Hour))
	for name, folders := range map[string]map[string]vfs.FS{"all old": whole(backup), "the journal old": apart(backup, disk)} {
		t.Run(name, func(t *testing.T) {
			disk := copyOf(t, folders)
			l := begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock})
			if name == "the journal old" { // the watch has passed it
				r := &desk.PaymentProof{Ticket: 1, Tranche: 1, Signature: signatureOf(t, w.fill(t, p.Transaction))}
				await.True(l.t, "a verdict", func() bool {
					_, err := l.settle.Verify(t.Context(), r)
					return err == nil
				})
			}
			l.becomes(claim.ID, rfq.ClaimRefundDue)
			for range 2 { // and after a restart
				await.True(l.t, "an unmatched payment and no refund", func() bool { return len(l.unmatched()) == 1 && len(l.settle.RefundsDue(solana.Signature{}, 10)) == 0 })
				if x := l.unmatched()[0]; x.Signature != delivery || x.Reason != "delivered_refund_due" || x.Claim != claim.ID {
					t.Errorf("%+v", x)
				}
				l.end()
				l = begin(t, c, lifeOptions{fs: disk, dir: "data", clock: clock})
			}
			c.must(l.settle.ResolveUnmatched(desk.OperatorRequest{Name: "ann"}, delivery, "refunded all the same"))
			if due := l.settle.RefundsDue(solana.Signature{}, 10); len(due) != 1 || due[0].Claim != claim.ID {
				t.Errorf("due %+v", due)
			}
			l.end()
		})
	}
}
