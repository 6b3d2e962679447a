package cosign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Limits of a file of limits.
const (
	// MaxLimitsFile bounds the file in bytes.
	MaxLimitsFile = 64 << 10
	// MaxLimitTokens bounds the tokens in it, MaxPayees the payees.
	MaxLimitTokens = 64
	MaxPayees      = 16

	// maxCeilings are the tokens', two of refunds, and the network's.
	maxCeilings = MaxLimitTokens + 3

	limitsVersion = 1
)

// The windows of the ceilings.
const (
	hourWindow = time.Hour
	dayWindow  = 24 * time.Hour
)

// ErrLimits says that a file is no valid file of limits.
var ErrLimits = errors.New("cosign: the file of limits is not valid")

// Limits are what a signer's process allows a gateway, which it does not trust: to which
// wallets clients pay, the lowest price of each token, and how much may leave in an hour
// and in a day. Immutable.
type Limits struct {
	payees map[solana.Address]bool // accounts: wallets for SOL, token accounts for USDC
	usdc   solana.Address
	tokens map[solana.Address]tokenLimit
	// ceilings has one for everything that may leave.
	ceilings map[asset]ceiling
	order    []asset // of the file
}

// tokenLimit is a token's lowest price, by rail.
type tokenLimit struct{ floor [market.RailCount]floor }

// floor is a lowest price: at least Payment atoms for each Base atoms. Zero: the token
// is not sold on the rail.
type floor struct{ payment, base uint64 }

// allows reports whether payment ÷ base is at least the floor; exact.
func (f floor) allows(payment, base uint64) bool {
	if f.base == 0 {
		return false
	}
	paidHi, paidLo := bits.Mul64(payment, f.base)
	leastHi, leastLo := bits.Mul64(base, f.payment)
	return paidHi > leastHi || paidHi == leastHi && paidLo >= leastLo
}

// LimitClass is what a ceiling is for. The numbers are on the wire and on disk: frozen.
type LimitClass uint8

const (
	// LimitToken: base atoms of a token, in atomic transactions and deliveries.
	LimitToken LimitClass = 1
	// LimitRefund: atoms of USDC or lamports, in refunds.
	LimitRefund LimitClass = 2
	// LimitNetwork: lamports for the fees and rents of all transactions.
	LimitNetwork LimitClass = 3
)

// String returns the machine word.
func (c LimitClass) String() string {
	switch c {
	case LimitToken:
		return "token"
	case LimitRefund:
		return "refund"
	case LimitNetwork:
		return "network"
	default:
		return "class?"
	}
}

// asset is what a ceiling counts: of a class, a mint; zero is SOL.
type asset struct {
	class LimitClass
	mint  solana.Address
}

// ceiling is the most that may leave in any hour and any day, in atoms.
type ceiling struct{ hour, day uint64 }

// The file, as JSON. Numbers are texts, because amounts may be above 2^53.
type (
	limitsFile struct {
		Version  int              `json:"version"`
		USDCMint string           `json:"usdc_mint"`
		Payees   []string         `json:"payees"`
		Tokens   []limitsToken    `json:"tokens"`
		Refunds  *limitsRefunds   `json:"refunds"`
		Network  *limitsOfCeiling `json:"network"`
	}
	limitsToken struct {
		Mint      string `json:"mint"`
		FloorUSDC string `json:"floor_usdc"`
		FloorSOL  string `json:"floor_sol"`
		limitsOfCeiling
	}
	limitsRefunds struct {
		USDC *limitsOfCeiling `json:"usdc"`
		SOL  *limitsOfCeiling `json:"sol"`
	}
	limitsOfCeiling struct {
		MaxHour string `json:"max_hour"`
		MaxDay  string `json:"max_day"`
	}
)

