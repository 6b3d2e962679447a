package market

// USD counts millionths of a dollar. One USDC atom is one of them: the desk
// takes a USDC for a dollar (our choice).
type USD uint64

// USDPrice is what one whole unit of an asset costs, in 10^-9 dollars. Zero
// means "no price".
type USDPrice uint64

// Decimals of USD and USDPrice.
const (
	USDDecimals      = 6
	USDPriceDecimals = 9
)

// MaxUSDPrice bounds a price: a billion dollars a unit.
const MaxUSDPrice USDPrice = 1_000_000_000_000_000_000

// MaxBps is the whole, in basis points.
const MaxBps = 10_000

// Address is a Solana account: a wallet, a mint, a program.
type Address [32]byte

// Rail is a way of paying. The numbers are on disk: frozen.
type Rail uint8

const (
	RailUSDC Rail = 1
	RailSOL  Rail = 2
	// RailCount is one more than the largest Rail.
	RailCount = 3
)

// railNames are the wire words, in the order of rail_priority (spec 2.2).
var railNames = [RailCount]string{RailUSDC: "USDC", RailSOL: "SOL"}

// String returns the wire word.
func (r Rail) String() string {
	if r.Valid() {
		return railNames[r]
	}
	return "rail?"
}

// Valid reports whether r is one of the rails.
func (r Rail) Valid() bool { return r >= RailUSDC && r < RailCount }

// Decimals returns how many decimals the rail's asset has: a USDC is 10^6
// atoms, a SOL 10^9. r must be Valid.
func (r Rail) Decimals() int {
	if r == RailSOL {
		return 9
	}
	return USDDecimals
}

// ParseRail reads a wire word, exactly as String writes it.
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

// AllRails is every rail there is.
const AllRails Rails = 1<<(RailCount-1) - 1

// Has reports whether r is in the set.
func (s Rails) Has(r Rail) bool { return r.Valid() && s&(1<<(r-1)) != 0 }

// With returns the set with r, which must be Valid.
func (s Rails) With(r Rail) Rails { return s | 1<<(r-1) }

// FillUSD is a step of the public ladder, 1..FillCount (spec 1.3). The numbers
// are on disk: frozen.
type FillUSD uint8

// FillCount is the number of steps.
const FillCount = 6

// fillDollars are the fill sizes; fillTexts their wire form, in order.
var (
	fillDollars = [FillCount + 1]uint64{0, 250, 1000, 25_000, 250_000, 1_000_000, 2_500_000}
	fillTexts   = [FillCount + 1]string{"0", "250", "1000", "25000", "250000", "1000000", "2500000"}
)

// Valid reports whether f is a step of the ladder.
func (f FillUSD) Valid() bool { return f >= 1 && f <= FillCount }

// USD returns the fill's size. f must be Valid.
func (f FillUSD) USD() USD { return USD(fillDollars[f] * 1_000_000) }

// String returns the wire form, whole dollars.
func (f FillUSD) String() string {
	if f.Valid() {
		return fillTexts[f]
	}
	return "fill?"
}

// ParseFill reads whole dollars exactly as String writes them.
func ParseFill(text []byte) (FillUSD, bool) {
	for f := FillUSD(1); f <= FillCount; f++ {
		if string(text) == fillTexts[f] {
			return f, true
		}
	}
	return 0, false
}

// TicketID numbers the tickets of one engine, without gaps: from 1, or from
// FirstTicket of its group. 0 is none.
type TicketID uint64

// TrancheID numbers the tranches of one ticket from 1. 0 is none.
type TrancheID uint16

// QuoteID is a random number, so that nobody can guess another's. 0 is none.
type QuoteID uint64

// ClaimID is a random number too. 0 is none.
type ClaimID uint64

// ShardID numbers the groups that instruments are split over, 1..MaxShards; 0 is
// none, where they are not split. What a group makes bears its number: tickets in
// their number, quotes and claims in their highest shardBits bits. The numbers
// are on disk and at clients: frozen.
type ShardID uint8

const (
	shardBits = 6
	// MaxShards is the most groups that there are.
	MaxShards = 1<<shardBits - 1
	// TicketsPerShard is how many tickets a group has numbers for.
	TicketsPerShard = 1_000_000_000
)

// FirstTicket returns the first ticket of a group, which must be 1..MaxShards.
func FirstTicket(g ShardID) TicketID { return TicketID(g-1)*TicketsPerShard + 1 }

// Group returns the group whose ticket id is, 0 where no group has such a number.
func (id TicketID) Shard() ShardID {
	if id == 0 || id > MaxShards*TicketsPerShard {
		return 0
	}
	return ShardID((id-1)/TicketsPerShard + 1)
}

// Group returns the group that has made the claim. One of a service that was not
// split has any.
func (id ClaimID) Shard() ShardID { return ShardID(id >> (64 - shardBits)) }

// ShardWord returns a random word with the number of a group in it, for the id of
// a quote or a claim; of group 0 it is the word itself.
func ShardWord(g ShardID, word uint64) uint64 {
	if g == 0 {
		return word
	}
	return word<<shardBits>>shardBits | uint64(g)<<(64-shardBits)
}

// OperatorID numbers the operators that the configuration names, from 1; 0 is
// the service itself.
type OperatorID uint16
