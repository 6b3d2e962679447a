package admin

import (
	"errors"
	"strconv"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// orderRefundsBody selects refunds that are due: one payment, or all with some conditions.
type orderRefundsBody struct {
	Payment string `json:"l1_signature"`
	All     bool   `json:"all"`
	Claim   string `json:"claim_id"`
	Rail    string `json:"rail"`
	Under   string `json:"under_usd"`
	DryRun  bool   `json:"dry_run"`
}

// selection returns the selected refunds. All of them are selected only by name.
func (in *orderRefundsBody) selection() (s desk.RefundSelection, problem *wire.Problem) {
	s.DryRun = in.DryRun
	if (in.Payment != "") == in.All {
		return s, invalidOperatorField("all", "must be true, or l1_signature must name one payment; not both")
	}
	if in.Payment != "" {
		if s.Payment, problem = parseOperatorSignature("l1_signature", in.Payment); problem != nil {
			return s, problem
		}
	}
	if in.Claim != "" {
		id, ok := market.ParseClaimID([]byte(in.Claim))
		if !ok {
			return s, terms.Refusal(event.ReasonUnknownClaim)
		}
		s.Claim = id
	}
	if in.Rail != "" {
		rail, ok := market.ParseRail([]byte(in.Rail))
		if !ok {
			return s, invalidOperatorField("rail", "must be USDC or SOL")
		}
		s.Rail = rail
	}
	if in.Under != "" {
		under, err := market.ParseDecimal([]byte(in.Under), market.USDDecimals)
		if err != nil || under == 0 {
			return s, invalidOperatorField("under_usd", "must be a decimal number of dollars above 0, with at most 6 places")
		}
		s.Under = market.USD(under)
	}
	return s, nil
}

// refundsOrderedJSON is the answer: what was ordered by this request, by rail.
type refundsOrderedJSON struct {
	OK      bool                      `json:"ok"`
	DryRun  bool                      `json:"dry_run"`
	Before  int                       `json:"ordered_before"`
	Ordered map[string]orderedOfARail `json:"ordered"`
}

type orderedOfARail struct {
	Count  uint64     `json:"count"`
	Amount wire.Units `json:"amount"`
	Atoms  string     `json:"amount_atoms"`
}

// orderRefunds orders that payments be paid back.
func (e *moneyEndpoints) orderRefunds(c *call, in *orderRefundsBody) (any, *wire.Problem) {
	s, problem := in.selection()
	if problem != nil {
		return nil, problem
	}
	var ordered desk.RefundsOrdered
	if _, problem := e.act(c, func(by desk.OperatorRequest) (*desk.Result, error) {
		var err error
		ordered, err = e.money.Refund(by, &s)
		if errors.Is(err, desk.ErrNoRefundDue) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonUnknownPayment}}, nil
		}
		return &desk.Result{}, err
	}); problem != nil {
		return nil, problem
	}
	answer := refundsOrderedJSON{OK: true, DryRun: in.DryRun, Before: ordered.Before, Ordered: map[string]orderedOfARail{}}
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		answer.Ordered[rail.String()] = orderedOfARail{
			Count: ordered.Count[rail], Amount: wire.Units{N: ordered.Atoms[rail], Decimals: uint8(rail.Decimals())},
			Atoms: strconv.FormatUint(ordered.Atoms[rail], 10),
		}
	}
	return answer, nil
}
