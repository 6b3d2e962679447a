package session

import (
	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"
)

// profile is the application that a session calls and the rules for a Logon. Only the
// acceptance tests change it: their scripts need an echo, heartbeats of two seconds, no
// answer to a bad Logon, quickfix's own texts, and a second connection that is refused.
type profile struct {
	application  quickfix.Application
	settings     map[string]string // quickfix's, of every session
	minHeartBt   int               // seconds
	silentRefuse bool              // a refused Logon is answered by closing
	fastPath     bool              // ordinary requests go past quickfix: see fastpath.go
	codedTexts   bool              // quickfix's own texts get a code
	takeover     bool              // a new Logon may replace a silent connection
}

// productSettings turns off the checks of quickfix that our validator makes itself,
// because the validator writes the texts of its rejects.
func productSettings() map[string]string {
	return map[string]string{
		config.ValidateFieldsHaveValues: "N",
		config.ValidateFieldsOutOfOrder: "N",
		config.RejectInvalidMessage:     "N",
	}
}
