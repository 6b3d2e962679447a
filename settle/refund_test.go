package settle_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

var ann = desk.OperatorRequest{Operator: 3, Name: "ann"}

// checkedMint returns a mint of the chain for package build.
func (c *chain) checkedMint(symbol string) token.Checked {
	c.t.Helper()
	m := token.Mint{Address: c.mints[symbol], Program: c.programs[symbol], Decimals: 6}
	checked, err := m.Check(0)
	c.must(err)
	return checked
}

func (c *chain) leg(rail market.Rail, atoms uint64, to solana.Address) build.Leg {
	leg := build.Leg{Rail: rail, Amount: market.Amount(atoms), To: to}
	if rail == market.RailUSDC {
		leg.Mint = c.checkedMint("USDC")
	}
	return leg
}

// transfer sends an amount from a wallet with any memo, and waits until it is final.
func (c *chain) transfer(w wallet, leg build.Leg, memo string, reference solana.Address) solana.Signature {
	c.t.Helper()
	hash, err := c.client.Blockhash(c.t.Context())
	c.must(err)
	p := build.Payment{Common: build.Common{
		Blockhash: hash.Hash, Budget: build.Budget{Units: 100_000, MicroLamports: 1000}, Memo: memo, Reference: reference,
	}, Wallet: w.address, Leg: leg}
	u, err := p.Build(&solana.AccountCache{})
	c.must(err)
	raw := w.fill(c.t, u.Bytes())
	c.send(raw)
	s := signatureOf(c.t, raw)
	await.True(c.t, "a transfer", func() bool {
		_, known, err := c.client.Transaction(c.t.Context(), s, rpc.Finalized)
		return known && err == nil
	})
	return s
}

// float gives the desk's wallet USDC to pay refunds with.
func (c *chain) float(atoms uint64) {
	c.t.Helper()
	c.transfer(c.wallet(11), c.leg(market.RailUSDC, atoms, c.desk), "float", solana.Address{9, 9, 9})
}

// tooLittle pays an amount for a claim, which is less than its terms: a refund is due.
func (l *life) tooLittle(w wallet, rail market.Rail, atoms uint64) rfq.Payment {
	l.t.Helper()
	claim := l.take(rfq.Modular, 1, rail, w)
	s := l.chain.transfer(w, l.chain.leg(rail, atoms, l.chain.treasury), binding.Memo(claim.ID), binding.Reference(claim.ID))
	var p rfq.Payment
	await.True(l.t, "a refund due", func() bool {
		for _, x := range l.settle.RefundsDue(solana.Signature{}, 1000) {
			if x.Signature == s {
				p = x
				return true
			}
		}
		return false
	})
	return p
}

// paidBack lists what was paid back.
func (l *life) paidBack() []desk.MoneyItem {
	l.t.Helper()
	list, err := l.settle.Money(desk.MoneyRefunded, desk.MoneyCursor{}, 1000)
	l.chain.must(err)
	return list
}

// order orders refunds.
func (l *life) order(s desk.RefundSelection) desk.RefundsOrdered {
	l.t.Helper()
	out, err := l.settle.Refund(ann, &s)
	l.chain.must(err)
	return out
}

// refundsOnChain returns how much of a payment was paid back on the chain: the sum of all
// final transactions that name it.
func (c *chain) refundsOnChain(payment solana.Signature) (sum market.Amount, transactions int) {
	c.t.Helper()
	infos, err := c.client.Signatures(c.t.Context(), binding.RefundReference(payment), rpc.Page{Limit: 100}, rpc.Confirmed)
	c.must(err)
	for _, x := range infos {
		if x.Failed {
			continue
		}
		t, ok, err := c.client.Transaction(c.t.Context(), x.Signature, rpc.Confirmed)
		c.must(err)
		if !ok {
			c.t.Fatalf("%s is not there", x.Signature)
		}
		sum += refundIn(c.t, t.Tx, payment)
		transactions++
	}
	return sum, transactions
}

// refundIn returns what a transaction pays back of a payment, read without package cosign:
// the transfer before the memo that names it.
func refundIn(t testing.TB, raw *tx.Transaction, payment solana.Signature) market.Amount {
	t.Helper()
	for i := range raw.Message.Instructions {
		if string(raw.Message.Instructions[i].Data) != "refund "+payment.String() {
			continue
		}
		data := raw.Message.Instructions[i-1].Data
		at := 1
		if len(data) == 12 { // lamports
			at = 4
		}
		var n uint64
		for k := 7; k >= 0; k-- {
			n = n<<8 | uint64(data[at+k])
		}
		return market.Amount(n)
	}
	return 0
}

