package broadcast

import (
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// exam is one entry under examination as it was when the nodes were asked: it may
// be given its bytes meanwhile.
type examination struct {
	*entry
	signature        solana.Signature
	lastValid        uint64
	lastValidGuessed bool
	deskPaysFee      bool
	// at is the signature's place in the question, -1 without one.
	at int
	// old: a node may have had it and forgotten it.
	old bool
	// life is Options.BlockhashLife.
	life uint64
}

// answered returns whether a view tells anything of it.
func (x *examination) answered(v *rpc.NodeStatuses) bool {
	return v.Err == nil && x.at < len(v.Statuses)
}

// guess bounds the height of one whose blockhash is not known, by what the nodes
// tell of their newest blocks. Each look gives a bound, since the transaction is
// older than the look; so one that a node's lie has made too high is made good by
// a later one.
func (x *examination) guessLastValid(views []rpc.NodeStatuses, quorum int) {
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

// forgotten reports whether a node may have had it and not have it any more.
func (x *examination) mayHavePruned(v *rpc.NodeStatuses) bool {
	switch {
	case !x.old:
		return false
	case x.lastValidGuessed:
		return v.First > 1
	}
	// A slot's number is at least its block's height.
	return v.First+x.life+1 > x.lastValid
}

// verdict is what all views say of one transaction.
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
	// verdictAbsent: it is in no block, and never will be, under this signature.
	verdictAbsent verdictKind = 4
)

// judge compares what all nodes say: invariants 2 and 3 of the package.
func (x *examination) judge(views []rpc.NodeStatuses, quorum int) verdict {
	answered, finals, failed, absent, forgotten := 0, 0, 0, 0, 0
	var final, failure rpc.Status
	landing, apart := false, false
	// denied is the newest slot as of which one does not know it.
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
	case finals > 0 && finals+forgotten == answered:
		return verdict{is: verdictFinalized, status: final}
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
