package service

import (
	"blockdesk/desk"
	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/dvp"
	"blockdesk/httpgw/terms"
	"blockdesk/settle"
	"blockdesk/settle/access"
)

// settlement implements what the gateways depend on.
var (
	_ settle.Desk      = (*desk.Desk)(nil)
	_ terms.Settlement = (*settlement)(nil)
	_ dvp.Cosigner     = (*settlement)(nil)
	_ admin.Money      = (*settlement)(nil)
	_ dvp.Handshake    = (*access.Access)(nil)
)
