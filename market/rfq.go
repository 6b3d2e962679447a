package market

// USD is an amount in 10^-6 dollars, which is one USDC atom: the desk values a USDC at
// one dollar (our choice).
type USD uint64

// USDPrice is the price of one whole unit of an asset, in 10^-9 dollars. 0 is no price.
type USDPrice uint64

// Decimals of USD and USDPrice.
const (
	USDDecimals      = 6
	USDPriceDecimals = 9
)

// MaxUSDPrice is a billion dollars per unit.
const MaxUSDPrice USDPrice = 1_000_000_000_000_000_000

// MaxBps is 100 % in basis points.
const MaxBps = 10_000

// Address is the address of a Solana account: a wallet, a mint, a program.
type Address [32]byte

// Rail is a payment asset (docs/specification.md 2.2). The numbers are on disk and never
// change.
type Rail uint8

const (
	RailUSDC Rail = 1
	RailSOL  Rail = 2
	// RailCount is one more than the largest Rail.
	RailCount = 3
)

// railNames is in the order of rail_priority.
var railNames = [RailCount]string{RailUSDC: "USDC", RailSOL: "SOL"}

// String returns the name of the rail in messages.
func (r Rail) String() string {
	if r.Valid() {
		return railNames[r]
	}
	return "unknown"
}

// Valid reports whether r is one of the rails.
func (r Rail) Valid() bool { return r >= RailUSDC && r < RailCount }

// Decimals returns the decimals of the rail's asset: a USDC is 10^6 atoms, a SOL 10^9
// lamports. r must be Valid.
func (r Rail) Decimals() int {
	if r == RailSOL {
		return 9
	}
	return USDDecimals
}

// ParseRail parses what String writes.
func ParseRail(text []byte) (Rail, bool) {
	for r := RailUSDC; r < RailCount; r++ {
		if string(text) == railNames[r] {
			return r, true
		}
	}
	return 0, false
}

// Rails is a set of rails: bit r-1 for Rail r.
type Rails uint8

// AllRails is the set of all rails.
const AllRails Rails = 1<<(RailCount-1) - 1

// Has reports whether r is in the set.
func (s Rails) Has(r Rail) bool { return r.Valid() && s&(1<<(r-1)) != 0 }

// With returns the set with r, which must be Valid.
func (s Rails) With(r Rail) Rails { return s | 1<<(r-1) }

// FillUSD is the number of a fill size, 1..FillCount (docs/specification.md 1.3). The
// numbers are on disk and never change.
type FillUSD uint8

// FillCount is the number of fill sizes.
const FillCount = 6

// fillDollars holds the fill sizes, fillTexts their text in messages.
var (
	fillDollars = [FillCount + 1]uint64{0, 250, 1000, 25_000, 250_000, 1_000_000, 2_500_000}
	fillTexts   = [FillCount + 1]string{"0", "250", "1000", "25000", "250000", "1000000", "2500000"}
)

// Valid reports whether f is one of the fill sizes.
func (f FillUSD) Valid() bool { return f >= 1 && f <= FillCount }

// USD returns the size of the fill. f must be Valid.
func (f FillUSD) USD() USD { return USD(fillDollars[f] * 1_000_000) }

// String returns the size in whole dollars.
func (f FillUSD) String() string {
	if f.Valid() {
		return fillTexts[f]
	}
	return "unknown"
}

// ParseFill parses what String writes.
func ParseFill(text []byte) (FillUSD, bool) {
	for f := FillUSD(1); f <= FillCount; f++ {
		if string(text) == fillTexts[f] {
			return f, true
		}
	}
	return 0, false
}

// TicketID numbers the tickets of one engine without gaps, from 1 or from FirstTicket of
// its shard. 0 is no ticket.
type TicketID uint64

// TrancheID numbers the tranches of one ticket from 1. 0 is no tranche.
type TrancheID uint16

// QuoteID is random, so that clients cannot guess each other's quotes. 0 is no quote.
type QuoteID uint64

// ClaimID is random, so that clients cannot guess each other's claims. 0 is no claim.
type ClaimID uint64

// ShardID numbers the shards of the instruments, 1..MaxShards; 0 means that there is
// only one. The ids that a shard issues contain its number: tickets by their range,
// quotes and claims in the highest shardBits bits. The numbers are on disk and known to
// clients, and never change.
type ShardID uint8

const (
	shardBits = 6
	// MaxShards is the most shards.
	MaxShards = 1<<shardBits - 1
	// TicketsPerShard is the number of ticket ids of a shard.
	TicketsPerShard = 1_000_000_000
)

// FirstTicket returns the first ticket id of a shard, which must be 1..MaxShards.
func FirstTicket(g ShardID) TicketID { return TicketID(g-1)*TicketsPerShard + 1 }

// Shard returns the shard whose range contains id, or 0.
func (id TicketID) Shard() ShardID {
	if id == 0 || id > MaxShards*TicketsPerShard {
		return 0
	}
	return ShardID((id-1)/TicketsPerShard + 1)
}

// Shard returns the shard that issued the claim. It is meaningless for a claim of a
// service without shards.
func (id ClaimID) Shard() ShardID { return ShardID(id >> (64 - shardBits)) }

// ShardWord returns the random word with the shard's number in it, as the id of a quote
// or claim. For shard 0 it returns word itself.
func ShardWord(g ShardID, word uint64) uint64 {
	if g == 0 {
		return word
	}
	return word<<shardBits>>shardBits | uint64(g)<<(64-shardBits)
}

// OperatorID numbers the configured operators from 1; 0 is the service itself.
type OperatorID uint16
