package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"blockdesk/internal/solana"
	"blockdesk/settle/cosign"
)

// recordSuffix is the suffix of the record of what a key has signed, beside the key.
const recordSuffix = ".signed"

// signerCommand runs the desk's key in a process of its own.
func signerCommand(s *settings) *cobra.Command {
	var o cosign.ServerOptions
	var key string
	var users []uint
	cmd := &cobra.Command{
		Use: "signer", Short: "Hold the desk's key in a process of its own, and sign over a socket", Args: cobra.NoArgs,
		Long: `Hold the desk's key in a process of its own, and sign over a socket.

The signer does not trust its callers: it signs only the desk's two kinds of transactions,
and one message for each claim. A record beside the key has what it has signed. The record
belongs to the key: move or copy both together.

By default only processes of the same user may connect. With --allow-uid only those users
may, and the socket is open to the group of its folder (chmod g+s).

It runs until Ctrl-C or SIGTERM. The service needs settle.signer_socket and settle.desk.`,
		Example: "  blockdesk signer --key desk.json --socket signer.sock",
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
			server, err := cosign.NewServer(o)
			if err != nil {
				return err
			}
			address := solana.Text(server.Address())
			err = s.print(cmd, map[string]any{
				"address": address, "socket": o.Path, "record": o.Record, "remembered": server.SignedMessages(),
			}, fmt.Sprintf("signing for %s\n  on      %s\n  record  %s, %d messages", address, o.Path, o.Record, server.SignedMessages()))
			if err != nil {
				return err
			}
			return server.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&key, "key", "", "key file, as created by key new")
	flags.StringVar(&o.Path, "socket", "", "path of the socket to listen on")
	flags.StringVar(&o.Record, "record", "", "file with the record of signatures (default: the key file with "+recordSuffix+" appended)")
	flags.UintSliceVar(&users, "allow-uid", nil, "id of a user whose processes may connect (repeatable; default: only this process's user)")
	for _, name := range []string{"key", "socket"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
	return cmd
}
