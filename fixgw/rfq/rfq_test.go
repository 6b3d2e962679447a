package rfq

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// noView is a desk that has not started.
type noView struct{}

func (noView) View() *rfq.View { return nil }

// TestDeskView: the desk is not enabled, and it has not started.
func TestDeskView(t *testing.T) {
	t.Parallel()
	if _, refusal := (&Entry{}).view(); refusal == nil || !strings.HasPrefix(refusal.Text, wire.CodeUnsupported) {
		t.Errorf("no desk: %+v", refusal)
	}
	if _, refusal := (&Entry{Desk: noView{}}).view(); refusal == nil || !strings.HasPrefix(refusal.Text, wire.CodeOverloaded) {
		t.Errorf("no view: %+v", refusal)
	}
}

// slowChain is a Settlement that finds no payment; it counts the looks.
type slowChain struct {
	Settlement
	looks int
}

func (c *slowChain) Verify(context.Context, *desk.PaymentProof) (desk.Verdict, error) {
	c.looks++
	return desk.Verdict{Pending: time.Millisecond}, nil
}

// TestProofOutOfTime: a payment that has been looked for and has no time left is answered
// without another look, which may take long.
func TestProofOutOfTime(t *testing.T) {
	t.Parallel()
	chain := &slowChain{}
	p := NewPayments(&Entry{Settlement: chain, Now: time.Now}, session.Directory[Session]{}, PaymentLimits{}, nil)
	task := &paymentTask{verifier: p, until: time.Now().Add(time.Hour)}
	if refusal, again := task.look(t.Context()); refusal != nil || again == 0 {
		t.Errorf("at first: %+v, again after %s", refusal, again)
	}
	task.until = time.Now()
	if refusal, again := task.look(t.Context()); refusal == nil || again != 0 || !strings.HasPrefix(refusal.Text, wire.CodePendingTimeout) {
		t.Errorf("out of time: %+v, again after %s", refusal, again)
	}
	if chain.looks != 1 {
		t.Errorf("%d looks, want 1", chain.looks)
	}
	if (&paymentTask{verifier: p, until: task.until}).look(t.Context()); chain.looks != 2 {
		t.Error("answered without any look")
	}
}

// FuzzDeskRecords: the store's records are refused, or are what would be written
// again.
func FuzzDeskRecords(f *testing.F) {
	s := &Session{Session: &reports.Session{Session: &session.Session{Number: 3}}}
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Ref: "c", Digits: 6, Status: wire.StatusPendingNew, Refund: wire.Refund{Signature: [64]byte{1}, At: 9},
	}}
	c.ID, c.State = 5, rfq.ClaimReserved
	q := &quote{owner: s, ClientQuote: wire.ClientQuote{Ref: wire.QuoteReqPrefix + "r", Digits: 6}, over: true}
	q.ID = 5
	stored := facts{digits: map[market.InstrumentID]uint8{0: 6, 700: 9}, mint: market.Address{1}}
	f.Add(c.appendRecord(nil))
	f.Add(q.appendRecord(nil))
	f.Add(stored.append(nil))
	f.Add([]byte{1})
	sessionOf := func(n uint16) *Session {
		if n == s.Number {
			return s
		}
		return nil
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := parseClaimRecord(5, data, sessionOf); err == nil && c != nil && !bytes.Equal(c.appendRecord(nil), data) {
			t.Fatalf("claim %+v", c)
		}
		if q, err := parseQuoteRecord(5, data, sessionOf); err == nil && q != nil && !bytes.Equal(q.appendRecord(nil), data) {
			t.Fatalf("quote %+v", q)
		}
		read := facts{digits: map[market.InstrumentID]uint8{}}
		if read.parse(data) && len(read.digits)*3+factsRecordHead != len(data) && len(read.append(nil)) > len(data) {
			t.Fatalf("facts %+v", read)
		}
	})
}
