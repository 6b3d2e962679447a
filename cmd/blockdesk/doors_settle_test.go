package main

import (
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/terms"
	"blockdesk/settle"
	"blockdesk/settle/access"
)

// What the gateway asks for is what settlement gives.
var (
	_ settle.Desk      = settleDesk{}
	_ terms.Settlement = (*settleDoor)(nil)
	_ dvp.Cosigner     = (*settleDoor)(nil)
	_ admin.Money      = (*settleDoor)(nil)
	_ dvp.Handshake    = (*access.Access)(nil)
)
