package settle

import (
	"testing"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// TestReasons: the runtime's error becomes the taker's refusal and the operator's problem.
func TestReasons(t *testing.T) {
	for text, want := range map[string]struct {
		desk, taker desk.RefusalReason // of an atomic transaction, if the desk or the taker pays its fee
		problem     string             // of a delivery
	}{
		`"BlockhashNotFound"`:                                    {desk.RefusalExpired, desk.RefusalExpired, problemChain},
		`"AlreadyProcessed"`:                                     {desk.RefusalAlreadySettled, desk.RefusalAlreadySettled, problemSimulation},
		`"InsufficientFundsForFee"`:                              {desk.RefusalSimulationFailed, desk.RefusalTakerFunds, problemFunds},
		`"AccountNotFound"`:                                      {desk.RefusalSimulationFailed, desk.RefusalTakerFunds, problemFunds},
		`{"InsufficientFundsForRent":{"account_index":0}}`:       {desk.RefusalSimulationFailed, desk.RefusalTakerFunds, problemFunds},
		`{"InsufficientFundsForRent":{"account_index":4}}`:       {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemFunds},
		`{"InstructionError":[2,{"Custom":1}]}`:                  {desk.RefusalTakerFunds, desk.RefusalTakerFunds, problemFunds},
		`{"InstructionError":[2,"InvalidAccountData"]}`:          {desk.RefusalTakerFunds, desk.RefusalTakerFunds, problemAccount},
		`{"InstructionError":[3,{"Custom":1}]}`:                  {desk.RefusalTakerFunds, desk.RefusalTakerFunds, problemInventory},
		`{"InstructionError":[3,{"Custom":17}]}`:                 {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemFrozen},
		`{"InstructionError":[3,"InvalidAccountData"]}`:          {desk.RefusalTakerFunds, desk.RefusalTakerFunds, problemInventory},
		`{"InstructionError":[4,{"Custom":1}]}`:                  {desk.RefusalInventory, desk.RefusalInventory, problemSimulation},
		`{"InstructionError":[4,"InvalidAccountData"]}`:          {desk.RefusalInventory, desk.RefusalInventory, problemSimulation},
		`{"InstructionError":[5,{"Custom":1}]}`:                  {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		`{"InstructionError":[2,"ComputationalBudgetExceeded"]}`: {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemAccount},
		`{"InstructionError":[2,{"BorshIoError":"x"}]}`:          {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemAccount},
		`{"InstructionError":[-1,"BlockhashNotFound"]}`:          {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		`{"InstructionError":[2]}`:                               {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		`{"InstructionError":["2",{"Custom":1}]}`:                {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		`{"InstructionError":[4,{"Cust`:                          {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		`null`:                                                   {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
		``:                                                       {desk.RefusalSimulationFailed, desk.RefusalSimulationFailed, problemSimulation},
	} {
		if got := atomicRefusal(text, false); got != want.desk {
			t.Errorf("%s, the desk pays: %s, want %s", text, got, want.desk)
		}
		if got := atomicRefusal(text, true); got != want.taker {
			t.Errorf("%s, the taker pays: %s, want %s", text, got, want.taker)
		}
		if got := problemOfSimulation(text); got != want.problem {
			t.Errorf("%s, a delivery: %s, want %s", text, got, want.problem)
		}
	}
}

// TestPositions: the instructions are at the positions that the reasons assume.
func TestPositions(t *testing.T) {
	mint := func(n byte, program solana.Address) token.Checked {
		m := token.Mint{Address: solana.Address{n, n}, Program: program, Decimals: 6}
		c, err := m.Check(0)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	desk, taker, base := solana.Address{1, 1}, solana.Address{2, 2}, mint(3, solana.TokenProgram)
	common := build.Common{Blockhash: solana.Hash{1}, Budget: build.Budget{Units: 1}, Memo: "m", Reference: solana.Address{9, 9}}
	usdc := build.Leg{Rail: market.RailUSDC, Mint: mint(4, solana.Token2022Program), Amount: 1, To: solana.Address{5, 5}}
	for name, leg := range map[string]build.Leg{"USDC": usdc, "SOL": {Rail: market.RailSOL, Amount: 1, To: usdc.To}} {
		a := build.Atomic{
			Common: common, Taker: taker, Desk: desk, Payment: leg, Base: base, BaseAmount: 1, FeePayer: build.Desk, RentPayer: build.Taker,
		}
		u, err := a.Build(&solana.AccountCache{})
		if err != nil {
			t.Fatal(err)
		}
		pays := solana.SystemProgram
		if leg.Rail == market.RailUSDC {
			pays = solana.Token2022Program
		}
		calls(t, name, u, map[int]solana.Address{atomicPays: pays, atomicCreates: solana.AssociatedTokenProgram, atomicDelivers: solana.TokenProgram})
	}
	d := build.Delivery{Common: common, Desk: desk, Wallet: taker, Base: base, Amount: 1}
	u, err := d.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	calls(t, "delivery", u, map[int]solana.Address{deliveryCreates: solana.AssociatedTokenProgram, deliveryMoves: solana.TokenProgram})
}

func calls(t *testing.T, name string, u *build.Unsigned, want map[int]solana.Address) {
	t.Helper()
	m, err := tx.DecodeMessage(u.Message())
	if err != nil {
		t.Fatal(err)
	}
	for at, program := range want {
		if got := m.ProgramOf(&m.Instructions[at]); got != program {
			t.Errorf("%s: instruction %d calls %s", name, at, solana.Base58(got))
		}
	}
}

// FuzzFault: whatever a node answers, there is a known refusal and a known problem.
func FuzzFault(f *testing.F) {
	for _, text := range []string{`"BlockhashNotFound"`, `{"InstructionError":[2,{"Custom":1}]}`, `{"InsufficientFundsForRent":{"account_index":0}}`, `[`, `{"InstructionError":[-1,{"Custom":4294967296}]}`} {
		f.Add(text)
	}
	reasons := map[desk.RefusalReason]bool{
		desk.RefusalExpired: true, desk.RefusalAlreadySettled: true, desk.RefusalTakerFunds: true, desk.RefusalInventory: true, desk.RefusalSimulationFailed: true,
	}
	words := map[string]bool{problemFunds: true, problemAccount: true, problemFrozen: true, problemInventory: true, problemSimulation: true, problemChain: true}
	f.Fuzz(func(t *testing.T, text string) {
		for _, takerPays := range []bool{true, false} {
			if r := atomicRefusal(text, takerPays); !reasons[r] {
				t.Errorf("%q: %s", text, r)
			}
		}
		if w := problemOfSimulation(text); !words[w] {
			t.Errorf("%q: %s", text, w)
		}
	})
}