// TestRefund: payments are paid back in batches to the wallets that paid, exactly once, and
// the lists follow them to the end.
func TestRefund(t *testing.T) {
	c := startChain(t)
	c.float(100_000_000)
	l := begin(t, c, lifeOptions{}).open()
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	var due []rfq.Payment
	for i := range 7 {
		due = append(due, l.tooLittle(c.wallet(i), market.RailUSDC, uint64(1_000_000*(i+1))))
	}
	due = append(due, l.tooLittle(c.wallet(7), market.RailSOL, 20_000_000), l.tooLittle(c.wallet(8), market.RailSOL, 400_000_000))
	before := map[int]holdings{}
	for i := range 9 {
		before[i] = c.holdings(map[string]solana.Address{"w": c.wallet(i).address})
	}
	if out := l.order(desk.RefundSelection{Under: 5_000_000, DryRun: true}); out.Count[market.RailUSDC] != 4 || out.Count[market.RailSOL] != 1 || out.Atoms[market.RailUSDC] != 10_000_000 {
		t.Errorf("under 5 dollars: %+v", out)
	}
	if n := l.settle.MoneyCounts().Ordered; n != 0 {
		t.Errorf("%d ordered by a dry run", n)
	}
	if out := l.order(desk.RefundSelection{}); out.Count[market.RailUSDC] != 7 || out.Count[market.RailSOL] != 2 || out.Atoms[market.RailSOL] != 420_000_000 {
		t.Errorf("all: %+v", out)
	}
	await.True(t, "all paid back", func() bool {
		n := l.settle.MoneyCounts()
		return n.RefundsDue+n.Refunding+n.Ordered == 0 && len(l.paidBack()) == len(due)
	})
	transactions := map[[64]byte]bool{}
	for _, x := range l.paidBack() {
		at := slices.IndexFunc(due, func(p rfq.Payment) bool { return p.Signature == x.Signature })
		if at < 0 || x.Amount != due[at].Amount || x.OrderedBy != "ann" || x.Claim != due[at].Claim || x.Refund == ([64]byte{}) || x.Rail != due[at].Rail {
			t.Errorf("paid back %+v", x)
		}
		transactions[x.Refund] = true
	}
	if len(transactions) != 3 {
		t.Errorf("%d transactions", len(transactions))
	}
	for i, p := range due {
		got := c.holdings(map[string]solana.Address{"w": c.wallet(i).address}).minus(before[i])
		if want := int64(p.Amount); got["w "+p.Rail.String()] != want || len(got) != 1 {
			t.Errorf("wallet %d got %v, want %d", i, got, want)
		}
		h, _, err := l.desk.Claim(p.Claim)
		c.must(err)
		if h.Payments[0].State != rfq.PaymentRefunded {
			t.Errorf("payment %d is in state %d", i, h.Payments[0].State)
		}
		if sum, n := c.refundsOnChain(p.Signature); sum != market.Amount(p.Amount) || n != 1 {
			t.Errorf("payment %d: %d atoms in %d transactions", i, sum, n)
		}
	}
	if _, err := l.settle.Refund(ann, &desk.RefundSelection{Payment: due[0].Signature}); !errors.Is(err, desk.ErrNoRefundDue) {
		t.Errorf("again: %v", err)
	}
	if n := l.settle.Counts(); n.Refunded != 9 || n.Refunds != 3 || n.RefundsExpired != 0 {
		t.Errorf("%+v", n)
	}
}

// TestRefundProblems: what cannot be paid back waits with the reason, and does not hold up
// the others; it continues by itself when the reason has ended.
func TestRefundProblems(t *testing.T) {
	c := startChain(t)
	c.setTokens(c.desk, "USDC", 0)
	l := begin(t, c, lifeOptions{}).open()
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	sol, usdc := l.tooLittle(c.wallet(0), market.RailSOL, 30_000_000), l.tooLittle(c.wallet(1), market.RailUSDC, 1_000_000)
	problem := func(p *rfq.Payment) string {
		list, err := l.settle.Money(desk.MoneyRefundDue, desk.MoneyCursor{}, 100)
		c.must(err)
		for _, x := range list {
			if x.Signature == p.Signature {
				return x.Problem
			}
		}
		return ""
	}
	l.must(&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: true, Reason: "stop"})
	l.order(desk.RefundSelection{})
	await.Equal(t, "stopped by the lock", "locked", func() string { return problem(&sol) })
	l.must(&rfq.SetLock{Scope: rfq.LockDeliveries})
	await.Equal(t, "no funds", "refund_funds", func() string { return problem(&usdc) })
	await.Equal(t, "the other rail", 1, func() int { return len(l.paidBack()) })
	c.float(500_000)
	c.float(600_000)
	await.Equal(t, "both", 2, func() int { return len(l.paidBack()) })
}

