package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"blockdesk/internal/runtest"
)

// The requests of a history's operations.
const (
	opAnswer = "answer" // a request under its own key: its first answer is its answer for ever
	opTake   = "take"   // a claim on a tranche, under an idempotency key
	opAmend  = "amend"  // an order's new quantity
	opCancel = "cancel" // an order's end
	opStatus = "status" // what an order is
)

// operation is what a client asked for, of an object: a request's own key, a tranche,
// an order.
type operation struct {
	kind, object string
	key          string // of a take
	amount       int64  // of a take, dollars; of an amend, the quantity
}

// outcome is the answer. The zero value is no answer: what it
// asked for has happened, will happen, or never will.
type outcome struct {
	known   bool
	answer  string // of an answer or a take; "" of a take: there was no room for it
	amount  int64  // of a status: the quantity, 0 = the order has ended
	refused bool   // an amend or a cancel was refused: the order had ended
}

// history is what clients of a group requested and were answered, with the times of both
// by this process's monotonic clock.
type history struct {
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

func newHistory() *history { return &history{began: time.Now()} }

// never is a time that no test sees: an operation without an answer is under way
// until then.
const never = int64(1) << 62

// call notes a request that is about to be sent. The function that it returns
// notes the answer; if it is not called, there was none.
func (h *history) call(client int, in operation) (answered func(outcome)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.ops)
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: outcome{}, Call: int64(time.Since(h.began)), Return: never})
	return func(out outcome) {
		h.mu.Lock()
		defer h.mu.Unlock()
		out.known = true
		h.ops[i].Output, h.ops[i].Return = out, int64(time.Since(h.began))
	}
}

// take empties the history and returns what was in it.
func (h *history) take() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	ops := h.ops
	h.ops = nil
	return ops
}

// byObject cuts a history into those of single objects, which are linearizable if
// and only if all of it is.
func byObject(ops []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, o := range ops {
		of := o.Input.(operation).object
		parts[of] = append(parts[of], o)
	}
	out := make([][]porcupine.Operation, 0, len(parts))
	for _, part := range parts {
		out = append(out, part)
	}
	return out
}

// changesNothing reports whether an operation without an answer allows every history: in
// hundreds, they only cost the checker its time.
func changesNothing(o porcupine.Operation) bool {
	kind := o.Input.(operation).kind
	return !o.Output.(outcome).known && (kind == opAnswer || kind == opStatus)
}

// linearizable returns an error that names the first history in which no order of
// the operations explains the answers. capacity is that of each tranche.
func linearizable(ops []porcupine.Operation, capacity int64) error {
	for _, part := range byObject(ops) {
		part = slices.DeleteFunc(part, changesNothing)
		if len(part) == 0 {
			continue
		}
		model := answerModel()
		switch part[0].Input.(operation).kind {
		case opTake:
			model = trancheModel(capacity)
		case opAmend, opCancel, opStatus:
			model = orderModel()
		}
		switch result := porcupine.CheckOperationsTimeout(model, part, runtest.HangTimeout); result {
		case porcupine.Ok:
		default:
			return fmt.Errorf("%s: the history of %d operations is %s:\n%s", part[0].Input.(operation).object, len(part), result, transcript(part))
		}
	}
	return nil
}

// transcript prints a history for people, the most of it.
func transcript(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	text := ""
	for _, o := range ops[:min(len(ops), 100)] {
		until := "never"
		if o.Return != never {
			until = time.Duration(o.Return).String()
		}
		text += fmt.Sprintf("  client %d, %v to %s: %+v -> %+v\n", o.ClientId, time.Duration(o.Call), until, o.Input, o.Output)
	}
	return text
}

// answerModel is of a request under a key of its own, sent once or many times: the
// first answer is every answer.
func answerModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, _, output any) (bool, any) {
			out := output.(outcome)
			switch first := state.(string); {
			case !out.known:
				return true, first
			case first == "":
				return true, out.answer
			default:
				return out.answer == first, first
			}
		},
	}
}

// trancheState is what is left of a tranche, and the claims on it. Claims are
// in the order of their keys, so that equal states are equal values.
type trancheState struct {
	left   int64
	claims string // "key=id;", id "?" while it was not published
}

// trancheModel is of claims on one tranche: there is never more reserved than there
// is, and an idempotency key has one claim.
func trancheModel(capacity int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{trancheState{left: capacity}} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(trancheState), input.(operation), output.(outcome)
			id, has := claimOf(s.claims, in.key)
			switch {
			case has && (!out.known || out.answer == id):
				return []any{s}
			case has && id == unknownClaim && out.answer != "":
				return []any{trancheState{s.left, withClaim(s.claims, in.key, out.answer)}}
			case has:
				return nil
			case !out.known && s.left >= in.amount:
				return []any{s, trancheState{s.left - in.amount, withClaim(s.claims, in.key, unknownClaim)}}
			case !out.known:
				return []any{s}
			case out.answer == "":
				return only(s, s.left < in.amount)
			default:
				return only(trancheState{s.left - in.amount, withClaim(s.claims, in.key, out.answer)}, s.left >= in.amount)
			}
		},
	}
	return m.ToModel()
}

const unknownClaim = "?"

func only(s any, ok bool) []any {
	if !ok {
		return nil
	}
	return []any{s}
}

// claims reads what trancheState.claims has.
func claims(text string) (keys, ids []string) {
	for len(text) > 0 {
		var key, id string
		key, text = cutAt(text, '=')
		id, text = cutAt(text, ';')
		keys, ids = append(keys, key), append(ids, id)
	}
	return keys, ids
}

