package catalog

import (
	"blockdesk/market"
)

// Facts is everything that the documents are made of, at one moment. Slices and
// what pointers lead to must not change any more.
type Facts struct {
	// At is when the facts were put together; they stand for a cycle (description,
	// 1.4).
	At      Time
	Service Service
	URLs    URLs
	// Tokens are those of the pairs and USDC, each once, in the order of the
	// configuration.
	Tokens []Token
	// Pairs are all instruments, in the order of the configuration. The first one
	// is canonical.
	Pairs []Pair
	Chain Chain
	// Snapshots are the recorded states of the market, newest first.
	Snapshots []Snapshot
	Desk      Desk
}

// Service is what the configuration says of who runs this.
type Service struct {
	Name     string
	Operator string
	Market   string // the market's name
	Website  string // URL; may be empty
	GitHub   string // URL; may be empty
	// Build identifies the program that runs.
	Build Build
	// FeeBps is the fixed fee, 1/10,000 of the payment (description, 1.11).
	FeeBps uint16
	// Limits are the rate limits of what is read here, a client IP.
	Limits Limits
	// Network is where trades execute, "solana-mainnet-beta"; ProgramID is the
	// DEX's program there, empty without a chain.
	Network   string
	ProgramID string
	// ConfiguredAt is since when the configuration is in force. Documents that it
	// alone makes bear this time and no other, so that they stay the same bytes.
	ConfiguredAt Time
	// Listed is the edition of the token list; zero = unknown, and the list is
	// then 1.0.0 of ConfiguredAt.
	TokenListEdition Edition
}

// Limits are rate limits in requests a minute; 0 = none.
type Limits struct{ Market, MarketBurst, Partner, PartnerBurst int }

// Build is what a reader can hold a running program to.
type Build struct {
	Version        string
	SourceCommit   string // 40 hexadecimal digits; empty = unknown
	ExecutableHash string // "sha256:" and 64 hexadecimal digits; empty = unknown
}

// URLs are the public addresses, without a slash at the end.
type URLs struct{ Base, API, WS, Mirror, Native string }

// Role is what a token is for.
type Role uint8

const (
	RoleBase Role = iota + 1
	RoleQuote
	RoleSettlement
)

// String returns the wire word of the description (2.7); settlement is our
// choice.
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
	Symbol        string // as the pairs name it
	OnchainSymbol string // where the chain's metadata differ; may be empty
	Name          string
	Decimals      uint8
	Role          Role
	LogoURI       string // may be empty
	MetadataURI   string // may be empty
	ImageURI      string // where the image comes from; may be empty
	ImageIPFS     string // ipfs:// URI of it; may be empty
	ImageGateway  string // http URL of the same; may be empty
	Supply        *market.Amount
	// CoinMarketCapID is its number in that catalog; nil = it has none.
	CoinMarketCapID *uint64
	Accounts        []Account // observed on chain
}

// AccountRole says what an observed account holds tokens for (description, 2.7).
type AccountRole uint8

const (
	GuaranteeReserve AccountRole = iota + 1
	FeeVaultBase
	FeeVaultQuote
	PoolVault
	DeskInventory
)

// String returns the wire word; the last two are our choice.
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
	Pool      string // address of the pool it belongs to; empty = none
	PoolLabel string
	Slot      uint64
}

// Pair is one instrument at the moment of the facts.
type Pair struct {
	Symbol, Base, Quote string // Base and Quote are Token.Symbol
	Source              market.BookSource
	Halted              bool
	// Unseen: another group has it and has not been reached lately, so nothing
	// that changes is known.
	Unreachable       bool
	PriceDecimals     uint8
	QtyDecimals       uint8
	Tick, Lot, MinQty Decimal

	// Last, Bid and Ask are in quote units; nil = none. A mirrored book that is not
	// the chain's of now has neither bid nor ask here.
	Last, Bid, Ask  *Decimal
	High24h, Low24h *Decimal
	LastAt          Time
	LastTrade       market.TradeID // 0 = none
	LastSignature   string         // of the transaction that it was on chain; empty = it was on no chain
	Side            market.Side
	LastQty         *Decimal
	BaseVolume24h   Decimal
	QuoteVolume24h  Decimal
	Trades24h       uint64
	Epoch           Epoch
	Seq             uint64  // of the ticker, the same as the WebSocket's
	Candle          *Candle // the newest hour with a trade; nil = none

	// PriceUSD is one base unit in dollars, 0 where nothing prices it, and where
	// it comes from.
	PriceUSD    market.USDPrice
	PriceSource PriceSource
	// Floor is the lowest price that the desk's policy lets it sell at; 0 = there
	// is none.
	Floor market.USDPrice
	// VisibleUSD is what the displayed book holds on both sides; GuaranteeUSD what
	// the guarantee accounts hold at PriceUSD. Rounded down.
	VisibleUSD, GuaranteeUSD market.USD

	// ReadAt is when a mirrored pair was last read from the chain; 0 = never since
	// the start, or it is matched.
	ReadAt  Time
	Pool    *Pool // on chain; nil = none
	Windows Windows
	Totals  Totals
	// Reasons are why what the chain tells of the pair is degraded, beside those
	// that follow from the other members.
	Reasons []string
}

