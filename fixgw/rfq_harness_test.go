package fixgw

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// offers stands for the REST desk: it gives the gateway views of the durable state.
type offers struct {
	board  *rfq.ReadModel
	reader rfq.Reader
	last   atomic.Pointer[rfq.View]
}

func (o *offers) View() *rfq.View { return o.last.Load() }

func (o *offers) follow(board *rfq.ReadModel) {
	o.board = board
	o.publish()
}

func (o *offers) apply(e *event.Event) {
	if record, seq, ok := o.reader.Add(e); ok {
		o.board.Apply(record, seq)
	}
}

func (o *offers) publish() { o.last.Store(o.board.View()) }

// now is the engine's clock.
func (d *harness) now() int64 { return time.Now().UnixNano() + d.ahead.Load() }

// later lets time pass for the engine.
func (d *harness) later(by time.Duration) {
	d.t.Helper()
	d.ahead.Add(int64(by))
	d.submit(engine.Command{Kind: engine.Tick}, nil)
}

// bank is a settlement that is ready, or returns why it is not.
type bank struct{ closed atomic.Bool }

var errBankClosed = errors.New("no node answers")

func (b *bank) Ready() error {
	if b.closed.Load() {
		return errBankClosed
	}
	return nil
}

func (*bank) Package(context.Context, *rfq.Claim, desk.FeePayer) (desk.Package, error) {
	return desk.Package{Transaction: []byte("transaction"), Reference: testAccount(77), Memo: "memo"}, nil
}

func (*bank) Verify(context.Context, *desk.PaymentProof) (desk.Verdict, error) {
	return desk.Verdict{Pending: time.Second}, nil
}

func testAccount(n byte) market.Address { return market.Address{0: n, 31: 1} }

// Times of the tests' policy.
const (
	testQuoteTTL = 30 * time.Minute
	testClaimTTL = 2 * time.Hour
	testLate     = 24 * time.Hour
)

// newShop starts a desk that sells SLUSD/USDC at a dollar less a percent: one
// ticket T1 with two tranches of 1000 and of 250000 dollars. Every participant
// has a wallet.
func newShop(t testing.TB, compIDs []string, change func(*Options)) *harness {
	d := newDesk(t, compIDs, func(o *Options) {
		for i := range o.Participants {
			wallet := testAccount(byte(i + 1))
			o.Participants[i].Wallet = base58.Encode(wallet[:])
		}
		if change != nil {
			change(o)
		}
	})
	policy := rfq.Policy{
		QuoteTTL: int64(testQuoteTTL), ClaimTTL: int64(testClaimTTL), LateWindow: int64(testLate), FeeBps: 50,
		Discounts: [market.FillCount]uint16{100, 200, 300, 400, 500, 600}, WalletClaims: 1000, USDCMint: testAccount(200),
		PayTo: [market.RailCount]market.Address{market.RailUSDC: testAccount(201), market.RailSOL: testAccount(202)},
	}
	pair := rfq.Pair{
		Instrument: 0, BaseMint: testAccount(100), BaseDecimals: 6, Rails: market.AllRails,
		Source: rfq.SourceOperator, CorridorBps: 1000, Via: rfq.NoInstrument,
	}
	d.submitDesk(&rfq.SetPolicy{Policy: policy})
	d.submitDesk(&rfq.SetPair{Pair: pair})
	d.submitDesk(&rfq.SetAnchor{Instrument: 0, Price: 1_000_000_000})
	d.submitDesk(&rfq.SetRailPrice{Rail: market.RailSOL, Price: 100_000_000_000})
	d.submitDesk(&rfq.SetInventory{Instrument: 0, Atoms: 1_000_000_000_000})
	d.post(0, 1000, 250_000)
	return d
}

// post posts a ticket, and waits until the gateway can see it.
func (d *harness) post(in market.InstrumentID, dollars ...uint64) {
	d.t.Helper()
	before := 0
	if v := d.offers.View(); v != nil {
		before = len(v.Tickets)
	}
	r := &rfq.PostTicket{Label: "T", Instrument: in}
	for _, usd := range dollars {
		r.Capacities = append(r.Capacities, market.USD(usd*1_000_000))
	}
	d.submitDesk(r)
	await.True(d.t, "the ticket in the view", func() bool { return len(d.offers.View().Tickets) > before })
}

// submitDesk submits a request of the service to the engine. Its outcome is not waited
// for.
func (d *harness) submitDesk(r rfq.Request) {
	d.t.Helper()
	r.Head().RequestID = desk.NewRequestID(0)
	commands, err := engine.DeskCommands(nil, r)
	if err == nil {
		err = d.engine.SubmitAll(commands)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// pay proves a payment of a claim, as settlement does.
func (d *harness) pay(claim string, signature byte, atoms uint64) {
	d.t.Helper()
	d.submitDesk(&rfq.ProvePayment{
		Claim: claimID(d.t, claim), Rail: market.RailUSDC, Signature: [64]byte{0: signature, 63: 1}, Payer: testAccount(1), Amount: atoms, Slot: 5,
	})
}

// deliver delivers a paid claim.
func (d *harness) deliver(claim string) {
	d.t.Helper()
	id := claimID(d.t, claim)
	d.submitDesk(&rfq.BeginDelivery{Claim: id, Proof: [32]byte{1}})
	d.submitDesk(&rfq.SettleClaim{Claim: id, Proof: [32]byte{2}})
}

func claimID(t testing.TB, text string) market.ClaimID {
	t.Helper()
	id, ok := market.ParseClaimID([]byte(text))
	if !ok {
		t.Fatalf("%q is no claim", text)
	}
	return id
}

// rfq asks for a quote of SLUSD/USDC. more is what follows in the group; none
// asks for 250 dollars.
func (k *client) rfq(id, more string) {
	k.t.Helper()
	if more == "" {
		more = "152=250|"
	}
	k.send("R", fmt.Sprintf("131=%s|146=1|55=SLUSD/USDC|%s", id, more))
}

// quoted asks for a quote and returns it.
func (k *client) quoted(id, more string) sessiontest.Message {
	k.t.Helper()
	k.rfq(id, more)
	return k.wantNext("35=S 131=" + id + " 537=1 55=SLUSD/USDC")
}

// take accepts a quote by an order.
func (k *client) take(clOrdID string, quote sessiontest.Message) {
	k.t.Helper()
	k.send("D", fmt.Sprintf("11=%s|40=D|117=%s|55=SLUSD/USDC|54=1|152=%s|%s", clOrdID, quote.Get(117), quote.Get(152), now60))
}

// claimed asks for a quote, takes it, and returns the report of the reservation.
func (k *client) claimed(clOrdID string) sessiontest.Message {
	k.t.Helper()
	k.take(clOrdID, k.quoted("r-"+clOrdID, ""))
	return k.wantNext("35=8 11=" + clOrdID + " 150=A 39=A 58=AWAIT_PAYMENT")
}

// wantNext is want for the next message, except a claim's package (35=B) and the capture of
// its trade (35=AE).
func (k *client) wantNext(fields string) sessiontest.Message {
	k.t.Helper()
	for {
		m := k.next()
		if kind := m.Get(35); kind != "B" && kind != "AE" {
			m.Want(k.t, fields)
			return m
		}
	}
}

// wantNoMessage is none for the messages that wantNext returns.
func (k *client) wantNoMessage() {
	k.t.Helper()
	k.pass(func(m sessiontest.Message) bool { return m.Get(35) == "B" || m.Get(35) == "AE" })
}
