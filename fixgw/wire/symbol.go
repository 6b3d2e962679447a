package wire

import (
	"fmt"

	"blockdesk/market"
)

// codeOtherGroup means that another shard has the instrument, and accepts orders for it at
// its own address.
const codeOtherGroup = "OTHER_GROUP"

// SymbolText returns why a symbol names no instrument here.
func SymbolText(set *market.Instruments, symbol []byte) string {
	at := set.OtherShard(symbol)
	switch {
	case at == nil:
		return fmt.Sprintf("%s: Symbol (55) %.40q", CodeUnknownSymbol, symbol)
	case at.FIX == "":
		return fmt.Sprintf("%s: %s is served by group %s", codeOtherGroup, symbol, at.Name)
	default:
		return fmt.Sprintf("%s: %s is served at %s", codeOtherGroup, symbol, at.FIX)
	}
}

// RefuseSymbol refuses a symbol that names no instrument here.
func RefuseSymbol(reason int, set *market.Instruments, symbol []byte) *Refusal {
	return &Refusal{Text: SymbolText(set, symbol), Reason: reason}
}
