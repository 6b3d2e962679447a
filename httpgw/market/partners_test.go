package market

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/market"
)

// chainSwaps are the swaps of one instrument on the chain, by ordinal from 1.
type chainSwaps []ChainSwap

func (s chainSwaps) ChainSwaps(_ market.InstrumentID, from, to uint64) ([]ChainSwap, error) {
	list := make([]ChainSwap, to-from+1)
	for i := range list {
		if at := from + uint64(i) - 1; at < uint64(len(s)) {
			list[i] = s[at]
		}
	}
	return list, nil
}

// TestChainSwapEvents: the event of a mirrored swap has the atoms, the transaction, the
// payer and the slot of the chain; one that the chain's store lacks is published as the
// engine has it.
func TestChainSwapEvents(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	in := b.Set.Get(1)
	if in.Source != market.Mirrored {
		t.Fatalf("%s is not mirrored", in.Symbol)
	}
	known := ChainSwap{
		Signature: [64]byte{1}, Payer: "Payer", Slot: 330_442_322, Base: 100_000_001, Quote: 101_000_007, BaseDecimals: 6, QuoteDecimals: 6,
	}
	p := &partnerPages{swaps: chainSwaps{known}}
	trades := []swap{ // newest first, as they are read
		{Trade: marketdata.Trade{ID: 8, Seq: 9, Ordinal: 2, Price: 3, Qty: 5, Side: market.Sell}, in: in},
		{Trade: marketdata.Trade{ID: 7, Seq: 8, Ordinal: 1, Price: 3, Qty: 5, Side: market.Buy}, in: in},
	}
	p.addChainSwaps(in, trades)
	var got struct {
		TxnID, Maker, PairID, Asset0Out, Asset1In, PriceNative string
		Metadata                                               struct{ Slot string }
	}
	text := appendSwap(nil, &trades[1], 0)
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got.Maker != "Payer" || got.Asset0Out != "100.000001" || got.Asset1In != "101.000007" || got.Metadata.Slot != "330442322" ||
		got.PriceNative != "1.010000059899999401" || len(got.TxnID) < 64 {
		t.Errorf("the event is %s", text)
	}
	if text := string(appendSwap(nil, &trades[0], 0)); !strings.Contains(text, `"txnId":"9"`) || !strings.Contains(text, `"maker":"undisclosed"`) {
		t.Errorf("of an unknown swap: %s", text)
	}
}

// TestTimeParam: seconds and milliseconds are distinguished by their size, and no time
// overflows.
func TestTimeParam(t *testing.T) {
	for text, want := range map[string][2]int64{
		"0":             {0, 999_999_999},
		"1700000000":    {1_700_000_000e9, 1_700_000_000e9 + 999_999_999},
		"1700000000123": {1_700_000_000_123e6, 1_700_000_000_123e6 + 999_999},
		"99999999999":   {math.MaxInt64/nanosPerSecond*nanosPerSecond - nanosPerSecond, math.MaxInt64/nanosPerSecond*nanosPerSecond - 1},
		"9223372036853": {9_223_372_036_853e6, 9_223_372_036_853e6 + 999_999},
	} {
		for end, want := range want {
			if got, bad := timeParam([]byte("at="+text), "at", 7, end == 1); bad != nil || got != want {
				t.Errorf("%s, end %v: %d, %v, want %d", text, end == 1, got, bad, want)
			}
		}
	}
	if got, bad := timeParam(nil, "at", 7, true); bad != nil || got != 7 {
		t.Errorf("without a time: %d, %v", got, bad)
	}
	for _, text := range []string{"", "-1", "x", "9223372036855", "1.5"} {
		if got, bad := timeParam([]byte("at="+text), "at", 7, false); bad == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
