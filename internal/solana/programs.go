package solana

import sdk "github.com/gagliardetto/solana-go"

// The programs and accounts that we use, with their addresses on every cluster. A test
// compares the bytes with the texts.
var (
	// SystemProgram moves lamports and creates accounts. Its address is zero.
	SystemProgram = Address(sdk.SystemProgramID)
	// TokenProgram is the classic SPL Token program.
	TokenProgram = Address(sdk.TokenProgramID)
	// Token2022Program is the token program with extensions.
	Token2022Program = Address(sdk.Token2022ProgramID)
	// AssociatedTokenProgram creates each wallet's account of a mint.
	AssociatedTokenProgram = Address(sdk.SPLAssociatedTokenAccountProgramID)
	// MemoProgram writes a text into a transaction. Old wallets still call
	// MemoV1Program, its first version.
	MemoProgram   = Address(sdk.MemoProgramID)
	MemoV1Program = Address(sdk.MemoProgramIDV1)
	// ComputeBudgetProgram sets a transaction's limit and price.
	ComputeBudgetProgram = Address(sdk.ComputeBudget)
	// NativeMint is the mint of wrapped SOL in the classic token program.
	NativeMint = Address(sdk.WrappedSol)
	// ManifestProgram, SerumProgram (v3), OpenBookProgram (its fork, with the same
	// layout) and OpenBookV2Program are order books.
	ManifestProgram   = mustParse("MNFSTqtC93rEfYHB6hF82sKdZpUDFWkViLByLd1k1Ms")
	SerumProgram      = mustParse("9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin")
	OpenBookProgram   = mustParse("srmqPvymJeFKQ4zGQed1GFppgkRHL9kaELCbyksJtPX")
	OpenBookV2Program = mustParse("opnb2LAfJYbRMAHHvqjCwQxanZn7ReEHp1k81EohpZb")
	// RaydiumCPMMProgram has constant-product pools.
	RaydiumCPMMProgram = mustParse("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C")
	// PythReceiverProgram owns the accounts of verified price updates;
	// PythPushOracleProgram derives the address of the account of each feed.
	PythReceiverProgram   = mustParse("rec5EKMGg6MxZYaMdyBfgwp4d5rB9T1VQH5pJv5LtFJ")
	PythPushOracleProgram = mustParse("pythWSnswVUd12oZpeFP8e9CVaEqJg25g1Vtc2biRsT")
	// ClockSysvar has the slot and the time of the bank that is read; SysvarOwner owns
	// it.
	ClockSysvar = Address(sdk.SysVarClockPubkey)
	SysvarOwner = mustParse("Sysvar1111111111111111111111111111111111111")
)

// mustParse parses an address constant.
func mustParse(text string) Address {
	a, err := ParseAddress(text)
	if err != nil {
		panic(err) // a constant above is misspelt
	}
	return a
}

// IsTokenProgram reports whether a is one of the two token programs.
func IsTokenProgram(a Address) bool { return a == TokenProgram || a == Token2022Program }

// IsMemoProgram reports whether a is one of the two memo programs.
func IsMemoProgram(a Address) bool { return a == MemoProgram || a == MemoV1Program }
