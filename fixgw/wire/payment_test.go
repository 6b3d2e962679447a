package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

// FuzzTradeReport: no bytes make a report of a payment that is not wholly right.
func FuzzTradeReport(f *testing.F) {
	set := wiretest.Instruments(f)
	c := &ClientClaim{Digits: 6}
	c.ID, c.Terms.Base, c.Terms.Price = 77, 252_525_252, 990_000_000
	id := string(market.AppendClaimID(nil, c.ID))
	text := base58.Encode(bytes.Repeat([]byte{1}, 64))
	good := wiretest.PaymentReportBody(map[int]string{
		571: "p1", 572: id, 818: text, 570: "N", 55: "SLUSD/USDC", 32: "252.525252", 31: "0.99", 75: "20260101",
		60: "20260101-00:00:00", 552: "1", 54: "1", 37: id,
	})
	soh := func(s string) []byte { return []byte(strings.ReplaceAll(s, "|", "\x01")) }
	f.Add(soh(good))
	f.Add(soh(strings.Replace(good, "31=0.99", "31=0.990000000000", 1)))
	f.Add(soh("571=|572=C|818=|552=1|"))
	f.Add([]byte("=\x01=\x01571"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		r := ScanPaymentReport(frame)
		if r.CheckForm() != nil {
			return
		}
		var signature [64]byte
		if !ParseBase58(signature[:], string(r.Signature)) {
			return
		}
		if base58.Encode(signature[:]) != string(r.Signature) {
			t.Errorf("signature %q", r.Signature)
		}
		if _, ok := market.ParseClaimID(r.Claim); !ok || r.CheckTerms(c, set) != nil {
			return
		}
		if string(r.Symbol) != "SLUSD/USDC" || string(r.side) != "1" || !bytes.Equal(r.orderID, r.Claim) ||
			!bytes.HasPrefix(bytes.TrimLeft(r.price, "0"), []byte(".99")) {
			t.Errorf("taken: %q", frame)
		}
		a := PaymentAck{ID: string(r.ID), Claim: string(r.Claim), Signature: string(r.Signature), Symbol: string(r.Symbol), At: 1}
		head := "35=AR|34=1|49=BLOCKDESK|52=20260101-00:00:00|56=TK|571="
		answer := wiretest.Message(head + wiretest.Show(a.AppendBody(nil)) + "|")
		if err := wiretest.StockChecker().Check(answer); err != nil {
			t.Errorf("the answer breaks the dictionary: %v\n%s", err, wiretest.Show(answer))
		}
	})
}
