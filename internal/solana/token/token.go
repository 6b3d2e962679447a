// Package token parses the accounts of the two token programs: mints, token accounts
// and the extensions of Token-2022.
//
// A mint's extensions can charge a fee on a transfer, run foreign code in it, or freeze or
// seize what was delivered. Only a mint that [Mint.Check] has accepted becomes a
// [Checked], and only a Checked can be built into a transaction.
//
// A Token-2022 account with extensions, little-endian:
//
//	[0,82) mint or [0,165) account ‖ zeros to 165 ‖ u8 kind (1 mint, 2 account)
//	then { u16 extension, u16 length, value } until the end or extension 0
//
// It is hand-written because solana-go reads an authority with a malformed tag as none,
// and accepts lengths that the program does not.
//
// Concurrency: pure functions and values.
package token

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Sizes of the base layouts, and the kinds that follow them.
const (
	mintSize    = 82
	accountSize = 165
	kindMint    = 1
	kindAccount = 2
	// MaxAccountData bounds the data of one account.
	MaxAccountData = 64 << 10
)

// Errors, wrapped with the detail.
var (
	ErrNotToken  = errors.New("token: the account is not owned by a token program")
	ErrMalformed = errors.New("token: the account is malformed")
	ErrExtension = errors.New("token: the mint has an extension that is not supported")
	ErrDecimals  = errors.New("token: the mint has too many decimals")
)

// Extension is the program's number of a Token-2022 extension.
type Extension uint16

const (
	TransferFee          Extension = 1
	MintCloseAuthority   Extension = 3
	ConfidentialTransfer Extension = 4
	DefaultState         Extension = 6
	NonTransferable      Extension = 9
	InterestBearing      Extension = 10
	PermanentDelegate    Extension = 12
	TransferHook         Extension = 14
	ConfidentialFee      Extension = 16
	MetadataPointer      Extension = 18
	Metadata             Extension = 19
	GroupPointer         Extension = 20
	Group                Extension = 21
	GroupMemberPointer   Extension = 22
	GroupMember          Extension = 23
	ConfidentialMintBurn Extension = 24
	ScaledAmount         Extension = 25
	Pausable             Extension = 26
)

// extensionsInOneSet is the number of bits of [Extensions].
const extensionsInOneSet = 64

// Extensions is a set of the extensions 1 to 63.
type Extensions uint64

// ExtensionSet returns a set. It leaves out extensions without a bit.
func ExtensionSet(list ...Extension) (s Extensions) {
	for _, e := range list {
		if e < extensionsInOneSet {
			s |= 1 << e
		}
	}
	return s
}

// Has reports whether e is in the set.
func (s Extensions) Has(e Extension) bool { return e < extensionsInOneSet && s>>e&1 != 0 }

// Harmless returns the extensions that only describe a mint: they change neither what a
// transfer delivers nor who can take it back.
func Harmless() Extensions {
	return ExtensionSet(MetadataPointer, Metadata, GroupPointer, Group, GroupMemberPointer, GroupMember)
}

// MaxDecimals bounds a mint's decimals, so that a whole unit fits in 64 bits.
const MaxDecimals = 19

// Mint is a mint account.
type Mint struct {
	Address, Program solana.Address
	Decimals         uint8
	Supply           market.Amount
	// MintAuthority and FreezeAuthority are zero if there is none.
	MintAuthority, FreezeAuthority solana.Address
	// Extensions are in the order of the account, unknown ones included.
	Extensions []Extension
}

// ParseMint parses a mint account: its address, the program that owns it, and its data.
// Errors: [ErrNotToken], [ErrMalformed].
func ParseMint(address, owner solana.Address, data []byte) (Mint, error) {
	if !solana.IsTokenProgram(owner) {
		return Mint{}, fmt.Errorf("%w: mint %s is owned by program %s", ErrNotToken, solana.Base58(address), solana.Base58(owner))
	}
	m := Mint{Address: address, Program: owner}
	extensions, err := split(owner, data, mintSize, kindMint)
	if err != nil {
		return Mint{}, fmt.Errorf("mint %s: %w", solana.Base58(address), err)
	}
	authority, err1 := option(data[0:36])
	freeze, err2 := option(data[46:82])
	if err := errors.Join(err1, err2); err != nil {
		return Mint{}, fmt.Errorf("mint %s: %w", solana.Base58(address), err)
	}
	if data[45] != 1 {
		return Mint{}, fmt.Errorf("%w: mint %s is not initialized: flag %d", ErrMalformed, solana.Base58(address), data[45])
	}
	m.MintAuthority, m.FreezeAuthority, m.Extensions = authority, freeze, extensions
	m.Supply, m.Decimals = market.Amount(binary.LittleEndian.Uint64(data[36:])), data[44]
	return m, nil
}