// ReadLimits reads a file of limits, which belongs to this process's user and which no
// other user can write or read. docs/operating.md describes its format. Errors:
// [ErrLimits], [ErrKeyFile] for a file that others can access, errors of the file
// system.
func ReadLimits(path string) (*Limits, error) {
	text, err := readPrivate(path, MaxLimitsFile)
	if err != nil {
		return nil, err
	}
	l, err := ParseLimits(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// ParseLimits parses the content of a file of limits. A member that it does not know is
// an error: a misspelt ceiling must not be none. Errors: [ErrLimits].
func ParseLimits(text []byte) (*Limits, error) {
	var in limitsFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLimits, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is text after the end of the JSON", ErrLimits)
	}
	l := &Limits{payees: map[solana.Address]bool{}, tokens: map[solana.Address]tokenLimit{}, ceilings: map[asset]ceiling{}}
	if err := in.into(l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLimits, err)
	}
	return l, nil
}

func (in *limitsFile) into(l *Limits) (err error) {
	switch {
	case in.Version != limitsVersion:
		return fmt.Errorf("version %d: must be %d", in.Version, limitsVersion)
	case len(in.Payees) > MaxPayees || len(in.Tokens) > MaxLimitTokens:
		return fmt.Errorf("%d payees and %d tokens: at most %d and %d", len(in.Payees), len(in.Tokens), MaxPayees, MaxLimitTokens)
	case in.Network == nil:
		return errors.New("network: missing: a limit of fees and rents is required")
	}
	if in.USDCMint != "" {
		if l.usdc, err = solana.ParseAddress(in.USDCMint); err != nil {
			return fmt.Errorf("usdc_mint: %w", err)
		}
	}
	if err := l.addPayees(in.Payees); err != nil {
		return err
	}
	for i := range in.Tokens {
		if err := l.addToken(&in.Tokens[i]); err != nil {
			return fmt.Errorf("token %d: %w", i+1, err)
		}
	}
	if r := in.Refunds; r != nil {
		if r.USDC != nil && in.USDCMint == "" {
			return errors.New("refunds.usdc: set usdc_mint too")
		}
		if err := l.addCeiling(asset{LimitRefund, l.usdc}, r.USDC); err != nil {
			return fmt.Errorf("refunds.usdc: %w", err)
		}
		if err := l.addCeiling(asset{LimitRefund, solana.Address{}}, r.SOL); err != nil {
			return fmt.Errorf("refunds.sol: %w", err)
		}
	}
	if err := l.addCeiling(asset{LimitNetwork, solana.Address{}}, in.Network); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	return nil
}

// addPayees adds the wallets and their USDC accounts, of either token program.
func (l *Limits) addPayees(list []string) error {
	for i, text := range list {
		wallet, err := solana.ParseAddress(text)
		if err != nil || wallet == (solana.Address{}) || l.payees[wallet] {
			return fmt.Errorf("payee %d: %q: must be an address, listed once", i+1, text)
		}
		l.payees[wallet] = true
		if l.usdc == (solana.Address{}) {
			continue
		}
		for _, program := range []solana.Address{solana.TokenProgram, solana.Token2022Program} {
			account, err := solana.TokenAccount(wallet, l.usdc, program)
			if err != nil {
				return fmt.Errorf("payee %d: %w", i+1, err)
			}
			l.payees[account] = true
		}
	}
	return nil
}

func (l *Limits) addToken(in *limitsToken) error {
	mint, err := solana.ParseAddress(in.Mint)
	_, twice := l.tokens[mint]
	if err != nil || mint == (solana.Address{}) || mint == l.usdc || twice {
		return fmt.Errorf("mint %q: must be the address of a token that is sold, listed once", in.Mint)
	}
	var t tokenLimit
	for rail, text := range map[market.Rail]string{market.RailUSDC: in.FloorUSDC, market.RailSOL: in.FloorSOL} {
		if t.floor[rail], err = parseFloor(text); err != nil {
			return fmt.Errorf("floor of %s: %w", rail, err)
		}
	}
	if t.floor[market.RailUSDC].base != 0 && l.usdc == (solana.Address{}) {
		return errors.New("floor_usdc: set usdc_mint too")
	}
	l.tokens[mint] = t
	return l.addCeiling(asset{LimitToken, mint}, &in.limitsOfCeiling)
}

