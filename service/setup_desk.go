package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/service/config"
)

// deskPlan has the requests that bring the desk up to the configuration.
type deskPlan struct {
	wanted   deskSetup
	requests []setupRequest
	applied  appliedDesk // once the requests are done
}

// newDeskPlan compares a desk with the configuration, and numbers its operators.
func newDeskPlan(c *config.Config, view *rfq.View, operators []admin.Operator, files StateFiles) (*deskPlan, error) {
	var names []string
	for i := range operators {
		names = append(names, operators[i].Name)
	}
	var p deskPlan
	var err error
	if p.wanted, err = newDeskSetup(c, names); err != nil {
		return nil, err
	}
	was, err := readApplied(files)
	if err != nil {
		return nil, err
	}
	var ids map[string]market.OperatorID
	if p.requests, ids, p.applied, err = p.wanted.requests(view, was); err != nil {
		return nil, err
	}
	for i := range operators {
		operators[i].ID = ids[operators[i].Name]
	}
	return &p, nil
}

// deskSetup is the desk of the configuration.
type deskSetup struct {
	policy    rfq.Policy
	pairs     []config.PairSetup
	operators []string // names
	sol       solPrice // zero = not configured
	symbols   []string // of the instruments, by ID
	group     market.ShardID
}

// solPrice is the configured price of SOL.
type solPrice struct {
	Price  market.USDPrice `json:"price"`
	MaxAge int64           `json:"max_age"` // ns
}

// newDeskSetup returns the configured desk with these operators.
func newDeskSetup(c *config.Config, operators []string) (d deskSetup, err error) {
	d.operators, d.group = operators, c.GroupNumber()
	for i := range c.Instruments {
		d.symbols = append(d.symbols, c.Instruments[i].Symbol)
	}
	if d.policy, err = c.RFQ.Policy(); err != nil {
		return d, err
	}
	if d.pairs, err = c.DeskPairs(); err != nil {
		return d, err
	}
	price, given, err := config.ParseUSDPrice(c.RFQ.SOLPriceUSD)
	if given {
		d.sol = solPrice{price, c.SolMaxAge()}
	}
	return d, err
}

// appliedDesk holds the last configured values of what an operator may change while the
// service runs, by symbol. A value is applied if the desk has none, or if the
// configuration has changed, so that a restart does not undo an operator's command. If
// the file is lost the desk's values stay.
type appliedDesk struct {
	Anchors   map[string]market.USDPrice `json:"anchors"`
	Inventory map[string]uint64          `json:"inventory"` // atoms
	SOL       solPrice                   `json:"sol"`
	// Operators are the operators' numbers in the journal, by name, for the audit of a
	// journal that begins after they got them.
	Operators map[string]market.OperatorID `json:"operators"`
}

const appliedFile = "rfq.applied.json"

func readApplied(files StateFiles) (a appliedDesk, err error) {
	text, err := files.Read(appliedFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case err != nil:
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w (delete it to keep the desk's values)", files.Location(appliedFile), err)
	}
	return a, nil
}

// OperatorNumbers returns the numbers of operators in the journal of a data folder, by
// name; empty if the folder does not have them.
func OperatorNumbers(dataDir string) (map[string]market.OperatorID, error) {
	applied, err := readApplied(folderFiles{nil, dataDir})
	return applied.Operators, err
}

// write replaces the note, or leaves the old one whole.
func (a *appliedDesk) write(files StateFiles) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(appliedFile, append(text, '\n'))
}

// setupRequest is a request to the desk with the configuration key behind it.
type setupRequest struct {
	key string
	rfq.Request
}

// requests returns the requests that bring the desk of view v up to d, the operators'
// ids, and the values that are applied then. It fails if the desk has a pair that the
// configuration lacks.
func (d *deskSetup) requests(v *rfq.View, was appliedDesk) (out []setupRequest, ids map[string]market.OperatorID, now appliedDesk, err error) {
	add := func(key string, r rfq.Request) { out = append(out, setupRequest{key, r}) }
	if ids, err = d.operatorIDs(v); err != nil {
		return nil, nil, now, err
	}
	for _, name := range d.operators {
		if operatorNamed(v, name) == 0 {
			add("operators: "+name, &rfq.SetOperator{Of: rfq.Operator{ID: ids[name], Name: name}})
		}
	}
	if d.group != 0 {
		add("routing.group", &rfq.SetFirstTicket{First: market.FirstTicket(d.group)})
	}
	if v.Policy != d.policy {
		add("rfq", &rfq.SetPolicy{Policy: d.policy})
	}
	if err := d.addPairs(v, add); err != nil {
		return nil, nil, now, err
	}
	now = appliedDesk{Anchors: map[string]market.USDPrice{}, Inventory: map[string]uint64{}, SOL: d.sol, Operators: maps.Clone(ids)}
	for i := range v.Operators {
		now.Operators[v.Operators[i].Name] = v.Operators[i].ID
	}
	for i := range d.pairs {
		s := &d.pairs[i]
		current := rfq.Pair{}
		if p := v.Pair(s.Pair.Instrument); p != nil {
			current = *p
		}
		if s.Anchor != 0 {
			now.Anchors[s.Symbol] = s.Anchor
			if due(current.Anchor != 0, was.Anchors, s.Symbol, s.Anchor) {
				add("rfq.pairs: reference_price_usd of "+s.Symbol, &rfq.SetAnchor{Instrument: s.Pair.Instrument, Price: s.Anchor, Source: rfq.OriginOperator})
			}
		}
		if s.Stocked {
			now.Inventory[s.Symbol] = s.Inventory
			if due(current.Inventory != 0, was.Inventory, s.Symbol, s.Inventory) {
				add("rfq.pairs: inventory of "+s.Symbol, &rfq.SetInventory{Instrument: s.Pair.Instrument, Atoms: s.Inventory})
			}
		}
	}
	known := false
	for _, p := range v.RailPrices {
		known = known || p.Rail == market.RailSOL && p.Price != 0
	}
	if d.sol.Price != 0 && (!known || was.SOL.Price != 0 && was.SOL != d.sol) {
		add("rfq.sol_price_usd", &rfq.SetRailPrice{Rail: market.RailSOL, Price: d.sol.Price, MaxAge: d.sol.MaxAge, Source: rfq.OriginOperator})
	}
	return out, ids, now, nil
}

