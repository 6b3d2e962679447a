package admin

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// DefaultPriority is the default priority of a ticket. It leaves room for higher and lower
// ones (our choice).
const DefaultPriority = 100

// operatorTicket is a ticket in JSON.
type operatorTicket struct {
	OrderID   string            `json:"order_id"`
	Label     string            `json:"ticket_label"`
	Pair      string            `json:"pair"`
	State     string            `json:"state"`
	Rails     wire.Rails        `json:"rails"`
	Priority  uint16            `json:"priority"`
	Reference wire.Price        `json:"reference_price_usd"` // null: the pair's
	Tranches  []operatorTranche `json:"tranches"`
	CreatedAt wire.Time         `json:"created_at"`
	UpdatedAt wire.Time         `json:"updated_at"`
	ExpiresAt wire.Time         `json:"expires_at"` // null: never
	PostedBy  string            `json:"posted_by"`
	Seq       uint64            `json:"seq"`
}

type operatorTranche struct {
	TrancheID string   `json:"tranche_id"`
	Capacity  wire.USD `json:"capacity_usd"`
	Available wire.USD `json:"available_usd"`
	Reserved  wire.USD `json:"reserved_usd"`
	Filled    wire.USD `json:"filled_usd"`
}

type ticketAnswer struct {
	OK     bool            `json:"ok"`
	Ticket *operatorTicket `json:"ticket"`
}

// deskEndpoints are the operators' endpoints of the desk: its tickets, locks, prices
// and inventory.
type deskEndpoints struct {
	desk        Desk
	sources     PriceSources // nil: no asset has a rule of prices
	instruments *market.Instruments
	log         commandLog
	now         func() int64 // Unix nanoseconds
	status      StatusSources
	money       Money // nil without a chain
	// edit is held from reading the view to the outcome of the request derived from it,
	// so that no operator overwrites the change of another.
	edit sync.Mutex
}

// do sends a request to the desk on behalf of the operator and logs the outcome.
func (e *deskEndpoints) do(c *call, r rfq.Request) (*desk.Result, *wire.Problem) {
	head := r.Head()
	head.Operator = c.operator.ID
	var problem *wire.Problem
	if head.Key, problem = c.key(); problem != nil {
		return nil, problem
	}
	result, err := e.desk.Do(r)
	return e.log.outcome(c, result, err)
}

func (e *deskEndpoints) listTickets(*call) (any, *wire.Problem) {
	v := e.desk.View()
	answer := struct {
		OK      bool              `json:"ok"`
		Seq     uint64            `json:"seq"`
		Tickets []*operatorTicket `json:"tickets"`
	}{true, v.Seq, []*operatorTicket{}}
	for _, t := range v.Tickets {
		answer.Tickets = append(answer.Tickets, e.ticket(v, t))
	}
	return answer, nil
}

type postTicketBody struct {
	Pair              string   `json:"pair"`
	Label             string   `json:"label"`
	Tranches          []string `json:"tranches"` // capacities in USD
	Rails             []string `json:"rails"`
	Priority          *uint16  `json:"priority"` // default DefaultPriority
	ReferencePriceUSD string   `json:"reference_price_usd"`
	ExpiresAt         string   `json:"expires_at"`
}

// postTicket creates a ticket. Without rails it has those of the pair.
func (e *deskEndpoints) postTicket(c *call, in *postTicketBody) (any, *wire.Problem) {
	r := &rfq.PostTicket{Label: in.Label, Priority: DefaultPriority}
	if in.Priority != nil {
		r.Priority = *in.Priority
	}
	var problem *wire.Problem
	if r.Instrument, problem = e.pair(in.Pair); problem != nil {
		return nil, problem
	}
	if !isPlainText(in.Label) {
		return nil, invalidOperatorField("label", plainTextRule())
	}
	if len(in.Tranches) == 0 || len(in.Tranches) > rfq.MaxTranches {
		return nil, invalidOperatorField("tranches", fmt.Sprintf("must have 1 to %d capacities in USD", rfq.MaxTranches))
	}
	for i, text := range in.Tranches {
		capacity, problem := parseCapacity(fmt.Sprintf("tranches[%d]", i), text)
		if problem != nil {
			return nil, problem
		}
		r.Capacities = append(r.Capacities, capacity)
	}
	if r.Rails, problem = parseRails(in.Rails); problem != nil {
		return nil, problem
	}
	if r.Reference, problem = parseReference(in.ReferencePriceUSD); problem != nil {
		return nil, problem
	}
	if r.ExpiresAt, problem = e.parseExpiry(in.ExpiresAt); problem != nil {
		return nil, problem
	}
	return e.ticketCommand(c, r)
}

