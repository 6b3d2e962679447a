package settle

import (
	"encoding/json"

	"blockdesk/desk"
	"blockdesk/internal/solana/tx"
	"blockdesk/settle/store"
)

// Where an instruction stands in our transactions: those of the budget come
// first.
const (
	atomicPays, atomicCreates, atomicDelivers = 2, 3, 4
	deliveryCreates, deliveryMoves            = 2, 3
)

// noInstruction is fault.at where the runtime refused the transaction itself.
const noInstruction = -1

// The runtime's names of what we tell apart.
const (
	faultBlockhash = "BlockhashNotFound"
	faultAgain     = "AlreadyProcessed"
	faultFee       = "InsufficientFundsForFee"
	faultRent      = "InsufficientFundsForRent"
	faultNoPayer   = "AccountNotFound"
	faultNoAccount = "InvalidAccountData" // of an account that does not exist, too
	faultCustom    = "Custom"
)

// Numbers of programs' own errors.
const (
	// tooLittle is the token programs' and, with another name, the system
	// program's: the balance does not cover it.
	tooLittle = 1
	frozen    = 17
)

// fault is what the runtime says is wrong.
type fault struct {
	at     int    // which instruction; or noInstruction
	name   string // as the interface has it
	custom uint32 // where name is faultCustom
	// account is which one lacks rent, where name is faultRent.
	account int
}

// parseFault reads the runtime's error as JSON. What it does not know has no
// name.
func parseFault(text string) fault {
	f := fault{at: noInstruction}
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
	if len(e.Instruction) != 2 || json.Unmarshal(e.Instruction[0], &f.at) != nil || f.at < 0 {
		return fault{at: noInstruction}
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

// short reports whether an instruction lacks what it is to move.
func (f *fault) short() bool {
	return f.name == faultCustom && f.custom == tooLittle || f.name == faultNoAccount
}

// reasonOfAtomic says why an atomic transaction would fail. takerPays says who
// pays its fee.
func reasonOfAtomic(text string, takerPays bool) desk.RefusalReason {
	f := parseFault(text)
	switch {
	case f.at == noInstruction && f.name == faultBlockhash:
		return desk.RefusalExpired
	case f.at == noInstruction && f.name == faultAgain:
		return desk.RefusalAlreadySettled
	case f.at == noInstruction && (f.name == faultFee || f.name == faultNoPayer || f.name == faultRent && f.account == 0):
		if takerPays {
			return desk.RefusalTakerFunds
		}
		return desk.RefusalSimulationFailed // the desk lacks what a fee costs: see Attention
	case f.at == atomicPays && f.short(), f.at == atomicCreates && f.short():
		return desk.RefusalTakerFunds
	case f.at == atomicDelivers && f.short():
		return desk.RefusalInventory
	}
	return desk.RefusalSimulationFailed
}

// takerPays reports whether a build's taker pays its fee.
func takerPays(b *store.Build) bool {
	t, err := tx.Decode(b.Raw)
	return err == nil && t.Message.FeePayer() == b.Taker
}

// wordOfDelivery says why a delivery would fail.
func wordOfDelivery(text string) string {
	f := parseFault(text)
	switch {
	case f.at == noInstruction && f.name == faultBlockhash: // it is new: the node is behind
		return wordChain
	case f.at == noInstruction && (f.name == faultFee || f.name == faultNoPayer || f.name == faultRent):
		return wordFunds
	case f.at == deliveryCreates && f.name == faultCustom && f.custom == tooLittle:
		return wordFunds
	case f.at == deliveryCreates:
		return wordAccount
	case f.at == deliveryMoves && f.name == faultCustom && f.custom == frozen:
		return wordFrozen
	case f.at == deliveryMoves && f.short():
		return wordInventory
	}
	return wordSimulation
}
