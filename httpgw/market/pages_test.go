package market

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
)

// TestDepthLimits: each limit returns that many levels; the default is 50.
func TestDepthLimits(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	for limit := 0; limit <= MaxDepth; limit++ {
		query, want := fmt.Sprintf("symbol=SLUSD/USDC&limit=%d", limit), limit
		if limit == 0 {
			query, want = "symbol=SLUSD/USDC", defaultDepth
		}
		p, bad := m.serveDepth([]byte(query))
		if bad != nil {
			t.Fatal(bad)
		}
		var d depthAnswer
		if err := json.Unmarshal(p.Body, &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Bids) != want || len(d.Asks) != want {
			t.Errorf("%s: %d bids %d asks, want %d", query, len(d.Bids), len(d.Asks), want)
		}
	}
}

// TestPagesAreRenderedOnce: one page per view; a new view has new bytes and another
// ETag; no two combinations of endpoint, view and limit share an ETag.
func TestPagesAreRenderedOnce(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	query := []byte("symbol=SLUSD/USDC&limit=20")
	get := func() *wire.Page {
		p, bad := m.serveDepth(query)
		if bad != nil {
			t.Fatal(bad)
		}
		return p
	}
	first := get()
	if get() != first {
		t.Error("rendered again for the same view")
	}
	// Limit 33 falls on the slot of 20.
	if _, bad := m.serveDepth([]byte("symbol=SLUSD/USDC&limit=33")); bad != nil {
		t.Fatal(bad)
	}
	again := get()
	if again == first || !bytes.Equal(again.Body, first.Body) || !bytes.Equal(again.ETag, first.ETag) {
		t.Error("a page that lost its slot must come back with the same bytes and ETag")
	}

	next := *gatewaytest.FullView(0, 1042)
	next.EngineSeq++ // the depth is as before, but engine_seq is in the body
	b.Views[0].Store(&next)
	if p := get(); bytes.Equal(p.Body, first.Body) || bytes.Equal(p.ETag, first.ETag) {
		t.Error("another view must have other bytes and another ETag")
	}

	seen := make(map[string]int)
	for limit := 1; limit <= MaxDepth; limit++ {
		p, _ := m.serveDepth(fmt.Appendf(nil, "symbol=SLUSD/USDC&limit=%d", limit))
		if other, taken := seen[string(p.ETag)]; taken {
			t.Fatalf("limits %d and %d share ETag %s", other, limit, p.ETag)
		}
		seen[string(p.ETag)] = limit
	}
}

// TestSlotsOfUsualLimits: the usual limits do not evict each other.
func TestSlotsOfUsualLimits(t *testing.T) {
	var slots []int
	for _, limit := range []int{1, 5, 10, 20, 25, 50, 100} {
		if slices.Contains(slots, limit%limitSlots) {
			t.Errorf("limit %d shares a slot", limit)
		}
		slots = append(slots, limit%limitSlots)
	}
}

// TestSymbolsFollowStatus: a halt is visible at once.
func TestSymbolsFollowStatus(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	before, _ := m.serveSymbols(nil)
	if again, _ := m.serveSymbols(nil); again != before {
		t.Error("rendered again without a change")
	}
	b.Views[1].Store(gatewaytest.FullView(1, 8))
	if again, _ := m.serveSymbols(nil); again != before {
		t.Error("rendered again for a view of the same status")
	}
	halted := gatewaytest.FullView(1, 9)
	halted.Status = engine.StatusHalted
	b.Views[1].Store(halted)
	after, _ := m.serveSymbols(nil)
	if bytes.Equal(after.ETag, before.ETag) || !bytes.Contains(after.Body, []byte(`"book_source":"mirrored","status":"halted"`)) {
		t.Errorf("after the halt: %s", after.Body)
	}
}

// TestReadersDuringChanges: while views change, every reader gets complete bodies with
// matching ETag and seq, and seq never decreases.
func TestReadersDuringChanges(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	const versions = 300
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			last := uint64(0)
			for {
				p, bad := m.serveDepth([]byte("symbol=SLUSD/USDC&limit=10"))
				var d depthAnswer
				if bad != nil || json.Unmarshal(p.Body, &d) != nil {
					t.Errorf("a broken body: %v", bad)
					return
				}
				if tag := fmt.Sprintf(`"e%s-%d-%d-10"`, d.Epoch[1:], d.EngineSeq, d.Seq); tag != string(p.ETag) || d.Seq < last {
					t.Errorf("ETag %s on seq %d after %d", p.ETag, d.Seq, last)
					return
				}
				last = d.Seq
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for seq := range uint64(versions) {
		b.Views[0].Store(gatewaytest.FullView(0, 2000+seq))
	}
	close(stop)
	readers.Wait()
}

// TestCachedReadAllocatesNothing: from the raw query to the page.
func TestCachedReadAllocatesNothing(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	l := ratelimit.NewBuckets(ratelimit.NewRate(60, time.Minute, 20), 65536, func() int64 { return 1 })
	for _, c := range []struct {
		query string
		read  func([]byte) (*wire.Page, *wire.Problem)
	}{
		{"symbol=SLUSD%2FUSDC&limit=50", m.serveDepth},
		{"symbol=SLUSD/USDC&limit=50", m.serveTrades},
		{"symbol=92C/SLUSD", m.serveTicker},
		{"", m.serveSymbols},
	} {
		query := []byte(c.query)
		if allocs := testing.AllocsPerRun(100, func() {
			if _, bad := c.read(query); bad != nil {
				t.Fatal(bad)
			}
			l.Take(ratelimit.Client{1})
		}); allocs != 0 {
			t.Errorf("%s: %.1f allocations", c.query, allocs)
		}
	}
	view := gatewaytest.FullView(0, 1)
	buf := make([]byte, 0, 1<<16)
	if allocs := testing.AllocsPerRun(100, func() {
		buf = appendDepth(buf[:0], b.Set.Get(0), view, MaxDepth)
	}); allocs != 0 {
		t.Errorf("rendering into room: %.1f allocations", allocs)
	}
}

// TestViewsBeforeTheFirst: an instrument without a view is an empty book.
func TestViewsBeforeTheFirst(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	p, bad := m.serveDepth([]byte("symbol=EMPTY/USDC"))
	if bad != nil {
		t.Fatal(bad)
	}
	const want = `{"ok":true,"symbol":"EMPTY/USDC","epoch":"e0","seq":0,"engine_seq":0,"ts":null,"bids":[],"asks":[],` +
		`"source":"matched","slot":null}`
	if string(p.Body) != want {
		t.Errorf("got %s", p.Body)
	}
}
