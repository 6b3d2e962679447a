package mirror

import (
	"cmp"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// flows are the gains and losses of both vaults.
type flows [sides]flow

func (f *flows) merge(o *flows) {
	for side := range f {
		f[side].merge(&o[side])
	}
}

// call is an instruction that names both vaults, or the transfers outside of any such
// instruction.
type call struct {
	flows
	instruction, inner uint16
	// joined is the number of calls that this one stands for.
	joined int
}

// splitter splits a transaction's balance changes into the movements of its calls. The
// balances say how much moved in total, the transfers say which call moved how much, and
// both must agree.
type splitter struct {
	confirmed *ledger.Confirmed
	// keys are the vaults' indexes among the transaction's keys, -1 if it does not name
	// one.
	keys     [sides]int
	balances [sides]Balance
	calls    []call
	// moved is the sum of all transfers so far. overdrawn: they moved more than the vault
	// had or can hold, which no token program allows.
	moved     flows
	overdrawn bool
	// openCalls are the calls that the current instruction may be part of, innermost
	// last.
	openCalls []openCall
	// directCall is the index of the call of transfers outside of any call; -1 while
	// there is none.
	directCall int
}

type openCall struct {
	call  int
	depth uint8
}

// Assumed depths if a node omits them: a call that names both vaults ends the one before,
// and a transfer belongs to the last such call.
const (
	outerDepth           = 1
	assumedCallDepth     = 2
	assumedTransferDepth = 255
)

// walk visits all instructions in the order of execution.
func (s *splitter) walk() {
	s.directCall = -1
	list := s.confirmed.Inner
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(list[a].Outer, list[b].Outer) })
	for i := range s.confirmed.Tx.Message.Instructions {
		s.visit(&s.confirmed.Tx.Message.Instructions[i], i, 0, outerDepth)
		for n := 1; len(order) > 0 && list[order[0]].Outer == i; n++ {
			// Data that was not decoded is empty, and makes the flow inexact.
			in := &list[order[0]]
			s.visit(&in.Instruction, i, n, in.Depth)
			order = order[1:]
		}
	}
}

// visit adds one instruction. depth 0 means unknown.
func (s *splitter) visit(in *tx.Instruction, outer, inner int, depth uint8) {
	program := s.confirmed.Program(in)
	transfers := solana.IsTokenProgram(program)
	switch {
	case depth != 0:
	case transfers:
		depth = assumedTransferDepth
	case s.namesVaults(in):
		depth = assumedCallDepth
	default:
		return // it may be part of the current call
	}
	for len(s.openCalls) > 0 && s.openCalls[len(s.openCalls)-1].depth >= depth {
		s.openCalls = s.openCalls[:len(s.openCalls)-1]
	}
	if transfers {
		// Only a transfer of a vault makes a call.
		var f flows
		f.addToken(program, in, s.keys)
		if f != (flows{}) {
			s.callAt(outer, inner).merge(&f)
			s.trackBalance(&f)
		}
		return
	}
	if !s.namesVaults(in) {
		return
	}
	s.openCalls = append(s.openCalls, openCall{len(s.calls), depth})
	s.calls = append(s.calls, call{instruction: uint16(outer), inner: uint16(inner), joined: 1})
}

// trackBalance checks that the vaults can have paid what they paid, as long as the flows
// are exact.
func (s *splitter) trackBalance(f *flows) {
	s.moved.merge(f)
	for side := range s.moved {
		m := &s.moved[side]
		held := market.Uint128{Lo: uint64(s.balances[side].Before)}
		addWide(&held, m.in)
		s.overdrawn = s.overdrawn || !m.inexact && (held.Cmp(m.out) < 0 || subtract(held, m.out).Hi != 0)
	}
}

// namesVaults reports whether an instruction names both vaults.
func (s *splitter) namesVaults(in *tx.Instruction) bool {
	var found [sides]bool
	for _, a := range in.Accounts {
		for side := range found {
			found[side] = found[side] || int(a) == s.keys[side]
		}
	}
	return found[baseSide] && found[quoteSide]
}

// callAt returns the flows of the call that a transfer is part of.
func (s *splitter) callAt(outer, inner int) *flows {
	if len(s.openCalls) > 0 {
		return &s.calls[s.openCalls[len(s.openCalls)-1].call].flows
	}
	if s.directCall < 0 {
		s.directCall = len(s.calls)
		s.calls = append(s.calls, call{instruction: uint16(outer), inner: uint16(inner), joined: 1})
	}
	return &s.calls[s.directCall].flows
}

