package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// MaxNote is the longest note about money, in bytes (our choice).
const MaxNote = 500

// Money serves /desk/money: the money that needs an operator. Implementations are safe for
// concurrent use.
type Money interface {
	// Money lists at most limit items of a kind after a cursor, in cursor order.
	Money(kind desk.MoneyKind, after desk.MoneyCursor, limit int) ([]desk.MoneyItem, error)
	// MoneyCounts counts the items of each kind. It must not block.
	MoneyCounts() desk.MoneyCounts
	// Refunded records that the transaction refund paid a payment back. Result.Payment is
	// the payment.
	Refunded(by desk.OperatorRequest, payment, refund [64]byte) (*desk.Result, error)
	// Abandon gives up a paid claim that can never be delivered, so that a refund is due.
	// Result.Claim is the claim.
	Abandon(by desk.OperatorRequest, claim market.ClaimID) (*desk.Result, error)
	// Release ends a transaction with an unknown outcome, after an operator has verified
	// that it is not on the chain: an atomic claim is released, the delivery of a paid
	// claim expires. Result.Claim is the claim. Error: desk.ErrOutcomeKnown.
	Release(ctx context.Context, by desk.OperatorRequest, claim market.ClaimID) (*desk.Result, error)
	// ResolveUnmatched records what an operator has done about an unmatched payment. The first
	// note stands. Error: desk.ErrNotUnmatched.
	ResolveUnmatched(by desk.OperatorRequest, payment [64]byte, note string) error
	// Refund orders that payments be paid back. An order outlasts a restart; Money follows it
	// to its end. Error: desk.ErrNoRefundDue.
	Refund(by desk.OperatorRequest, s *desk.RefundSelection) (desk.RefundsOrdered, error)
}

// moneyKinds are the lists by urgency.
var moneyKinds = []struct {
	kind desk.MoneyKind
	name string
}{{desk.MoneyDeliveryFailing, "stuck_deliveries"}, {desk.MoneyOutcomeUnknown, "doubtful"}, {desk.MoneyRefundDue, "refunds_due"}, {desk.MoneyRefunding, "refunding"}, {desk.MoneyUnmatched, "strays"}, {desk.MoneyRefunded, "refunded"}}

// moneyAnswer is GET /desk/money: all lists from their beginning, or the list that the
// query names.
type moneyAnswer struct {
	OK     bool                  `json:"ok"`
	Counts moneyCountsJSON       `json:"counts"`
	Lists  map[string]*moneyList `json:"lists"`
}

type moneyCountsJSON struct {
	Stuck    int `json:"stuck_deliveries"`
	Doubtful int `json:"doubtful"`
	Refunds  int `json:"refunds_due"`
	Strays   int `json:"strays"`
	// Refunding are refunds that are not final; Ordered are those to be made.
	Refunding int `json:"refunding"`
	Ordered   int `json:"refunds_ordered"`
	// Counted, and not listed one by one.
	Dropped uint64 `json:"strays_dropped"`
	Dust    uint64 `json:"dust"`
	Foreign uint64 `json:"worthless_tokens"`
}

func countsOf(n desk.MoneyCounts) moneyCountsJSON {
	return moneyCountsJSON{
		Stuck: n.DeliveriesFailing, Refunds: n.RefundsDue, Strays: n.Unmatched, Doubtful: n.OutcomesUnknown,
		Refunding: n.Refunding, Ordered: n.Ordered, Dropped: n.Dropped, Dust: n.Dust, Foreign: n.Foreign,
	}
}

type moneyList struct {
	Items []moneyJSON `json:"items"`
	Next  *string     `json:"next"` // value of after for the next page; null = end
}

// moneyJSON is an item in JSON; a value that it does not have is null.
type moneyJSON struct {
	Signature *string      `json:"l1_signature"`
	Claim     *string      `json:"claim_id"`
	Reason    *string      `json:"reason"`
	Rail      *string      `json:"rail"`
	Amount    *wire.Units  `json:"amount"` // null: not an asset of a rail
	Atoms     string       `json:"amount_atoms"`
	Payer     wire.Address `json:"payer"`
	Slot      *uint64      `json:"slot"`
	At        wire.Time    `json:"at"`
	Attempts  int          `json:"attempts"`
	Delivery  *string      `json:"delivery_signature"`
	Refund    *string      `json:"refund_signature"`
	OrderedBy *string      `json:"refund_ordered_by"`
	Problem   *string      `json:"refund_problem"` // why an ordered refund waits
}

// moneyEndpoints are the operators' endpoints of Money.
type moneyEndpoints struct {
	money Money
	log   commandLog
}

