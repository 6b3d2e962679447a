package broadcast

import (
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// examination is an entry as it was when the nodes were asked. The entry may get its
// bytes meanwhile.
type examination struct {
	*entry
	signature          solana.Signature
	lastValid          uint64
	lastValidEstimated bool
	deskPaysFee        bool
	// at is the signature's index in the question, -1 without one.
	at int
	// madeAt is entry.madeAt, and life is Options.BlockhashLife.
	madeAt int64
	life   uint64
}

func (x *examination) answered(v *rpc.NodeStatuses) bool {
	return v.Err == nil && x.at < len(v.Statuses)
}

// estimateLastValid bounds the last valid height of a transaction whose blockhash is
// unknown by the nodes' newest blocks: the transaction is older than the question.
// Each examination gives a bound and the lowest counts, which corrects a node that
// lies.
func (x *examination) estimateLastValid(views []rpc.NodeStatuses, quorum int) {
	answered, tip := 0, uint64(0)
	for i := range views {
		if v := &views[i]; x.answered(v) {
			answered++
			tip = max(tip, v.Tip)
		}
	}
	if bound := tip + x.life + tipMargin; answered >= quorum && bound > tip && (x.lastValid == 0 || bound < x.lastValid) {
		x.lastValid = bound
	}
}

// covers reports whether a node with such a first block has every block in which the
// transaction can be. A node that does not, because it prunes its history or was begun from
// a snapshot, cannot say that the transaction is in none. If the height is unknown the time
// decides.
func (x *examination) covers(first *rpc.FirstBlock) bool {
	if x.lastValidEstimated {
		return first.All() || x.madeAt != 0 && first.HasSince(time.Unix(0, x.madeAt).Add(-clockMargin).Unix())
	}
	return first.HasLife(x.lastValid, x.life)
}

// verdict is the nodes' common answer about a transaction.
type verdict struct {
	is      verdictKind
	problem string     // of verdictWait
	status  rpc.Status // of verdictFinalized and verdictFailed
	// past: enough nodes have a finalized block above the transaction's last one.
	past bool
}

type verdictKind uint8

const (
	verdictWait      verdictKind = 1
	verdictFinalized verdictKind = 2
	verdictFailed    verdictKind = 3
	// verdictAbsent: the transaction is in no block under this signature, and never
	// will be.
	verdictAbsent verdictKind = 4
)

// tally counts the answers of the nodes about one transaction.
type tally struct {
	answered, failed, absent int
	// finals are those that have it as final and not failed, by its slot.
	finals map[uint64]int
	// final and failure are the status of one of them.
	final, failure rpc.Status
	// landing: one has it in a block that is not final.
	landing bool
	// pruned do not have it, and may have had it.
	pruned int
	// past have a finalized block above its last one.
	past int
	// denied is the newest slot as of which a node that has all of its blocks does not know
	// it.
	denied uint64
}

func (x *examination) count(views []rpc.NodeStatuses) tally {
	c := tally{finals: map[uint64]int{}}
	for i := range views {
		v := &views[i]
		if !x.answered(v) {
			continue
		}
		c.answered++
		past := x.lastValid > 0 && v.Finalized.Height > x.lastValid
		if past {
			c.past++
		}
		var s rpc.Status
		if x.at >= 0 {
			s = v.Statuses[x.at]
		}
		switch {
		case s.Known && s.Level == rpc.Finalized && s.Failed:
			c.failed++
			c.failure = s
		case s.Known && s.Level == rpc.Finalized:
			c.finals[s.Slot]++
			if c.finals[s.Slot] > c.finals[c.final.Slot] || len(c.finals) == 1 {
				c.final = s
			}
		case s.Known:
			c.landing = true
		case !x.covers(&v.First):
			c.pruned++
		default:
			c.denied = max(c.denied, v.Finalized.Slot)
			if past && (x.at < 0 || v.Slot >= v.Finalized.Slot) {
				c.absent++
			}
		}
	}
	return c
}

// judge compares the nodes' answers: invariants 2 and 3 of the package.
func (x *examination) judge(views []rpc.NodeStatuses, quorum int) verdict {
	c := x.count(views)
	v := c.verdict(quorum)
	v.past = c.past >= quorum
	return v
}

func (c *tally) verdict(quorum int) verdict {
	finals := c.finals[c.final.Slot]
	wait := func(problem string) verdict { return verdict{is: verdictWait, problem: problem} }
	switch {
	case finals >= quorum && c.failed < quorum && !c.finalsApart(quorum):
		return verdict{is: verdictFinalized, status: c.final}
	case finals > 0 && (c.failed > 0 || len(c.finals) > 1 || c.denied >= c.final.Slot):
		return wait(ProblemNodesDisagree)
	case c.landing:
		return wait(ProblemLanding)
	case c.answered < quorum:
		return wait(ProblemNodesDown)
	case finals > 0 && finals+c.pruned == c.answered:
		return wait(ProblemTooOld)
	case finals > 0:
		return wait(ProblemNodesBehind)
	case c.failed >= quorum && c.failed+c.pruned == c.answered:
		return verdict{is: verdictFailed, status: c.failure}
	case c.absent >= quorum && c.absent+c.pruned == c.answered:
		return verdict{is: verdictAbsent}
	case c.answered-c.pruned < quorum:
		return wait(ProblemTooOld)
	default:
		return wait(ProblemNodesBehind)
	}
}

// finalsApart reports whether enough nodes have it in another slot too, which can be only
// with a quorum of less than a majority.
func (c *tally) finalsApart(quorum int) bool {
	for slot, n := range c.finals {
		if slot != c.final.Slot && n >= quorum {
			return true
		}
	}
	return false
}
