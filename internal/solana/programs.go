package solana

import (
	"slices"
	"strings"

	sdk "github.com/gagliardetto/solana-go"
)

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

// IsReserved reports whether an address belongs to the network and so to no wallet: a
// program above, one that is built into every validator, a sysvar, or the incinerator.
// Such an address may be a valid key, but nobody can sign with it.
func IsReserved(a Address) bool {
	if strings.HasPrefix(Base58(a), "Sysvar") {
		return true
	}
	return slices.Contains([]Address{
		SystemProgram, TokenProgram, Token2022Program, AssociatedTokenProgram, MemoProgram, MemoV1Program, ComputeBudgetProgram,
		NativeMint, ManifestProgram, SerumProgram, OpenBookProgram, OpenBookV2Program, RaydiumCPMMProgram, PythReceiverProgram,
		PythPushOracleProgram, Address(sdk.ConfigProgramID), Address(sdk.StakeProgramID), Address(sdk.VoteProgramID),
		Address(sdk.BPFLoaderDeprecatedProgramID), Address(sdk.BPFLoaderProgramID), Address(sdk.BPFLoaderUpgradeableProgramID),
		Address(sdk.Secp256k1ProgramID), Address(sdk.FeatureProgramID), Address(sdk.AddressLookupTableProgramID), Address(sdk.TokenMetadataProgramID),
		mustParse("Ed25519SigVerify111111111111111111111111111"), mustParse("LoaderV411111111111111111111111111111111111"),
		mustParse("1nc1nerator11111111111111111111111111111111"), mustParse("So11111111111111111111111111111111111111111"),
		mustParse("NativeLoader1111111111111111111111111111111"), mustParse("Secp256r1SigVerify1111111111111111111111111"),
		mustParse("StakeConfig11111111111111111111111111111111"), mustParse("ZkTokenProof1111111111111111111111111111111"),
		mustParse("ZkE1Gama1Proof11111111111111111111111111111"),
	}, a)
}

// IsTokenProgram reports whether a is one of the two token programs.
func IsTokenProgram(a Address) bool { return a == TokenProgram || a == Token2022Program }

// IsMemoProgram reports whether a is one of the two memo programs.
func IsMemoProgram(a Address) bool { return a == MemoProgram || a == MemoV1Program }