// refundSaga is one run of payments that are paid back over many lives.
func refundSaga(t *testing.T, at func(step string, n int) bool) (steps []string) {
	t.Helper()
	c := startChain(t)
	c.float(100_000_000)
	disk := vfs.NewCrashableMem()
	l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	var due []rfq.Payment
	for i := range 2 {
		due = append(due, l.tooLittle(c.wallet(i), market.RailUSDC, uint64(1_000_000*(i+1))))
	}
	l.end()
	d := newFailpoint(at)
	l = begin(t, c, lifeOptions{fs: disk, dir: "data", failpoint: d})
	over := func() bool { return len(l.paidBack()) == len(due) && l.settle.MoneyCounts().Ordered == 0 }
	await.True(t, "the refunds", func() bool {
		if d.isDead() {
			return true
		}
		if l.settle.Ready() == nil {
			if _, err := l.settle.Refund(ann, &desk.RefundSelection{}); err != nil && !d.isDead() {
				t.Fatal(err)
			}
		}
		return over()
	})
	if d.isDead() {
		l.stopSettle()
		l.settled.Wait()
		clone := disk.CrashClone(vfs.CrashCloneCfg{})
		l.end()
		l = begin(t, c, lifeOptions{fs: clone, dir: "data"}).ready()
		expired := 0
		await.True(t, "the refunds after "+d.died, func() bool {
			if l.expireMissing() {
				expired++
			}
			if _, err := l.settle.Refund(ann, &desk.RefundSelection{}); err != nil {
				t.Fatal(err)
			}
			return over()
		})
	}
	for i, p := range due {
		if sum, n := c.refundsOnChain(p.Signature); sum != market.Amount(p.Amount) || n != 1 {
			t.Errorf("payment %d: %d atoms in %d transactions after %s", i, sum, n, d.died)
		}
		h, _, err := l.desk.Claim(p.Claim)
		c.must(err)
		if x := h.Payments[0]; x.State != rfq.PaymentRefunded {
			t.Errorf("payment %d is in state %d after %s", i, x.State, d.died)
		}
	}
	if n := l.settle.MoneyCounts(); n.RefundsDue+n.Refunding != 0 {
		t.Errorf("after %s: %+v", d.died, n)
	}
	l.end()
	return d.steps
}

// TestRefundCrashes: the process is killed before and after each thing that it does to the
// world while it pays back; another one finishes, and each payment was paid back once.
func TestRefundCrashes(t *testing.T) {
	var names []string
	for _, step := range refundSaga(t, func(string, int) bool { return false }) {
		if !slices.Contains(names, step) {
			names = append(names, step)
		}
	}
	for _, name := range names {
		for nth := 1; nth <= 2; nth++ {
			t.Run(fmt.Sprintf("%s %d", name, nth), func(t *testing.T) {
				t.Parallel()
				seen := 0
				refundSaga(t, func(step string, _ int) bool {
					if step == name {
						seen++
					}
					return step == name && seen == nth
				})
			})
		}
	}
}

// TestRefundLostStore: the store is restored from before a refund. The journal knows that
// one is out, and the chain has it: nothing is paid twice.
func TestRefundLostStore(t *testing.T) {
	for _, lost := range []string{"store", "journal", "both"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			c := startChain(t)
			c.float(100_000_000)
			disk := vfs.FS(vfs.NewMem())
			l := begin(t, c, lifeOptions{fs: disk, dir: "data"}).open()
			l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
			p := l.tooLittle(c.wallet(0), market.RailUSDC, 2_000_000)
			l.end()
			backup := copyOf(t, whole(disk))
			l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
			l.order(desk.RefundSelection{})
			await.Equal(t, "the refund", 1, func() int { return len(l.paidBack()) })
			l.end()
			switch lost {
			case "store":
				disk = copyOf(t, apart(disk, backup))
			case "journal":
				disk = copyOf(t, apart(backup, disk))
			default:
				disk = backup
			}
			l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
			await.True(t, "the end of "+lost, func() bool {
				l.order(desk.RefundSelection{})
				h, _, err := l.desk.Claim(p.Claim)
				c.must(err)
				return h.Payments[0].State == rfq.PaymentRefunded && l.settle.MoneyCounts().Ordered == 0
			})
			if sum, n := c.refundsOnChain(p.Signature); sum != 2_000_000 || n != 1 {
				t.Errorf("%d atoms in %d transactions", sum, n)
			}
			l.end()
		})
	}
}
