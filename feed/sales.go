package feed

import (
	"bytes"
	"slices"

	"blockdesk/market"
)

// MaxSales is the number of sales in a snapshot of the channel rfq_trades. An update that
// would have as many is a snapshot instead.
const MaxSales = 100

// Sale is a settled claim of the desk. Record is its JSON object, whose bytes never change.
type Sale struct {
	Number uint64 // of the instrument's sales, from 1 without gaps
	Seq    uint64 // of the command that settled it
	At     int64  // when it settled, Unix nanoseconds
	Record []byte
}

// Sales returns the sales of an instrument with numbers above after, newest first, at most
// limit. The feed calls it from one goroutine at a time, within Run.
type Sales func(in market.InstrumentID, after uint64, limit int) ([]Sale, error)

// refreshSales collects the lists of the instruments that have new sales, and in a new epoch
// those of all.
func (d *deskPublisher) refreshSales() {
	d.mu.Lock()
	sold := d.sold
	d.sold = nil
	d.mu.Unlock()
	epoch := d.feed.epoch.Load()
	for i := range d.feed.set.Len() {
		in := market.InstrumentID(i)
		cur := d.feed.deskList(in, sales).Load()
		if _, fresh := sold[in]; !fresh && cur.epoch == epoch {
			continue
		}
		last := uint64(0)
		if n := len(cur.records); n > 0 {
			last = cur.records[n-1].id
		}
		more, err := d.sales(in, last, MaxSales)
		if err != nil {
			// The desk's store has failed, which it reports itself; the channel stands still.
			d.feed.o.Logger.Warn("sales of the desk could not be read", "symbol", d.feed.set.Get(in).Symbol, "err", err)
			continue
		}
		if len(more) > 0 || cur.epoch != epoch {
			d.publishSales(in, cur, epoch, more)
		}
	}
}

// publishSales makes an instrument's next list with more sales, newest first.
func (d *deskPublisher) publishSales(in market.InstrumentID, cur *deskList, epoch uint64, more []Sale) {
	f := d.feed
	next := &deskList{instrument: in, kind: sales}
	next.position = position{epoch: epoch, seq: 1, engineSeq: cur.engineSeq, at: cur.at}
	follows := epoch == cur.epoch
	if follows {
		next.seq = cur.seq + 1
	}
	if len(more) > 0 {
		next.engineSeq, next.at = more[0].Seq, more[0].At
	}
	fresh := make([]deskRecord, len(more))
	for i := range more {
		fresh[len(more)-1-i] = deskRecord{more[i].Number, more[i].Record}
	}
	next.records = slices.Concat(cur.records, fresh)
	next.records = slices.Clone(next.records[max(0, len(next.records)-MaxSales):])
	f.deskList(in, sales).Store(next)
	pub := publication{list: next}
	ref := topicRef{in: f.set.Get(in), kind: sales}
	if t := f.topic(ref); follows && t.needed() && len(fresh) < MaxSales {
		pub.frames[sales] = bytes.Clone(d.enc.salesUpdate(ref.in, next.position, fresh))
		f.stats.encoded.Add(1)
	}
	d.pubs = append(d.pubs, pub)
}

// salesUpdate returns the update to p: the new sales, oldest first.
func (e *encoder) salesUpdate(in *market.Instrument, p position, fresh []deskRecord) []byte {
	e.open(in, sales, "update", p, p.seq-1)
	e.records(sales, fresh)
	e.text(`}`)
	return e.end(finText)
}
