package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/internal/solana/tx"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/search"
	"blockdesk/settle/store"
)

// The machine words for the problem of a delivery (our choice), besides those of the
// guard's reasons: locked, price_unavailable, price_stale, inventory, price_corridor.
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
	problemSignerLimits  = "signer_limits"    // by the signer's file of limits
	problemDesk          = "desk_unavailable" // the desk or the store fails, or the tracker is full
	problemNotReady      = "not_ready"
	problemTooOld        = broadcast.ProblemTooOld // too few nodes have the blocks since its payment
)

// needsPerson reports whether a delivery with this problem is listed at once: the cause
// is known, and nodes or blocks that come later do not remove it.
func needsPerson(problem string) bool {
	switch problem {
	case "", problemFailed, problemExpired, problemGivenUp, problemChain, problemSigner, problemDesk, problemNotReady:
		return false
	}
	return true
}

// deliveryProblem is an error with its machine word.
type deliveryProblem struct {
	problem string
	err     error
}

func (p *deliveryProblem) Error() string { return fmt.Sprintf("settle: %s: %v", p.problem, p.err) }
func (p *deliveryProblem) Unwrap() error { return p.err }

func problemOf(err error) string {
	if p := (*deliveryProblem)(nil); errors.As(err, &p) {
		return p.problem
	}
	var refusal cosign.Refusal
	switch {
	case errors.Is(err, search.ErrHistory):
		return problemTooOld
	case errors.Is(err, ErrChain):
		return problemChain
	case errors.As(err, &refusal) && refusal.ByLimits():
		return problemSignerLimits
	case errors.As(err, &refusal):
		return problemSignerRefused
	case errors.Is(err, ErrSigner):
		return problemSigner
	case errors.Is(err, ErrNotReady):
		return problemNotReady
	}
	return problemDesk
}

// Positions of the instructions in our transactions, after those of the budget.
const (
	atomicPays, atomicCreates, atomicDelivers = 2, 3, 4
	deliveryCreates, deliveryMoves            = 2, 3
)

// noInstruction is fault.instruction if the runtime refused the transaction itself.
const noInstruction = -1

// The runtime's names of the errors that we distinguish.
const (
	faultBlockhash        = "BlockhashNotFound"
	faultAlreadyProcessed = "AlreadyProcessed"
	faultFee              = "InsufficientFundsForFee"
	faultRent             = "InsufficientFundsForRent"
	faultNoPayer          = "AccountNotFound"
	faultInvalidAccount   = "InvalidAccountData" // also of an account that does not exist
	faultCustom           = "Custom"
)

// Numbers of programs' own errors.
const (
	// insufficientFunds is the token programs' number, and the system program's of
	// the same meaning: the balance is too low.
	insufficientFunds = 1
	accountFrozen     = 17
)

// fault is a failed simulation's error.
type fault struct {
	instruction int    // position; or noInstruction
	name        string // as in the RPC interface
	custom      uint32 // if name is faultCustom
	account     int    // the account that lacks rent, if name is faultRent
}

// parseFault parses the runtime's error, which is JSON. An unknown error has no
// name.
func parseFault(text string) fault {
	f := fault{instruction: noInstruction}
	if json.Unmarshal([]byte(text), &f.name) == nil {
		return f
	}
	var e struct {
		Instruction []json.RawMessage `json:"InstructionError"`
		Rent        *struct {
			Account int `json:"account_index"`
		} `json:"InsufficientFundsForRent"`
	}
	if json.Unmarshal([]byte(text), &e) != nil {
		return f
	}
	if e.Rent != nil {
		f.name, f.account = faultRent, e.Rent.Account
		return f
	}
	if len(e.Instruction) != 2 || json.Unmarshal(e.Instruction[0], &f.instruction) != nil || f.instruction < 0 {
		return fault{instruction: noInstruction}
	}
	if json.Unmarshal(e.Instruction[1], &f.name) == nil {
		return f
	}
	var custom struct {
		Custom *uint32 `json:"Custom"`
	}
	if json.Unmarshal(e.Instruction[1], &custom) == nil && custom.Custom != nil {
		f.name, f.custom = faultCustom, *custom.Custom
	}
	return f
}

// lacksFunds reports whether the balance is too low for the transfer of an
// instruction.
func (f *fault) lacksFunds() bool {
	return f.name == faultCustom && f.custom == insufficientFunds || f.name == faultInvalidAccount
}

// atomicRefusal returns the refusal for an atomic transaction whose simulation failed.
// takerPays: the taker pays its fee.
func atomicRefusal(text string, takerPays bool) desk.RefusalReason {
	f := parseFault(text)
	switch {
	case f.instruction == noInstruction && f.name == faultBlockhash:
		return desk.RefusalExpired
	case f.instruction == noInstruction && f.name == faultAlreadyProcessed:
		return desk.RefusalAlreadySettled
	case f.instruction == noInstruction && (f.name == faultFee || f.name == faultNoPayer || f.name == faultRent && f.account == 0):
		if takerPays {
			return desk.RefusalTakerFunds
		}
		return desk.RefusalSimulationFailed // the desk cannot pay the fee
	case f.instruction == atomicPays && f.lacksFunds(), f.instruction == atomicCreates && f.lacksFunds():
		return desk.RefusalTakerFunds
	case f.instruction == atomicDelivers && f.lacksFunds():
		return desk.RefusalInventory
	}
	return desk.RefusalSimulationFailed
}

func takerPays(b *store.Build) bool {
	t, err := tx.Decode(b.Raw)
	return err == nil && t.Message.FeePayer() == b.Taker
}

// problemOfSimulation returns the problem of a delivery whose simulation failed.
func problemOfSimulation(text string) string {
	f := parseFault(text)
	switch {
	case f.instruction == noInstruction && f.name == faultBlockhash: // it is new, so the node lags
		return problemChain
	case f.instruction == noInstruction && (f.name == faultFee || f.name == faultNoPayer || f.name == faultRent):
		return problemFunds
	case f.instruction == deliveryCreates && f.name == faultCustom && f.custom == insufficientFunds:
		return problemFunds
	case f.instruction == deliveryCreates:
		return problemAccount
	case f.instruction == deliveryMoves && f.name == faultCustom && f.custom == accountFrozen:
		return problemFrozen
	case f.instruction == deliveryMoves && f.lacksFunds():
		return problemInventory
	}
	return problemSimulation
}

func guardReasons() []event.Reason {
	return []event.Reason{event.ReasonLocked, event.ReasonPriceUnavailable, event.ReasonPriceStale, event.ReasonInventory, event.ReasonPriceCorridor}
}

// isGuardWord is isGuard for the word of a reason.
func isGuardWord(word string) bool {
	return slices.ContainsFunc(guardReasons(), func(r event.Reason) bool { return r.String() == word })
}
