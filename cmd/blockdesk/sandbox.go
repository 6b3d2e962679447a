package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/internal/sandbox"
	"blockdesk/service/demo"
	"blockdesk/settle/broadcast"
)

func sandboxCommand(s *settings) *cobra.Command {
	var listen, folder string
	var memory, manual bool
	o := sandbox.Options{}
	cmd := &cobra.Command{
		Use: "sandbox", Short: "Run the demo's local Solana chain alone", Args: cobra.NoArgs,
		Long: "Run the demo's local Solana chain alone, until Ctrl-C: real programs behind Solana's JSON-RPC,\n" +
			"with the demo's mints, desk, treasury and wallets. Nothing on it has value. It can simulate\n" +
			"failures: internal/sandbox/README.md has its methods, and the calls that advance slots, lose\n" +
			"sends and stop the node. Needs Node 20.",
		Example: "  blockdesk sandbox --finalize-slots 4\n" +
			"  blockdesk serve --demo --set chain.rpc_urls=http://127.0.0.1:8899   # in another terminal",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			if folder == "" {
				folder = demo.ChainDir(&cfg)
			}
			if listen != "" {
				cfg.Listen.Chain = listen
			}
			base := demo.ChainOptions(&cfg, folder)
			o.Dir, o.Addr, o.SetupDir, o.StateFile = base.Dir, base.Addr, base.SetupDir, base.StateFile
			if memory {
				o.StateFile = ""
			}
			if o.ManualSlots = manual; manual {
				o.SlotTime = 0
			}
			o.Stderr = cmd.ErrOrStderr()
			return runSandbox(cmd, o, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&listen, "listen", "", "host:port (default: listen.chain of the configuration)")
	flags.StringVar(&folder, "folder", "", "folder of its keys and its state (default: "+demo.ChainFolder+" in the data folder)")
	flags.BoolVar(&memory, "memory", false, "start with a new chain, and store only the keys")
	flags.DurationVar(&o.SlotTime, "slot-time", 400*time.Millisecond, "time of a slot")
	flags.BoolVar(&manual, "by-hand", false, "slots advance only by sandbox_advance")
	flags.IntVar(&o.ConfirmSlots, "confirm-slots", 1, "slots until a block is confirmed")
	flags.IntVar(&o.FinalizeSlots, "finalize-slots", 31, "slots until a block is finalized")
	flags.IntVar(&o.BlockhashSlots, "blockhash-slots", broadcast.BlockhashLife, "slots in which a blockhash is valid")
	flags.IntVar(&o.History, "history", 20_000, "transactions to keep")
	flags.IntVar(&o.Wallets, "wallets", demo.Wallets, "wallets with SOL and USDC, at most 100")
	return cmd
}

// runSandbox runs the chain until the command's context ends.
func runSandbox(cmd *cobra.Command, o sandbox.Options, s *settings) error {
	var node *sandbox.Node
	err := s.newBar(cmd.ErrOrStderr(), "starting the local chain", inTime).run(func() (err error) {
		node, err = demo.StartSandbox(cmd.Context(), o)
		return err
	})
	if err != nil {
		return err
	}
	setup, err := sandbox.ReadSetup(o.SetupDir)
	if err == nil {
		err = showSandbox(cmd.OutOrStdout(), setup, o, s.json)
	}
	if err != nil {
		if stopErr := node.Stop(); stopErr != nil {
			return fmt.Errorf("%w; %w", err, stopErr)
		}
		return err
	}
	return node.Run(cmd.Context())
}

// showSandbox prints the address of the chain, its mints and its keys.
func showSandbox(w io.Writer, setup *sandbox.Setup, o sandbox.Options, asJSON bool) error {
	if asJSON {
		return printJSON(w, struct {
			OK bool `json:"ok"`
			*sandbox.Setup
		}{true, setup})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "chain\t%s\tkeys in %s\n", setup.RPCURL, o.SetupDir)
	var symbols []string
	for symbol := range setup.Mints {
		symbols = append(symbols, symbol)
	}
	slices.Sort(symbols)
	for _, symbol := range symbols {
		fmt.Fprintf(t, "mint\t%s\t%s\n", setup.Mints[symbol].Address, symbol)
	}
	fmt.Fprintf(t, "desk\t%s\t%s\n", setup.Desk.Address, setup.Desk.Keypair)
	fmt.Fprintf(t, "treasury\t%s\t%s\n", setup.Treasury.Address, setup.Treasury.Keypair)
	for _, wallet := range setup.Wallets {
		fmt.Fprintf(t, "wallet\t%s\t%s\n", wallet.Address, wallet.Keypair)
	}
	return t.Flush()
}