// parseFloor parses "payment/base", both atoms above 0; empty is no price.
func parseFloor(text string) (f floor, err error) {
	if text == "" {
		return f, nil
	}
	payment, base, ok := strings.Cut(text, "/")
	if ok {
		f.payment, err = parseAtoms(payment)
	}
	if ok && err == nil {
		f.base, err = parseAtoms(base)
	}
	if !ok || err != nil {
		return floor{}, fmt.Errorf("%q: must be PAYMENT_ATOMS/BASE_ATOMS, both above 0", text)
	}
	return f, nil
}

func parseAtoms(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err == nil && (n == 0 || text != strconv.FormatUint(n, 10)) {
		err = strconv.ErrSyntax
	}
	return n, err
}

func (l *Limits) addCeiling(a asset, in *limitsOfCeiling) error {
	if in == nil {
		return nil
	}
	hour, err := parseAtoms(in.MaxHour)
	if err != nil {
		return fmt.Errorf("max_hour %q: must be a number of atoms above 0", in.MaxHour)
	}
	day, err := parseAtoms(in.MaxDay)
	if err != nil || day < hour {
		return fmt.Errorf("max_day %q: must be a number of atoms, not below max_hour", in.MaxDay)
	}
	l.ceilings[a] = ceiling{hour, day}
	l.order = append(l.order, a)
	return nil
}

// check returns why a transaction is outside the limits, whatever has left before; 0 if
// it is within. A nil Limits allows everything but refunds, as a signer without a file
// always did.
func (l *Limits) check(d *draft) Refusal {
	if l == nil {
		if d.Kind == Refund {
			return RefusalNoLimits
		}
		return 0
	}
	if d.Kind == Refund {
		if d.refund.Mint != l.usdc && d.refund.Mint != (solana.Address{}) {
			return RefusalToken
		}
		return 0
	}
	t, ok := l.tokens[d.Base]
	if !ok {
		return RefusalToken
	}
	if d.Kind != Cosign {
		return 0
	}
	rail := market.RailUSDC
	switch {
	case d.PayMint == (solana.Address{}):
		rail = market.RailSOL
	case d.PayMint != l.usdc:
		return RefusalToken
	}
	switch {
	case !l.payees[d.PayTo]:
		return RefusalPayee
	case !t.floor[rail].allows(uint64(d.PayAmount), uint64(d.BaseAmount)):
		return RefusalPrice
	}
	return 0
}

// leaves returns what a transaction takes from the desk: the asset, its atoms, and the
// most lamports for the fee and the rent. ok is false if a sum does not fit.
func (d *draft) leaves() (a asset, atoms, lamports uint64, ok bool) {
	lamports = d.network()
	if d.Kind != Refund {
		return asset{LimitToken, d.Base}, uint64(d.BaseAmount), lamports, true
	}
	total, ok := d.refund.Total()
	return asset{LimitRefund, d.refund.Mint}, uint64(total), lamports, ok
}

// The most that the desk pays to the network for one transaction, in lamports: the
// priority fee is capped by package build, two signatures, and the rent of a token
// account with every harmless extension.
const (
	mostPriority     = 1_000_000
	mostBaseFee      = 10_000
	mostRent         = 4_200_000
	mostRefundsTotal = mostPriority + mostBaseFee
)

// network returns the most lamports that the transaction may cost the desk. It ignores
// that a taker may pay the fee or the rent: a bound is enough.
func (d *draft) network() uint64 {
	if d.Kind == Refund {
		return mostRefundsTotal
	}
	return mostRefundsTotal + mostRent
}
