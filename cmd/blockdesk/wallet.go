package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go/base58"
	"github.com/spf13/cobra"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
)

const (
	// payWithin is how long a payment may take to be final: 150 blocks, after
	// which it cannot land, and 32 more.
	payWithin = 2 * time.Minute
	payPoll   = 500 * time.Millisecond
	// maxClientAnswer bounds the service's answers to a client.
	maxClientAnswer = 1 << 20
)

// walletFlags say which wallet signs, and where it goes to.
type walletFlags struct {
	key, base, chain string
}

// wallet is a client's side of a settlement: what an integrator has in his own
// program. It is there to try the service with.
type wallet struct {
	key   ed25519.PrivateKey
	base  string // URL
	chain string // URL; empty: not known
	http  *http.Client
	json  bool // how answers are printed
}

func walletCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "wallet", Short: "A client's wallet, to try the service with: sign, pay, log in",
		Long: "A client's wallet, to try the service with. It signs with a keypair file in Solana's\n" +
			"form: the demo's first wallet, unless another is named. It is no place for a key that\n" +
			"holds anything.",
	})
	var f walletFlags
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.key, "key", "", "keypair file (default: wallet-1.json of the demo's chain)")
	flags.StringVar(&f.base, "base", "", "the service's URL (default: what addresses.json in the data folder says)")
	flags.StringVar(&f.chain, "chain", "", "URL of a Solana node (default: the demo's chain)")
	cmd.AddCommand(
		&cobra.Command{
			Use: "sign", Short: "Sign the transaction of an answer on standard input; print the body of a submit", Args: cobra.NoArgs,
			Long: "Read a build, or an atomic claim, from standard input, put the wallet's signature into its\n" +
				"transaction, and print the body of POST /api/v1/dvp/submit; with --json it is the member body.\nNothing is sent.",
			Example: "  cat build.json | blockdesk wallet sign",
			RunE:    walletRun(s, &f, func(_ context.Context, w *wallet, in io.Reader, out io.Writer) error { return w.sign(in, out) }),
		},
		&cobra.Command{
			Use: "pay", Short: "Sign the payment of a claim on standard input, send it, wait until it is final; print its signature", Args: cobra.NoArgs,
			Long: "Read a claim from standard input, sign its payment, send it to the chain and wait until no fork\n" +
				"can take it back, for two minutes at most. Prints the signature, which verify-payment takes.",
			Example: "  cat claim.json | blockdesk wallet pay",
			RunE:    walletRun(s, &f, func(ctx context.Context, w *wallet, in io.Reader, out io.Writer) error { return w.pay(ctx, in, out) }),
		},
		&cobra.Command{
			Use: "login", Short: "Prove the wallet's key by the DvP handshake; print the access token", Args: cobra.NoArgs,
			Long: "Take the steps of the DvP handshake: ask for a nonce, sign it, and print the access token. Each\n" +
				"address gets one an hour, which serves for seven days.",
			Example: "  blockdesk wallet login",
			RunE:    walletRun(s, &f, func(ctx context.Context, w *wallet, _ io.Reader, out io.Writer) error { return w.login(ctx, out) }),
		})
	return cmd
}

func walletRun(s *settings, f *walletFlags, run func(context.Context, *wallet, io.Reader, io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		w, err := f.open(s)
		if err != nil {
			return err
		}
		return run(cmd.Context(), w, cmd.InOrStdin(), cmd.OutOrStdout())
	}
}

func (f *walletFlags) open(s *settings) (*wallet, error) {
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	w := &wallet{base: f.base, chain: f.chain, http: &http.Client{Timeout: operator.Timeout}, json: s.json}
	if w.base == "" || w.chain == "" {
		at, err := operator.ReadAddresses(cfg.DataDir)
		if err != nil && w.base == "" {
			return nil, fmt.Errorf("%w: where it is, is not known; name it by --data or --base: %w", operator.ErrNoService, err)
		}
		if w.base == "" {
			w.base = at.Base
		}
		if w.chain == "" {
			w.chain = at.Chain
		}
	}
	w.base = strings.TrimRight(w.base, "/")
	file := f.key
	if file == "" {
		file = demo.KeyFile(demo.ChainDir(&cfg), demo.Wallet(1))
	}
	w.key, err = sandbox.ReadKey(file)
	return w, err
}

func (w *wallet) address() solana.Address { return solana.Address(w.key[ed25519.SeedSize:]) }

// signable is what we look at of an answer that has a transaction in it. A build
// names itself, an atomic claim tells what its build is called.
type signable struct {
	BuildID string `json:"build_id"`
	Submit  struct {
		BuildID string `json:"build_id"`
	} `json:"submit"`
	Transaction []byte `json:"transaction"` // base64
}

