package settle

import (
	"context"
	"errors"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// severalNodes have accounts each.
type severalNodes struct {
	Node
	views []rpc.NodeAccounts
}

func (n severalNodes) AccountsFromEach(context.Context, []solana.Address, rpc.Commitment, uint64) ([]rpc.NodeAccounts, error) {
	return n.views, nil
}

// TestAgreedAccounts: a mint and an account to be paid are as a majority of the configured
// nodes has them. A mint's supply, which changes all the time, does not matter.
func TestAgreedAccounts(t *testing.T) {
	account := func(data []byte) rpc.NodeAccounts {
		return rpc.NodeAccounts{Accounts: []*rpc.Account{{Address: usdc, Owner: solana.TokenProgram, Lamports: 1, Data: data}}}
	}
	supplied := mintData(6)
	supplied[36] = 77
	down, none, short := rpc.NodeAccounts{Err: errAny}, rpc.NodeAccounts{Accounts: []*rpc.Account{nil}}, rpc.NodeAccounts{}
	for name, c := range map[string]struct {
		views    []rpc.NodeAccounts
		decimals int // -1: not known, -2: there is no such mint
	}{
		"one":                          {[]rpc.NodeAccounts{account(mintData(6))}, 6},
		"all":                          {[]rpc.NodeAccounts{account(mintData(6)), account(supplied), account(mintData(6))}, 6},
		"one lies about its decimals":  {[]rpc.NodeAccounts{account(mintData(9)), account(supplied), account(mintData(6))}, 6},
		"one hides it":                 {[]rpc.NodeAccounts{none, account(mintData(6)), account(mintData(6))}, 6},
		"one invents it":               {[]rpc.NodeAccounts{account(mintData(6)), none, none}, -2},
		"one lies, one is down":        {[]rpc.NodeAccounts{account(mintData(9)), account(mintData(6)), down}, -1},
		"one answers, two do not":      {[]rpc.NodeAccounts{account(mintData(9)), down, short}, -1},
		"one answers, the other fails": {[]rpc.NodeAccounts{account(mintData(9)), down}, -1},
	} {
		s := &chainState{env: &env{node: severalNodes{views: c.views}}}
		known := -1
		err := s.readEach(t.Context(), []solana.Address{usdc}, s.mintMeans, func(address solana.Address, a *rpc.Account) {
			known = -2
			if mint, err := s.checkMint(address, a); err == nil {
				known = int(mint.Decimals())
			}
		})
		if known != c.decimals || errors.Is(err, ErrChain) != (c.decimals == -1) {
			t.Errorf("%s: %d, %v", name, known, err)
		}
	}
	holder := func(owner solana.Address) rpc.NodeAccounts { return account(tokenData(usdc, owner)) }
	payer := solana.Address{8, 8}
	settlement, _, _, _ := readySettlement(t)
	r := settlement.refunder
	if err := settlement.chain.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		views []rpc.NodeAccounts
		want  string // the problem
	}{
		"all have it":            {[]rpc.NodeAccounts{holder(payer), holder(payer), holder(payer)}, ""},
		"one denies it":          {[]rpc.NodeAccounts{none, holder(payer), holder(payer)}, ""},
		"one gives it away":      {[]rpc.NodeAccounts{holder(payer), holder(solana.Address{9}), holder(payer)}, ""},
		"one invents it":         {[]rpc.NodeAccounts{holder(payer), none, none}, problemPayerAccount},
		"one answers":            {[]rpc.NodeAccounts{none, down, down}, problemChain},
		"two disagree, one down": {[]rpc.NodeAccounts{none, holder(payer), down}, problemChain},
	} {
		r.node = severalNodes{views: c.views}
		err := r.checkPayer(t.Context(), &rfq.Payment{Rail: market.RailUSDC, Payer: payer})
		if err != nil {
			if got := problemOfRefund(err); got != c.want {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		} else if c.want != "" {
			t.Errorf("%s: payable", name)
		}
	}
}

// TestBalanceOfMost: the desk counts with the most that a majority of the configured nodes
// reports at least: one node that reports more than there is sells nothing that is not there,
// one that reports less stops no sale, and too few answers change nothing.
func TestBalanceOfMost(t *testing.T) {
	at := func(lamports market.Amount, slot uint64) rpc.NodeAccounts {
		return rpc.NodeAccounts{Slot: slot, Accounts: []*rpc.Account{{Lamports: lamports}}}
	}
	none, down, short := rpc.NodeAccounts{Slot: 9, Accounts: []*rpc.Account{nil}}, rpc.NodeAccounts{Err: errAny}, rpc.NodeAccounts{Slot: 9}
	for name, c := range map[string]struct {
		views []rpc.NodeAccounts
		held  uint64
		slot  uint64 // 0: too few answer
	}{
		"one node":                    {[]rpc.NodeAccounts{at(5, 7)}, 5, 7},
		"one invents":                 {[]rpc.NodeAccounts{at(1<<40, 9), at(5, 8), at(5, 7)}, 5, 7},
		"one denies":                  {[]rpc.NodeAccounts{none, at(5, 8), at(5, 9)}, 5, 8},
		"most deny":                   {[]rpc.NodeAccounts{none, at(5, 9), none}, 0, 9},
		"all differ":                  {[]rpc.NodeAccounts{at(9, 9), at(3, 9), at(5, 9)}, 5, 9},
		"two of three answer":         {[]rpc.NodeAccounts{at(9, 9), down, at(3, 8)}, 3, 8},
		"one of three answers":        {[]rpc.NodeAccounts{at(9, 9), down, down}, 0, 0},
		"one of two answers":          {[]rpc.NodeAccounts{at(9, 9), down}, 0, 0},
		"one answers less than asked": {[]rpc.NodeAccounts{at(9, 9), short, down}, 0, 0},
	} {
		b := &balances{env: &env{node: severalNodes{views: c.views}}}
		held, slot, err := b.held(t.Context(), []wanted{{address: usdc}})
		if few := c.slot == 0; few != errors.Is(err, ErrChain) || !few && (len(held) != 1 || held[0] != c.held || slot != c.slot) {
			t.Errorf("%s: %d as of %d, %v", name, held, slot, err)
		}
	}
}
