package mirror_test

import (
	"encoding/binary"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/mirror"
)

// Keys of a scene. Those from loadedFrom on come from an address table if the scene says
// so.
const (
	keyPayer = iota
	keyPool  // the program
	keyRouter
	keyToken
	keyToken2022
	keySystem
	keyUserBase
	keyUserQuote
	keyOther
	keyBaseMint
	keyQuoteMint
	keyBaseVault
	keyQuoteVault
	keyCount
	loadedFrom = keyBaseVault
)

// scene builds a transaction: each instruction is recorded and moves its amounts.
type scene struct {
	c      *ledger.Confirmed
	before [keyCount]market.Amount
	amount [keyCount]market.Amount
	absent [keyCount]bool // had no account before
	// programs are the accounts' token programs, 0 = no account.
	programs    [keyCount]uint8
	unpublished bool // the node reports no depths
}

func sceneKey(i int) solana.Address {
	switch i {
	case keyToken:
		return solana.TokenProgram
	case keyToken2022:
		return solana.Token2022Program
	case keySystem:
		return solana.SystemProgram
	}
	return solana.Address{31: byte(i + 1)}
}

func scenePair() mirror.VaultPair {
	return mirror.VaultPair{
		Base:  mirror.Vault{Account: sceneKey(keyBaseVault), Mint: sceneKey(keyBaseMint)},
		Quote: mirror.Vault{Account: sceneKey(keyQuoteVault), Mint: sceneKey(keyQuoteMint)},
	}
}

func newScene() *scene {
	s := &scene{c: &ledger.Confirmed{Slot: 7, BlockTime: 1_700_000_000, Tx: &tx.Transaction{Signatures: []solana.Signature{{1}}}}}
	s.c.Tx.Message = tx.Message{Version: tx.Legacy, Header: tx.Header{Required: 1}}
	for i := range keyCount {
		s.c.Keys = append(s.c.Keys, sceneKey(i))
	}
	s.c.Tx.Message.Keys = s.c.Keys
	for _, i := range []int{keyUserBase, keyUserQuote, keyBaseVault, keyQuoteVault, keyOther} {
		s.before[i], s.programs[i] = 1_000_000, keyToken
	}
	s.amount = s.before
	return s
}

// loaded builds a version 0 transaction with the vaults from an address table.
func (s *scene) loaded() *scene {
	m := &s.c.Tx.Message
	m.Version, m.Keys = tx.V0, s.c.Keys[:loadedFrom:loadedFrom]
	m.Lookups = []tx.Lookup{{Table: solana.Address{9}, Writable: []uint8{0, 1}}}
	return s
}

// do records an instruction at a depth; 1 is the message's own.
func (s *scene) do(depth int, program uint8, data []byte, accounts ...uint8) *scene {
	in := tx.Instruction{Program: program, Accounts: accounts, Data: data}
	if depth == 1 {
		s.c.Tx.Message.Instructions = append(s.c.Tx.Message.Instructions, in)
		return s
	}
	published := uint8(depth)
	if s.unpublished {
		published = 0
	}
	s.c.Inner = append(s.c.Inner, ledger.InnerInstruction{Outer: len(s.c.Tx.Message.Instructions) - 1, Instruction: in, Depth: published})
	return s
}

// pool calls the pool's program; router calls another program with the vaults.
func (s *scene) pool(depth int) *scene {
	return s.do(depth, keyPool, []byte{1}, keyPayer, keyQuoteVault, keyUserBase, keyBaseVault)
}

func (s *scene) router(accounts ...uint8) *scene {
	return s.do(1, keyRouter, []byte{1}, accounts...)
}

func amountBytes(n market.Amount) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

func (s *scene) move(from, to uint8, amount, fee market.Amount) {
	s.amount[from] -= amount
	s.amount[to] += amount - fee
}

// transfer is the token program's plain one.
func (s *scene) transfer(depth int, from, to uint8, amount market.Amount) *scene {
	s.move(from, to, amount, 0)
	return s.do(depth, s.programs[from], append([]byte{3}, amountBytes(amount)...), from, to, keyPayer)
}

// checked is TransferChecked, with a fee deducted.
func (s *scene) checked(depth int, from, to uint8, amount, fee market.Amount) *scene {
	s.move(from, to, amount, fee)
	data := append(append([]byte{12}, amountBytes(amount)...), 6)
	return s.do(depth, s.programs[from], data, from, keyBaseMint, to, keyPayer)
}

// feeReported is TransferCheckedWithFee.
func (s *scene) feeReported(depth int, from, to uint8, amount, fee market.Amount) *scene {
	s.move(from, to, amount, fee)
	data := append(append(append([]byte{26, 1}, amountBytes(amount)...), 6), amountBytes(fee)...)
	return s.do(depth, s.programs[from], data, from, keyBaseMint, to, keyPayer)
}

// buy and sell are a pool's transfers for a taker.
func (s *scene) buy(depth int, base, quote market.Amount) *scene {
	return s.pool(depth).transfer(depth+1, keyUserQuote, keyQuoteVault, quote).transfer(depth+1, keyBaseVault, keyUserBase, base)
}

func (s *scene) sell(depth int, base, quote market.Amount) *scene {
	return s.pool(depth).transfer(depth+1, keyUserBase, keyBaseVault, base).transfer(depth+1, keyQuoteVault, keyUserQuote, quote)
}

// confirmed ends the scene.
func (s *scene) confirmed() *ledger.Confirmed {
	c := s.c
	c.Before, c.After = make([]market.Amount, keyCount), make([]market.Amount, keyCount)
	c.TokensBefore, c.TokensAfter = nil, nil
	for i := range keyCount {
		c.Before[i], c.After[i] = 2_039_280, 2_039_280
		if s.programs[i] == 0 {
			continue
		}
		b := ledger.TokenBalance{Account: i, Owner: solana.Address{7}, Program: sceneKey(int(s.programs[i])), Mint: sceneKey(keyQuoteMint)}
		if i == keyBaseVault || i == keyUserBase {
			b.Mint = sceneKey(keyBaseMint)
		}
		if b.Amount = s.before[i]; s.absent[i] {
			c.Before[i] = 0
		} else {
			c.TokensBefore = append(c.TokensBefore, b)
		}
		b.Amount = s.amount[i]
		c.TokensAfter = append(c.TokensAfter, b)
	}
	return c
}
