package feed

import (
	"fmt"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// ticketBenchFeed returns a feed, not running, with n tickets of one pair. turn changes
// one ticket and refreshes.
func ticketBenchFeed(t testing.TB, n int) (f *Feed, publish func()) {
	t.Helper()
	records := [2][][]byte{}
	for i := range records {
		for id := range n {
			records[i] = append(records[i], []byte(record(market.TicketID(1+id), fmt.Sprint("open", i), 900)))
		}
	}
	shown := append([][]byte(nil), records[0]...)
	round := 0
	source := func(each func(market.InstrumentID, market.TicketID, []byte)) (uint64, int64) {
		for i, text := range shown {
			each(0, market.TicketID(1+i), text)
		}
		return uint64(round), int64(round)
	}
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.ServeTickets(source, forHours)
	f.desk.refresh()
	f.topic(topicRef{in: f.set.Get(0), kind: tickets}).subscribers.Store(1)
	var got taken
	return f, func() {
		round++
		shown[round%n] = records[round/n%2][round%n]
		f.desk.refresh()
		f.shards[0].inbox.take(&got)
	}
}

// A change of one ticket allocates a copy of the book's list, the book and the update's
// bytes, however many tickets there are.
func TestTicketsAllocate(t *testing.T) {
	f, publish := ticketBenchFeed(t, 50)
	for range 4000 { // the history grows to its full size
		publish()
	}
	before := f.stats.encoded.Load()
	allocs := testing.AllocsPerRun(1000, publish)
	if reported := f.stats.encoded.Load() - before; reported < 900 {
		t.Fatalf("%d updates: this run shows little", reported)
	}
	if allocs > 4 {
		t.Errorf("%.1f allocations a change; want the list, the book, the update and a closure at most", allocs)
	}
}

func BenchmarkTicketsLook(b *testing.B) {
	for _, n := range []int{10, 100, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, publish := ticketBenchFeed(b, n)
			b.ReportAllocs()
			for b.Loop() {
				publish()
			}
		})
	}
}

func BenchmarkTicketsSnapshot(b *testing.B) {
	f, _ := ticketBenchFeed(b, 4096)
	book, in := f.lists[0].Load(), f.set.Get(0)
	b.ReportAllocs()
	b.SetBytes(int64(len(deskSnapshot(in, book))))
	for b.Loop() {
		deskSnapshot(in, book)
	}
}
