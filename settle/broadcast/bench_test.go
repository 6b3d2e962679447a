package broadcast_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// fastChain is a node that costs next to nothing: every send lands at once, and a
// slot passes with each question for the position.
type fastChain struct {
	mu     sync.Mutex
	slot   uint64
	landed map[solana.Signature]uint64
}

var errUnasked = errors.New("never asked where all is well")

func (e *fastChain) Send(_ context.Context, raw []byte, _ rpc.SendOptions) (solana.Signature, error) {
	sig := solana.Signature(raw[1:65])
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landed[sig] = e.slot
	return sig, nil
}

func (e *fastChain) Statuses(_ context.Context, list []solana.Signature, _ bool) ([]rpc.Status, uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]rpc.Status, len(list))
	for i := range list {
		if slot, ok := e.landed[list[i]]; ok {
			out[i] = rpc.Status{Known: true, Slot: slot, Level: rpc.Confirmed}
			if slot+finalizeSlots <= e.slot {
				out[i].Level = rpc.Finalized
				delete(e.landed, list[i])
			}
		}
	}
	return out, e.slot, nil
}

func (e *fastChain) Position(context.Context, rpc.Commitment) (rpc.Position, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slot++
	return rpc.Position{Slot: e.slot - finalizeSlots, Height: 1}, nil
}

func (e *fastChain) TransactionFromEach(context.Context, solana.Signature, rpc.Commitment) ([]rpc.NodeTransaction, error) {
	return nil, errUnasked
}

func (e *fastChain) Upstreams() int { return 1 }

func (e *fastChain) StatusesFromEach(context.Context, []solana.Signature) ([]rpc.NodeStatuses, error) {
	return nil, errUnasked
}

func (e *fastChain) SignaturesFromEach(context.Context, solana.Address, []rpc.NodeStatuses, int) []rpc.NodeHistory {
	return nil
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTracked is the CPU time of a transaction from Track to its end, the
// node's calls for nothing, with some 4,000 under way as 300 a second have. The
// rounds are quicker than they would be; there are as many of them in a
// transaction's life.
func BenchmarkTracked(b *testing.B) {
	const underWay = 4096
	stored := make([]store.Transaction, 4*underWay)
	for i := range stored {
		stored[i] = storetest.Forge(b, market.ClaimID(i+1), cosign.Cosign, uint64(i+1), 1<<40, 1)
	}
	room := make(chan struct{}, underWay)
	node := &fastChain{slot: 1000, landed: map[solana.Signature]uint64{}}
	tracker, err := broadcast.New(broadcast.Options{PollEvery: 2 * time.Millisecond}, node, func(context.Context, broadcast.Result) error {
		<-room
		return nil
	})
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { must(b, tracker.Run(ctx)) })
	b.ReportAllocs()
	n, start := 0, cpu()
	for b.Loop() {
		room <- struct{}{}
		must(b, tracker.Track(stored[n%len(stored)]))
		n++
	}
	for range underWay {
		room <- struct{}{}
	}
	b.ReportMetric(float64((cpu()-start).Nanoseconds())/float64(n), "cpu-ns/op")
	cancel()
	wg.Wait()
}

// BenchmarkChain is how many deliveries a second the tracker brings to their end
// on the runtime of the tests, which has the same machine. Signing and keeping
// them is not in it.
func BenchmarkChain(b *testing.B) {
	c := startChain(b)
	r := c.run(b)
	stored := make([]store.Transaction, b.N)
	for i := range stored {
		stored[i] = c.deliver(1)
	}
	b.ResetTimer()
	start := cpu()
	for _, k := range stored {
		r.track(k)
	}
	r.wait(b.N)
	b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settled/s")
}