type amendTicketBody struct {
	Rails             []string `json:"rails"`
	Priority          *uint16  `json:"priority"`
	ReferencePriceUSD *string  `json:"reference_price_usd"`
	ExpiresAt         *string  `json:"expires_at"`
}

// amendTicket changes only what the body names. An empty reference_price_usd means the
// pair's price, an empty expires_at means never.
func (e *deskEndpoints) amendTicket(c *call, in *amendTicketBody) (any, *wire.Problem) {
	e.edit.Lock()
	defer e.edit.Unlock()
	t, problem := e.named(c)
	if problem != nil {
		return nil, problem
	}
	r := &rfq.AmendTicket{
		Ticket: t.ID, Rails: t.Rails, Priority: t.Priority, Reference: t.Reference, ExpiresAt: t.ExpiresAt,
	}
	if in.Rails != nil {
		if r.Rails, problem = parseRails(in.Rails); problem != nil {
			return nil, problem
		}
	}
	if in.Priority != nil {
		r.Priority = *in.Priority
	}
	if in.ReferencePriceUSD != nil {
		if r.Reference, problem = parseReference(*in.ReferencePriceUSD); problem != nil {
			return nil, problem
		}
	}
	if in.ExpiresAt != nil {
		if r.ExpiresAt, problem = e.parseExpiry(*in.ExpiresAt); problem != nil {
			return nil, problem
		}
	}
	return e.ticketCommand(c, r)
}

type setTrancheBody struct {
	TrancheID   string `json:"tranche_id"`
	CapacityUSD string `json:"capacity_usd"`
}

// setTranche changes a tranche's capacity, or adds a tranche if the body names none.
func (e *deskEndpoints) setTranche(c *call, in *setTrancheBody) (any, *wire.Problem) {
	e.edit.Lock()
	defer e.edit.Unlock()
	t, problem := e.named(c)
	if problem != nil {
		return nil, problem
	}
	r := &rfq.SetTranche{Ticket: t.ID, Tranche: market.TrancheID(len(t.Tranches) + 1)}
	if in.TrancheID != "" {
		ticket, tranche, ok := market.ParseTrancheID([]byte(in.TrancheID))
		if !ok || ticket != t.ID || int(tranche) > len(t.Tranches) {
			return nil, invalidOperatorField("tranche_id", "must be a tranche of the ticket")
		}
		r.Tranche = tranche
	}
	if r.Capacity, problem = parseCapacity("capacity_usd", in.CapacityUSD); problem != nil {
		return nil, problem
	}
	return e.ticketCommand(c, r)
}

func (e *deskEndpoints) withdrawTicket(c *call, _ *noBody) (any, *wire.Problem) {
	t, problem := e.named(c)
	if problem != nil {
		return nil, problem
	}
	return e.ticketCommand(c, &rfq.WithdrawTicket{Ticket: t.ID})
}

// ticketCommand sends r and returns the ticket after it.
func (e *deskEndpoints) ticketCommand(c *call, r rfq.Request) (any, *wire.Problem) {
	result, problem := e.do(c, r)
	if problem != nil {
		return nil, problem
	}
	return ticketAnswer{true, e.ticket(e.desk.View(), result.Ticket)}, nil
}

// named returns the ticket of the path.
func (e *deskEndpoints) named(c *call) (*rfq.Ticket, *wire.Problem) {
	if id, ok := market.ParseTicketID([]byte(c.PathValue("order_id"))); ok {
		if t := e.desk.View().Ticket(id); t != nil {
			return t, nil
		}
	}
	return nil, &wire.Problem{
		Status: http.StatusNotFound, Code: wire.CodeUnknownTicket, Field: "order_id",
		Text: "Unknown order_id. GET /desk/tickets lists all tickets.",
	}
}

