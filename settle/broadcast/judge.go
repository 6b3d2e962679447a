package broadcast

import (
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
	// mayBePruned: a node may have pruned it.
	mayBePruned bool
	// life is Options.BlockhashLife.
	life uint64
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

// mayHavePruned reports whether a node may have had it and pruned it.
func (x *examination) mayHavePruned(v *rpc.NodeStatuses) bool {
	switch {
	case !x.mayBePruned:
		return false
	case x.lastValidEstimated:
		return v.First > 1
	}
	// A slot's number is at least its block's height.
	return v.First+x.life+1 > x.lastValid
}

// verdict is the nodes' common answer about a transaction.
type verdict struct {
	is      verdictKind
	problem string     // of verdictWait
	status  rpc.Status // of verdictFinalized and verdictFailed
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

// judge compares the nodes' answers: invariants 2 and 3 of the package.
func (x *examination) judge(views []rpc.NodeStatuses, quorum int) verdict {
	answered, finals, failed, absent, forgotten := 0, 0, 0, 0, 0
	var final, failure rpc.Status
	landing, apart := false, false
	// denied is the newest slot as of which a node does not know it.
	denied := uint64(0)
	for i := range views {
		v := &views[i]
		if !x.answered(v) {
			continue
		}
		answered++
		var s rpc.Status
		if x.at >= 0 {
			s = v.Statuses[x.at]
		}
		switch {
		case s.Known && s.Level == rpc.Finalized && s.Failed:
			failed++
			failure = s
		case s.Known && s.Level == rpc.Finalized:
			apart = apart || finals > 0 && s.Slot != final.Slot
			finals++
			final = s
		case s.Known:
			landing = true
		case x.mayHavePruned(v):
			forgotten++
		default:
			denied = max(denied, v.Finalized.Slot)
			if x.lastValid > 0 && v.Finalized.Height > x.lastValid && (x.at < 0 || v.Slot >= v.Finalized.Slot) {
				absent++
			}
		}
	}
	switch {
	case finals > 0 && (failed > 0 || apart || denied >= final.Slot):
		return verdict{is: verdictWait, problem: ProblemNodesDisagree}
	case landing:
		return verdict{is: verdictWait, problem: ProblemLanding}
	case finals >= quorum && finals+forgotten == answered:
		return verdict{is: verdictFinalized, status: final}
	case finals > 0 && answered < quorum:
		return verdict{is: verdictWait, problem: ProblemNodesDown}
	case finals > 0 && finals+forgotten == answered:
		return verdict{is: verdictWait, problem: ProblemTooOld}
	case finals > 0:
		return verdict{is: verdictWait, problem: ProblemNodesBehind}
	case answered < quorum:
		return verdict{is: verdictWait, problem: ProblemNodesDown}
	case failed == answered:
		return verdict{is: verdictFailed, status: failure}
	case absent == answered:
		return verdict{is: verdictAbsent}
	case forgotten > 0:
		return verdict{is: verdictWait, problem: ProblemTooOld}
	default:
		return verdict{is: verdictWait, problem: ProblemNodesBehind}
	}
}
