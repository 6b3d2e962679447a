package fixterm

import "fmt"

func (t *Terminal) listOrders(words []string) (Action, error) {
	if len(words) > 0 {
		return Action{}, usage("no arguments expected")
	}
	r := Report{Event: "orders"}
	for _, o := range t.listed {
		if o.known && o.live() {
			r.Lines = append(r.Lines, fmt.Sprintf("order %s  %s %s %s%s  %s, %s filled, %s left  (%s)",
				o.id, sideWord(o.side), short(o.qty), o.symbol, atPrice(o.price), statusWord(o.status), short(o.filled), short(o.left), o.clOrdID))
		}
	}
	r.sentence = fmt.Sprintf("%d live", len(r.Lines))
	return Action{Reports: one(r)}, nil
}

func (t *Terminal) listClaims(words []string) (Action, error) {
	if len(words) > 0 {
		return Action{}, usage("no arguments expected")
	}
	r := Report{Event: "claims"}
	for _, c := range t.claims {
		line := fmt.Sprintf("claim %s  %s %s at %s  %s", c.id, short(c.qty), c.symbol, short(c.price), c.state)
		if c.state == stateReserved || c.state == statePackage {
			line += ", pay until " + clock(c.deadline)
		}
		r.Lines = append(r.Lines, line)
	}
	r.sentence = fmt.Sprintf("%d", len(r.Lines))
	return Action{Reports: one(r)}, nil
}
