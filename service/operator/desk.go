package operator

// The bodies of the desk's requests and answers on the admin address, as far as
// clients of this package use them. Amounts and prices are decimal text, times are
// RFC 3339; both are empty if there is none.

// Ticket is a ticket of the desk.
type Ticket struct {
	OrderID           string   `json:"order_id"`
	Label             string   `json:"ticket_label"`
	Pair              string   `json:"pair"`
	State             string   `json:"state"`
	Rails             []string `json:"rails"`
	Priority          int      `json:"priority"`
	ReferencePriceUSD string   `json:"reference_price_usd"`
	ExpiresAt         string   `json:"expires_at"`
	PostedBy          string   `json:"posted_by"`
	Tranches          []struct {
		TrancheID    string `json:"tranche_id"`
		CapacityUSD  string `json:"capacity_usd"`
		AvailableUSD string `json:"available_usd"`
		ReservedUSD  string `json:"reserved_usd"`
		FilledUSD    string `json:"filled_usd"`
	} `json:"tranches"`
}

// TicketsAnswer is the answer of GET /desk/tickets.
type TicketsAnswer struct {
	Tickets []Ticket `json:"tickets"`
}

// TicketPost is the body of POST /desk/tickets.
type TicketPost struct {
	Pair              string   `json:"pair"`
	Label             string   `json:"label"`
	Tranches          []string `json:"tranches"`
	Rails             []string `json:"rails,omitempty"`
	Priority          *int     `json:"priority,omitempty"`
	ReferencePriceUSD string   `json:"reference_price_usd,omitempty"`
	ExpiresAt         string   `json:"expires_at,omitempty"`
}

// PricesAnswer is the answer of /desk/prices.
type PricesAnswer struct {
	Prices []struct {
		Pair        string `json:"pair"`
		Rail        string `json:"rail"`
		Source      string `json:"price_source"`
		PriceUSD    string `json:"price_usd"`
		SetAt       string `json:"set_at"`
		MaxAgeS     int    `json:"max_age_s"`
		Stale       bool   `json:"stale"`
		MinPriceUSD string `json:"min_price_usd"`
		MaxPriceUSD string `json:"max_price_usd"`
		// Origin is the source of the price: pyth, pool or operator; empty: none. Sources are
		// those of the configuration, and Fault why they give no price.
		Origin        string        `json:"source"`
		ConfidenceUSD string        `json:"confidence_usd"`
		Fault         string        `json:"fault"`
		Sources       []PriceSource `json:"sources"`
		// NotSold is why nothing is sold at a price that is there and not stale.
		NotSold string `json:"not_sold"`
	} `json:"prices"`
}

// PriceSource is one source of a price.
type PriceSource struct {
	Name        string `json:"name"`
	PriceUSD    string `json:"price_usd"`
	PublishedAt string `json:"published_at"`
	Fault       string `json:"fault"` // why it is not used; empty: it is usable
}

// PriceChange is the body of POST /desk/prices: the anchor of a pair, or the price
// of a rail.
type PriceChange struct {
	Pair     string `json:"pair,omitempty"`
	Rail     string `json:"rail,omitempty"`
	PriceUSD string `json:"price_usd"`
	MaxAgeS  *int64 `json:"max_age_s,omitempty"`
}
