package main

import (
	"blockdesk/httpgw"
	"blockdesk/settle"
	"blockdesk/settle/access"
)

// What the gateway asks for is what settlement gives.
var (
	_ settle.Desk          = settleDesk{}
	_ httpgw.Settlement    = (*settleDoor)(nil)
	_ httpgw.DvP           = (*settleDoor)(nil)
	_ httpgw.OperatorMoney = (*settleDoor)(nil)
	_ httpgw.Handshake     = (*access.Access)(nil)
)
