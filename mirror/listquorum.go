package mirror

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// maxContested bounds the entries of a page without a majority. A page with more is
// refused.
const maxContested = 16

// Entry is a transaction of a [List].
type Entry struct {
	rpc.SignatureInfo
	// Contested: neither a majority lists it nor a majority leaves it out. It may not
	// exist.
	Contested bool
}

// List is a page of an account's history, newest first.
type List struct {
	Entries []Entry
	// More: the history continues after the last entry, which is not contested.
	More bool
}

// listQuorum reads a history from all nodes and makes one list of their answers. It
// belongs to one goroutine.
//
// A node's page covers a range of slots. A transaction is listed if more than half of the
// answering nodes list it, and left out if more than half cover its slot without it;
// otherwise it is contested. So one node can neither hide a transaction from two others
// nor invent one. Transactions newer than what most nodes have reached wait; older ones
// than most pages cover are on the next page, or deleted.
type listQuorum struct {
	node Node
	// disagreement is how the nodes contradicted each other since it was last set to nil.
	disagreement error
}

// Transaction reads a transaction by majority.
func (l *listQuorum) Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	return l.node.TransactionByMajority(ctx, s, level)
}

// List reads a page. Errors: the first node's if none answers; errContradicted if the
// answers cannot be joined.
func (l *listQuorum) List(ctx context.Context, a solana.Address, page rpc.Page) (List, error) {
	views, err := l.node.SignaturePageFromEach(ctx, a, page, rpc.Finalized)
	if err != nil {
		return List{}, err
	}
	b := pageVote{page: page}
	var refused error
	for i := range views {
		v := &views[i]
		switch {
		case v.Err == nil && len(views) > 1 && !plausibleList(v.List, page.MinSlot):
			l.disagreement = fmt.Errorf("%w: the list of node %s is not plausible", errContradicted, v.Upstream)
			err = l.disagreement
		case v.Err == nil:
			b.add(v.List)
			continue
		default:
			err = v.Err
		}
		if refused == nil {
			refused = err
		}
	}
	switch {
	case len(b.pages) == 0:
		return List{}, refused
	case b.unanimous():
		return listOf(b.pages[0].list, b.pages[0].full), nil
	}
	list, split, err := b.result()
	if split || err != nil {
		l.disagreement = fmt.Errorf("%w: about the list of transactions", errContradicted)
	}
	return list, err
}

// listOf returns a single node's list.
func listOf(entries []rpc.SignatureInfo, more bool) List {
	l := List{make([]Entry, len(entries)), more}
	for i := range entries {
		l.Entries[i].SignatureInfo = entries[i]
	}
	return l
}

// plausibleList reports whether a page can be a history: no duplicates, no zero
// signatures, from new to old, and not of the future.
func plausibleList(list []rpc.SignatureInfo, newest uint64) bool {
	seen := make(map[solana.Signature]struct{}, len(list)+1)
	seen[solana.Signature{}] = struct{}{}
	for i := range list {
		s := &list[i]
		_, twice := seen[s.Signature]
		if twice || i > 0 && s.Slot > list[i-1].Slot || newest > 0 && s.Slot > newest+maxSlotsAhead {
			return false
		}
		seen[s.Signature] = struct{}{}
	}
	return true
}

// pageVote joins the nodes' answers to one request.
type pageVote struct {
	page  rpc.Page
	pages []votedPage
}

// votedPage is a node's page, which covers the slots from low to top.
type votedPage struct {
	list     []rpc.SignatureInfo
	low, top uint64
	full     bool
}

// add adds a page, which is from new to old.
func (b *pageVote) add(list []rpc.SignatureInfo) {
	limit := b.page.Limit
	if limit == 0 {
		limit = rpc.MaxSignaturesPerCall
	}
	p := votedPage{list: list, top: math.MaxUint64, full: len(list) >= limit}
	n := len(list)
	if b.page.Before == (solana.Signature{}) {
		p.top = b.page.MinSlot // the node has reached that slot
		if n > 0 {
			p.top = max(p.top, list[0].Slot)
		}
	}
	switch {
	case p.full && list[n-1].Slot < list[0].Slot:
		p.low = list[n-1].Slot + 1 // the last slot may go on
	case p.full:
		p.low = list[0].Slot
	case b.page.Until != (solana.Signature{}):
		// It goes back to the requested transaction, which is too new to be deleted.
	case n > 0:
		p.low = list[n-1].Slot // older ones may be deleted
	default:
		p.low = math.MaxUint64
	}
	b.pages = append(b.pages, p)
}

// unanimous reports whether all pages are the same.
func (b *pageVote) unanimous() bool {
	same := func(x, y rpc.SignatureInfo) bool {
		x.Memo, y.Memo = "", "" // nodes may leave it out
		return x == y
	}
	for _, p := range b.pages[1:] {
		if !slices.EqualFunc(p.list, b.pages[0].list, same) {
			return false
		}
	}
	return true
}

// span returns the slots, from new to old, that more than half of the nodes cover without
// a gap, and whether most have more after them.
func (b *pageVote) span() (slots []uint64, more bool) {
	for i := range b.pages {
		for _, s := range b.pages[i].list {
			slots = append(slots, s.Slot)
		}
	}
	slices.Sort(slots)
	slices.Reverse(slots)
	slots = slices.Compact(slots)
	n := len(b.pages)
	covered := func(slot uint64) bool { return 2*b.covering(slot).count() > n }
	for len(slots) > 0 && !covered(slots[0]) {
		slots = slots[1:] // most have not reached it yet
	}
	last := uint64(math.MaxUint64)
	for i, slot := range slots {
		if !covered(slot) {
			slots = slots[:i]
			break
		}
		last = slot
	}
	longer := 0
	for i := range b.pages {
		if p := &b.pages[i]; p.full || len(p.list) > 0 && p.list[len(p.list)-1].Slot < last {
			longer++
		}
	}
	return slots, 2*longer > n
}