// submitBody is the body of POST /api/v1/dvp/submit.
type submitBody struct {
	BuildID     string `json:"build_id,omitempty"`
	Transaction []byte `json:"transaction"`
}

// signed reads an answer of the service and puts the wallet's signature into its
// transaction. Nothing else of the bytes changes.
func (w *wallet) signed(in io.Reader) (*signable, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxClientAnswer))
	if err != nil {
		return nil, err
	}
	a := &signable{}
	if err := json.Unmarshal(text, a); err != nil || len(a.Transaction) == 0 {
		refused := &operator.RefusedError{}
		if json.Unmarshal(text, refused) == nil && refused.Code != "" {
			return nil, refused
		}
		return nil, errors.New("standard input is no answer with a transaction in it")
	}
	t, err := tx.Decode(a.Transaction)
	if err != nil {
		return nil, err
	}
	slot, ok := t.Message.Slot(w.address())
	if !ok {
		return nil, fmt.Errorf("%s is not to sign this transaction", solana.Text(w.address()))
	}
	t.Signatures[slot] = solana.Signature(ed25519.Sign(w.key, t.Signed))
	a.Transaction, err = t.Append(nil)
	return a, err
}

func (w *wallet) sign(in io.Reader, out io.Writer) error {
	a, err := w.signed(in)
	if err != nil {
		return err
	}
	body := submitBody{cmp.Or(a.BuildID, a.Submit.BuildID), a.Transaction}
	if w.json {
		return printJSON(out, map[string]any{"ok": true, "body": body})
	}
	return json.NewEncoder(out).Encode(body)
}

// print prints one value: by itself, or with --json as a member.
func (w *wallet) print(out io.Writer, name, value string) error {
	if w.json {
		return printJSON(out, map[string]any{"ok": true, name: value})
	}
	_, err := fmt.Fprintln(out, value)
	return err
}

// pay sends a claim's payment, which the wallet alone signs, and waits until no
// fork can take it back.
func (w *wallet) pay(ctx context.Context, in io.Reader, out io.Writer) error {
	a, err := w.signed(in)
	if err != nil {
		return err
	}
	if w.chain == "" {
		return errors.New("no chain to send it to: the service does not run a local one; name a node by --chain")
	}
	client, err := rpc.New(rpc.Options{Upstreams: []rpc.Upstream{{URL: w.chain}}})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, payWithin)
	defer cancel()
	signature, err := client.Send(ctx, a.Transaction, rpc.SendOptions{})
	if err != nil {
		return err
	}
	for {
		status, _, err := client.Statuses(ctx, []solana.Signature{signature}, false)
		switch {
		case err != nil:
			return fmt.Errorf("%s: sent; %w", signature, err)
		case status[0].Failed:
			return fmt.Errorf("%s: failed on the chain: %s", signature, status[0].Error)
		case status[0].Known && status[0].Level == rpc.Finalized:
			return w.print(out, "signature", signature.String())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: sent, and not final: %w", signature, ctx.Err())
		case <-time.After(payPoll):
		}
	}
}

// login takes the three steps of the handshake.
func (w *wallet) login(ctx context.Context, out io.Writer) error {
	const path = "/api/v1/dvp/handshake"
	pubkey := solana.Text(w.address())
	var challenge struct {
		Nonce string `json:"nonce"`
	}
	if err := w.post(ctx, path, map[string]string{"pubkey": pubkey}, &challenge); err != nil {
		return err
	}
	// What is signed is the nonce's text, not the bytes that it stands for. A text
	// of another kind could be something else that the key signs.
	if _, err := base64.StdEncoding.DecodeString(challenge.Nonce); err != nil {
		return fmt.Errorf("the service's nonce is no base64: %w", err)
	}
	proof := base58.Encode(ed25519.Sign(w.key, []byte(challenge.Nonce)))
	var grant struct {
		Token string `json:"access_token"`
	}
	if err := w.post(ctx, path, map[string]string{"pubkey": pubkey, "nonce": challenge.Nonce, "signature": proof}, &grant); err != nil {
		return err
	}
	return w.print(out, "access_token", grant.Token)
}

// post sends JSON to the service and reads its answer into v.
func (w *wallet) post(ctx context.Context, path string, in, v any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return operator.Unreachable(w.base, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxClientAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices {
		return json.Unmarshal(answer, v)
	}
	refused := &operator.RefusedError{}
	if err := json.Unmarshal(answer, refused); err != nil || refused.Code == "" {
		return fmt.Errorf("%s%s answers %s", w.base, path, resp.Status)
	}
	return refused
}
