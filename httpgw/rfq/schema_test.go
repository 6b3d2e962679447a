package rfq

import (
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/market"
	"blockdesk/sdk/openapitest"
)

// TestChainHealthIsDescribed: the desk's status with a full state of the chain
// conforms to the specification.
func TestChainHealthIsDescribed(t *testing.T) {
	d := gatewaytest.OpenAPI(t)
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
	p.chain, p.health = chain{}, func() desk.ChainHealth {
		return desk.ChainHealth{
			Desk: gatewaytest.Address(60), Slot: 4711, BlockhashAge: time.Second, Tracked: 3, Nodes: []desk.ChainNode{{Name: "main", Available: true, Slot: 4711}, {Name: "new"}},
		}
	}
	body := p.get(docDesk).Body
	if err := d.ValidateAs("DeskStatus", body); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	if err := openapitest.Mutants(body, func(what string, mutant []byte) bool {
		if strings.Contains(what, "/chain") && d.ValidateAs("DeskStatus", mutant) == nil {
			t.Errorf("%s is not noticed", what)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
}

// TestPagesMatch: every page of every state conforms to the specification.
func TestPagesMatch(t *testing.T) {
	d := gatewaytest.OpenAPI(t)
	schemas := [documentCount]string{
		"RFQStatus", "CurrentSellableTicket", "MarketTickets", "CompactBook", "Levels", "Pairs", "Tokens", "RailList",
		"RobotManifest", "Discovery", "Board", "DeskStatus",
	}
	shut := gatewaytest.FixedView()
	shut.Policy.PayTo, shut.Tickets = [market.RailCount]market.Address{}, nil
	alone := gatewaytest.FixedView() // its quote asset is known by its symbol only
	alone.Pairs, alone.Tickets = alone.Pairs[1:], nil
	for name, v := range map[string]*rfq.View{"none": nil, "empty": {}, "fixed": gatewaytest.FixedView(), "shut": shut, "alone": alone} {
		p := pagesOf(t, gatewaytest.NewViewDesk(v), gatewaytest.NewDeskClock())
		for doc := range documentCount {
			if err := d.ValidateAs(schemas[doc], p.get(doc).Body); err != nil {
				t.Errorf("%s: %v: %v in %s", name, doc, err, p.get(doc).Body)
			}
		}
	}
}