// due reports whether a configured value must be applied: the desk has none, or the
// value differs from the one applied last.
func due[T comparable](set bool, was map[string]T, symbol string, value T) bool {
	last, known := was[symbol]
	return !set || known && last != value
}

// withoutNewer returns the requests without those that differ from the desk's state only by
// what release 0.1.0 lacks: while a group is upgraded, its policy stays that of before.
func withoutNewer(requests []setupRequest, v *rfq.View) (out []setupRequest) {
	for _, r := range requests {
		switch set := r.Request.(type) {
		case *rfq.SetPolicy:
			if v.Policy.QuoteTTL != 0 {
				continue
			}
		case *rfq.SetPair:
			wanted := set.Pair
			wanted.FirmBps = rfq.Pair{}.FirmBps
			if p := v.Pair(wanted.Instrument); p != nil && configuredPart(*p) == wanted {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// addPairs adds the requests that change pairs. Pairs that price others come first.
func (d *deskSetup) addPairs(v *rfq.View, add func(string, rfq.Request)) error {
	for i := range v.Pairs {
		if d.setup(v.Pairs[i].Instrument) == nil {
			return fmt.Errorf("rfq.pairs: the desk has a pair for %s, the configuration does not: pairs may be added, not removed; "+
				"to stop selling it use blockdesk lock --pair", d.symbols[v.Pairs[i].Instrument])
		}
	}
	for _, via := range []bool{false, true} {
		for i := range d.pairs {
			s := &d.pairs[i]
			if (s.Pair.Via != rfq.NoInstrument) != via {
				continue
			}
			if p := v.Pair(s.Pair.Instrument); p != nil {
				current := *p
				if current.BaseMint != s.Pair.BaseMint && (current.Inventory != 0 || current.Sold != 0) {
					return fmt.Errorf("rfq.pairs: base_mint of %s: the desk sells %s already, and a pair with inventory or sales cannot change its mint: "+
						"restore that mint, or start with an empty data folder, which has no journal", s.Symbol, solana.Base58(current.BaseMint))
				}
				if configuredPart(current) == s.Pair {
					continue
				}
			}
			add("rfq.pairs: "+s.Symbol, &rfq.SetPair{Pair: s.Pair})
		}
	}
	return nil
}

// configuredPart returns a pair without what operators, prices, claims and the chain change.
func configuredPart(p rfq.Pair) rfq.Pair {
	return rfq.Pair{
		Instrument: p.Instrument, BaseMint: p.BaseMint, BaseDecimals: p.BaseDecimals, Rails: p.Rails, Source: p.Source,
		CorridorBps: p.CorridorBps, MaxAge: p.MaxAge, Via: p.Via, FirmBps: p.FirmBps,
	}
}

func (d *deskSetup) setup(id market.InstrumentID) *config.PairSetup {
	for i := range d.pairs {
		if d.pairs[i].Pair.Instrument == id {
			return &d.pairs[i]
		}
	}
	return nil
}

// operatorIDs numbers the operators. A name keeps its number, because the journal
// records it.
func (d *deskSetup) operatorIDs(v *rfq.View) (map[string]market.OperatorID, error) {
	ids := map[string]market.OperatorID{}
	next := market.OperatorID(1)
	for i := range v.Operators {
		next = max(next, v.Operators[i].ID+1)
	}
	for _, name := range d.operators {
		if ids[name] = operatorNamed(v, name); ids[name] == 0 {
			ids[name] = next
			next++
		}
	}
	if next > rfq.MaxOperators+1 {
		return nil, fmt.Errorf("operators: with those in the journal there are more than %d", rfq.MaxOperators)
	}
	return ids, nil
}

func operatorNamed(v *rfq.View, name string) market.OperatorID {
	for i := range v.Operators {
		if v.Operators[i].Name == name {
			return v.Operators[i].ID
		}
	}
	return 0
}
