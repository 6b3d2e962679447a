package fixgw

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/await"
	"blockdesk/market"
)

func account58(n byte) string {
	a := testAccount(n)
	return base58.Encode(a[:])
}

// TestPackage: what there is to pay follows the reservation, in full.
func TestPackage(t *testing.T) {
	t.Parallel()
	d, _ := newTillShop(t, []string{"TK", "MM"}, nil)
	tk := d.dial("TK", nil)
	report := tk.claimed("c1")
	id := claimID(t, report.Get(37))
	m := tk.want("35=B 33=8 95=400 146=1 55=SLUSD/USDC 97=")
	if got := m.Get(148); got != "CLAIM "+report.Get(37) {
		t.Errorf("148=%s", got)
	}
	if m.Get(42) != report.Get(60) {
		t.Errorf("42=%s, the claim was reserved at %s", m.Get(42), report.Get(60))
	}
	if raw, err := base64.StdEncoding.DecodeString(m.Get(96)); err != nil || len(raw) != 300 || raw[0] != byte(id) {
		t.Errorf("96=%s: %v", m.Get(96), err)
	}
	want := map[string]string{
		"PAY": "250.000000 USDC", "TO": account58(201), "MINT": account58(200), "FROM": account58(1),
		"REFERENCE": account58(byte(id)), "MEMO": report.Get(37), "UNTIL": report.Get(126), "TRANSACTION": "300",
	}
	if got := m.Lines(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines %v, want %v", got, want)
	}

	mm := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "5600=Y\x01" })
	mm.take("c2", mm.quoted("r2", "152=250|15=SOL|"))
	report = mm.wantNext("35=8 150=A")
	id = claimID(t, report.Get(37))
	m = mm.want("35=B 5605=2.500000000 5606=2500000000 5607=" + account58(202) + " 5608= 5609=" + account58(byte(id)) + " 5610=" + report.Get(37))
	if got := m.Lines(); got["PAY"] != "2.500000000 SOL" || got["MINT"] != "native" {
		t.Errorf("lines %v", got)
	}
}

// TestPackageWaitsForTheChain: the News comes when the chain does, and a claim that
// has ended needs none.
func TestPackageWaitsForTheChain(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	bank.set(func() { bank.away = errAway })
	tk := d.dial("TK", nil)
	ended := tk.claimed("c1").Get(37)
	d.later(testClaimTTL)
	tk.wantNext("35=8 150=C 37=" + ended)
	paid := tk.claimed("c2").Get(37)
	d.pay(paid, 1, 250_000_000)
	tk.wantNext("35=8 150=0 37=" + paid)
	// The engine's clock is ahead of ours by now, and deadlines are the engine's.
	waits := tk.claimed("c3").Get(37)
	await.True(t, "a second look", func() bool {
		bank.mu.Lock()
		defer bank.mu.Unlock()
		return bank.packed[claimID(t, waits)] > 1
	})
	bank.set(func() { bank.away = nil })
	tk.want("35=B 33=8 97=").Headline(t, waits)
	await.Equal(t, "packages that are being made", 0, d.gateway.packages.Waiting)
	tk.none()
}