// moneyQuery has the parameters of a list.
type moneyQuery struct {
	kind  desk.MoneyKind // 0 = all
	after desk.MoneyCursor
	limit int
}

// parseMoneyQuery parses kind, after and limit, each at most once.
func parseMoneyQuery(r *http.Request) (q moneyQuery, problem *wire.Problem) {
	values := r.URL.Query()
	if problem := checkOnce(values, "kind", "after", "limit"); problem != nil {
		return q, problem
	}
	if text := values.Get("kind"); text != "" {
		for _, k := range moneyKinds {
			if k.name == text {
				q.kind = k.kind
			}
		}
		if q.kind == 0 {
			return q, invalidOperatorField("kind", "must be stuck_deliveries, doubtful, refunds_due, refunding, strays or refunded")
		}
	}
	if text := values.Get("after"); text != "" {
		ok := false
		switch q.kind {
		case desk.MoneyDeliveryFailing, desk.MoneyOutcomeUnknown:
			q.after.Claim, ok = market.ParseClaimID([]byte(text))
		case desk.MoneyRefundDue, desk.MoneyRefunding, desk.MoneyRefunded, desk.MoneyUnmatched:
			q.after.Signature, ok = wire.ParseSignature([]byte(text))
		}
		if !ok {
			return q, invalidOperatorField("after", "must be the member next of an answer of the same kind")
		}
	}
	q.limit, problem = parseListLimit(values)
	return q, problem
}

// listMoney lists the money that needs an operator.
func (e *moneyEndpoints) listMoney(c *call) (any, *wire.Problem) {
	q, problem := parseMoneyQuery(c.Request)
	if problem != nil {
		return nil, problem
	}
	answer := moneyAnswer{
		OK: true, Counts: countsOf(e.money.MoneyCounts()), Lists: map[string]*moneyList{},
	}
	for _, k := range moneyKinds {
		// The refunds of the past need nobody: they are listed only if they are asked for.
		if q.kind != 0 && q.kind != k.kind || q.kind == 0 && k.kind == desk.MoneyRefunded {
			continue
		}
		// The extra item shows whether there is a next page.
		items, err := e.money.Money(k.kind, q.after, q.limit+1)
		if err != nil {
			_, problem := e.log.outcome(c, nil, err)
			return nil, problem
		}
		answer.Lists[k.name] = listOf(k.kind, items, q.limit)
	}
	return answer, nil
}

// listOf returns a page of at most limit items.
func listOf(kind desk.MoneyKind, items []desk.MoneyItem, limit int) *moneyList {
	list := &moneyList{Items: []moneyJSON{}}
	for i := range items[:min(limit, len(items))] {
		list.Items = append(list.Items, moneyOf(&items[i]))
	}
	if len(items) > limit {
		last := &list.Items[limit-1]
		if list.Next = last.Signature; kind == desk.MoneyDeliveryFailing || kind == desk.MoneyOutcomeUnknown {
			list.Next = last.Claim
		}
	}
	return list
}

func moneyOf(m *desk.MoneyItem) moneyJSON {
	out := moneyJSON{
		Signature: signatureWord(&m.Signature), Reason: wire.NullIfEmpty(m.Reason), Atoms: strconv.FormatUint(m.Amount, 10),
		Payer: wire.Address(m.Payer), Slot: wire.NullIfZero(m.Slot), At: wire.Time(m.At), Attempts: m.Attempts, Delivery: signatureWord(&m.Delivery),
		Refund: signatureWord(&m.Refund), OrderedBy: wire.NullIfEmpty(m.OrderedBy), Problem: wire.NullIfEmpty(m.Problem),
	}
	if m.Claim != 0 {
		out.Claim = wire.NullIfEmpty(string(market.AppendClaimID(nil, m.Claim)))
	}
	if m.Rail != 0 {
		out.Rail = wire.NullIfEmpty(m.Rail.String())
		out.Amount = &wire.Units{N: m.Amount, Decimals: uint8(m.Rail.Decimals())}
	}
	return out
}

// signatureWord returns a signature in base58, or nil for zero.
func signatureWord(s *[64]byte) *string {
	if *s == ([64]byte{}) {
		return nil
	}
	return wire.NullIfEmpty(base58.Encode(s[:]))
}

// parseOperatorSignature parses a required signature.
func parseOperatorSignature(field, text string) ([64]byte, *wire.Problem) {
	if text == "" {
		return [64]byte{}, wire.MissingMember(field)
	}
	s, ok := wire.ParseSignature([]byte(text))
	if !ok {
		return s, wire.InvalidMember(field, "not_a_signature")
	}
	return s, nil
}

