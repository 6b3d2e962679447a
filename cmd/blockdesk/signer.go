package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"blockdesk/internal/solana"
	"blockdesk/settle/cosign"
)

// recordSuffix is the suffix of the record of what a key has signed, beside the key.
const recordSuffix = ".signed"

// signerCommand runs the desk's key in a process of its own.
func signerCommand(s *settings) *cobra.Command {
	var o cosign.ServerOptions
	var key, limits string
	var users []uint
	cmd := &cobra.Command{
		Use: "signer", Short: "Hold the desk's key, and sign over a socket", Args: cobra.NoArgs,
		Long: `Hold the desk's key in a process of its own, and sign over a socket.

The signer does not trust its callers: it signs only the desk's three kinds of transactions,
and one message for each claim. A record beside the key has what it has signed. The record
belongs to the key: move or copy both together.

With --limits it refuses what the file does not allow: payees, lowest prices, and the most of
each token, of refunds and of fees in an hour and in a day. The amounts signed so far are in a
file beside the record, so a restart changes nothing. Without limits it signs no refunds. SIGHUP reads the
file again; if the new one is invalid, the old limits stay. docs/operating.md has the format.

By default only processes of the same user may connect. With --allow-uid only those users
may, and the socket is open to the group of its folder (chmod g+s).

It runs until Ctrl-C or SIGTERM. The service needs settle.signer_socket and settle.desk.`,
		Example: "  blockdesk signer --key desk.json --socket signer.sock --limits signer.limits",
		RunE: func(cmd *cobra.Command, _ []string) error {
			signer, err := cosign.OpenKeyHardened(key)
			if err != nil {
				return err
			}
			o.Signer = signer
			if o.Record == "" {
				o.Record = key + recordSuffix
			}
			for _, u := range users {
				if uint(uint32(u)) != u {
					return usagef("--allow-uid %d: not a user id", u)
				}
				o.AllowUIDs = append(o.AllowUIDs, uint32(u))
			}
			o.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			if limits == "" {
				o.Logger.Warn("signer has no limits: see --limits")
			} else if o.Limits, err = cosign.ReadLimits(limits); err != nil {
				return err
			}
			server, err := cosign.NewServer(o)
			if err != nil {
				return err
			}
			address := solana.Base58(server.Address())
			what := map[string]any{"address": address, "socket": o.Path, "record": o.Record, "remembered": server.SignedMessages(), "limits": limits}
			err = s.print(cmd, what, fmt.Sprintf("signing for %s\n  on      %s\n  record  %s, %d messages\n  limits  %s", address, o.Path, o.Record, server.SignedMessages(), cmp.Or(limits, "none")))
			if err != nil {
				return err
			}
			return (&limitsFile{limits, server, o.Logger}).Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&key, "key", "", "key file, as created by key new")
	flags.StringVar(&o.Path, "socket", "", "path of the socket to listen on")
	flags.StringVar(&o.Record, "record", "", "file with the record of signatures (default: the key file with "+recordSuffix+" appended)")
	flags.StringVar(&limits, "limits", "", "file of limits, of mode 0600 (default: none, and no refunds)")
	flags.UintSliceVar(&users, "allow-uid", nil, "id of a user whose processes may connect (repeatable; default: only this process's user)")
	for _, name := range []string{"key", "socket"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
	return cmd
}

// limitsFile is a file of limits that is read again on SIGHUP.
type limitsFile struct {
	path   string
	server *cosign.Server
	log    *slog.Logger
}

// Run runs the server, and reads the limits again on each SIGHUP, until ctx is done.
func (f *limitsFile) Run(ctx context.Context) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-hangUp:
				f.reload()
			case <-ctx.Done():
				return
			}
		}
	})
	err := f.server.Run(ctx)
	stop()
	reading.Wait()
	return err
}

// reload reads the file again; an invalid file changes nothing.
func (f *limitsFile) reload() {
	if f.path == "" {
		return
	}
	l, err := cosign.ReadLimits(f.path)
	if err != nil {
		f.log.Error("reading the limits failed, the old limits stay in force", "error", err)
		return
	}
	f.server.SetLimits(l)
	f.log.Info("limits of the signer read again", "file", f.path)
}
