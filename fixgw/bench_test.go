package fixgw

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
)

// BenchmarkRoundTrip is a D to its 8 over loopback, one at a time: two FIX
// codecs, the engine, the follower, journal and store in memory.
func BenchmarkRoundTrip(b *testing.B) {
	d := newDesk(b, []string{"MM"}, func(o *Options) {
		o.Rate, o.CompID = 1_000_000, fmt.Sprintf("BRT-%d", time.Now().UnixNano())
	})
	mm := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
	took := make([]time.Duration, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		start := time.Now()
		mm.order(fmt.Sprint("o", i), "1", "1", "1", "59=1|")
		<-mm.in
		took[i] = time.Since(start)
	}
	b.StopTimer()
	slices.Sort(took)
	for name, at := range map[string]int{"p50-us": 50, "p99-us": 99} {
		b.ReportMetric(float64(took[(len(took)-1)*at/100].Nanoseconds())/1000, name)
	}
}

// BenchmarkThroughput is resting orders by one session, 64 a write.
func BenchmarkThroughput(b *testing.B) {
	d := newDesk(b, []string{"MM"}, func(o *Options) {
		o.Rate, o.MaxPendingOrders, o.MaxOutbox = 1_000_000, 1_000_000, 64<<20
		o.CompID = fmt.Sprintf("BTP-%d", time.Now().UnixNano())
	})
	mm := d.dial("MM", func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
	b.ReportAllocs()
	b.ResetTimer()
	done := make(chan struct{})
	go func() {
		for range 2 * b.N {
			<-mm.in
		}
		close(done)
	}()
	for i := 0; i < b.N; i += 64 {
		var bodies [][]byte
		for j := i; j < min(i+64, b.N); j++ {
			bodies = append(bodies, fmt.Appendf(nil, "11=o%d\x0155=SLUSD/USDC\x0154=1\x0138=1\x0140=2\x0144=1\x0160=20260101-00:00:00.000\x0159=3\x01", j))
		}
		if err := mm.c.SendAll("D", bodies); err != nil {
			b.Fatal(err)
		}
	}
	<-done
}