// TestNoPackage: the client learns that there will be no package, without internal
// details.
func TestNoPackage(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	d, bank := newTillShop(t, []string{"TK"}, func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	tk := d.dial("TK", nil)
	bank.set(func() { bank.refused = &desk.Refusal{Reason: desk.RefusalUnbuildable} })
	claim := tk.claimed("c1").Get(37)
	m := tk.want("35=B 33=1 95= 96=")
	m.Headline(t, claim)
	m.Text(t, "REFUS_DVP: ")

	bank.set(func() { bank.away, bank.refused = errAway, nil })
	claim = tk.claimed("c2").Get(37)
	ahead.Store(int64(testClaimTTL)) // so the claim has no time left
	m = tk.want("35=B 33=1 95= 96=")
	m.Headline(t, claim)
	m.Text(t, "CHAIN_UNAVAILABLE: ")
	if strings.Contains(m.String(), "10.0.0.1") {
		t.Errorf("an error goes out: %s", m)
	}
}

// TestPackageOverRestarts: a claim whose News was sent gets no other, one that
// still waits gets its own, marked as one that may have come before. Where its
// client is away it waits for it.
func TestPackageOverRestarts(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", keep(1, 1))
	tk.claimed("c1")
	tk.want("35=B")
	bank.set(func() { bank.away = errAway })
	waits := tk.claimed("c2").Get(37)
	sender, target := tk.leave()
	d.stop()
	d.start()
	bank.set(func() { bank.away = nil })
	await.Equal(t, "packages that are being made", 0, d.gateway.packages.Waiting)
	tk = d.dial("TK", keep(sender, target))
	m := tk.want("35=B 33=8 43=Y 97=Y")
	m.Headline(t, waits)
	tk.none()
}

// TestPackageCrash: wherever a crash comes, the client of a claim that is reserved
// gets its News, and a second one is marked.
func TestPackageCrash(t *testing.T) {
	t.Parallel()
	d, _ := newTillShop(t, []string{"TK"}, nil)
	r := rand.New(rand.NewPCG(5, 5))
	seen := packagesSeen{t, map[string]int{}}
	sender, target := 1, 1
	for life := range 5 {
		tk := d.dial("TK", keep(sender, target))
		const claims = 8
		from := tk.got.Load()
		for i := range claims {
			id := fmt.Sprintf("%d-%d", life, i)
			tk.rfq("r"+id, "48=T1/T1-2|22=8|152=250|")
			quote := tk.next()
			for ; quote.Get(35) != "S"; quote = tk.next() {
				seen.note(quote)
			}
			tk.take("c"+id, quote)
		}
		tk.awaitMessages(from, claims+r.IntN(claims+1)) // its quotes and some of the claims
		crashed := d.crash(r)
		tk.c.Close()
		<-tk.done
		seen.all(tk)
		sender, target = tk.c.NextSequence()
		d.store = crashed
		d.start()
	}
	tk := d.dial("TK", keep(sender, target))
	reserved := slices.DeleteFunc(d.handler("TK").quotes.Open(func(market.InstrumentID, market.Side) bool { return true }), func(c wire.ClientClaim) bool {
		return c.State != rfq.ClaimReserved
	})
	if len(reserved) == 0 {
		t.Fatal("no claim is reserved")
	}
	for i := range reserved {
		for seen.packages[string(market.AppendClaimID(nil, reserved[i].ID))] == 0 {
			seen.note(tk.next())
		}
	}
}

// packagesSeen counts the packages that a client has got, by their claims.
type packagesSeen struct {
	t        *testing.T
	packages map[string]int
}

func (p packagesSeen) note(m sessiontest.Message) {
	p.t.Helper()
	claim, ok := strings.CutPrefix(m.Get(148), "CLAIM ")
	if !ok {
		return
	}
	if p.packages[claim]++; p.packages[claim] > 1 && m.Get(97) != "Y" {
		p.t.Errorf("came before: %s", m)
	}
}

func (p packagesSeen) all(k *client) {
	p.t.Helper()
	for {
		select {
		case raw := <-k.in:
			p.note(raw)
		default:
			return
		}
	}
}

// TestMaxPackages: claims above the limit get their package when there is room.
func TestMaxPackages(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2} {
		d, bank := newTillShop(t, []string{"TK"}, func(o *Options) {
			o.MaxPackages, o.CompID = most, fmt.Sprint(o.CompID, most)
		})
		bank.set(func() { bank.away = errAway })
		tk := d.dial("TK", nil)
		claims := map[string]bool{}
		for i := range most + 3 {
			quote := tk.quoted(fmt.Sprint("r", i), "48=T1/T1-2|22=8|152=250|")
			tk.take(fmt.Sprint("c", i), quote)
			claims[tk.wantNext("35=8 150=A").Get(37)] = true
		}
		await.Equal(t, "packages that are being made", most, d.gateway.packages.Waiting)
		bank.set(func() { bank.away = nil })
		for range most + 3 {
			m := tk.want("35=B 33=8")
			claim := strings.TrimPrefix(m.Get(148), "CLAIM ")
			if !claims[claim] {
				t.Errorf("%s comes again, or was not claimed", claim)
			}
			delete(claims, claim)
		}
		await.Equal(t, "packages that are being made", 0, d.gateway.packages.Waiting)
		tk.none()
		for range 1000 { // claims that have theirs are not queued again
			if n := d.gateway.packages.Waiting(); n != 0 {
				t.Fatalf("%d packages are made again", n)
			}
			runtime.Gosched()
		}
	}
}
