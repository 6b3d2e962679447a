package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// checkTLS reports what of the FIX address's TLS does not go together.
func (c *FIXConfig) checkTLS() error {
	switch {
	case (c.TLSCertFile == "") != (c.TLSKeyFile == ""):
		return errors.New("fix.tls_cert_file and fix.tls_key_file: set both or none")
	case c.TLSClientCAFile != "" && c.TLSCertFile == "":
		return errors.New("fix.tls_client_ca_file: needs fix.tls_cert_file and fix.tls_key_file")
	}
	return nil
}

// tls returns how the FIX address is encrypted: nil = it is not. The files are
// read now and not again. Where there is an authority for clients, a client
// without a certificate of it gets no further than the handshake; a password or
// a signature is asked for all the same.
func (c *FIXConfig) tls() (*tls.Config, error) {
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
