package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// CheckTLS checks the TLS keys of the FIX address against each other.
func (c *FIX) CheckTLS() error {
	switch {
	case (c.TLSCertFile == "") != (c.TLSKeyFile == ""):
		return errors.New("fix.tls_cert_file and fix.tls_key_file: set both or none")
	case c.TLSClientCAFile != "" && c.TLSCertFile == "":
		return errors.New("fix.tls_client_ca_file: needs fix.tls_cert_file and fix.tls_key_file")
	}
	return nil
}

// ServerTLS returns the TLS configuration of the FIX address; nil means plain TCP. It
// reads the files once. With an authority for clients the handshake refuses a client
// without a certificate of it; the logon still needs a password or a signature.
func (c *FIX) ServerTLS() (*tls.Config, error) {
	if c.TLSCertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCertFile, c.TLSKeyFile)
	if err != nil {
		return nil, fmt.Errorf("fix.tls_cert_file, fix.tls_key_file: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if c.TLSClientCAFile == "" {
		return config, nil
	}
	text, err := os.ReadFile(c.TLSClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("fix.tls_client_ca_file: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("fix.tls_client_ca_file: %s holds no certificate in PEM", c.TLSClientCAFile)
	}
	return config, nil
}