// entryKey identifies an entry to vote on.
type entryKey struct {
	signature solana.Signature
	slot      uint64
}

// nodeSet is a set of the vote's pages, by index.
type nodeSet uint16

var _ [16 - rpc.MaxUpstreams]struct{} // they fit

func (v nodeSet) count() int { return bits.OnesCount16(uint16(v)) }

// tally is the vote on an entry.
type tally struct {
	// listed are the nodes that list it; failed are those of them that list it as failed.
	listed, failed nodeSet
	times          []int64
}

// result returns the joined page, and whether the nodes disagree about it.
func (b *pageVote) result() (list List, split bool, err error) {
	slots, more := b.span()
	if len(slots) == 0 {
		slots = []uint64{math.MaxUint64} // no entry has that slot
	}
	bySlot := map[uint64][]Entry{}
	contested := 0
	for c, t := range b.count(slots[len(slots)-1], slots[0]) {
		n, denied := len(b.pages), (b.covering(c.slot) &^ t.listed).count()
		listed, failed := t.listed.count(), t.failed.count()
		split = split || denied > 0 || failed > 0 && failed < listed
		if 2*denied > n {
			continue
		}
		e := Entry{SignatureInfo: rpc.SignatureInfo{Signature: c.signature, Slot: c.slot, BlockTime: majorityTime(t.times), Failed: 2*failed > n}}
		if e.Contested = !e.Failed && 2*(listed-failed) <= n; e.Contested {
			contested++
		}
		bySlot[c.slot] = append(bySlot[c.slot], e)
	}
	for _, slot := range slots {
		if entries := bySlot[slot]; len(entries) > 0 {
			list.Entries = append(list.Entries, b.inOrder(entries)...)
		}
	}
	if list.More = more; more {
		n := len(list.Entries)
		for n > 0 && list.Entries[n-1].Contested {
			n-- // the next page begins at an uncontested entry
		}
		list.Entries = list.Entries[:n]
	}
	if contested > maxContested || more && len(list.Entries) == 0 {
		return List{}, true, fmt.Errorf("%w: about %d transactions of one page", errContradicted, contested)
	}
	return list, split, nil
}

// count counts the votes on the entries of the slots from low to top.
func (b *pageVote) count(low, top uint64) map[entryKey]*tally {
	tallies := map[entryKey]*tally{}
	for i := range b.pages {
		for _, s := range b.pages[i].list {
			if s.Slot < low || s.Slot > top {
				continue
			}
			c := entryKey{s.Signature, s.Slot}
			t := tallies[c]
			if t == nil {
				t = &tally{}
				tallies[c] = t
			}
			t.listed |= 1 << i
			if s.Failed {
				t.failed |= 1 << i
			}
			if s.BlockTime > 0 {
				t.times = append(t.times, s.BlockTime)
			}
		}
	}
	return tallies
}

// covering returns the nodes that cover a slot.
func (b *pageVote) covering(slot uint64) (set nodeSet) {
	for i := range b.pages {
		if p := &b.pages[i]; p.low <= slot && slot <= p.top {
			set |= 1 << i
		}
	}
	return set
}

// majorityTime returns the time that more than half have, 0 if there is none.
func majorityTime(times []int64) int64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	middle := times[len(times)/2] // a majority's time is at the middle
	votes := 0
	for _, t := range times {
		if t == middle {
			votes++
		}
	}
	if 2*votes > len(times) {
		return middle
	}
	return 0
}

// inOrder sorts a slot's entries, of which there is at least one. Of the nodes that list
// all of them, the most frequent order counts; among equals, or if no node lists all, the
// first node's. Nodes may differ honestly, because old ones sort a slot by signature.
// Contested entries come first, in an order of their own, so that a page does not end
// with one.
func (b *pageVote) inOrder(entries []Entry) (out []Entry) {
	for _, contested := range [...]bool{true, false} {
		some := map[solana.Signature]Entry{}
		for _, e := range entries {
			if e.Contested == contested {
				some[e.Signature] = e
			}
		}
		var orders [][]solana.Signature
		for i := range b.pages {
			var order []solana.Signature
			for _, s := range b.pages[i].list {
				if _, ok := some[s.Signature]; ok && s.Slot == entries[0].Slot {
					order = append(order, s.Signature)
				}
			}
			orders = append(orders, order)
		}
		for _, s := range majorityOrder(orders, len(some)) {
			out = append(out, some[s])
		}
	}
	return out
}

// majorityOrder returns the most frequent of the orders that contain all n entries, or
// all entries in the first order of their appearance if none does.
func majorityOrder(orders [][]solana.Signature, n int) (best []solana.Signature) {
	most := 0
	for _, o := range orders {
		alike := 0
		for _, p := range orders {
			if slices.Equal(o, p) {
				alike++
			}
		}
		if len(o) == n && alike > most {
			best, most = o, alike
		}
	}
	if most > 0 {
		return best
	}
	for _, o := range orders {
		for _, s := range o {
			if !slices.Contains(best, s) {
				best = append(best, s)
			}
		}
	}
	return best
}
