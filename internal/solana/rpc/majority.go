package rpc

import (
	"cmp"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
)

// nodeTransaction is one node's answer about a transaction; nil: the node does not know
// it.
type nodeTransaction struct {
	*ledger.Confirmed
	err error
}

// hasMajority reports whether more than half of all nodes agree.
func hasMajority(list []nodeTransaction) bool {
	for i := range list {
		alike := 0
		for j := range list {
			if list[i].same(&list[j]) {
				alike++
			}
		}
		if 2*alike > len(list) {
			return true
		}
	}
	return false
}

// same reports whether two nodes know the transaction and agree about it.
func (s *nodeTransaction) same(o *nodeTransaction) bool {
	return s.Confirmed != nil && o.Confirmed != nil && s.Difference(o.Confirmed) == ""
}

// byMajority returns the transaction that a majority agrees about.
func byMajority(s solana.Signature, list []nodeTransaction) (t *ledger.Confirmed, found bool, err error) {
	answers, known := 0, 0
	for i := range list {
		if list[i].err == nil {
			answers++
		}
		if list[i].Confirmed != nil {
			known++
		}
	}
	if answers == 0 {
		return nil, false, list[0].err
	}
	for i := range list {
		if t = list[i].Confirmed; t == nil {
			continue
		}
		alike := 0
		for j := range list {
			if !list[i].same(&list[j]) {
				continue
			}
			if alike++; t.BlockTime == 0 {
				t.BlockTime = list[j].BlockTime
			}
		}
		if 2*alike > answers {
			return t, true, nil
		}
	}
	switch known {
	case 0:
		return nil, false, nil
	case answers:
		return nil, false, fmt.Errorf("%w about %s", ErrDisagree, s)
	default:
		return nil, false, fmt.Errorf("%w: %s", ErrNoMajority, s)
	}
}

// majorityOf returns the transaction that more than half of all nodes know and agree
// about, with its block time if as many report the same, else 0.
func majorityOf(list []nodeTransaction) (t ledger.Confirmed, ok bool) {
	majority := len(list)/2 + 1
	for i := range list {
		if list[i].Confirmed == nil {
			continue
		}
		alike := 0
		for j := range list {
			if list[i].same(&list[j]) {
				alike++
			}
		}
		if alike >= majority {
			t, ok = *list[i].Confirmed, true
			t.BlockTime = commonTime(list, i, majority)
		}
		if ok && t.BlockTime != 0 {
			break
		}
	}
	return t, ok
}

// commonTime returns the block time that at least majority nodes report, of those that
// agree with node i; 0 if there is none.
func commonTime(list []nodeTransaction, i, majority int) int64 {
	for j := range list {
		if !list[i].same(&list[j]) || list[j].BlockTime == 0 {
			continue
		}
		votes := 0
		for k := range list {
			if list[i].same(&list[k]) && list[k].BlockTime == list[j].BlockTime {
				votes++
			}
		}
		if votes >= majority {
			return list[j].BlockTime
		}
	}
	return 0
}

// isDecided reports whether no further answer can change what a majority reports.
func isDecided(list []nodeTransaction) bool {
	t, ok := majorityOf(list)
	return ok && t.BlockTime != 0
}

// agreed returns what the configured nodes report together: see
// [Client.TransactionByQuorum].
func agreed(s solana.Signature, list []nodeTransaction) (*ledger.Confirmed, bool, error) {
	if t, ok := majorityOf(list); ok {
		return &t, true, nil
	}
	known, unknown := 0, 0
	var failure error
	for i := range list {
		switch {
		case list[i].Confirmed != nil:
			known++
		case list[i].err == nil:
			unknown++
		case failure == nil:
			failure = list[i].err
		}
	}
	switch {
	case known == 0 && unknown == 0:
		return nil, false, failure
	case known == 0:
		return nil, false, nil
	case unknown == 0 && differenceIn(list) != "":
		return nil, false, fmt.Errorf("%w about the %s of %s", ErrDisagree, differenceIn(list), s)
	case failure != nil:
		return nil, false, fmt.Errorf("%w: %d of %d have %s: %w", ErrNoMajority, known, len(list), s, failure)
	default:
		return nil, false, fmt.Errorf("%w: %d of %d have %s", ErrNoMajority, known, len(list), s)
	}
}

// differenceIn names the first difference between nodes that know the transaction, ""
// if there is none.
func differenceIn(list []nodeTransaction) string {
	for i := range list {
		for j := range i {
			if list[i].Confirmed != nil && list[j].Confirmed != nil {
				if what := list[j].Difference(list[i].Confirmed); what != "" {
					return what
				}
			}
		}
	}
	return ""
}

// maxHeightSpread bounds how far apart the heights are that nodes report at one time, in
// blocks (our choice). A node that reports a greater one cannot keep a transaction from
// expiring.
const maxHeightSpread = 64

// blockhashVote is one node's answer about an offered blockhash.
type blockhashVote struct {
	err   error
	valid contextual[bool]
	// newest is the node's own blockhash. It was asked for after valid, so its last valid
	// height is no less than that of a valid offer.
	newest Blockhash
}

// commonHeight returns a last valid height of the offered blockhash that is no lower than
// the true one: the greatest of those of a majority of all nodes, each of which has the
// blockhash in a block. At least one of them is honest, so it is no lower; and because they
// are close together, it is hardly greater. ok is false if there is no such majority.
func commonHeight(votes []blockhashVote) (height uint64, ok bool) {
	var heights []uint64
	for i := range votes {
		if v := &votes[i]; v.err == nil && v.valid.Value {
			heights = append(heights, v.newest.LastValidBlockHeight)
		}
	}
	slices.Sort(heights)
	majority := len(votes)/2 + 1
	for i := 0; i+majority <= len(heights); i++ {
		if top := heights[i+majority-1]; top-heights[i] <= maxHeightSpread {
			return top, true
		}
	}
	return 0, false
}

// nextOffer returns the newest blockhash of one of the nodes that answer, in turn; false if
// none does.
func nextOffer(votes []blockhashVote, rotation int) (Blockhash, bool) {
	var list []Blockhash
	for i := range votes {
		if votes[i].err == nil && votes[i].newest.Hash != (solana.Hash{}) {
			list = append(list, votes[i].newest)
		}
	}
	if len(list) == 0 {
		return Blockhash{}, false
	}
	slices.SortStableFunc(list, func(a, b Blockhash) int { return cmp.Compare(a.LastValidBlockHeight, b.LastValidBlockHeight) })
	return list[rotation%len(list)], true
}
