package store_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"

	"blockdesk/persist/kv/kvtest"
)

// owing is a desk that owes what is asked for.
type owing struct{ amounts map[[64]byte]uint64 }

func (o owing) Do(r rfq.Request) (*desk.Result, error) {
	begin := r.(*rfq.BeginRefund)
	n := o.amounts[begin.Signature]
	return &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}, Payment: &rfq.Payment{
		Signature: begin.Signature, State: rfq.PaymentRefunding, Rail: market.RailSOL, Amount: n, Due: n,
		Payer: storetest.AddressOf(storetest.Key(9)), Proof: begin.Proof,
	}}, nil
}

// refundOf is an unsigned transaction that pays some payments back, an amount each.
func refundOf(t testing.TB, block byte, amount uint64, payments ...int) *store.RefundTransaction {
	t.Helper()
	r := build.Refunds{Blockhash: solana.Hash{block}, Budget: build.Budget{Units: 100_000}, Desk: storetest.AddressOf(storetest.Key(1))}
	for _, n := range payments {
		r.Items = append(r.Items, build.Refund{
			Leg:  build.Leg{Rail: market.RailSOL, Amount: market.Amount(amount), To: storetest.AddressOf(storetest.Key(9))},
			Memo: binding.RefundMemo(signature(n)), Reference: binding.RefundReference(signature(n)),
		})
	}
	u, err := r.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	return &store.RefundTransaction{Hash: u.Hash(), Raw: u.Bytes(), LastValid: 100, MadeAt: now, Operator: 3, By: "ann"}
}

func signedRefund(t testing.TB, x *store.RefundTransaction) cosign.SignedRefund {
	t.Helper()
	o := owing{map[[64]byte]uint64{}}
	for _, item := range x.Items {
		o.amounts[item.Payment] = uint64(item.Amount)
	}
	a, err := cosign.AuthorizeRefund(o, 3, x.Raw, solana.Address{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Sign(t.Context(), storetest.Desk{Key: storetest.Key(1)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRefunds: a payment has one open refund, and no more goes back than may, in parts or
// at once, over a restart too.
func TestRefunds(t *testing.T) {
	kv := kvtest.New()
	r := open(t, kv).Refunds
	put := func(x *store.RefundTransaction, want error, most ...uint64) *store.RefundTransaction {
		t.Helper()
		got, err := r.Put(x, most)
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		return got
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(refundOf(t, 1, 10, 1), store.ErrInvalid)
	put(refundOf(t, 1, 10, 1), store.ErrConflict, 9)
	first := put(refundOf(t, 1, 10, 1, 2), nil, 10, 30)
	put(refundOf(t, 1, 10, 1, 2), nil, 0, 0) // the same again
	put(refundOf(t, 2, 10, 2), store.ErrConflict, 30)
	put(refundOf(t, 2, 10, 3, 1), store.ErrConflict, 30, 30)
	signed := signedRefund(t, first)
	if _, err := r.Sign(signedRefund(t, func() *store.RefundTransaction { x := refundOf(t, 9, 10, 1); x.Items = first.Items[:1]; return x }()), now); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("not put: %v", err)
	}
	for range 2 {
		x, err := r.Sign(signed, now+1)
		must(err)
		if x.State != store.RefundSigned || x.Signature != signed.Signature() || !bytes.Equal(x.Raw, signed.Bytes()) || x.SignedAt != now+1 {
			t.Errorf("%+v", x)
		}
		k := x.Transaction()
		if k.Kind() != cosign.Refund || k.Hash() != first.Hash || k.Claim() != 0 || k.Reference() != binding.RefundReference(signature(1)) || k.Signature() != signed.Signature() {
			t.Errorf("%+v", k)
		}
		r = open(t, kv).Refunds
	}
	if list, err := r.Open(); err != nil || len(list) != 1 || list[0].Hash != first.Hash || list[0].By != "ann" || list[0].Operator != 3 {
		t.Errorf("open %+v, %v", list, err)
	}
	must(r.End(first.Hash, store.RefundPaid, now+2))
	must(r.End(first.Hash, store.RefundPaid, now+3))
	if err := r.End(first.Hash, store.RefundExpired, now); !errors.Is(err, store.ErrConflict) {
		t.Errorf("another end: %v", err)
	}
	if _, err := r.Sign(signed, now); !errors.Is(err, store.ErrConflict) {
		t.Errorf("signed after its end: %v", err)
	}
	put(refundOf(t, 3, 1, 1), store.ErrConflict, 10)
	put(refundOf(t, 3, 21, 2), store.ErrConflict, 30)
	rest := put(refundOf(t, 3, 20, 2), nil, 30) // the rest of it
	must(r.End(rest.Hash, store.RefundExpired, now))
	for n := range byte(store.MaxRefundsOfPayment - 2) {
		x := put(refundOf(t, 4+n, 20, 2), nil, 30)
		must(r.End(x.Hash, store.RefundExpired, now))
	}
	put(refundOf(t, 200, 20, 2), store.ErrFull, 30)
	if list, err := r.Open(); err != nil || len(list) != 0 {
		t.Errorf("open %+v, %v", list, err)
	}
	back, err := r.PaidBack(solana.Signature{}, 10)
	must(err)
	if len(back) != 2 || back[0].Payment != signature(1) || back[1].Payment != signature(2) || back[1].Amount != 10 {
		t.Errorf("paid back %+v", back)
	}
	if back, err = r.PaidBack(signature(1), 10); err != nil || len(back) != 1 {
		t.Errorf("paid back after %+v, %v", back, err)
	}
}

// TestOrders: orders outlast a restart until they are dropped.
func TestOrders(t *testing.T) {
	kv := kvtest.New()
	r := open(t, kv).Refunds
	if err := r.PutOrders([]store.Order{{signature(1), 3, "ann", now}, {signature(2), 4, "bob", now + 1}}); err != nil {
		t.Fatal(err)
	}
	if err := r.DropOrder(signature(1)); err != nil {
		t.Fatal(err)
	}
	if list, err := open(t, kv).Refunds.Orders(); err != nil || len(list) != 1 || list[0] != (store.Order{Payment: signature(2), Operator: 4, By: "bob", At: now + 1}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestGoldenRefund freezes the entries of refunds, orders and dropped payments.
func TestGoldenRefund(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	x, err := s.Refunds.Put(refundOf(t, 7, 10, 1), []uint64{10})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Refunds.PutOrders([]store.Order{{signature(1), 0x0304, "ann", 0x1112131415161718}}); err != nil {
		t.Fatal(err)
	}
	value, ok, err := kv.Get(append([]byte{9}, x.Hash[:]...))
	if err != nil || !ok {
		t.Fatal(err)
	}
	head := "0101" + "6400000000000000" + hex.EncodeToString(le64(now)) + "00000000000000000000000000000000" + "0300" + "03616e6e"
	if got := hex.EncodeToString(value); got != head+hex.EncodeToString(x.Raw) {
		t.Errorf("refund %s", got)
	}
	payment := signature(1)
	value, _, err = kv.Get(append([]byte{12}, payment[:]...))
	if got := hex.EncodeToString(value); err != nil || got != "01"+"1817161514131211"+"0403"+"616e6e" {
		t.Errorf("order %s, %v", got, err)
	}
	for _, key := range [][]byte{append(append([]byte{10}, payment[:]...), x.Hash[:]...), append([]byte{11}, x.Hash[:]...)} {
		if value, ok, err := kv.Get(key); err != nil || !ok || len(value) != 0 {
			t.Errorf("index %x: %x, %v", key, value, err)
		}
	}
}

func le64(n int64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return b
}