// Candle is one interval of trades.
type Candle struct {
	Open                    Time
	O, H, L, C              Decimal
	BaseVolume, QuoteVolume Decimal
	Trades                  uint64
}

// PriceSource says what a price is from (degradation_state.price_source; our
// words but for the one that the description shows).
type PriceSource uint8

const (
	NoPrice PriceSource = iota + 1
	FromBook
	FromOperator
	FromChainBook
	FromVaultSnapshot
)

// String returns the wire word.
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

// Pool is what the chain says of a pool (description, 2.5: onchain_pool_state).
type Pool struct {
	Address, Program      string
	Layout                string // how it is read: "raydium_cpmm", "vault_pair"
	BaseMint, QuoteMint   string
	BaseVault, QuoteVault string
	LPMint                string // may be empty
	BaseAtoms, QuoteAtoms market.Amount
	BaseDecimals          uint8
	QuoteDecimals         uint8
	FeeBps                *uint16         // the program's own; nil = unknown
	Spot                  market.USDPrice // 0 = unknown
	// Slot is what it was read as of; 0 = it has not been read yet, and but for
	// what the configuration says nothing is known of it.
	Slot uint64
	At   Time
	// BaseFees and QuoteFees are collected on chain, raw; nil = unknown.
	BaseFees, QuoteFees *market.Amount
}

// WindowStatus says what a window's figures rest on (rolling_windows).
type WindowStatus uint8

const (
	WindowExact WindowStatus = iota + 1
	WindowNoTrades
	WindowUnproven
)

// Window is a span of time up to the facts' moment.
type Window struct {
	Status       WindowStatus
	Why          string     // the word for why it is unproven; empty = window_not_proven
	VolumeUSD    market.USD // zero unless exact
	Trades       uint64
	DeltaPercent *Percent // nil = no reference trade
	ReferenceAt  Time     // of the trade that the change is counted from
}

// Windows are the rolling windows of one pair.
type Windows struct {
	Day, Week Window
	LastAt    Time // of the newest trade that is indexed
}

// Totals count from the beginning of what was recorded.
type Totals struct {
	OnchainSwaps, ReconstructedSwaps uint64
	OnchainUSD, ReconstructedUSD     market.USD
	// Trades and their volume in our own book, on which no fee is taken; 0 for a
	// mirrored pair.
	MatchedTrades uint64
	MatchedUSD    market.USD
	// FeesBase, FeesQuote and FeesUnknown are raw, as the chain shows them, and
	// FeesUSD the same in dollars.
	FeesBase, FeesQuote, FeesUnknown Decimal
	FeesUSD                          market.USD
	Traders                          uint64
	TradersFrom                      string // how they were counted
}

// Chain is what is known of the chain and of the nodes that tell it.
type Chain struct {
	Configured bool
	// Synced: what was read last is not stale. Where the canonical pair is
	// mirrored, this, SyncedAt, Slot and LastSig are of that pair.
	Synced   bool
	SyncedAt Time
	Slot     uint64
	LastSig  string
	// Reasons are why what the chain tells is degraded for all pairs, beside those
	// that follow from the other members.
	Reasons    []string
	Failover   bool   // a fallback is in use
	Selection  string // selection_mode
	Primary    string // URLs, without secrets
	Fallbacks  []string
	Active     string
	Providers  []Provider
	LatencyMS  *int64
	MaxSlot    uint64 // the highest that any node has shown
	SlotBehind *uint64
}

// Provider is one upstream node.
type Provider struct {
	URL        string // without secrets
	Available  bool
	LatestSlot uint64
	LatencyMS  *int64
	LastOkAt   Time
	LastError  string // empty = none
}

// Snapshot is a recorded state of the market (description, 2.6).
type Snapshot struct {
	Key, Label, Heading   string
	At                    Time
	Pool, LPMint          string
	BaseVault, QuoteVault Decimal
	// UserBase and UserQuote are fees, held in accounts of their own or still in the
	// vaults; the totals are the vaults' and such accounts', each atom once.
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

// Desk sums up what the RFQ desk has promised and delivered.
type Desk struct {
	Enabled     bool
	OpenTickets uint64
	// Capacity and Available are of open tickets. Reserved is that of claims whose
	// end is open (reserved, paid, cosigned, delivering), Settled that of those
	// that were delivered, of all tickets that the desk still has.
	CapacityUSD, AvailableUSD, ReservedUSD, SettledUSD market.USD
	// UnderWay are signed transactions whose end is not known.
	UnderWay uint64
	// RefundsDue are payments that are owed back, in atoms of their rail.
	RefundsDue              uint64
	RefundsUSDC, RefundsSOL market.Amount
}
