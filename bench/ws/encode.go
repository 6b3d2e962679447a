package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"blockdesk/bench"
	"blockdesk/engine/marketdata"
	"blockdesk/feed"
	"blockdesk/market"
)

const (
	// wsEncodes is the documents of one round.
	wsEncodes = 2000
	// wsSnapshotDepth is the default of a subscription.
	wsSnapshotDepth = 50
)

// wsSnapshot is an l2 snapshot as encoding/json sees it.
type wsSnapshot struct {
	Channel   string      `json:"channel"`
	Type      string      `json:"type"`
	Symbol    string      `json:"symbol"`
	Epoch     string      `json:"epoch"`
	Seq       uint64      `json:"seq"`
	PrevSeq   uint64      `json:"prev_seq"`
	EngineSeq uint64      `json:"engine_seq"`
	TS        string      `json:"ts"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
	Checksum  uint32      `json:"checksum"`
}

var errOtherDocument = errors.New("encoding/json makes another document")

// encode compares a snapshot's encoding with encoding/json's of the same
// document: from the same view, and of one whose texts are all there already.
// From one snapshot to the next two levels differ; a note has the cost where all do.
func (b *wsBench) encode(ctx context.Context) error {
	in := wsInstrument()
	views := [2]*marketdata.View{deepView(0), deepView(0)}
	views[1].Bids[2].Qty++
	views[1].Asks[0].Qty++
	others := [2]*marketdata.View{views[0], deepView(1)}
	var near, far feed.Snapshots
	document, err := wsDocument(&near, &in, views[0])
	if err != nil {
		return err
	}
	n := 0
	ours := func(s *feed.Snapshots, views *[2]*marketdata.View) func() {
		return func() {
			n++
			s.L2(&in, views[n%2], wsSnapshotDepth)
		}
	}
	variants := []*variant{
		{name: "two levels new", run: repeat(ours(&near, &views))},
		{name: "encoding/json of the ready document", run: repeat(func() { _, _ = json.Marshal(document) })},
		{name: "encoding/json from the view", run: repeat(func() {
			n++
			_, _ = json.Marshal(wsFromView(document, &in, views[n%2]))
		})},
		{name: "all levels new", run: repeat(ours(&far, &others))},
	}
	for _, v := range variants {
		v.s = &bench.Series{Name: fmt.Sprintf("snapshot of %d levels a side, %s", wsSnapshotDepth, v.name)}
		b.report.Series = append(b.report.Series, v.s)
		if err := v.take(false); err != nil { // the warm-up
			return err
		}
	}
	for range b.o.Rounds {
		for _, v := range variants {
			if err := errors.Join(ctx.Err(), v.take(true)); err != nil {
				return err
			}
		}
	}
	b.report.Ratios = append(b.report.Ratios,
		bench.Ratio{Name: "CPU a snapshot, two levels new / encoding/json from the view", Value: bench.MedianRatio(variants[0].perOp, variants[2].perOp), Goal: goalSnapshot, AtMost: true},
		bench.Ratio{Name: "CPU a snapshot, two levels new / encoding/json of the ready document", Value: bench.MedianRatio(variants[0].perOp, variants[1].perOp), Goal: goalSnapshot, AtMost: true},
		bench.Ratio{Name: "CPU a snapshot, all levels new / encoding/json from the view", Value: bench.MedianRatio(variants[3].perOp, variants[2].perOp)},
		bench.Ratio{Name: "allocations a snapshot", Value: float64(variants[0].s.Allocs) / float64(variants[0].s.Ops), Goal: 0, AtMost: true},
	)
	return nil
}

// variant is one way to make documents.
type variant struct {
	name  string
	run   func() error
	s     *bench.Series
	perOp []float64 // CPU ns, of each round
}

// take runs a variant once and adds what it took, if it counts.
func (v *variant) take(counted bool) error {
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	start, before := time.Now(), bench.ProcessCPU()
	if err := v.run(); err != nil || !counted {
		return err
	}
	cpu := bench.ProcessCPU() - before
	v.s.Elapsed += time.Since(start)
	runtime.ReadMemStats(&m1)
	v.s.CPU += cpu
	v.s.Ops += wsEncodes
	v.s.Allocs += m1.Mallocs - m0.Mallocs
	v.s.Bytes += m1.TotalAlloc - m0.TotalAlloc
	v.s.GCs += m1.NumGC - m0.NumGC
	v.perOp = append(v.perOp, float64(cpu)/wsEncodes)
	return nil
}

func repeat(f func()) func() error {
	return func() error {
		for range wsEncodes {
			f()
		}
		return nil
	}
}

// deepView is a full book; add moves every level's quantity.
func deepView(add market.Qty) *marketdata.View {
	v := &marketdata.View{Epoch: 7, EngineSeq: wsFirstSeq, At: wsFirstAt, DepthSeq: 41, TradesSeq: 1, TickerSeq: 1}
	for i := range market.Price(marketdata.MaxDepth) {
		qty := 1_234_567*market.Qty(1+i*i*i) + add
		v.Bids = append(v.Bids, market.Level{Price: wsBestBid - 7*i, Qty: qty})
		v.Asks = append(v.Asks, market.Level{Price: wsBestAsk + 7*i, Qty: qty})
	}
	return v
}

// wsDocument reads the frame of v's snapshot, and checks that encoding/json writes the
// same bytes.
func wsDocument(s *feed.Snapshots, in *market.Instrument, v *marketdata.View) (*wsSnapshot, error) {
	frame, _ := s.L2(in, v, wsSnapshotDepth)
	text := frame[bytes.IndexByte(frame, '{'):]
	var d wsSnapshot
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	again, err := json.Marshal(&d)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, text) {
		return nil, fmt.Errorf("%w:\n%s\n%s", errOtherDocument, text, again)
	}
	return &d, nil
}

// wsFromView is d with v's levels, as texts that a program without an encoder of
// its own would make.
func wsFromView(d *wsSnapshot, in *market.Instrument, v *marketdata.View) *wsSnapshot {
	side := func(levels []market.Level) [][2]string {
		list := make([][2]string, wsSnapshotDepth)
		for i := range list {
			list[i] = [2]string{string(in.AppendPrice(nil, levels[i].Price)), string(in.AppendQty(nil, levels[i].Qty))}
		}
		return list
	}
	fresh := *d
	fresh.Bids, fresh.Asks = side(v.Bids), side(v.Asks)
	return &fresh
}
