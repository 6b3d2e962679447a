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
		Long: "FIX sessions of a running service, and tools for clients: a client for the terminal, a reader of\n" +
			"the message log, and test certificates. docs/fix-tools.md has examples.",
	})
	cmd.AddCommand(fixCertCommand(s), fixClientCommand(s), fixLogCommand(s))
	cmd.AddCommand(fixSessionCommands(s)...)
	return cmd
}

func fixCertCommand(s *settings) *cobra.Command {
	var hosts []string
	var days int
	cmd := &cobra.Command{
		Use: "cert DIR", Short: "Create certificates to test FIX over TLS", Args: cobra.ExactArgs(1),
		Long: "Create an authority (ca.pem) and two certificates of it in a folder: one for the service\n" +
			"(server.pem, server.key) and one for a client (client.pem, client.key). The authority's key is\n" +
			"not stored, so it signs nothing else. Existing files are not replaced.",
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
	cmd.Flags().IntVar(&days, "days", defaultCertDays, "validity in days")
	return cmd
}