// reconcile makes the calls' flows add up to the balances. A difference belongs to the
// one inexact call. Several inexact calls in the same direction are joined, because only
// their sum is exact.
func (s *splitter) reconcile() error {
	if s.overdrawn {
		return fmt.Errorf("%w: a vault paid more than it had", ErrUnbalanced)
	}
	for side := range s.balances {
		in, out := market.Uint128{Lo: uint64(s.balances[side].Before)}, market.Uint128{Lo: uint64(s.balances[side].After)}
		for i := range s.calls {
			addWide(&in, s.calls[i].flows[side].in)
			addWide(&out, s.calls[i].flows[side].out)
		}
		if in == out {
			continue
		}
		c := s.join(side)
		if c == nil {
			return fmt.Errorf("%w: %s in and %s out", ErrUnbalanced, in, out)
		}
		if in.Cmp(out) < 0 {
			addWide(&c.flows[side].in, subtract(out, in))
		} else {
			addWide(&c.flows[side].out, subtract(in, out))
		}
	}
	return nil
}

// join joins all calls that are inexact on a side and returns the result; nil if there is
// none, or if one gained what another lost.
func (s *splitter) join(side int) *call {
	var first *call
	var gained, lost [sides]bool
	for i := range s.calls {
		c := &s.calls[i]
		if !c.flows[side].inexact {
			continue
		}
		for k := range c.flows {
			order := c.flows[k].in.Cmp(c.flows[k].out)
			gained[k], lost[k] = gained[k] || order > 0, lost[k] || order < 0
		}
		if first == nil {
			first = c
			continue
		}
		first.merge(&c.flows)
		first.joined += c.joined
		c.flows, c.joined = flows{}, 0
	}
	if gained[baseSide] && lost[baseSide] || gained[quoteSide] && lost[quoteSide] {
		return nil
	}
	return first
}

// movements returns the effects of the calls, without those that had none.
func (s *splitter) movements() (list []Movement, err error) {
	for i := range s.calls {
		c := &s.calls[i]
		m := Movement{Key: MovementKey{s.confirmed.Signature(), c.instruction, c.inner}, Calls: c.joined}
		var ok1, ok2 bool
		m.Base, ok1 = c.flows[baseSide].delta()
		m.Quote, ok2 = c.flows[quoteSide].delta()
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%w: the sum is more than a vault can hold", ErrUnbalanced)
		}
		if m.Kind = kindOf(m.Base, m.Quote); m.Kind != 0 {
			list = append(list, m)
		}
	}
	return list, nil
}

func (p *VaultPair) decode(c *ledger.Confirmed, t *Trace) error {
	if err := p.Validate(); err != nil {
		return err
	}
	s := splitter{confirmed: c}
	for i, v := range []Vault{p.Base, p.Quote} {
		b, key, err := v.balance(c)
		if err != nil {
			return err
		}
		s.keys[i], s.balances[i] = key, b
	}
	t.Base, t.Quote = s.balances[baseSide], s.balances[quoteSide]
	if !t.Base.Named && !t.Quote.Named {
		return nil
	}
	s.walk()
	if err := s.reconcile(); err != nil {
		return err
	}
	var err error
	t.Movements, err = s.movements()
	return err
}

// Decode decodes a finalized transaction. A failed one, or one that does not touch the
// vaults, has no movements. If a node omits the calls of swaps that cancel out, the
// balances do not show it; only other nodes' answers do. Errors: [ErrVaults],
// [ErrOtherMint], [ErrNoBalance], [ErrUnbalanced]; then the trace still has signature,
// slot, time and payer.
func (p *VaultPair) Decode(c *ledger.Confirmed) (Trace, error) {
	t := Trace{Signature: c.Signature(), Slot: c.Slot, Time: c.BlockTime, Payer: c.Tx.Message.FeePayer()}
	if c.Failed {
		return t, nil
	}
	if err := p.decode(c, &t); err != nil {
		t.Base, t.Quote, t.Movements = Balance{}, Balance{}, nil
		return t, fmt.Errorf("transaction %s: %w", t.Signature, err)
	}
	return t, nil
}
