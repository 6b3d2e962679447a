package session

import (
	"errors"

	"blockdesk/fixgw/wire"
	"blockdesk/persist/leadership"
)

// The texts of Logouts and refusals by the gateway begin with these codes.
const (
	codeRemoved       = "SESSION_REMOVED"
	codeLoggedOut     = "LOGGED_OUT"
	codeMaintenance   = "MAINTENANCE"
	codeLeaderChanged = "LEADER_CHANGED"

	stoppingText = codeMaintenance + ": the service is stopping"
	removedText  = codeRemoved + ": this CompID is not configured any more"
	resetText    = codeLoggedOut + ": the sequence numbers are being reset"
	rollText     = codeLoggedOut + ": a new day: both sides begin at MsgSeqNum 1"
)

// StoreFailedText is the reason of a refusal after the store has failed, which ends the
// service.
const StoreFailedText = "the gateway's store has failed: requests are refused until the operator restarts the service"

// MaxOperatorText is the longest text of an operator to clients, in bytes of
// printable ASCII.
const MaxOperatorText = 256

// errConnected is wrapped by the refusal of a Logon to a session that has another
// connection.
var errConnected = errors.New(wire.CodeLogonRefused)

// errBadLogon is the one answer to a wrong name, CompID or password.
var errBadLogon = errors.New(wire.CodeLogonRefused + ": username, password or CompID is wrong")

// LeaderText returns the text of a refusal that names the leader.
func LeaderText(leader leadership.Leader) string {
	text := leader.String()
	if text == "" {
		return codeLeaderChanged + ": no leader is known, try again"
	}
	return codeLeaderChanged + ": the leader is " + text[:min(len(text), MaxOperatorText)]
}
