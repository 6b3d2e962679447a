package main

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"blockdesk/fixgw/participants"
)

func passwordCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "password", Short: "Hash a password for the participants file", Args: cobra.NoArgs,
		Long: "Read a password from the first line of standard input and print its argon2id hash, for\n" +
			"password_hash of a participant in the participants file. Nothing is stored.",
		Example: "  echo 'the password' | blockdesk password",
		RunE: func(cmd *cobra.Command, _ []string) error {
			line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			hash, err := participants.HashPassword(strings.TrimRight(line, "\r\n"))
			if err != nil {
				return err
			}
			return s.print(cmd, map[string]any{"password_hash": hash}, hash)
		},
	}
}
