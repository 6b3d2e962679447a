package settle

import (
	"errors"
	"fmt"

	"blockdesk/settle/cosign"
)

// The machine words of what keeps a delivery back (our choice).
const (
	problemInventory     = "inventory"         // the desk has too few of the tokens
	problemFunds         = "desk_funds"        // the desk cannot pay the fee or the rent
	problemAccount       = "wallet_account"    // the wallet's token account cannot be created
	problemFrozen        = "account_frozen"    // the desk's or the wallet's
	problemSimulation    = "simulation_failed" // another cause
	problemFailed        = "failed_on_chain"
	problemExpired       = "expired"       // it did not land in time
	problemGivenUp       = "given_up"      // an operator has said that it did not land
	problemAttempts      = "tries_used_up" // MaxDeliveryAttempts
	problemChain         = "chain_unavailable"
	problemSigner        = "signer_unavailable"
	problemSignerRefused = "signer_refused"   // by the signer's own rules
	problemDesk          = "desk_unavailable" // or the store, or the tracker is full
	problemNotReady      = "not_ready"
)

// deliveryProblem is an error with its machine word.
type deliveryProblem struct {
	problem string
	err     error
}

func (p *deliveryProblem) Error() string { return fmt.Sprintf("settle: %s: %v", p.problem, p.err) }
func (p *deliveryProblem) Unwrap() error { return p.err }

// problemOf returns the machine word of a job's error.
func problemOf(err error) string {
	if p := (*deliveryProblem)(nil); errors.As(err, &p) {
		return p.problem
	}
	var refusal cosign.Refusal
	switch {
	case errors.Is(err, ErrChain):
		return problemChain
	case errors.As(err, &refusal):
		return problemSignerRefused
	case errors.Is(err, ErrSigner):
		return problemSigner
	case errors.Is(err, ErrNotReady):
		return problemNotReady
	}
	return problemDesk
}
