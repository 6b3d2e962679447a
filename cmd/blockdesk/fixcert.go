package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service/config"
)

// Files of a folder of test certificates.
const (
	certAuthority = "ca.pem"
	certServer    = "server.pem"
	keyServer     = "server.key"
	certClient    = "client.pem"
	keyClient     = "client.key"
)

const (
	// defaultCertDays and maxCertDays bound a test certificate's life.
	defaultCertDays = 30
	maxCertDays     = 825
	// certBackdate allows for a clock that is behind ours.
	certBackdate = time.Hour
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
			if err := config.Between("--days", days, 1, maxCertDays); err != nil {
				return usageError{err}
			}
			if err := config.Between("--host", len(hosts), 1, maxCertHosts); err != nil {
				return usageError{err}
			}
			files, err := makeCerts(hosts, time.Now(), time.Duration(days)*24*time.Hour)
			if err != nil {
				return err
			}
			if err := writeCerts(args[0], files); err != nil {
				return err
			}
			if s.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"ok": true, "dir": args[0], "days": days})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s holds %s, %s, %s, %s, %s for %d days\n", args[0],
				certAuthority, certServer, keyServer, certClient, keyClient, days)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&hosts, "host", []string{"localhost", "127.0.0.1", "::1"}, "names and addresses of the service")
	cmd.Flags().IntVar(&days, "days", defaultCertDays, "how long they hold")
	return cmd
}

// issuer signs certificates with a key that lives no longer than it.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// makeCerts returns the files' contents by name.
func makeCerts(hosts []string, now time.Time, life time.Duration) (map[string][]byte, error) {
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-certBackdate), NotAfter: now.Add(life),
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		}
	}
	files := make(map[string][]byte)
	root := template("blockdesk test authority")
	root.IsCA, root.KeyUsage, root.MaxPathLenZero = true, x509.KeyUsageCertSign, true
	authority := &issuer{}
	if err := authority.issue(root, files, certAuthority, ""); err != nil {
		return nil, err
	}
	server := template("blockdesk test service")
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	if err := authority.issue(server, files, certServer, keyServer); err != nil {
		return nil, err
	}
	client := template("blockdesk test client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return files, authority.issue(client, files, certClient, keyClient)
}

// issue puts a certificate and its key into files. The first one an issuer makes
// is its own, signed by itself, whose key is in no file.
func (i *issuer) issue(template *x509.Certificate, files map[string][]byte, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	if i.certificate == nil {
		i.certificate, i.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, &key.PublicKey, i.key)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	files[certFile] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if keyFile == "" {
		i.certificate, err = x509.ParseCertificate(der)
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	files[keyFile] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return nil
}

// writeCerts writes the files, which only their owner can read. Where one of
// them is there already, it writes none.
func writeCerts(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s is there already", filepath.Join(dir, name)), err)
		}
	}
	for name, text := range files {
		if err := replaceFile(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}
