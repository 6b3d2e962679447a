package mirror

import (
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// Listed handles the answer to RequestList. Errors: [ErrHistory], [ErrAnswer].
func (b *Backfill) Listed(l List) (Progress, error) {
	if b.Next().Kind != RequestList {
		return Progress{}, fmt.Errorf("%w: no list was requested", ErrAnswer)
	}
	infos := make([]rpc.SignatureInfo, len(l.Entries))
	entries := make([]listedTx, len(l.Entries))
	for i := range l.Entries {
		e := &l.Entries[i]
		infos[i] = e.SignatureInfo
		entries[i] = listedTx{TxRef{e.Signature, e.Slot, b.plausible(e.BlockTime)}, e.Failed, e.Contested}
	}
	if !plausibleList(infos, b.slot) {
		return b.miss("slots or times are out of range")
	}
	if !b.polling {
		return Progress{}, b.listedOlder(entries, l.More)
	}
	return b.listedNewer(entries, l.More)
}

// without removes the known transactions from a list, in place.
func without(list []listedTx, known func(m *TxRef) bool) []listedTx {
	return slices.DeleteFunc(list, func(l listedTx) bool { return known(&l.TxRef) })
}

func (b *Backfill) wasSkipped(m *TxRef) bool {
	_, ok := b.skipped[m.Signature]
	return ok
}

func (b *Backfill) listedOlder(list []listedTx, more bool) error {
	oldest := &b.cursor.Oldest
	list = without(list, func(m *TxRef) bool { return b.first.has(m) || b.wasSkipped(m) })
	if len(list) > 0 && list[0].Slot > oldest.Slot || len(list) == 0 && more {
		b.exhausted = true
		b.exhaustedPolls++
		return fmt.Errorf("%w: a node lists no transactions before %s", ErrHistory, oldest.Signature)
	}
	b.older, b.exhausted = list, len(list) == 0
	if b.exhaustedPolls++; !b.exhausted {
		b.exhaustedPolls = 0
	}
	return nil
}

func (b *Backfill) listedNewer(list []listedTx, more bool) (Progress, error) {
	newest := &b.cursor.Newest
	if n := len(b.page); n > 0 {
		// The next page may list the last slot in another order.
		last := b.page[n-1].Slot
		seen := edgeSlot{}
		for i := n - 1; i >= 0 && b.page[i].Slot == last; i-- {
			seen.add(&b.page[i].TxRef)
		}
		list = without(list, seen.has)
		switch {
		case len(list) > 0 && list[0].Slot > last:
			return b.miss("slots are not in descending order")
		case len(list) == 0 && more:
			return b.miss("the page repeats the one before")
		}
	}
	if *newest == (TxRef{}) {
		// Nothing was read yet: the whole list is the past.
		list = without(list, b.wasSkipped)
		b.polling, b.catchingUp, b.older = false, true, list
		return Progress{Kind: Restarted, AsOf: b.caughtUp()}, nil
	}
	joins := slices.ContainsFunc(list, func(l listedTx) bool { return l.Signature == newest.Signature })
	b.page = append(b.page, list...)
	n := len(b.page)
	switch {
	case joins:
		return b.joinRun()
	case n > b.o.MaxPending:
		return b.restart(), nil
	case n > 0 && b.page[n-1].Slot < newest.Slot:
		return b.miss("the newest transaction read is missing")
	case !more:
		return b.miss("the list ends before the newest transaction read")
	}
	return Progress{}, nil
}

// joinRun takes the new transactions from a list that contains the run's newest one.
func (b *Backfill) joinRun() (Progress, error) {
	newest := &b.cursor.Newest
	for i := range b.page {
		if b.page[i].Signature == newest.Signature && b.page[i].Slot != newest.Slot {
			return b.miss("the newest transaction read is in another slot")
		}
	}
	past := b.olderInSlot()
	b.newer = without(b.page, func(m *TxRef) bool {
		_, older := past[m.Signature]
		return older || m.Slot < newest.Slot || b.last.has(m) || b.wasSkipped(m)
	})
	b.page, b.polling, b.catchingUp, b.misses = nil, false, true, 0
	return Progress{AsOf: b.caughtUp()}, nil
}

// olderInSlot returns the transactions before the newest one in its slot, of a run that
// begins within that slot: those listed when it began, and those after the newest one in
// the page.
func (b *Backfill) olderInSlot() map[solana.Signature]struct{} {
	newest := &b.cursor.Newest
	if b.cursor.Oldest.Slot != newest.Slot || b.cursor.Complete {
		return nil
	}
	past := map[solana.Signature]struct{}{}
	for i := range b.older {
		past[b.older[i].Signature] = struct{}{}
	}
	behind := slices.IndexFunc(b.page, func(l listedTx) bool { return l.Signature == newest.Signature })
	for i := behind; i < len(b.page); i++ {
		past[b.page[i].Signature] = struct{}{}
	}
	return past
}

// miss discards the list and blocks requests until the next poll; after maxMisses
// misses the history restarts.
func (b *Backfill) miss(why string) (Progress, error) {
	newest := b.cursor.Newest
	b.page, b.polling, b.blocked = nil, false, true
	if b.misses++; b.misses >= maxMisses {
		return b.restart(), nil
	}
	return Progress{}, fmt.Errorf("%w: %s, after %s", ErrHistory, why, newest.Signature)
}

// restart discards the run. The next list begins another.
func (b *Backfill) restart() Progress {
	*b = Backfill{o: b.o, now: b.now, slot: b.slot, blocked: true}
	return Progress{Kind: Restarted}
}
