package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/internal/testcert"
	"blockdesk/service/config"
)

const (
	// defaultCertDays and maxCertDays bound a test certificate's life.
	defaultCertDays = 30
	maxCertDays     = 825
	// maxCertHosts bounds the names in a server's certificate.
	maxCertHosts = 100
)

func fixCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "fix", Short: "FIX sessions: list, reset, log out, announce; a client, the log, test certificates",
		Long: "FIX sessions of a running service, and tools for whoever connects: a client for the terminal, a\n" +
			"reader of the message log, certificates to test with. docs/fix-tools.md shows them at work.",
	})
	cmd.AddCommand(fixCertCommand(s), fixClientCommand(s), fixLogCommand(s))
	cmd.AddCommand(fixSessionCommands(s)...)
	return cmd
}

func fixCertCommand(s *settings) *cobra.Command {
	var hosts []string
	var days int
	cmd := &cobra.Command{
		Use: "cert DIR", Short: "Make certificates to test FIX over TLS with", Args: cobra.ExactArgs(1),
		Long: "Make an authority (ca.pem), and with it a certificate for the service (server.pem, server.key) and\n" +
			"one for a client (client.pem, client.key), in a folder. The authority's key is not kept, so it\n" +
			"signs nothing else. Files that are there are not replaced.",
		Example: "  blockdesk fix cert certs\n" +
			"  blockdesk serve --set fix.tls_cert_file=certs/server.pem --set fix.tls_key_file=certs/server.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.CheckRange("--days", days, 1, maxCertDays); err != nil {
				return usageError{err}
			}
			if err := config.CheckRange("--host", len(hosts), 1, maxCertHosts); err != nil {
				return usageError{err}
			}
			if err := testcert.Write(args[0], hosts, time.Now(), time.Duration(days)*24*time.Hour); err != nil {
				return err
			}
			return s.print(cmd, map[string]any{"dir": args[0], "days": days}, fmt.Sprintf("%s holds %s, %s, %s, %s, %s for %d days", args[0],
				testcert.Authority, testcert.Server, testcert.ServerKey, testcert.Client, testcert.ClientKey, days))
		},
	}
	cmd.Flags().StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1", "::1"}, "names and addresses of the service")
	cmd.Flags().IntVar(&days, "days", defaultCertDays, "how long they hold")
	return cmd
}
