package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw"
	"blockdesk/market"
	"blockdesk/service/config"
)

// The demo's participants: two that trade with each other and one for the
// person who tries it. Their passwords are known, so --demo serves loopback
// addresses only.
const (
	demoMaker, demoTaker, demoGuest = "MAKER", "TAKER", "GUEST"
	demoPassword                    = "demo"
)

var demoParticipants = [...]string{demoMaker, demoTaker, demoGuest}

// readParticipantsFile reads the participants file.
func readParticipantsFile(c *config.FIX) ([]fixgw.Participant, error) {
	text, err := os.ReadFile(c.ParticipantsFile)
	if err != nil {
		return nil, fmt.Errorf("fix.participants_file: %w", err)
	}
	list, err := fixgw.ParseParticipants(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ParticipantsFile, err)
	}
	return list, nil
}

// takesOrders reports whether there is an instrument that participants trade.
func takesOrders(c *config.Config) bool {
	return c.Role != config.RoleFollower && slices.ContainsFunc(c.Instruments, func(in config.Instrument) bool { return in.BookSource == "matched" })
}

// loadParticipants reads the participants file, and adds the demo's at the end. Who
// only mirrors needs none.
func loadParticipants(c *config.Config) ([]fixgw.Participant, error) {
	var list []fixgw.Participant
	if c.FIX.ParticipantsFile != "" {
		var err error
		if list, err = readParticipantsFile(&c.FIX); err != nil {
			return nil, err
		}
	}
	if !c.Demo {
		if len(list) == 0 && takesOrders(c) {
			return nil, errors.New("no participants: set fix.participants_file, or run with --demo")
		}
		return list, nil
	}
	for _, address := range []string{c.Listen.FIX, c.Listen.Base, c.Listen.API, c.Listen.WS, c.Listen.Chain} {
		if _, _, err := net.SplitHostPort(address); err != nil || !config.IsLoopback(address) {
			return nil, fmt.Errorf("--demo serves loopback addresses only, %s is none: its passwords are known", address)
		}
	}
	if c.FIX.TLSCertFile != "" {
		return nil, errors.New("fix.tls_cert_file: the traders of --demo speak plain FIX")
	}
	hash, err := fixgw.HashPassword(demoPassword)
	if err != nil {
		return nil, err
	}
	next := market.ParticipantID(1)
	for _, p := range list {
		next = max(next, p.Number+1)
	}
	for i, name := range demoParticipants {
		list = append(list, fixgw.Participant{
			Name: name, Number: next + market.ParticipantID(i), CompIDs: []string{name},
			PasswordHash: hash, STP: book.STPCancelNewest,
			Wallet: demoAddress(fmt.Sprintf(demoWallet, demoWallets-i)), // the guest's is the first
		})
	}
	return list, nil
}

// loadParticipantsOr returns the participants, or where their file is refused those of
// before; without any it fails.
func loadParticipantsOr(c *config.Config, before []fixgw.Participant, log *slog.Logger) ([]fixgw.Participant, error) {
	list, err := loadParticipants(c)
	if err != nil && before != nil {
		log.Error("the participants file is refused: those of before stay in force", "error", err)
		return before, nil
	}
	return list, err
}

// earlySessions takes the FIX sessions of the service that is to come from spares.
func earlySessions(c *config.Config, spares *fixgw.Spares, before []fixgw.Participant, log *slog.Logger) (*fixgw.Early, error) {
	participants, err := loadParticipantsOr(c, before, log)
	if err != nil {
		return nil, err
	}
	return spares.Next(fixgw.SessionOptions{
		Address: c.Listen.FIX, CompID: c.FIX.CompID, Participants: participants, MaxSessions: c.FIX.MaxSessions, Logger: log,
	})
}

// limitsOf returns what a participant may do on an instrument: its own entry, or
// the default.
func limitsOf(c *config.Config, p *fixgw.Participant, in *market.Instrument) (engine.Limits, error) {
	l, own := p.LimitOn(in.Symbol)
	if !own {
		l = fixgw.Limit{MaxQty: c.Risk.MaxQty, MaxNotional: c.Risk.MaxNotional, MaxOpenOrders: c.Risk.MaxOpenOrders, BandBps: c.Risk.BandBps}
	}
	return l.Limits(in)
}

func passwordCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "password", Short: "Hash a password for the participants file", Args: cobra.NoArgs,
		Long: "Read a password, the first line of standard input, and print its argon2id hash: what\n" +
			"password_hash of a participant in the participants file takes. Nothing is kept.",
		Example: "  echo 'the password' | blockdesk password",
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			hash, err := fixgw.HashPassword(strings.TrimRight(line, "\r\n"))
			if err != nil {
				return err
			}
			if s.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"ok": true, "password_hash": hash})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), hash)
			return err
		},
	}
}
