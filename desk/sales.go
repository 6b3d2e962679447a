package desk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// MaxSales is the largest limit of Sales.
const MaxSales = 1000

// ErrLimit is returned by Sales for a limit that is not 1 to MaxSales.
var ErrLimit = errors.New("desk: limit out of range")

// Sales returns the sales of an instrument with numbers below before, newest first, at most
// limit; before 0 means from the newest. limit is 1 to MaxSales. It reads the store and may
// be called from any goroutine. Errors: ErrLimit, ErrLayout, errors of the store.
func (d *Desk) Sales(in market.InstrumentID, before uint64, limit int) ([]Sale, error) {
	if limit < 1 || limit > MaxSales {
		return nil, ErrLimit
	}
	return readSales(d.store, in, before, limit)
}

func readSales(store kv.Reader, in market.InstrumentID, before uint64, limit int) ([]Sale, error) {
	if before == 1 {
		return nil, nil
	}
	var all []Sale
	err := kv.Each(store, saleKey(nil, in, before-1), salesEnd(in), func(key, value []byte) error {
		s, err := parseSale(key, value)
		if all = append(all, s); err == nil && len(all) == limit {
			return kv.ErrStop
		}
		return err
	})
	return all, err
}

// SalesSummary returns an instrument's totals, and those of the sales that settled after a
// time in Unix nanoseconds. It takes about twenty reads of the store for a million sales.
// Errors: ErrLayout, errors of the store.
func (d *Desk) SalesSummary(in market.InstrumentID, after int64) (all, since SalesTotals, err error) {
	newest, err := d.Sales(in, 0, 1)
	if err != nil || len(newest) == 0 {
		return all, since, err
	}
	all = newest[0].Totals
	// Times of an instrument's sales grow with their numbers: the sales up to lo are not
	// after the time, those from hi on are.
	lo, before := uint64(0), SalesTotals{}
	for hi := all.Count + 1; lo+1 < hi; {
		mid := lo + (hi-lo)/2
		one, err := d.Sales(in, mid+1, 1)
		if err != nil {
			return all, since, err
		}
		if len(one) == 0 || one[0].Number != mid {
			return all, since, fmt.Errorf("%w: sale %d of instrument %d is missing", ErrLayout, mid, in)
		}
		if one[0].Claim.ChangedAt > after {
			hi = mid
		} else {
			lo, before = mid, one[0].Totals
		}
	}
	since = SalesTotals{all.Count - before.Count, all.VolumeUSD - before.VolumeUSD, all.FeesUSD - before.FeesUSD}
	return all, since, nil
}

// next returns the totals with one more claim.
func (t SalesTotals) next(c *rfq.Claim) SalesTotals {
	fill := c.Terms.Fill.USD()
	fee, err := market.MulDivFloor(uint64(fill), uint64(c.Terms.FeeBps), market.MaxBps)
	if err != nil { // a fee above the whole, which no policy has
		fee = uint64(fill)
	}
	return SalesTotals{t.Count + 1, t.VolumeUSD + fill, t.FeesUSD + market.USD(fee)}
}

// salesLog numbers the sales and writes them into the projector's batch.
type salesLog struct {
	last map[market.InstrumentID]SalesTotals // of the newest sale, those of the batch included
	// settled are the claims that have settled since the last commit: the store does not
	// have their histories yet.
	settled map[market.ClaimID]struct{}
	// fresh are the sales whose view is not published yet.
	fresh []Sale
}

func (l *salesLog) init() {
	l.last, l.settled, l.fresh = map[market.InstrumentID]SalesTotals{}, map[market.ClaimID]struct{}{}, nil
}

// writeSale adds a claim that has settled. A claim whose step is repeated is no sale again.
func (f *projector) writeSale(c *rfq.Claim) error {
	l := &f.sales
	if _, ok := l.settled[c.ID]; ok || f.storeFailed() {
		return nil
	}
	before, known, err := readHistory(f.desk.store, c.ID)
	if err != nil {
		return err
	}
	l.settled[c.ID] = struct{}{}
	if known && slices.ContainsFunc(before.States, func(s rfq.Claim) bool { return s.State == rfq.ClaimSettled }) {
		return nil
	}
	return f.addSale(c, f.seq)
}

func (f *projector) addSale(c *rfq.Claim, seq uint64) error {
	in := c.Terms.Instrument
	totals, ok := f.sales.last[in]
	if !ok {
		newest, err := readSales(f.desk.store, in, 0, 1)
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			totals = newest[0].Totals
		}
	}
	totals = totals.next(c)
	f.sales.last[in] = totals
	s := Sale{Number: totals.Count, Seq: seq, Claim: *c, Totals: totals}
	f.keyScratch = saleKey(f.keyScratch[:0], in, s.Number)
	f.scratch = appendSale(f.scratch[:0], &s)
	f.batch.Set(f.keyScratch, f.scratch)
	if f.started {
		f.sales.fresh = append(f.sales.fresh, s)
	}
	return nil
}

// loadSales writes the sales of a store that was written before there were any: those of the
// claims' histories, in the order of their commands.
func (f *projector) loadSales() error {
	f.sales.init()
	_, done, err := f.desk.store.Get([]byte{keySale})
	if err != nil || done {
		return err
	}
	type settled struct {
		seq    uint64
		record uint32
		claim  rfq.Claim
	}
	var all []settled
	err = kv.Each(f.desk.store, []byte{keyHistory}, []byte{keyHistory + 1}, func(key, value []byte) error {
		claim, _, err := parseEntry(value)
		if err != nil || claim == nil || claim.State != rfq.ClaimSettled {
			return err
		}
		if len(key) != historyKeySize {
			return fmt.Errorf("%w: %x is not the key of a sale", ErrLayout, key)
		}
		if n := len(all); n == 0 || all[n-1].claim.ID != claim.ID { // a repeated step repeats the record
			all = append(all, settled{binary.BigEndian.Uint64(key[9:]), binary.BigEndian.Uint32(key[17:]), *claim})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b settled) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.record, b.record))
	})
	for i := range all {
		if err := f.addSale(&all[i].claim, all[i].seq); err != nil {
			return err
		}
	}
	f.batch.Set([]byte{keySale}, []byte{valueVersion})
	return nil
}

func appendSale(dst []byte, s *Sale) []byte {
	dst = append(dst, valueVersion)
	for _, n := range [...]uint64{s.Seq, uint64(s.Totals.VolumeUSD), uint64(s.Totals.FeesUSD)} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return rfq.AppendRecord(dst, &s.Claim)
}

// saleHead is the size of a sale's value before its record.
const saleHead = 1 + 3*8

func parseSale(key, value []byte) (s Sale, err error) {
	if len(key) != saleKeySize || len(value) < saleHead || value[0] != valueVersion {
		return s, fmt.Errorf("%w: the sale under the key %x", ErrLayout, key)
	}
	s.Number = ^binary.BigEndian.Uint64(key[3:])
	s.Seq = binary.BigEndian.Uint64(value[1:])
	s.Totals = SalesTotals{s.Number, market.USD(binary.BigEndian.Uint64(value[9:])), market.USD(binary.BigEndian.Uint64(value[17:]))}
	r := &records{rest: value[saleHead:]}
	r.step()
	if claim := mustTakeRecord[*rfq.Claim](r); claim != nil {
		s.Claim = *claim
	}
	if err := r.close(); err != nil {
		return s, fmt.Errorf("sale: %w", err)
	}
	return s, nil
}
