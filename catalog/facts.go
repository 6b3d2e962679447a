package catalog

import (
	"cmp"
	"slices"
	"strings"

	"blockdesk/feed/archive"
	"blockdesk/market"
)

// Facts is the state at one moment from which all documents are made. It is immutable,
// with everything that it points to.
type Facts struct {
	// At is when the facts were computed; they are valid for one Cycle.
	At      Time
	Service Service
	URLs    URLs
	// Tokens are the tokens of the pairs, and USDC, each once, in the order of the
	// configuration.
	Tokens []Token
	// Pairs are all instruments, in the order of the configuration. The first one is
	// the canonical pair.
	Pairs []Pair
	Chain Chain
	// Snapshots are the recorded states of the market, newest first.
	Snapshots []Snapshot
	Desk      Desk
}

// feeBps returns the fee that a trade of the pair pays: a pool's own, if it is known. Our
// own book takes none (our choice), and the fee of a book on chain is not read.
func (p *Pair) feeBps() uint16 {
	if p.Pool == nil || p.Pool.FeeBps == nil {
		return 0
	}
	return *p.Pool.FeeBps
}

// canonical returns the first pair; an empty one if there is none.
func (f *Facts) canonical() *Pair {
	if len(f.Pairs) == 0 {
		return &Pair{}
	}
	return &f.Pairs[0]
}

// pair returns the pair of that symbol. If there is none, or f is nil, it returns nil.
func (f *Facts) pair(symbol string) *Pair {
	if f != nil {
		for i := range f.Pairs {
			if f.Pairs[i].Symbol == symbol {
				return &f.Pairs[i]
			}
		}
	}
	return nil
}

// token returns the token of that symbol; one with nothing but its symbol if the
// configuration does not describe it.
func (f *Facts) token(symbol string) *Token {
	i := slices.IndexFunc(f.Tokens, func(t Token) bool { return t.Symbol == symbol })
	if i < 0 {
		return &Token{Symbol: symbol, Name: symbol}
	}
	return &f.Tokens[i]
}

// priceOf returns the dollar price of a token: the price at the first pair that sells
// it, or one dollar for USDC, which the desk accepts at par; 0 if nothing prices it.
func (f *Facts) priceOf(symbol string) market.USDPrice {
	for i := range f.Pairs {
		if f.Pairs[i].Base == symbol && f.Pairs[i].PriceUSD != 0 {
			return f.Pairs[i].PriceUSD
		}
	}
	if symbol == settlementSymbol {
		return oneDollar
	}
	return 0
}

// PriceUSD returns the price of a pair's base token as the documents publish it, and its
// source. The price is 0 if nothing prices the pair, or f is nil.
func (f *Facts) PriceUSD(symbol string) (market.USDPrice, PriceSource) {
	if p := f.pair(symbol); p != nil {
		return p.PriceUSD, p.PriceSource
	}
	return 0, NoPrice
}

// ChainBook returns when a mirrored pair was last read from the chain (0 = never) and
// whether the documents publish a current bid or ask of it.
func (f *Facts) ChainBook(symbol string) (readAt Time, live bool) {
	if p := f.pair(symbol); p != nil {
		return p.ReadAt, p.Bid != nil || p.Ask != nil
	}
	return 0, false
}

// HasPool reports whether a pair has the pool of that address, read or not.
func (f *Facts) HasPool(address string) bool { return slices.Contains(f.poolAddresses(), address) }

func (f *Facts) poolAddresses() []string {
	all := []string{}
	for i := range f.Pairs {
		if p := f.Pairs[i].Pool; p != nil && !slices.Contains(all, p.Address) {
			all = append(all, p.Address)
		}
	}
	return all
}

