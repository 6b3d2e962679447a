// Package testcert makes a certificate authority with a certificate for a server and one
// for a client, to try TLS with: `blockdesk fix cert` and the tests use it. They are not
// for production.
//
// The authority's key is never written, so nobody can sign another certificate with it.
// Keys are ECDSA P-256. All files are readable by their owner only, and existing files are
// never replaced. Certificates are valid from an hour before now, for peers whose clocks
// are behind.
package testcert

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

	"blockdesk/internal/atomicfile"
)

// Files that Write makes.
const (
	Authority  = "ca.pem"
	Server     = "server.pem"
	ServerKey  = "server.key"
	Client     = "client.pem"
	ClientKey  = "client.key"
	clockSkew  = time.Hour // of a peer whose clock is behind ours
	serialBits = 127
)

// Write makes certificates that are valid from now on, the server's for hosts, and
// writes them into dir, readable by their owner only. If one of the files exists it
// writes none.
func Write(dir string, hosts []string, now time.Time, life time.Duration) error {
	files, err := makeAll(hosts, now, life)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s already exists", filepath.Join(dir, name)), err)
		}
	}
	for name, text := range files {
		if err := atomicfile.Write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

// makeAll returns the files' contents by name.
func makeAll(hosts []string, now time.Time, life time.Duration) (map[string][]byte, error) {
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(life),
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		}
	}
	files := make(map[string][]byte)
	root := template("blockdesk test authority")
	root.IsCA, root.KeyUsage, root.MaxPathLenZero = true, x509.KeyUsageCertSign, true
	authority := &issuer{}
	if err := authority.issue(root, files, Authority, ""); err != nil {
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
	if err := authority.issue(server, files, Server, ServerKey); err != nil {
		return nil, err
	}
	client := template("blockdesk test client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return files, authority.issue(client, files, Client, ClientKey)
}

// issuer is a certificate authority in memory.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue puts a certificate and its key into files. The first certificate is the
// authority's own: it is self-signed, and its key is in no file.
func (i *issuer) issue(template *x509.Certificate, files map[string][]byte, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
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