func cutAt(text string, end byte) (before, after string) {
	for i := range len(text) {
		if text[i] == end {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func claimOf(text, key string) (id string, ok bool) {
	keys, ids := claims(text)
	if i := slices.Index(keys, key); i >= 0 {
		return ids[i], true
	}
	return "", false
}

func withClaim(text, key, id string) string {
	keys, ids := claims(text)
	i, found := slices.BinarySearch(keys, key)
	if found {
		ids[i] = id
	} else {
		keys, ids = slices.Insert(keys, i, key), slices.Insert(ids, i, id)
	}
	out := ""
	for i := range keys {
		out += keys[i] + "=" + ids[i] + ";"
	}
	return out
}

// firstQty is the quantity that the orders of a history are placed with.
const firstQty = 1000

// orderModel is of one resting order that is amended and cancelled: a register of
// its quantity, 0 once it has ended.
func orderModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{int64(firstQty)} },
		Step: func(state, input, output any) []any {
			qty, in, out := state.(int64), input.(operation), output.(outcome)
			next := in.amount // 0 of a cancel
			switch {
			case in.kind == opStatus:
				return only(qty, !out.known || out.amount == qty)
			case !out.known && qty > 0:
				return []any{qty, next}
			case !out.known:
				return []any{qty}
			case out.refused:
				return only(qty, qty == 0)
			default:
				return only(next, qty > 0)
			}
		},
	}
	return m.ToModel()
}

// A checker must be able to fail: each history here has a fault planted in it, or
// is right although it does not look so.
func TestClusterHistories(t *testing.T) {
	t.Parallel()
	type step struct {
		call, back int64 // 0 = no answer
		in         operation
		out        outcome
	}
	take := func(call, back int64, key, id string) step {
		return step{call, back, operation{kind: opTake, object: "T1-1", key: key, amount: 250}, outcome{known: back > 0, answer: id}}
	}
	order := func(call, back int64, kind string, amount int64, out outcome) step {
		out.known = back > 0
		return step{call, back, operation{kind: kind, object: "order", amount: amount}, out}
	}
	answer := func(call, back int64, text string) step {
		return step{call, back, operation{kind: opAnswer, object: "a"}, outcome{known: back > 0, answer: text}}
	}
	for name, c := range map[string]struct {
		right bool
		steps []step
	}{
		"claims until there is no room": {true, []step{
			take(1, 2, "a", "C1"), take(1, 3, "b", "C2"), take(4, 5, "c", ""), take(6, 7, "a", "C1"),
		}},
		"an unknown outcome that happened": {true, []step{take(1, 0, "a", ""), take(3, 4, "b", "C2"), take(5, 6, "c", ""), take(7, 8, "a", "C1")}},
		"one that did not":                 {true, []step{take(1, 0, "a", ""), take(3, 4, "b", "C2"), take(5, 6, "c", "C3")}},
		"one that happens later":           {true, []step{take(1, 0, "a", ""), take(3, 4, "b", "C2"), take(5, 6, "a", "C1"), take(7, 8, "c", "")}},
		"more is sold than there is":       {false, []step{take(1, 2, "a", "C1"), take(1, 2, "b", "C2"), take(1, 2, "c", "C3")}},
		"an acknowledged claim is lost":    {false, []step{take(1, 2, "a", "C1"), take(3, 4, "b", "C2"), take(5, 6, "c", "C3"), take(7, 8, "a", "")}},
		"a claim is made twice":            {false, []step{take(1, 2, "a", "C1"), take(3, 4, "a", "C2")}},
		"it is made twice, one unseen":     {false, []step{take(1, 0, "a", ""), take(3, 4, "a", "C1"), take(5, 6, "b", "")}},
		"a stale refusal":                  {false, []step{take(1, 2, "b", ""), take(3, 4, "a", "C1")}},
		"a stale leader sells again":       {false, []step{take(1, 2, "a", "C1"), take(3, 4, "b", "C2"), take(5, 6, "c", "C1")}},
		"amends, then the end": {true, []step{
			order(1, 2, opAmend, 7, outcome{}), order(3, 4, opStatus, 0, outcome{amount: 7}), order(5, 9, opAmend, 8, outcome{refused: true}),
			order(5, 8, opCancel, 0, outcome{}), order(10, 11, opStatus, 0, outcome{}),
		}},
		"an amend of an unknown outcome": {true, []step{order(1, 0, opAmend, 7, outcome{}), order(3, 4, opStatus, 0, outcome{amount: firstQty}), order(5, 6, opStatus, 0, outcome{amount: 7})}},
		"an acknowledged amend is lost":  {false, []step{order(1, 2, opAmend, 7, outcome{}), order(3, 4, opStatus, 0, outcome{amount: firstQty})}},
		"a stale read":                   {false, []step{order(1, 2, opAmend, 7, outcome{}), order(3, 4, opAmend, 8, outcome{}), order(5, 6, opStatus, 0, outcome{amount: 7})}},
		"an amend happens twice": {false, []step{
			order(1, 0, opAmend, 7, outcome{}), order(2, 3, opStatus, 0, outcome{amount: 7}), order(4, 5, opAmend, 8, outcome{}), order(6, 7, opStatus, 0, outcome{amount: 7}),
		}},
		"an order lives after its end": {false, []step{order(1, 2, opCancel, 0, outcome{}), order(3, 4, opAmend, 7, outcome{})}},
		"the first answer again":       {true, []step{answer(1, 0, ""), answer(3, 4, "x"), answer(5, 6, "x")}},
		"another answer":               {false, []step{answer(1, 2, "x"), answer(3, 4, "y")}},
	} {
		var ops []porcupine.Operation
		for i, s := range c.steps {
			if s.back == 0 {
				s.back = never
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: s.in, Output: s.out, Call: s.call, Return: s.back})
		}
		const capacity = 500
		if err := linearizable(ops, capacity); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}