// split returns the extensions after a base of size bytes.
func split(program solana.Address, data []byte, size int, kind byte) ([]Extension, error) {
	switch {
	case len(data) > MaxAccountData:
		return nil, fmt.Errorf("%w: it has %d bytes", ErrMalformed, len(data))
	case len(data) == size:
		return nil, nil
	case program != solana.Token2022Program || len(data) <= accountSize || data[accountSize] != kind:
		return nil, fmt.Errorf("%w: it has %d bytes", ErrMalformed, len(data))
	}
	for _, b := range data[size:accountSize] {
		if b != 0 {
			return nil, fmt.Errorf("%w: its padding is not zero", ErrMalformed)
		}
	}
	var list []Extension
	for rest := data[accountSize+1:]; len(rest) >= 2; {
		e := Extension(binary.LittleEndian.Uint16(rest))
		if e == 0 {
			break
		}
		if len(rest) < 4 || len(rest)-4 < int(binary.LittleEndian.Uint16(rest[2:])) {
			return nil, fmt.Errorf("%w: extension %d is truncated", ErrMalformed, e)
		}
		list = append(list, e)
		rest = rest[4+int(binary.LittleEndian.Uint16(rest[2:])):]
	}
	return list, nil
}

// option parses an optional address: u32 0 or 1, and 32 bytes.
func option(b []byte) (a solana.Address, err error) {
	switch binary.LittleEndian.Uint32(b) {
	case 0:
		return a, nil
	case 1:
		return solana.Address(b[4:36]), nil
	default:
		return a, fmt.Errorf("%w: an option has the tag %d", ErrMalformed, binary.LittleEndian.Uint32(b))
	}
}

// Checked is a mint that may be traded. Only [Mint.Check] makes one; the zero value is
// no mint.
type Checked struct {
	address, program solana.Address
	decimals         uint8
}

// Address returns the mint's address.
func (c Checked) Address() solana.Address { return c.address }

// Program returns the token program that owns the mint.
func (c Checked) Program() solana.Address { return c.program }

// Decimals returns the mint's decimals, at most [MaxDecimals].
func (c Checked) Decimals() uint8 { return c.decimals }

// IsZero reports whether c is the zero value.
func (c Checked) IsZero() bool { return c == Checked{} }

// Check accepts a mint all of whose extensions are allowed. Errors: [ErrExtension],
// [ErrDecimals].
func (m *Mint) Check(allowed Extensions) (Checked, error) {
	for _, e := range m.Extensions {
		if !allowed.Has(e) {
			return Checked{}, fmt.Errorf("%w: extension %d of mint %s", ErrExtension, e, solana.Base58(m.Address))
		}
	}
	if m.Decimals > MaxDecimals {
		return Checked{}, fmt.Errorf("%w: %d of mint %s", ErrDecimals, m.Decimals, solana.Base58(m.Address))
	}
	return Checked{m.Address, m.Program, m.Decimals}, nil
}

// State of a token account.
type State uint8

const (
	Initialized State = 1
	Frozen      State = 2
)

// Account is a token account.
type Account struct {
	Mint, Owner, Program solana.Address
	Amount               market.Amount
	State                State
	// Delegate may move DelegatedAmount, CloseAuthority may close the account; zero if
	// there is none.
	Delegate, CloseAuthority solana.Address
	DelegatedAmount          market.Amount
	// Native accounts hold wrapped SOL.
	Native     bool
	Extensions []Extension
}

// ParseAccount parses a token account's data; owner is the program that owns it.
// Errors: [ErrNotToken], [ErrMalformed].
func ParseAccount(owner solana.Address, data []byte) (Account, error) {
	if !solana.IsTokenProgram(owner) {
		return Account{}, fmt.Errorf("%w: its owner is program %s", ErrNotToken, solana.Base58(owner))
	}
	extensions, err := split(owner, data, accountSize, kindAccount)
	if err != nil {
		return Account{}, err
	}
	a := Account{Program: owner, Mint: solana.Address(data[0:32]), Owner: solana.Address(data[32:64]), Extensions: extensions}
	a.Amount, a.State = market.Amount(binary.LittleEndian.Uint64(data[64:])), State(data[108])
	a.Native = binary.LittleEndian.Uint32(data[109:]) == 1
	a.DelegatedAmount = market.Amount(binary.LittleEndian.Uint64(data[121:]))
	var err1, err2 error
	a.Delegate, err1 = option(data[72:108])
	a.CloseAuthority, err2 = option(data[129:165])
	if err := errors.Join(err1, err2); err != nil {
		return Account{}, err
	}
	if a.State < Initialized || a.State > Frozen {
		return Account{}, fmt.Errorf("%w: unknown state %d", ErrMalformed, a.State)
	}
	return a, nil
}
