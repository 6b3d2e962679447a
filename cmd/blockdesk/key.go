package main

import (
	"github.com/spf13/cobra"

	"blockdesk/internal/solana"
	"blockdesk/settle/cosign"
)

// keyCommand creates keys and shows their addresses. No command prints a key.
func keyCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "key", Short: "Create the desk's key, or show its address",
		Long: "Create the desk's key, or show the address of a key. A key's file is in Solana's format, 64\n" +
			"numbers, which only its owner may read. No command prints a key.",
	})
	cmd.AddCommand(
		&cobra.Command{
			Use: "new FILE", Short: "Create a key in a new private file, and print its address", Args: cobra.ExactArgs(1),
			Long: "Create a key in a new file that only you can read, and print its address. An existing file is not\n" +
				"replaced. Copy the file to a safe place before the address receives money.",
			Example: "  blockdesk key new desk.json",
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := cosign.HardenProcess(); err != nil {
					return err
				}
				address, err := cosign.NewKeyFile(args[0])
				if err != nil {
					return err
				}
				return s.print(cmd, map[string]any{"address": solana.Base58(address), "file": args[0]}, solana.Base58(address))
			},
		},
		&cobra.Command{
			Use: "show FILE", Short: "Print a key's address", Args: cobra.ExactArgs(1),
			Long: "Print the address of the key in FILE. A file that others may read is refused.", Example: "  blockdesk key show desk.json",
			RunE: func(cmd *cobra.Command, args []string) error {
				key, err := cosign.OpenKeyHardened(args[0])
				if err != nil {
					return err
				}
				address := solana.Base58(key.Address())
				return s.print(cmd, map[string]any{"address": address, "file": args[0]}, address)
			},
		})
	return cmd
}
