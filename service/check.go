package service

import (
	"fmt"
	"os"
	"path/filepath"

	"blockdesk/fixgw/session"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// Check checks what a service needs at its start beyond config.Load: files, and
// options that the gateways judge. serve and --check both call it.
func Check(cfg *config.Config) error {
	if err := cfg.CheckSettlement(); err != nil {
		return err
	}
	if err := cfg.CheckFolders(); err != nil {
		return err
	}
	participants, err := LoadParticipants(cfg)
	if err != nil {
		return err
	}
	sessions := session.Options{
		Address: cfg.Listen.FIX, CompID: cfg.FIX.CompID, Participants: participants,
		MaxSessions: cfg.FIX.MaxSessions, Rate: cfg.FIX.MessagesPerSecond,
	}
	if err := sessions.Validate(); err != nil {
		return err
	}
	if _, err := cfg.FIX.ServerTLS(); err != nil {
		return err
	}
	if _, err := gatewayGroups(cfg); err != nil {
		return err
	}
	if cfg.Role == config.RoleFollower {
		return nil // it has no operators, takes no orders and settles nothing
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, operator.TokenFile)); err == nil && len(cfg.Operators) == 0 {
		if _, err := operator.LocalToken(cfg.DataDir); err != nil {
			return fmt.Errorf("operator %s: %w", config.LocalOperator, err)
		}
	}
	instruments, err := cfg.MarketInstruments()
	if err != nil {
		return err
	}
	starts := &Service{cfg: cfg, instruments: instruments}
	for i := range participants {
		if _, err := starts.limitsOf(&participants[i]); err != nil {
			return err
		}
	}
	// The demo makes its key, and in a group the leader alone opens it.
	if cfg.Settles() && !cfg.Demo && !cfg.Clustered() && cfg.Settle.KeyFile != "" {
		_, err = starts.openSigner()
	}
	return err
}
