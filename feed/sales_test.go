package feed

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/market"
)

// saleSource has a test's sales of the first pair.
type saleSource struct {
	record string // of a sale, as in the OpenAPI document; its trade_id is replaced

	mu  sync.Mutex
	all []Sale // oldest first
}

func (s *saleSource) add(market.InstrumentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := uint64(len(s.all) + 1)
	record := fmt.Sprintf(`{"trade_id":%d}`, n)
	if s.record != "" {
		record = strings.Replace(s.record, `"trade_id":1,`, fmt.Sprintf(`"trade_id":%d,`, n), 1)
	}
	s.all = append(s.all, Sale{Number: n, Seq: 10 * n, At: int64(n) * int64(time.Second), Record: []byte(record)})
}

// sales is a Sales.
func (s *saleSource) sales(in market.InstrumentID, after uint64, limit int) (out []Sale, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.all) - 1; i >= 0 && in == 0 && len(out) < limit && s.all[i].Number > after; i-- {
		out = append(out, s.all[i])
	}
	return out, nil
}

// TestSales: a subscriber has the newest sales, then each new one once and in order; many at
// once come as a snapshot.
func TestSales(t *testing.T) {
	t.Parallel()
	s := &saleSource{}
	for range MaxSales + 5 {
		s.add(0)
	}
	f := newTestFeedWith(t, func(f *Feed) { f.ServeSales(s.sales) })
	c := f.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["rfq_trades","tickets"],"symbols":["SLUSD/USDC","92C/SLUSD"],"id":1}`)
	read := func(symbol, kind string, seq uint64, first, last int) {
		t.Helper()
		for {
			text := c.next().raw
			var m struct {
				Channel, Type, Symbol string
				Seq                   uint64
				EngineSeq             uint64 `json:"engine_seq"`
				Sales                 []struct {
					ID int `json:"trade_id"`
				} `json:"rfq_trades"`
			}
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatal(err)
			}
			if m.Channel == "control" {
				if !strings.Contains(text, `{"channel":"tickets","code":"UNKNOWN_CHANNEL"}`) {
					t.Errorf("a feed without tickets: %s", text)
				}
				continue
			}
			if m.Channel != "rfq_trades" {
				continue
			}
			if m.Type != kind || m.Symbol != symbol || m.Seq != seq || len(m.Sales) != last-first+1 {
				t.Fatalf("want %s %s %d with %d to %d: %s", symbol, kind, seq, first, last, text)
			}
			for i := range m.Sales {
				if m.Sales[i].ID != first+i {
					t.Fatalf("want %d to %d: %s", first, last, text)
				}
			}
			if last > 0 && m.EngineSeq != uint64(10*last) {
				t.Fatalf("engine_seq %d after sale %d", m.EngineSeq, last)
			}
			return
		}
	}
	n := MaxSales + 5
	read("SLUSD/USDC", "snapshot", 1, 6, n)
	read("92C/SLUSD", "snapshot", 1, 1, 0)
	for seq := uint64(2); seq < 4; seq++ {
		s.add(0)
		n++
		f.feed.SalesChanged(0)
		read("SLUSD/USDC", "update", seq, n, n)
	}
	for range MaxSales {
		s.add(0)
	}
	n += MaxSales
	f.feed.SalesChanged(0)
	read("SLUSD/USDC", "snapshot", 4, n-MaxSales+1, n)
}
