package settle

import (
	"context"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// readEach calls f with each account as finalized, nil if it does not exist, as a majority of
// the configured nodes has it: those for which meaning returns the same, a comparable value
// that contains all that f uses of the account. Whole accounts may differ, because the nodes
// answer as of different slots. Errors: [ErrChain].
func (e *env) readEach(
	ctx context.Context, list []solana.Address, meaning func(solana.Address, *rpc.Account) any, f func(solana.Address, *rpc.Account),
) error {
	for part := range slices.Chunk(list, rpc.MaxAccountsPerCall) {
		views, err := e.node.AccountsFromEach(ctx, part, rpc.Finalized, 0)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrChain, err)
		}
		for i := range part {
			account, err := agreed(views, len(part), i, meaning, part[i])
			if err != nil {
				return err
			}
			f(part[i], account)
		}
	}
	return nil
}

// agreed returns account i of n as a majority of the nodes has it. Errors: [ErrChain].
func agreed(views []rpc.NodeAccounts, n, i int, meaning func(solana.Address, *rpc.Account) any, address solana.Address) (*rpc.Account, error) {
	var failure error
	votes := map[any]int{}
	answered := 0
	for k := range views {
		v := &views[k]
		if v.Err != nil || len(v.Accounts) != n {
			failure = v.Err
			continue
		}
		answered++
		means := meaning(address, v.Accounts[i])
		if votes[means]++; votes[means] > len(views)/2 {
			return v.Accounts[i], nil
		}
	}
	if failure != nil {
		return nil, fmt.Errorf("%w: %d of %d nodes have account %s: %w", ErrChain, answered, len(views), solana.Base58(address), failure)
	}
	return nil, fmt.Errorf("%w: the nodes disagree about account %s", ErrChain, solana.Base58(address))
}