// Service describes the service and its operator, from the configuration.
type Service struct {
	Name     string
	Operator string
	Market   string
	Website  string // URL; may be empty
	GitHub   string // URL; may be empty
	Build    Build
	// FeeBps is the fixed fee in basis points of the payment (docs/specification.md 1.11).
	FeeBps uint16
	Limits Limits
	// Network is where trades execute, by NetworkName; ProgramID is the DEX's program
	// there, empty without a chain.
	Network   string
	ProgramID string
	// NetworkUnknown: too few nodes have answered which network they are on, and the
	// configuration names none.
	NetworkUnknown bool
	// ConfiguredAt is when the configuration took effect. Documents that depend on the
	// configuration only carry no other time, so that their bytes stay the same.
	ConfiguredAt Time
	// Listed is the edition of the token list; zero = unknown, and the list is
	// then 1.0.0 of ConfiguredAt.
	TokenListEdition Edition
}

// Limits are the rate limits of one client IP in requests a minute; 0 = none.
type Limits struct{ Market, MarketBurst, Partner, PartnerBurst int }

// Build identifies the running program.
type Build struct {
	Version        string
	SourceCommit   string // 40 hexadecimal digits; empty = unknown
	ExecutableHash string // "sha256:" and 64 hexadecimal digits; empty = unknown
}

// URLs are the public addresses, without a slash at the end.
type URLs struct{ Base, API, WS, Mirror, Native string }

// Role is a token's use.
type Role uint8

const (
	RoleBase Role = iota + 1
	RoleQuote
	RoleSettlement
)

// String returns the JSON value (docs/specification.md 2.7); "settlement" is our choice.
func (r Role) String() string {
	switch r {
	case RoleBase:
		return "base"
	case RoleQuote:
		return "quote"
	case RoleSettlement:
		return "settlement"
	default:
		return ""
	}
}

// Token is one mint.
type Token struct {
	Mint          string // base58; empty = not configured
	Symbol        string // as in the pairs' symbols
	OnchainSymbol string // of the on-chain metadata, if it differs; may be empty
	Name          string
	Decimals      uint8
	Role          Role
	LogoURI       string // may be empty
	MetadataURI   string // may be empty
	ImageURI      string // source of the image; may be empty
	ImageIPFS     string // its ipfs:// URI; may be empty
	ImageGateway  string // its http URL; may be empty
	Supply        *market.Amount
	// CoinMarketCapID is the token's id at CoinMarketCap; nil = none.
	CoinMarketCapID *uint64
	Accounts        []Account // observed on chain
}

// AccountRole says what an observed account is for (docs/specification.md 2.7).
type AccountRole uint8

const (
	GuaranteeReserve AccountRole = iota + 1
	FeeVaultBase
	FeeVaultQuote
	PoolVault
	DeskInventory
)

// String returns the JSON value; the last two are our choice.
func (r AccountRole) String() string {
	switch r {
	case GuaranteeReserve:
		return "guarantee_reserve"
	case FeeVaultBase:
		return "fee_vault_base"
	case FeeVaultQuote:
		return "fee_vault_quote"
	case PoolVault:
		return "pool_vault"
	case DeskInventory:
		return "desk_inventory"
	default:
		return ""
	}
}

// Account is a token account whose balance was read from the chain.
type Account struct {
	Address   string
	Amount    market.Amount
	Role      AccountRole
	Label     string
	Pool      string // address of its pool; empty = none
	PoolLabel string
	Slot      uint64
}

// Pair is one instrument at the moment of the facts.
type Pair struct {
	Symbol, Base, Quote string // Base and Quote are Token.Symbol
	Source              market.BookSource
	// Halted: orders do not trade as they come, because of a halt or an auction.
	Halted bool
	// Unreachable: the instrument belongs to another shard that has not been
	// reached lately, so only its configuration is known.
	Unreachable       bool
	PriceDecimals     uint8
	QtyDecimals       uint8
	Tick, Lot, MinQty Decimal
	// Defined is when the instrument was defined; nil = unknown.
	Defined *archive.Definition

	// Last, Bid and Ask are in quote units; nil = none. A mirrored book that is not
	// current has neither bid nor ask.
	Last, Bid, Ask  *Decimal
	High24h, Low24h *Decimal
	LastAt          Time
	LastTrade       market.TradeID // 0 = none
	LastSignature   string         // of the trade's transaction; empty = matched here
	Side            market.Side
	LastQty         *Decimal
	BaseVolume24h   Decimal
	QuoteVolume24h  Decimal
	Trades24h       uint64
	Epoch           Epoch
	Seq             uint64  // of the ticker, as on the WebSocket
	Candle          *Candle // the newest hour with a trade; nil = none

	// PriceUSD is the price of one base unit in dollars; 0 = nothing prices the pair.
	PriceUSD    market.USDPrice
	PriceSource PriceSource
	// Floor is the lowest price at which the desk's policy sells; 0 = none.
	Floor market.USDPrice
	// NoBook: the pair is mirrored from a pool alone.
	NoBook bool
	// VisibleUSD is the value of both sides of the displayed book, or of the pool's vaults
	// if the pair has no book; GuaranteeUSD that of the guarantee accounts at PriceUSD.
	// Rounded down.
	VisibleUSD, GuaranteeUSD market.USD

	// ReadAt is when a mirrored pair was last read from the chain; 0 = never since the
	// start, or the pair is matched here.
	ReadAt  Time
	Pool    *Pool // on chain; nil = none
	Windows Windows
	Totals  Totals
	// Reasons are why the pair's chain data is degraded, beside those that follow from
	// the other members.
	Reasons []string
}

