package solana

import sdk "github.com/gagliardetto/solana-go"

// The programs that we call or recognize, by their addresses on every cluster.
// The bytes are checked against their texts by a test.
var (
	// SystemProgram moves lamports and creates accounts. Its address is zero.
	SystemProgram = Address(sdk.SystemProgramID)
	// TokenProgram is the classic SPL Token program.
	TokenProgram = Address(sdk.TokenProgramID)
	// Token2022Program is the token program with extensions.
	Token2022Program = Address(sdk.Token2022ProgramID)
	// AssociatedTokenProgram creates each wallet's account of a mint.
	AssociatedTokenProgram = Address(sdk.SPLAssociatedTokenAccountProgramID)
	// MemoProgram writes a text into a transaction; MemoV1Program is its first
	// version, still called by old wallets.
	MemoProgram   = Address(sdk.MemoProgramID)
	MemoV1Program = Address(sdk.MemoProgramIDV1)
	// ComputeBudgetProgram sets a transaction's limit and price.
	ComputeBudgetProgram = Address(sdk.ComputeBudget)
	// NativeMint is the mint of wrapped SOL in the classic token program.
	NativeMint = Address(sdk.WrappedSol)
	// ManifestProgram, SerumProgram (v3), OpenBookProgram (its fork, of the same
	// layout) and OpenBookV2Program keep order books.
	ManifestProgram   = mustParse("MNFSTqtC93rEfYHB6hF82sKdZpUDFWkViLByLd1k1Ms")
	SerumProgram      = mustParse("9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin")
	OpenBookProgram   = mustParse("srmqPvymJeFKQ4zGQed1GFppgkRHL9kaELCbyksJtPX")
	OpenBookV2Program = mustParse("opnb2LAfJYbRMAHHvqjCwQxanZn7ReEHp1k81EohpZb")
	// RaydiumCPMMProgram keeps constant-product pools.
	RaydiumCPMMProgram = mustParse("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C")
	// ClockSysvar tells the slot and the time of the bank that is read;
	// SysvarOwner owns it.
	ClockSysvar = Address(sdk.SysVarClockPubkey)
	SysvarOwner = mustParse("Sysvar1111111111111111111111111111111111111")
)

// known reads an address that is written in this package.
func mustParse(text string) Address {
	a, err := ParseAddress(text)
	if err != nil {
		panic(err) // a constant of ours is misspelt
	}
	return a
}

// IsTokenProgram reports whether a is one of the two token programs.
func IsTokenProgram(a Address) bool { return a == TokenProgram || a == Token2022Program }

// IsMemoProgram reports whether a is one of the two memo programs.
func IsMemoProgram(a Address) bool { return a == MemoProgram || a == MemoV1Program }