// ticket returns t in JSON, with names from v.
func (e *deskEndpoints) ticket(v *rfq.View, t *rfq.Ticket) *operatorTicket {
	out := &operatorTicket{
		OrderID: string(market.AppendTicketID(nil, t.ID)), Label: t.Label, Pair: e.symbol(t.Instrument),
		State: terms.TicketStates[t.State], Rails: wire.Rails(t.Rails), Priority: t.Priority, Reference: wire.Price(t.Reference),
		CreatedAt: wire.Time(t.CreatedAt), UpdatedAt: wire.Time(t.UpdatedAt), ExpiresAt: wire.Time(t.ExpiresAt),
		PostedBy: operatorName(v, t.By), Seq: t.Seq, Tranches: []operatorTranche{},
	}
	for i := range t.Tranches {
		tr := &t.Tranches[i]
		out.Tranches = append(out.Tranches, operatorTranche{
			TrancheID: string(market.AppendTrancheID(nil, t.ID, tr.ID)), Capacity: wire.USD(tr.Capacity),
			Available: wire.USD(tr.Available()), Reserved: wire.USD(tr.Reserved), Filled: wire.USD(tr.Filled),
		})
	}
	return out
}

func (e *deskEndpoints) symbol(id market.InstrumentID) string {
	if in := e.instruments.Get(id); in != nil {
		return in.Symbol
	}
	return "" // the instrument is no longer configured
}

// pair returns the instrument of a symbol.
func (e *deskEndpoints) pair(symbol string) (market.InstrumentID, *wire.Problem) {
	if symbol == "" {
		return 0, wire.MissingMember("pair")
	}
	for _, p := range e.desk.View().Pairs {
		if e.symbol(p.Instrument) == symbol {
			return p.Instrument, nil
		}
	}
	return 0, &wire.Problem{
		Status: http.StatusBadRequest, Code: wire.CodeUnknownSymbol, Field: "pair",
		Text: "Unknown pair. GET /desk/prices lists all pairs.",
	}
}

// parseExpiry parses a time in the future; empty means 0, never.
func (e *deskEndpoints) parseExpiry(text string) (int64, *wire.Problem) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() > 2200 {
		return 0, invalidOperatorField("expires_at", "must be an RFC 3339 time such as 2030-01-02T15:04:05Z")
	}
	if at.UnixNano() <= e.now() {
		return 0, invalidOperatorField("expires_at", "must be in the future")
	}
	return at.UnixNano(), nil
}

func parseCapacity(field, text string) (market.USD, *wire.Problem) {
	v, err := market.ParseDecimal([]byte(text), market.USDDecimals)
	least := market.FillUSD(1)
	if err != nil || market.USD(v) < least.USD() || market.USD(v) > rfq.MaxCapacity {
		return 0, invalidOperatorField(field, "must be a decimal of at least "+least.String()+" USD, as text")
	}
	return market.USD(v), nil
}

func parseReference(text string) (market.USDPrice, *wire.Problem) {
	if text == "" {
		return 0, nil
	}
	return parseOperatorPrice("reference_price_usd", text)
}

func parseOperatorPrice(field, text string) (market.USDPrice, *wire.Problem) {
	if text == "" {
		return 0, wire.MissingMember(field)
	}
	v, err := market.ParseDecimal([]byte(text), market.USDPriceDecimals)
	if err != nil || v == 0 || v > uint64(market.MaxUSDPrice) {
		return 0, invalidOperatorField(field, fmt.Sprintf("must be a decimal string greater than zero with at most %d digits after the point", market.USDPriceDecimals))
	}
	return market.USDPrice(v), nil
}

// parseRails parses a set of rails.
func parseRails(words []string) (market.Rails, *wire.Problem) {
	var set market.Rails
	for _, word := range words {
		rail, ok := market.ParseRail([]byte(word))
		if !ok || set.Has(rail) {
			return 0, invalidOperatorField("rails", "must be USDC or SOL, each at most once")
		}
		set = set.With(rail)
	}
	return set, nil
}

func plainTextRule() string {
	return fmt.Sprintf("must be 1 to %d characters of printable ASCII", rfq.MaxText)
}

func isPlainText(text string) bool { return isPlain(text, rfq.MaxText) }

// isPlain reports whether text is 1 to most characters of printable ASCII.
func isPlain(text string, most int) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= most
}

// operatorName returns an operator's name; empty for the service itself.
func operatorName(v *rfq.View, id market.OperatorID) string {
	for i := range v.Operators {
		if v.Operators[i].ID == id {
			return v.Operators[i].Name
		}
	}
	return ""
}