// Candle is one interval of trades.
type Candle struct {
	Open                    Time
	O, H, L, C              Decimal
	BaseVolume, QuoteVolume Decimal
	Trades                  uint64
}

// PriceSource is where a price comes from (degradation_state.price_source). All values
// but verified_vault_snapshot are our choice.
type PriceSource uint8

const (
	NoPrice PriceSource = iota + 1
	FromBook
	FromOperator
	FromChainBook
	FromVaultSnapshot
)

// String returns the JSON value.
func (s PriceSource) String() string {
	switch s {
	case FromBook:
		return "matched_book"
	case FromOperator:
		return "operator_anchor"
	case FromChainBook:
		return "onchain_book"
	case FromVaultSnapshot:
		return "verified_vault_snapshot"
	default:
		return "unavailable"
	}
}

// Pool is an on-chain pool (onchain_pool_state, docs/specification.md 2.5).
type Pool struct {
	Address, Program      string
	Layout                string // "raydium_cpmm" or "vault_pair"
	BaseMint, QuoteMint   string
	BaseVault, QuoteVault string
	LPMint                string // may be empty
	BaseAtoms, QuoteAtoms market.Amount
	BaseDecimals          uint8
	QuoteDecimals         uint8
	FeeBps                *uint16         // the program's own; nil = unknown
	Spot                  market.USDPrice // 0 = unknown
	// Slot is the slot of the reading; 0 = not read yet, and only the configured members
	// are known.
	Slot uint64
	At   Time
	// BaseFees and QuoteFees are the fees collected on chain, in atoms; nil = unknown.
	BaseFees, QuoteFees *market.Amount
}

// WindowStatus says whether a window's figures are proven (rolling_windows).
type WindowStatus uint8

const (
	WindowExact WindowStatus = iota + 1
	WindowNoTrades
	WindowUnproven
)

// Window is a time span that ends at Facts.At.
type Window struct {
	Status       WindowStatus
	Why          string     // why it is unproven, as in JSON; empty = window_not_proven
	VolumeUSD    market.USD // zero unless exact
	Trades       uint64
	DeltaPercent *Percent // price change; nil = no reference trade
	ReferenceAt  Time     // time of the reference trade
}

// Windows are the rolling windows of one pair.
type Windows struct {
	Day, Week Window
	LastAt    Time // of the newest indexed trade
}

// Totals are cumulative from the beginning of the records.
type Totals struct {
	OnchainSwaps, ReconstructedSwaps uint64
	OnchainUSD, ReconstructedUSD     market.USD
	// ReconstructedFeesUSD are the fees that the reconstructed snapshot had recorded.
	ReconstructedFeesUSD market.USD
	// MatchedTrades and MatchedUSD are of our own book, which charges no fee; 0 for a
	// mirrored pair.
	MatchedTrades uint64
	MatchedUSD    market.USD
	// FeesBase, FeesQuote and FeesUnknown are the fees on chain, and FeesUSD their value.
	FeesBase, FeesQuote, FeesUnknown Decimal
	FeesUSD                          market.USD
	// Sales are the desk's settled claims of the pair. They are in no figure of the book.
	Sales       Sales
	Traders     uint64
	TradersFrom string // how they were counted
}

