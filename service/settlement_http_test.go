package service

import (
	"blockdesk/desk"
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/terms"
	"blockdesk/settle"
	"blockdesk/settle/access"
)

// What the gateway asks for is what settlement gives.
var (
	_ settle.Desk      = (*desk.Desk)(nil)
	_ terms.Settlement = (*settleGateway)(nil)
	_ dvp.Cosigner     = (*settleGateway)(nil)
	_ admin.Money      = (*settleGateway)(nil)
	_ dvp.Handshake    = (*access.Access)(nil)
)
