package dvp

import (
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestTakersKeys: each taker and each operation has separate keys.
func TestTakersKeys(t *testing.T) {
	keyOf := func(taker market.Address) rfq.IdempotencyKey {
		t.Helper()
		v := &rfq.View{Tickets: []*rfq.Ticket{{ID: 7, Tranches: []rfq.Tranche{{ID: 1}}}}}
		body := `{"order_id":"T7","tranche_id":"T7-1","fill_usd":"250","rail":"USDC","taker":"` + base58.Encode(taker[:]) + `"}`
		p := &wire.Post{Body: []byte(body), Key: []byte("k"), Taker: taker}
		r, _, problem := parseBuild(p, v)
		if problem != nil {
			t.Fatalf("%+v", problem)
		}
		if key := takersKey(terms.OpBuild, p, nil); key.ID != r.Key.ID {
			t.Errorf("a build has the key %x, want %x", r.Key, key)
		}
		if submit := takersKey(terms.OpSubmit, p, nil); submit.ID == r.Key.ID {
			t.Error("build and submit share a key")
		}
		return r.Key
	}
	if mine, theirs := keyOf(market.Address{1}), keyOf(market.Address{7}); mine.ID == theirs.ID {
		t.Errorf("two takers: %x %x", mine, theirs)
	}
}
