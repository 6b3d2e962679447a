package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/testcert"
	"blockdesk/service/config"
)

func TestFIXCertRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, testcert.ServerKey), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var hosts strings.Builder
	for i := range maxCertHosts + 1 {
		fmt.Fprintf(&hosts, ",h%d", i)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a file is there": {[]string{dir}, "server.key already exists"},
		"no day":          {[]string{t.TempDir(), "--days", "0"}, "--days: 0"},
		"too many days":   {[]string{t.TempDir(), "--days", "826"}, "--days: 826"},
		"too many hosts":  {[]string{t.TempDir(), "--host", hosts.String()[1:]}, "--host: 101"},
		"no folder":       {nil, "arg"},
	} {
		if out, err := programtest.Run(t, "", nil, append([]string{"fix", "cert"}, c.args...)...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// TLS options must be complete, and an error must be found when the configuration is checked.
func TestFIXTLSConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := testcert.Write(dir, []string{"localhost"}, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		config config.FIX
		want   string
	}{
		"none":               {config.FIX{}, ""},
		"both":               {config.FIX{TLSCertFile: at(testcert.Server), TLSKeyFile: at(testcert.ServerKey)}, ""},
		"and clients'":       {config.FIX{TLSCertFile: at(testcert.Server), TLSKeyFile: at(testcert.ServerKey), TLSClientCAFile: at(testcert.Authority)}, ""},
		"no key":             {config.FIX{TLSCertFile: at(testcert.Server)}, "set both or none"},
		"no certificate":     {config.FIX{TLSKeyFile: at(testcert.ServerKey)}, "set both or none"},
		"clients' alone":     {config.FIX{TLSClientCAFile: at(testcert.Authority)}, "needs fix.tls_cert_file"},
		"another's key":      {config.FIX{TLSCertFile: at(testcert.Server), TLSKeyFile: at(testcert.ClientKey)}, "fix.tls_cert_file, fix.tls_key_file"},
		"no such file":       {config.FIX{TLSCertFile: at("x"), TLSKeyFile: at(testcert.ServerKey)}, "no such file"},
		"authority is a key": {config.FIX{TLSCertFile: at(testcert.Server), TLSKeyFile: at(testcert.ServerKey), TLSClientCAFile: at(testcert.ServerKey)}, "holds no certificate"},
		"no authority":       {config.FIX{TLSCertFile: at(testcert.Server), TLSKeyFile: at(testcert.ServerKey), TLSClientCAFile: at("x")}, "fix.tls_client_ca_file"},
	} {
		cfg := config.Default()
		cfg.FIX.TLSCertFile, cfg.FIX.TLSKeyFile, cfg.FIX.TLSClientCAFile = c.config.TLSCertFile, c.config.TLSKeyFile, c.config.TLSClientCAFile
		err := cfg.Validate()
		if err == nil {
			_, err = cfg.FIX.ServerTLS()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