// Sales are settled claims: since the desk's first one, and those of the last 24 hours.
// FeesUSD is what they paid, each at the rate of its own terms.
type Sales struct {
	Count, DayCount            uint64
	VolumeUSD, FeesUSD, DayUSD market.USD
}

// Chain is the state of the chain and of the RPC nodes.
type Chain struct {
	Configured bool
	// Synced: the last reading is not stale. If the canonical pair is mirrored, Synced,
	// SyncedAt, Slot and LastSig describe that pair.
	Synced   bool
	SyncedAt Time
	Slot     uint64
	LastSig  string
	// Reasons are why chain data is degraded for all pairs, beside those that follow from
	// the other members.
	Reasons    []string
	Failover   bool   // a fallback is in use
	Selection  string // selection_mode
	Primary    string // URLs, without secrets
	Fallbacks  []string
	Active     string
	Providers  []Provider
	LatencyMS  *int64
	MaxSlot    uint64 // the highest slot of any node
	SlotBehind *uint64
}

// Provider is one RPC node.
type Provider struct {
	URL        string // without secrets
	Available  bool
	LatestSlot uint64
	LatencyMS  *int64
	LastOkAt   Time
	LastError  string // empty = none
}

// Snapshot is a recorded state of the market (docs/specification.md 2.6).
type Snapshot struct {
	Key, Label, Heading   string
	At                    Time
	Pool, LPMint          string
	BaseVault, QuoteVault Decimal
	// UserBase and UserQuote are fees, in accounts of their own or still in the vaults;
	// the totals count the vaults and those accounts, each atom once.
	UserBase, UserQuote   Decimal
	TotalBase, TotalQuote Decimal
	Swaps, Traders        uint64
	VolumeUSD, FeesUSD    market.USD
	VolumeTokens          Decimal // of the base token
	FeesTokens            Decimal
	FeeBps                uint16
	Price                 market.USDPrice // 0 = unknown
	Source, Reference     string
}

// Desk sums up the RFQ desk's tickets and claims.
type Desk struct {
	Enabled     bool
	OpenTickets uint64
	// CapacityUSD and AvailableUSD are those of open tickets. ReservedUSD is the value of
	// open claims (reserved, paid, cosigned, delivering), SettledUSD that of all claims that
	// ever settled, and FeesUSD the fees in it, each at the rate of its own terms.
	CapacityUSD, AvailableUSD, ReservedUSD, SettledUSD, FeesUSD market.USD
	// UnderWay is the number of signed transactions with an open outcome.
	UnderWay uint64
	// RefundsDue is the number of refunds due; the amounts are in atoms of their rail.
	RefundsDue              uint64
	RefundsUSDC, RefundsSOL market.Amount
	// Unmatched is the number of payments that match no claim; the amounts are in atoms.
	Unmatched                   uint64
	UnmatchedUSDC, UnmatchedSOL market.Amount
}

// Edition is the version of a token list and the time of its last change. A restart that
// changes no token keeps both.
type Edition struct {
	Version ListVersion
	At      Time
}

// ListVersion is a token list's semantic version.
type ListVersion struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	Patch int `json:"patch"`
}

// Constants of the service (docs/specification.md 1.7, 1.11, 2 and 9).
const (
	APIVersion       = "1.1.0"
	ControlChainID   = 1492
	ControlChainRole = "orchestration and runtime chain; not a JSON-RPC endpoint"
	settlementSymbol = "USDC"
	settlementRole   = "canonical_settlement_rail"
)

// Ticker returns the aggregators' name of a pair: "SLUSD_USDC".
func Ticker(symbol string) string { return strings.ReplaceAll(symbol, "/", "_") }

// asset returns the aggregators' id of a token: its mint, or its symbol without one.
func (t *Token) asset() string { return cmp.Or(t.Mint, t.Symbol) }

// wasRead reports whether there is a pool and it was read.
func (p *Pool) wasRead() bool { return p != nil && p.Slot > 0 }
