package main

import (
	"bufio"
	"cmp"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/fixterm/console"
	"blockdesk/internal/sandbox"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// fixClientFlags are the session, the gateway, and the output.
type fixClientFlags struct {
	address, compID, target, username string
	passwordFile, key, sequence       string
	ca, serverName, cert, certKey     string
	heartBt                           int
	wait                              time.Duration
	tls, dropCopy, keepOrders, reset  bool
	custom, raw, strict               bool
}

func fixClientCommand(s *settings) *cobra.Command {
	var f fixClientFlags
	cmd := &cobra.Command{
		Use: "client", Short: "Log on and trade from the terminal or a script", Args: cobra.NoArgs,
		Long: "Log on to a FIX 4.4 gateway and send typed commands: `help` lists them. If standard input is not a\n" +
			"terminal, each of its lines is a command, which waits for the answer to the one before.\n\n" +
			"The password comes from --password-file, from " + config.FIXPasswordEnv + ", or from a prompt. Sequence\n" +
			"numbers are stored in a file, so that a later start continues the session.",
		Example: "  " + config.FIXPasswordEnv + "=demo blockdesk fix client --comp-id GUEST\n" +
			"  printf 'buy SLUSD/USDC 5 at 1.01 ioc\\n' | blockdesk fix client --comp-id GUEST --strict",
		RunE: func(cmd *cobra.Command, _ []string) error {
			interactive := term.IsTerminal(int(os.Stdin.Fd()))
			options, err := f.options(s, interactive, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return console.Run(cmd.Context(), console.Options{
				Client: options, Wait: f.wait, Strict: f.strict, Interactive: interactive, Out: cmd.OutOrStdout(), JSON: s.json, Raw: f.raw,
			}, cmd.InOrStdin())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.address, "address", "", "host:port (default: from addresses.json in the data folder)")
	flags.StringVar(&f.compID, "comp-id", "", "SenderCompID")
	flags.StringVar(&f.target, "target", "", "TargetCompID (default: fix.comp_id)")
	flags.StringVar(&f.username, "username", "", "participant (default: --comp-id)")
	flags.StringVar(&f.passwordFile, "password-file", "", "file whose first line is the password")
	flags.StringVar(&f.key, "key", "", "Ed25519 key to log on with instead of a password: PEM (PKCS #8) or a Solana keypair file")
	flags.BoolVar(&f.tls, "tls", false, "speak TLS")
	flags.StringVar(&f.ca, "ca", "", "PEM file of the authority of the service's certificate")
	flags.StringVar(&f.serverName, "server-name", "", "name in the service's certificate (default: the host of --address)")
	flags.StringVar(&f.cert, "cert", "", "PEM file of the client's certificate, if the service requires one")
	flags.StringVar(&f.certKey, "cert-key", "", "PEM file of its key")
	flags.BoolVar(&f.dropCopy, "drop-copy", false, "receive all fills of the participant (9406=Y)")
	flags.BoolVar(&f.keepOrders, "no-cancel-on-disconnect", false, "let orders outlive the connection (8013=N)")
	flags.BoolVar(&f.custom, "custom-fields", false, "receive the fields 5601 to 5616 (5600=Y)")
	flags.StringVar(&f.sequence, "sequence-file", "", "file of the sequence numbers (default: in the user's configuration folder)")
	flags.BoolVar(&f.reset, "reset", false, "start with sequence number 1 on both sides (141=Y)")
	flags.IntVar(&f.heartBt, "heartbeat", 30, "seconds between heartbeats, 10 to 60")
	flags.DurationVar(&f.wait, "wait", 10*time.Second, "longest wait for an answer")
	flags.BoolVar(&f.raw, "raw", false, "show every message too, with | for SOH and without secrets")
	flags.BoolVar(&f.strict, "strict", false, "fail at the end if a command was refused or not answered")
	return cmd
}

// options reads the files that the flags name.
func (f *fixClientFlags) options(s *settings, interactive bool, prompt io.Writer) (fixclient.Options, error) {
	o := fixclient.Options{
		Addr: f.address, SenderCompID: f.compID, TargetCompID: f.target, Username: cmp.Or(f.username, f.compID),
		HeartBtInt: f.heartBt, KeepSequence: true, Reset: f.reset,
	}
	if f.compID == "" {
		return o, usagef("--comp-id is required: the SenderCompID of the session")
	}
	if err := config.CheckRange("--heartbeat", f.heartBt, 10, 60); err != nil {
		return o, usageError{err}
	}
	if f.wait <= 0 || f.wait > time.Hour {
		return o, usagef("--wait: %s: want more than 0 and at most 1h", f.wait)
	}
	cfg, err := s.load()
	if err != nil {
		return o, err
	}
	o.TargetCompID = cmp.Or(o.TargetCompID, cfg.FIX.CompID)
	if o.Addr == "" {
		if at, err := operator.ReadAddresses(cfg.DataDir); err == nil {
			o.Addr = at.FIX
		}
		o.Addr = cmp.Or(o.Addr, cfg.Listen.FIX)
	}
	for _, v := range []struct {
		wanted bool
		field  string
	}{{f.keepOrders, "8013=N\x01"}, {f.dropCopy, "9406=Y\x01"}, {f.custom, "5600=Y\x01"}} {
		if v.wanted {
			o.LogonFields += v.field
		}
	}
	if o.TLS, err = f.tlsConfig(o.Addr); err != nil {
		return o, err
	}
	numbers, err := console.OpenSequenceFile(f.sequence, o.SenderCompID, o.TargetCompID, o.Addr)
	if err != nil {
		return o, err
	}
	o.Numbers, o.NextSender, o.NextTarget = numbers, numbers.Sender, numbers.Target
	if f.key != "" {
		o.Key, err = readLogonKey(f.key)
		return o, err
	}
	o.Password, err = f.password(interactive, prompt)
	return o, err
}

// maxPasswordFile bounds a password file, in bytes.
const maxPasswordFile = 4 << 10

func (f *fixClientFlags) password(interactive bool, prompt io.Writer) (string, error) {
	if f.passwordFile != "" {
		file, err := os.Open(f.passwordFile)
		if err != nil {
			return "", fmt.Errorf("--password-file: %w", err)
		}
		defer file.Close()
		line, err := bufio.NewReader(io.LimitReader(file, maxPasswordFile)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("--password-file: %w", err)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	if password, ok := os.LookupEnv(config.FIXPasswordEnv); ok {
		return password, nil
	}
	if !interactive {
		return "", usagef("no password: name --password-file or --key, or set %s", config.FIXPasswordEnv)
	}
	fmt.Fprint(prompt, "Password: ")
	password, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(prompt)
	return string(password), err
}

// readLogonKey reads a participant's private Ed25519 key. Errors do not quote the file.
func readLogonKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		key, err := sandbox.ReadKey(path)
		if err != nil {
			return nil, fmt.Errorf("--key: %s is neither PEM nor a keypair file", path)
		}
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("--key: %s holds no Ed25519 key in PKCS #8", path)
	}
	return key, nil
}

func (f *fixClientFlags) tlsConfig(address string) (*tls.Config, error) {
	if !f.tls {
		if f.ca != "" || f.cert != "" || f.certKey != "" || f.serverName != "" {
			return nil, usagef("--ca, --cert, --cert-key and --server-name need --tls")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName}
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("--address: %w", err)
		}
		config.ServerName = host
	}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca: %s holds no certificate", f.ca)
		}
	}
	if f.cert != "" || f.certKey != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.certKey)
		if err != nil {
			return nil, fmt.Errorf("--cert, --cert-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
