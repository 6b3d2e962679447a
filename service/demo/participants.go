package demo

import (
	"errors"
	"fmt"
	"net"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/market"
	"blockdesk/service/config"
)

// The demo's participants: two that trade with each other and one for the user. Each has
// one session, whose CompID is its name. Their passwords are public, so a demo serves
// loopback addresses only.
const (
	Maker, Taker, Guest = "MAKER", "TAKER", "GUEST"
	Password            = "demo"
	// ParticipantCount is the number of the participants.
	ParticipantCount = 3
)

// Participants returns the demo's participants, numbered from first. It fails if an address
// of the configuration is reachable from other machines.
func Participants(c *config.Config, first market.ParticipantID) ([]participants.Participant, error) {
	for _, address := range []string{c.Listen.FIX, c.Listen.Base, c.Listen.API, c.Listen.WS, c.Listen.Chain} {
		if _, _, err := net.SplitHostPort(address); err != nil || !config.IsLoopback(address) {
			return nil, fmt.Errorf("--demo serves loopback addresses only, because its passwords are public: %s is not one", address)
		}
	}
	if c.FIX.TLSCertFile != "" {
		return nil, errors.New("fix.tls_cert_file: --demo serves plain FIX only: remove the key")
	}
	hash, err := participants.HashPassword(Password)
	if err != nil {
		return nil, err
	}
	var list []participants.Participant
	for i, name := range [ParticipantCount]string{Maker, Taker, Guest} {
		list = append(list, participants.Participant{
			Name: name, Number: first + market.ParticipantID(i), CompIDs: []string{name},
			PasswordHash: hash, STP: book.STPCancelNewest,
			Wallet: Address(Wallet(Wallets - i)), // the guest's is the first
		})
	}
	return list, nil
}
