package service

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// ReadInputs reads the files. If the participants file is refused, before stays in
// force; with a nil before ReadInputs fails.
func ReadInputs(c *config.Config, before []participants.Participant, log *slog.Logger) (*Inputs, error) {
	in := &Inputs{stamp: ParticipantsFileStamp(&c.FIX)} // a change during the read is a change
	var err error
	if in.Participants, err = LoadParticipantsOr(c, before, log); err != nil {
		return nil, err
	}
	if in.tls, err = c.FIX.ServerTLS(); err != nil {
		return nil, err
	}
	in.shards, err = gatewayShards(c)
	return in, err
}

// Check checks what a service needs at its start beyond config.Load: folders, files,
// and options that the gateways check. serve and --check both call it.
func Check(c *config.Config) (*Inputs, error) {
	if err := c.CheckSettlement(); err != nil {
		return nil, err
	}
	if err := c.CheckFolders(); err != nil {
		return nil, err
	}
	in, err := ReadInputs(c, nil, nil)
	if err != nil {
		return nil, err
	}
	sessions := session.Options{
		Address: c.Listen.FIX, CompID: c.FIX.CompID, Participants: in.Participants,
		MaxSessions: c.FIX.MaxSessions, Rate: c.FIX.MessagesPerSecond,
	}
	if err := sessions.Validate(); err != nil {
		return nil, err
	}
	if c.Role == config.RoleFollower {
		return in, nil // it has no operators, takes no orders and settles nothing
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, operator.TokenFile)); err == nil && len(c.Operators) == 0 {
		if _, err := operator.LocalToken(c.DataDir); err != nil {
			return nil, fmt.Errorf("operator %s: %w", config.LocalOperator, err)
		}
	}
	instruments, err := c.MarketInstruments()
	if err != nil {
		return nil, err
	}
	for i := range in.Participants {
		if _, err := allLimits(c, &in.Participants[i], instruments); err != nil {
			return nil, err
		}
	}
	// The demo writes its key later, and in a group only the leader opens it.
	if c.Settles() && !c.Demo && !c.Clustered() && c.Settle.KeyFile != "" {
		in.signer, err = openSigner(&c.Settle)
	}
	return in, err
}
