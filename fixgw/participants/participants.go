package participants

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccy/go-yaml"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Participant is one trading firm: its sessions, how they log on, its wallet and its
// limits.
type Participant struct {
	Name   string               // Username (553) of its logons
	Number market.ParticipantID // in commands and events; from 1, never reused
	// CompIDs are its sessions' SenderCompIDs.
	CompIDs []string
	// PasswordHash is in HashPassword's form, Ed25519 a public key in base58 or base64.
	// Either lets a session log on; empty = not this way. At least one is required.
	PasswordHash string
	Ed25519      string
	// Wallet, in base58, pays for its claims and gets their deliveries; empty = it can make
	// no claims.
	Wallet string
	// STP is the self-trade prevention of its orders.
	STP book.STP
	// Limits are its risk limits, the most special last: the last entry whose Symbol is
	// the instrument's, or AnySymbol, applies.
	Limits []Limit
}

// AnySymbol in a Limit means every instrument.
const AnySymbol = "*"

// Limit is the risk limits of a participant on one instrument, as decimals.
// Empty text and 0 mean no limit.
type Limit struct {
	Symbol        string `yaml:"symbol"`
	MaxQty        string `yaml:"max_qty"`      // base units
	MaxNotional   string `yaml:"max_notional"` // quote units
	MaxOpenOrders int    `yaml:"max_open_orders"`
	BandBps       int    `yaml:"band_bps"`
}

const (
	// MaxParticipants bounds a participants file.
	MaxParticipants = 1<<16 - 1
	// MaxFile bounds a participants file, in bytes.
	MaxFile = 4 << 20
)

type participantEntry struct {
	Name         string   `yaml:"name"`
	Number       int      `yaml:"number"`
	CompIDs      []string `yaml:"comp_ids"`
	PasswordHash string   `yaml:"password_hash"`
	Ed25519      string   `yaml:"ed25519"`
	Wallet       string   `yaml:"wallet"`
	STP          string   `yaml:"stp"`
	Limits       []Limit  `yaml:"limits"`
}

// Parse reads a participants file, YAML or JSON:
//
//	participants:
//	  - name: mm1
//	    number: 1
//	    comp_ids: [MM1, MM1-BACKUP]
//	    password_hash: "$argon2id$v=19$m=19456,t=2,p=1$…$…"
//	    ed25519: "9xQe…"          # instead of the password, or beside it
//	    wallet: "4Nd1m…"          # of its RFQ claims; without it, it takes none
//	    stp: cancel_newest        # default; cancel_oldest, cancel_both, decrement
//	    limits:
//	      - {symbol: "*", max_qty: "1000000", max_open_orders: 10000, band_bps: 500}
//
// Unknown keys are refused with their line.
func Parse(data []byte) ([]Participant, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("participants: the file has %d bytes: must be at most %d", len(data), MaxFile)
	}
	var file struct {
		Participants []participantEntry `yaml:"participants"`
	}
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.Strict()); err != nil {
		// With the line's number, but without its text, which may contain a hash.
		return nil, errors.New("participants: " + yaml.FormatError(err, false, false))
	}
	list := make([]Participant, 0, min(len(file.Participants), MaxParticipants))
	for i, entry := range file.Participants {
		stp, err := parseSTP(entry.STP)
		if err != nil {
			return nil, fmt.Errorf("entry %d %q: %w", i, entry.Name, err)
		}
		if entry.Number < 1 || entry.Number > int(^market.ParticipantID(0)) {
			return nil, fmt.Errorf("entry %d %q: number %d: must be 1 to %d", i, entry.Name, entry.Number, ^market.ParticipantID(0))
		}
		list = append(list, Participant{
			Name: entry.Name, Number: market.ParticipantID(entry.Number), CompIDs: entry.CompIDs,
			PasswordHash: entry.PasswordHash, Ed25519: entry.Ed25519, Wallet: entry.Wallet, STP: stp, Limits: entry.Limits,
		})
	}
	return list, Validate(list, MaxParticipants)
}

func parseSTP(word string) (book.STP, error) {
	switch word {
	case "", "cancel_newest":
		return book.STPCancelNewest, nil
	case "cancel_oldest":
		return book.STPCancelOldest, nil
	case "cancel_both":
		return book.STPCancelBoth, nil
	case "decrement":
		return book.STPDecrement, nil
	}
	return 0, fmt.Errorf("stp %q: must be cancel_newest, cancel_oldest, cancel_both or decrement", word)
}