// act executes a command of the settlement on behalf of the operator.
func (e *moneyEndpoints) act(c *call, do func(by desk.OperatorRequest) (*desk.Result, error)) (*desk.Result, *wire.Problem) {
	key, problem := c.key()
	if problem != nil {
		return nil, problem
	}
	result, err := do(desk.OperatorRequest{Operator: c.operator.ID, Name: c.operator.Name, Key: key})
	return e.log.outcome(c, result, err)
}

type markRefundedBody struct {
	Payment string `json:"l1_signature"`
	Refund  string `json:"refund_signature"`
}

// markRefunded records the refund of a payment.
func (e *moneyEndpoints) markRefunded(c *call, in *markRefundedBody) (any, *wire.Problem) {
	payment, problem := parseOperatorSignature("l1_signature", in.Payment)
	if problem != nil {
		return nil, problem
	}
	refund, problem := parseOperatorSignature("refund_signature", in.Refund)
	if problem != nil {
		return nil, problem
	}
	if refund == payment {
		return nil, wire.InvalidMember("refund_signature", "mismatch")
	}
	result, problem := e.act(c, func(by desk.OperatorRequest) (*desk.Result, error) {
		return e.money.Refunded(by, payment, refund)
	})
	if problem != nil {
		return nil, problem
	}
	return struct {
		OK      bool            `json:"ok"`
		Payment json.RawMessage `json:"payment"`
	}{true, terms.AppendPayment(nil, result.Payment)}, nil
}

type abandonClaimBody struct {
	Claim string `json:"claim_id"`
}

// abandonClaim gives up a claim that can never be delivered.
func (e *moneyEndpoints) abandonClaim(c *call, in *abandonClaimBody) (any, *wire.Problem) {
	return e.actOnClaim(c, in.Claim, func(_ context.Context, by desk.OperatorRequest, id market.ClaimID) (*desk.Result, error) {
		return e.money.Abandon(by, id)
	})
}

type releaseClaimBody struct {
	Claim   string `json:"claim_id"`
	Confirm bool   `json:"confirm"`
}

// releaseClaim ends a transaction with an unknown outcome.
func (e *moneyEndpoints) releaseClaim(c *call, in *releaseClaimBody) (any, *wire.Problem) {
	if !in.Confirm {
		return nil, invalidOperatorField("confirm", "must be true; set it after two explorers have shown that the transaction is not on the chain")
	}
	return e.actOnClaim(c, in.Claim, e.money.Release)
}

// actOnClaim executes a command of the settlement on the claim of a body.
func (e *moneyEndpoints) actOnClaim(
	c *call, text string, do func(context.Context, desk.OperatorRequest, market.ClaimID) (*desk.Result, error),
) (any, *wire.Problem) {
	if text == "" {
		return nil, wire.MissingMember("claim_id")
	}
	id, ok := market.ParseClaimID([]byte(text))
	if !ok {
		return nil, terms.Refusal(event.ReasonUnknownClaim)
	}
	result, problem := e.act(c, func(by desk.OperatorRequest) (*desk.Result, error) {
		result, err := do(c.Context(), by, id)
		if errors.Is(err, desk.ErrOutcomeKnown) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonClaimState}}, nil
		}
		return result, err
	})
	if problem != nil {
		return nil, problem
	}
	return struct {
		OK    bool   `json:"ok"`
		Claim string `json:"claim_id"`
		State string `json:"state"`
	}{true, text, result.Claim.State.Word()}, nil
}

type resolveUnmatchedBody struct {
	Payment string `json:"l1_signature"`
	Note    string `json:"note"`
}

// resolveUnmatched records what an operator has done about an unmatched payment.
func (e *moneyEndpoints) resolveUnmatched(c *call, in *resolveUnmatchedBody) (any, *wire.Problem) {
	payment, problem := parseOperatorSignature("l1_signature", in.Payment)
	if problem != nil {
		return nil, problem
	}
	if in.Note == "" {
		return nil, wire.MissingMember("note")
	}
	if !isPlain(in.Note, MaxNote) {
		return nil, invalidOperatorField("note", fmt.Sprintf("must be 1 to %d characters of printable ASCII", MaxNote))
	}
	if _, problem := e.act(c, func(by desk.OperatorRequest) (*desk.Result, error) {
		err := e.money.ResolveUnmatched(by, payment, in.Note)
		if errors.Is(err, desk.ErrNotUnmatched) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonUnknownPayment}}, nil
		}
		return &desk.Result{}, err
	}); problem != nil {
		return nil, problem
	}
	return struct {
		OK      bool   `json:"ok"`
		Payment string `json:"l1_signature"`
	}{true, in.Payment}, nil
}
