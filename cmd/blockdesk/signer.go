package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"blockdesk/internal/solana"
	"blockdesk/settle/cosign"
)

// recordSuffix names the record of what a key has signed, beside the key.
const recordSuffix = ".signed"

// signerCommand runs the desk's key in a process of its own.
func signerCommand(s *settings) *cobra.Command {
	var o cosign.ServerOptions
	var key string
	var users []uint
	cmd := &cobra.Command{
		Use: "signer", Short: "Hold the desk's key in a process of its own, and sign over a socket", Args: cobra.NoArgs,
		Long: `Hold the desk's key in a process of its own, and sign over a socket.

The signer does not trust who asks: it signs the desk's two kinds of transactions
and no other, and one message a claim. What it has signed is in a record beside the
key, which belongs to the key: who moves or copies one moves or copies the other.

By default only processes of the same user may ask. With --allow-uid only those
users may, and the socket is open to the group of its folder (chmod g+s).

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
					return usagef("--allow-uid %d: not a user's number", u)
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
	flags.StringVar(&key, "key", "", "file of the key, as key new makes it")
	flags.StringVar(&o.Path, "socket", "", "path of the socket to listen on")
	flags.StringVar(&o.Record, "record", "", "file of what was signed (default: the key's with "+recordSuffix+" behind)")
	flags.UintSliceVar(&users, "allow-uid", nil, "a user whose processes may ask (repeat; default: this process's user alone)")
	for _, name := range []string{"key", "socket"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // a flag of ours is misspelt
		}
	}
	return cmd
}
