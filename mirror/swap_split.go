package mirror

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// flows are what both vaults gained and lost.
type flows [sides]flow

func (f *flows) merge(o *flows) {
	for side := range f {
		f[side].merge(o[side])
	}
}

// call is an instruction that names both vaults, or the transfers that no such
// instruction made.
type call struct {
	flows
	instruction, inner uint16
	// parent is the number of the call that this one was made by, -1 if none.
	parent int
}

// split tells the movements of one transaction apart. Balances say what moved in
// all; which call moved how much is told by the transfers that it made, and both
// must agree.
type split struct {
	confirmed *ledger.Confirmed
	// keys are the vaults' numbers among the transaction's keys, -1 for one that
	// it does not name.
	keys     [sides]int
	balances [sides]Balance
	calls    []call
	// open are the calls that the instruction in hand may be part of, the
	// innermost last.
	open []opened
	// direct is the number of the call that transfers outside of any are of, -1
	// while there is none.
	direct int
}

type opened struct {
	call  int
	depth uint8
}

// The depths of what a node does not tell the depth of: a call that names both
// vaults ends the one before it, and a transfer belongs to the last such call.
const (
	outerDepth     = 1
	untoldCall     = 2
	untoldTransfer = 255
)

// walk visits all instructions in the order of their execution.
func (s *split) walk() {
	s.direct = -1
	list := s.confirmed.Inner
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a].Outer, list[b].Outer) })
	for i := range s.confirmed.Tx.Message.Instructions {
		s.visit(&s.confirmed.Tx.Message.Instructions[i], i, 0, outerDepth)
		for n := 1; len(order) > 0 && list[order[0]].Outer == i; n++ {
			// Data that was not decoded is none: it leaves a doubt.
			in := &list[order[0]]
			s.visit(&in.Instruction, i, n, in.Depth)
			order = order[1:]
		}
	}
}

// visit takes one instruction into account. depth 0 is not told.
func (s *split) visit(in *tx.Instruction, outer, inner int, depth uint8) {
	program := s.confirmed.Program(in)
	transfers := solana.IsTokenProgram(program)
	switch {
	case depth != 0:
	case transfers:
		depth = untoldTransfer
	case s.names(in):
		depth = untoldCall
	default:
		return // it may be part of the call in hand
	}
	for len(s.open) > 0 && s.open[len(s.open)-1].depth >= depth {
		s.open = s.open[:len(s.open)-1]
	}
	if transfers {
		// An instruction that is no transfer of the vaults makes no call.
		var f flows
		f.tokens(program, in, s.keys)
		if f != (flows{}) {
			s.at(outer, inner).merge(&f)
		}
		return
	}
	if !s.names(in) {
		return
	}
	parent := -1
	if len(s.open) > 0 {
		parent = s.open[len(s.open)-1].call
	}
	s.open = append(s.open, opened{len(s.calls), depth})
	s.calls = append(s.calls, call{instruction: uint16(outer), inner: uint16(inner), parent: parent})
}

// names reports whether an instruction names both vaults.
func (s *split) names(in *tx.Instruction) bool {
	var found [sides]bool
	for _, a := range in.Accounts {
		for side := range found {
			found[side] = found[side] || int(a) == s.keys[side]
		}
	}
	return found[baseSide] && found[quoteSide]
}

// at returns the call that a transfer at some place is part of.
func (s *split) at(outer, inner int) *flows {
	if len(s.open) > 0 {
		return &s.calls[s.open[len(s.open)-1].call].flows
	}
	if s.direct < 0 {
		s.direct = len(s.calls)
		s.calls = append(s.calls, call{instruction: uint16(outer), inner: uint16(inner), parent: -1})
	}
	return &s.calls[s.direct].flows
}

// fold gives what a call did to one vault alone to the call that made it: a pool
// that lends out and is paid back by a call of its own makes one swap. What is
// one-sided still is one movement: some pools are paid before they are called.
func (s *split) fold() {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if c := &s.calls[i]; c.parent >= 0 && c.oneSided() {
			s.calls[c.parent].merge(&c.flows)
			c.flows = flows{}
		}
	}
	first := -1
	for i := range s.calls {
		switch c := &s.calls[i]; {
		case !c.oneSided():
		case first < 0:
			first = i
		default:
			s.calls[first].merge(&c.flows)
			c.flows = flows{}
		}
	}
}

// oneSided reports whether one vault alone moved.
func (f *flows) oneSided() bool { return f[baseSide].moved() != f[quoteSide].moved() }

// reconcile makes the calls' flows add up to the balances. A difference is the
// one inexact call's.
func (s *split) reconcile() error {
	for side := range s.balances {
		in, out, inexact := uint64(s.balances[side].Before), uint64(s.balances[side].After), -1
		several, overflow := false, false
		for i := range s.calls {
			f := &s.calls[i].flows[side]
			overflow = add(&in, f.in) || add(&out, f.out) || f.overflow || overflow
			if f.inexact {
				several, inexact = inexact >= 0, i
			}
		}
		switch {
		case overflow:
			return fmt.Errorf("%w: more than any mint has", ErrUnsplit)
		case in == out:
			continue
		case inexact < 0 || several:
			return fmt.Errorf("%w: %d in and %d out", ErrUnsplit, in, out)
		case in < out:
			s.calls[inexact].flows[side].gain(out - in)
		default:
			s.calls[inexact].flows[side].lose(in - out)
		}
		if s.calls[inexact].flows[side].overflow {
			return fmt.Errorf("%w: more than any mint has", ErrUnsplit)
		}
	}
	return nil
}

// delta returns what came and went on balance.
func (f *flow) delta() Delta {
	less, out := bits.Sub64(f.in, f.out, 0)
	if out == 1 {
		return Delta{market.Amount(f.out - f.in), true}
	}
	return Delta{market.Amount(less), false}
}

// movements returns what each call did, without those that did nothing.
func (s *split) movements() (list []Movement) {
	for i := range s.calls {
		c := &s.calls[i]
		m := Movement{
			Key:  MovementKey{s.confirmed.Signature(), c.instruction, c.inner},
			Base: c.flows[baseSide].delta(), Quote: c.flows[quoteSide].delta(),
		}
		if m.Kind = kindOf(m.Base, m.Quote); m.Kind != 0 {
			list = append(list, m)
		}
	}
	return list
}
