package fixgw

import (
	"fmt"

	"blockdesk/market"
)

// codeOtherGroup: another group has the instrument, and takes orders for it at
// its own address.
const codeOtherGroup = "OTHER_GROUP"

// symbolText says why a symbol names no instrument here.
func symbolText(set *market.Instruments, symbol []byte) string {
	at := set.Elsewhere(symbol)
	switch {
	case at == nil:
		return fmt.Sprintf("%s: Symbol (55) %.40q", codeUnknownSymbol, symbol)
	case at.FIX == "":
		return fmt.Sprintf("%s: %s is served by group %s", codeOtherGroup, symbol, at.Group)
	default:
		return fmt.Sprintf("%s: %s is served at %s", codeOtherGroup, symbol, at.FIX)
	}
}

// refuseSymbol refuses what names no instrument here.
func refuseSymbol(reason int, set *market.Instruments, symbol []byte) *refusal {
	return &refusal{text: symbolText(set, symbol), reason: reason}
}
