package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"blockdesk/internal/sandbox"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/wallet"
)

// walletFlags choose the wallet, the service and the chain.
type walletFlags struct {
	key, base, chain string
}

func walletCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "wallet", Short: "A client's wallet for trying the service: sign, pay, log in",
		Long: "A client's wallet for trying the service. It signs with a keypair file in Solana's format, by\n" +
			"default the demo's first wallet. Do not use it with a key that holds money.",
	})
	var f walletFlags
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.key, "key", "", "keypair file (default: wallet-1.json of the demo's chain)")
	flags.StringVar(&f.base, "base", "", "the service's URL (default: from addresses.json in the data folder)")
	flags.StringVar(&f.chain, "chain", "", "URL of a Solana node (default: the demo's chain)")
	cmd.AddCommand(
		&cobra.Command{
			Use: "sign", Short: "Sign the transaction of a service's answer; print the body to submit", Args: cobra.NoArgs,
			Long: "Read a build or an atomic claim from standard input, add the wallet's signature to its\n" +
				"transaction, and print the body of POST /api/v1/dvp/submit; with --json it is the member body.\nNothing is sent.",
			Example: "  cat build.json | blockdesk wallet sign",
			RunE: walletRun(s, &f, func(cmd *cobra.Command, w *wallet.Wallet) error {
				body, err := w.Sign(cmd.InOrStdin())
				switch {
				case err != nil:
					return err
				case s.json:
					return printJSON(cmd.OutOrStdout(), map[string]any{"ok": true, "body": body})
				}
				return json.NewEncoder(cmd.OutOrStdout()).Encode(body)
			}),
		},
		&cobra.Command{
			Use: "pay", Short: "Pay a claim on standard input, wait until it is final, print the signature", Args: cobra.NoArgs,
			Long: "Read a claim from standard input, sign its payment, send it to the chain, wait until it is final\n" +
				"(two minutes at most), and print the signature for verify-payment.",
			Example: "  cat claim.json | blockdesk wallet pay",
			RunE: walletRun(s, &f, func(cmd *cobra.Command, w *wallet.Wallet) error {
				signature, err := w.Pay(cmd.Context(), cmd.InOrStdin())
				if err != nil {
					return err
				}
				return s.print(cmd, map[string]any{"signature": signature}, signature)
			}),
		},
		&cobra.Command{
			Use: "login", Short: "Prove the wallet's key by the DvP handshake; print the access token", Args: cobra.NoArgs,
			Long: "Do the DvP handshake: request a nonce, sign it, and print the access token. Each address gets a\n" +
				"token once an hour, which is valid for seven days.",
			Example: "  blockdesk wallet login",
			RunE: walletRun(s, &f, func(cmd *cobra.Command, w *wallet.Wallet) error {
				token, err := w.Login(cmd.Context())
				if err != nil {
					return err
				}
				return s.print(cmd, map[string]any{"access_token": token}, token)
			}),
		})
	return cmd
}

func walletRun(s *settings, f *walletFlags, run func(*cobra.Command, *wallet.Wallet) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		w, err := f.open(s)
		if err != nil {
			return err
		}
		return run(cmd, w)
	}
}

// open reads the key, and finds what the flags leave out in the data folder.
func (f *walletFlags) open(s *settings) (*wallet.Wallet, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	w := &wallet.Wallet{Base: f.base, Chain: f.chain, HTTP: &http.Client{Timeout: operator.Timeout}}
	if w.Base == "" || w.Chain == "" {
		at, err := operator.ReadAddresses(cfg.DataDir)
		if err != nil && w.Base == "" {
			return nil, fmt.Errorf("%w: its address is not known; give --data or --base: %w", operator.ErrNoService, err)
		}
		w.Base, w.Chain = cmp.Or(w.Base, at.Base), cmp.Or(w.Chain, at.Chain)
	}
	w.Base = strings.TrimRight(w.Base, "/")
	w.Key, err = sandbox.ReadKey(cmp.Or(f.key, demo.KeyFile(demo.ChainDir(&cfg), demo.Wallet(1))))
	return w, err
}
