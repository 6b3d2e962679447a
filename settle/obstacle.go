package settle

import (
	"errors"
	"fmt"

	"blockdesk/settle/cosign"
)

// Words for what keeps a claim's work back. Our choice.
const (
	wordInventory  = "inventory"         // the desk has too few of the tokens
	wordFunds      = "desk_funds"        // the desk cannot pay the fee or the rent
	wordAccount    = "wallet_account"    // the wallet's token account cannot be made
	wordFrozen     = "account_frozen"    // of the desk or the wallet
	wordSimulation = "simulation_failed" // another cause
	wordFailed     = "failed_on_chain"
	wordExpired    = "expired"       // it did not land in time
	wordGivenUp    = "given_up"      // an operator has said that it did not land
	wordTries      = "tries_used_up" // MaxDeliveryAttempts
	wordChain      = "chain_unavailable"
	wordSigner     = "signer_unavailable"
	wordSignerNo   = "signer_refused"   // the signer's own rules
	wordDesk       = "desk_unavailable" // or the store, or the tracker is full
	wordNotReady   = "not_ready"
)

// obstacle is what keeps a delivery back, by its word.
type obstacle struct {
	word string
	err  error
}

func (o *obstacle) Error() string { return fmt.Sprintf("settle: %s: %v", o.word, o.err) }
func (o *obstacle) Unwrap() error { return o.err }

// wordOf names what kept a claim's work back.
func wordOf(err error) string {
	if o := (*obstacle)(nil); errors.As(err, &o) {
		return o.word
	}
	var refusal cosign.Refusal
	switch {
	case errors.Is(err, ErrChain):
		return wordChain
	case errors.As(err, &refusal):
		return wordSignerNo
	case errors.Is(err, ErrSigner):
		return wordSigner
	case errors.Is(err, ErrNotReady):
		return wordNotReady
	}
	return wordDesk
}
