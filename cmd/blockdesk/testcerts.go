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

	"blockdesk/internal/atomicfile"
)

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
		if err := atomicfile.Write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}
