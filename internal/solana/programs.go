package solana

// The programs that we call or recognize, by their addresses on every cluster.
// The bytes are checked against their texts by a test.
var (
	// SystemProgram moves lamports and creates accounts. Its address is zero.
	SystemProgram = Address{}
	// TokenProgram is the classic SPL Token program.
	TokenProgram = known("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
	// Token2022Program is the token program with extensions.
	Token2022Program = known("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
	// AssociatedTokenProgram creates each wallet's account of a mint.
	AssociatedTokenProgram = known("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
	// MemoProgram writes a text into a transaction; MemoV1Program is its first
	// version, still called by old wallets.
	MemoProgram   = known("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
	MemoV1Program = known("Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo")
	// ComputeBudgetProgram sets a transaction's limit and price.
	ComputeBudgetProgram = known("ComputeBudget111111111111111111111111111111")
	// NativeMint is the mint of wrapped SOL in the classic token program.
	NativeMint = known("So11111111111111111111111111111111111111112")
	// ManifestProgram, SerumProgram (v3), OpenBookProgram (its fork, of the same
	// layout) and OpenBookV2Program keep order books.
	ManifestProgram   = known("MNFSTqtC93rEfYHB6hF82sKdZpUDFWkViLByLd1k1Ms")
	SerumProgram      = known("9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin")
	OpenBookProgram   = known("srmqPvymJeFKQ4zGQed1GFppgkRHL9kaELCbyksJtPX")
	OpenBookV2Program = known("opnb2LAfJYbRMAHHvqjCwQxanZn7ReEHp1k81EohpZb")
	// RaydiumCPMMProgram keeps constant-product pools.
	RaydiumCPMMProgram = known("CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C")
	// ClockSysvar tells the slot and the time of the bank that is read;
	// SysvarOwner owns it.
	ClockSysvar = known("SysvarC1ock11111111111111111111111111111111")
	SysvarOwner = known("Sysvar1111111111111111111111111111111111111")
)

// known reads an address that is written in this package.
func known(text string) Address {
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
