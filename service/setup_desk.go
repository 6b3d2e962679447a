package service

import (
	"context"
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

// deskPlan is how the desk comes to be as the configuration has it.
type deskPlan struct {
	wanted    deskSetup
	requests  []setupRequest
	applied   appliedDesk // once the requests are done
	operators []admin.Operator
	demoToken string
}

// planDesk holds the recovered desk against the configuration.
func (s *Service) planDesk() (*deskPlan, error) {
	var p deskPlan
	var err error
	if p.operators, p.demoToken, err = makeOperators(s.cfg); err != nil {
		return nil, err
	}
	var names []string
	for i := range p.operators {
		names = append(names, p.operators[i].Name)
	}
	if p.wanted, err = newDeskSetup(s.cfg, names); err != nil {
		return nil, err
	}
	was, err := readApplied(s.storage.Files)
	if err != nil {
		return nil, err
	}
	var ids map[string]market.OperatorID
	if p.requests, ids, p.applied, err = p.wanted.requests(s.desk.View(), was); err != nil {
		return nil, err
	}
	for i := range p.operators {
		p.operators[i].ID = ids[p.operators[i].Name]
	}
	if keys := s.cfg.Placeholders(); len(keys) > 0 && !s.cfg.Demo {
		s.log.Warn("placeholder addresses: nothing can be settled with them", "keys", keys)
	}
	return &p, nil
}

// submitDesk sends the desk's requests, one by one, and remembers what the
// configuration has said. A refusal names the key.
func (s *Service) submitDesk(ctx context.Context) error {
	if s.deskPlan == nil {
		return nil
	}
	for _, r := range s.deskPlan.requests {
		result, err := s.desk.Do(r.Request)
		if err != nil {
			return fmt.Errorf("%s: %w", r.key, err)
		}
		if result.Reason != 0 {
			return fmt.Errorf("%s: the desk refuses it: %s (limit %d)", r.key, result.Reason, result.Limit)
		}
		if err := s.followFIX(ctx); err != nil {
			return err
		}
	}
	return s.deskPlan.applied.write(s.storage.Files)
}

// deskSetup is what the desk should be by the configuration.
type deskSetup struct {
	policy    rfq.Policy
	pairs     []config.PairSetup
	operators []string // names
	sol       solPrice // zero = none by the configuration
	symbols   []string // of the instruments, by ID
	group     market.ShardID
}

// solPrice is comparable: what was applied last is held against it.
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
		d.sol = solPrice{price, config.Nanos(c.RFQ.SOLMaxAgeS)}
	}
	return d, err
}

// appliedDesk is what the configuration has said last of the values that an
// operator may change while the service runs, by symbol. Such a value is applied
// where there is none yet, or where the configuration says something new: so a
// restart does not undo an operator's command. Where the note of it is lost, what
// the desk has stands.
type appliedDesk struct {
	Anchors   map[string]market.USDPrice `json:"anchors"`
	Inventory map[string]uint64          `json:"inventory"` // atoms
	SOL       solPrice                   `json:"sol"`
	// Operators are the numbers that the journal knows them by, by name: for the
	// audit of a journal that begins after they got them.
	Operators map[string]market.OperatorID `json:"operators"`
}

const appliedFile = "rfq.applied.json"

func readApplied(kept StateFiles) (a appliedDesk, err error) {
	text, err := kept.Read(appliedFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case err != nil:
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w (delete it to keep what the desk has)", kept.Location(appliedFile), err)
	}
	return a, nil
}

// OperatorNumbers returns the numbers by which the journal of a data folder knows
// operators, by their names; empty if the folder does not have them.
func OperatorNumbers(dataDir string) (map[string]market.OperatorID, error) {
	applied, err := readApplied(folderFiles(dataDir))
	return applied.Operators, err
}

// write replaces the note, or leaves the old one whole.
func (a *appliedDesk) write(kept StateFiles) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return kept.Write(appliedFile, append(text, '\n'))
}

// setupRequest is a request to the desk with the key that it comes from.
type setupRequest struct {
	key string
	rfq.Request
}

// requests returns what brings a desk that looks like v up to d, the ids of the
// operators, and what is applied then. It fails where the desk has a pair that
// the configuration has no more.
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
				add("rfq.pairs: reference_price_usd of "+s.Symbol, &rfq.SetAnchor{Instrument: s.Pair.Instrument, Price: s.Anchor})
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
		add("rfq.sol_price_usd", &rfq.SetRailPrice{Rail: market.RailSOL, Price: d.sol.Price, MaxAge: d.sol.MaxAge})
	}
	return out, ids, now, nil
}

// due reports whether a configured value is to be applied: there is none yet, or
// it is not the one that was applied last.
func due[T comparable](set bool, was map[string]T, symbol string, value T) bool {
	last, known := was[symbol]
	return !set || known && last != value
}

// addPairs adds what changes pairs: those that others are priced by come first.
func (d *deskSetup) addPairs(v *rfq.View, add func(string, rfq.Request)) error {
	for i := range v.Pairs {
		if d.setup(v.Pairs[i].Instrument) == nil {
			return fmt.Errorf("rfq.pairs: the desk has a pair for %s, the configuration does not: pairs may be added, not taken away; "+
				"blockdesk lock --pair stops one", d.symbols[v.Pairs[i].Instrument])
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
					return fmt.Errorf("rfq.pairs: base_mint of %s: the desk sells %s already, and a pair keeps its mint: "+
						"configure that one, or take another data folder", s.Symbol, solana.Text(current.BaseMint))
				}
				current.Anchor, current.AnchorAt, current.Inventory, current.Reserved, current.Sold = 0, 0, 0, 0, 0
				if current == s.Pair {
					continue
				}
			}
			add("rfq.pairs: "+s.Symbol, &rfq.SetPair{Pair: s.Pair})
		}
	}
	return nil
}

func (d *deskSetup) setup(id market.InstrumentID) *config.PairSetup {
	for i := range d.pairs {
		if d.pairs[i].Pair.Instrument == id {
			return &d.pairs[i]
		}
	}
	return nil
}

// operatorIDs numbers the operators: a name keeps its number for ever, since the
// journal names operators by it.
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
		return nil, fmt.Errorf("operators: with those that the journal names there are more than %d", rfq.MaxOperators)
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
