package fix

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/runtest"
)

// The certificates of one command carry a session; without the client's there
// is none, and none in plain text.
func TestFIXOverTLS(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certs")
	if out, err := programtest.Run(t, "", nil, "fix", "cert", dir); err != nil || !strings.Contains(out, "server.pem") {
		t.Fatalf("%v: %s", err, out)
	}
	config := programtest.Config(t, "")
	config = strings.Replace(config, "fix:\n", fmt.Sprintf("fix:\n  tls_cert_file: %q\n  tls_key_file: %q\n  tls_client_ca_file: %q\n",
		filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key"), filepath.Join(dir, "ca.pem")), 1)
	s := programtest.Start(t, config)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority")
	}
	dial := func(c *tls.Config) error {
		client, err := fixclient.Dial(context.Background(), fixclient.Options{
			Addr: s.Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
			TLS: c, Timeout: runtest.HangTimeout,
		})
		if err == nil {
			client.Close()
		}
		return err
	}
	if err := dial(nil); err == nil {
		t.Error("plain text was let in")
	}
	if err := dial(&tls.Config{RootCAs: roots, ServerName: "localhost"}); err == nil {
		t.Error("a client without a certificate was let in")
	}
	if err := dial(&tls.Config{RootCAs: roots, ServerName: "example.org", Certificates: []tls.Certificate{pair}}); err == nil {
		t.Error("the certificate holds for any name")
	}
	if err := dial(&tls.Config{RootCAs: roots, ServerName: "127.0.0.1", Certificates: []tls.Certificate{pair}}); err != nil {
		t.Error(err)
	}
}