// Validate returns the first error of a list of participants; maxSessions limits their
// CompIDs.
func Validate(list []Participant, maxSessions int) error {
	switch {
	case len(list) == 0:
		return errors.New("participants: the list is empty")
	case len(list) > MaxParticipants:
		return fmt.Errorf("participants: %d entries: must be at most %d", len(list), MaxParticipants)
	}
	names, numbers, compIDs := map[string]bool{}, map[market.ParticipantID]bool{}, map[string]bool{}
	for i := range list {
		p := &list[i]
		if err := p.validate(); err != nil {
			return fmt.Errorf("entry %d %q: %w", i, p.Name, err)
		}
		if names[p.Name] {
			return fmt.Errorf("entry %d %q: the name is taken", i, p.Name)
		}
		if numbers[p.Number] {
			return fmt.Errorf("entry %d %q: number %d is taken", i, p.Name, p.Number)
		}
		names[p.Name], numbers[p.Number] = true, true
		for _, id := range p.CompIDs {
			if compIDs[id] {
				return fmt.Errorf("entry %d %q: comp_id %q is taken", i, p.Name, id)
			}
			compIDs[id] = true
		}
	}
	if len(compIDs) > maxSessions {
		return fmt.Errorf("participants: %d comp_ids: at most %d sessions (fix.max_sessions)", len(compIDs), maxSessions)
	}
	return nil
}

func (p *Participant) validate() error {
	switch {
	case !wire.IsCompID(p.Name):
		return errors.New("name: " + wire.CompIDRule)
	case p.Number == 0:
		return errors.New("number must be greater than zero")
	case len(p.CompIDs) == 0:
		return errors.New("comp_ids is empty: name at least one")
	case p.STP < book.STPCancelNewest || p.STP > book.STPDecrement:
		return fmt.Errorf("stp %d: unknown", p.STP)
	}
	for _, id := range p.CompIDs {
		if !wire.IsCompID(id) {
			return fmt.Errorf("comp_id %q: %s", id, wire.CompIDRule)
		}
	}
	if _, _, err := p.Credentials(); err != nil {
		return err
	}
	if _, err := p.WalletAddress(); err != nil {
		return err
	}
	for _, l := range p.Limits {
		if l.MaxOpenOrders < 0 || l.BandBps < 0 || l.BandBps > 10_000 {
			return fmt.Errorf("limits %q: max_open_orders must not be negative, band_bps 0 to 10000", l.Symbol)
		}
	}
	return nil
}

// Credentials returns the password's hash and the key that prove a Logon; nil = no logon by
// it.
func (p *Participant) Credentials() (hash *PasswordHash, key *[32]byte, err error) {
	if p.PasswordHash == "" && p.Ed25519 == "" {
		return nil, nil, errors.New("password_hash and ed25519 are empty: set at least one")
	}
	if p.PasswordHash != "" {
		if hash, err = parseHash(p.PasswordHash); err != nil {
			return nil, nil, fmt.Errorf("password_hash: %w", err)
		}
	}
	if p.Ed25519 != "" {
		parsed, err := parseKey(p.Ed25519)
		if err != nil {
			return nil, nil, fmt.Errorf("ed25519: %w", err)
		}
		key = &parsed
	}
	return hash, key, nil
}

// WalletAddress returns the account of the participant's claims; zero = it has none.
func (p *Participant) WalletAddress() (a market.Address, err error) {
	if p.Wallet == "" {
		return a, nil
	}
	// The zero address is the system program.
	if !wire.ParseBase58(a[:], p.Wallet) || a == (market.Address{}) {
		return market.Address{}, errors.New("wallet: must be a Solana account, 32 bytes in base58")
	}
	return a, nil
}

// LimitOn returns the participant's own limits on an instrument; ok is false if it has
// none.
func (p *Participant) LimitOn(symbol string) (l Limit, ok bool) {
	for _, entry := range p.Limits {
		if entry.Symbol == symbol || entry.Symbol == AnySymbol {
			l, ok = entry, true
		}
	}
	return l, ok
}

// Limits returns l in the engine's units for an instrument. A notional is rounded down to
// a whole tick × lot.
func (l *Limit) Limits(in *market.Instrument) (engine.Limits, error) {
	var e engine.Limits
	if l.MaxQty != "" {
		q, err := in.ParseQty([]byte(l.MaxQty))
		if err != nil {
			return e, fmt.Errorf("%s: max_qty %q: %w", in.Symbol, l.MaxQty, err)
		}
		e.MaxQty = q
	}
	if l.MaxNotional != "" {
		n, err := in.ParseTickLotsFloor([]byte(l.MaxNotional))
		if err != nil {
			return e, fmt.Errorf("%s: max_notional %q: %w", in.Symbol, l.MaxNotional, err)
		}
		e.MaxNotional = n
	}
	if l.MaxOpenOrders > math.MaxInt32 {
		return e, fmt.Errorf("%s: max_open_orders %d: at most %d", in.Symbol, l.MaxOpenOrders, math.MaxInt32)
	}
	e.MaxOpenOrders, e.BandBps = int32(l.MaxOpenOrders), uint16(l.BandBps)
	return e, e.Validate()
}
