package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// refundOrder is the body of an order to pay payments back.
type refundOrder struct {
	Payment string `json:"l1_signature,omitempty"`
	All     bool   `json:"all,omitempty"`
	Claim   string `json:"claim_id,omitempty"`
	Rail    string `json:"rail,omitempty"`
	Under   string `json:"under_usd,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// refundsOrdered is what was ordered, by rail.
type refundsOrdered struct {
	DryRun  bool `json:"dry_run"`
	Before  int  `json:"ordered_before"`
	Ordered map[string]struct {
		Count  int    `json:"count"`
		Amount string `json:"amount"`
	} `json:"ordered"`
}

func moneyRefundCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in refundOrder
	cmd := &cobra.Command{
		Use: "refund [SIGNATURE]", Short: "Pay back payments whose refund is due", Args: cobra.MaximumNArgs(1),
		Long: "Pay back the payment with this SIGNATURE, or with --all every payment whose refund is due and that\n" +
			"the other flags select. The desk's wallet pays, to the wallet that has paid: keep USDC and SOL in\n" +
			"it. Each payment is paid back once, whatever crashes; the transaction has a memo that names the\n" +
			"payment. The order is stored and its refunds are journaled with your name. money list follows\n" +
			"them: refunds_due with your name, then refunding, then refunded.",
		Example: "  blockdesk money refund --all --under 100 --dry-run\n  blockdesk money refund --all --rail USDC --under 100\n  blockdesk money refund 5Kd…",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			if len(args) == 1 {
				in.Payment = args[0]
			}
			if (in.Payment != "") == in.All {
				return "", nil, usagef("name one payment, or use --all")
			}
			return "/desk/money/refund", &in, nil
		}, showRefundsOrdered),
	}
	flags := cmd.Flags()
	flags.BoolVar(&in.All, "all", false, "every payment whose refund is due")
	flags.StringVar(&in.Under, "under", "", "only refunds worth less than this, in USD; SOL counts at the desk's price")
	flags.StringVar(&in.Rail, "rail", "", "only one rail, USDC or SOL")
	flags.StringVar(&in.Claim, "claim", "", "only payments that name this claim")
	flags.BoolVar(&in.DryRun, "dry-run", false, "show what would be ordered, and order nothing")
	return cmd
}

func showRefundsOrdered(w io.Writer, a *refundsOrdered) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	what := "ordered"
	if a.DryRun {
		what = "would be ordered"
	}
	for _, rail := range []string{"USDC", "SOL"} {
		x := a.Ordered[rail]
		fmt.Fprintf(t, "%s\t%d payments\t%s %s\n", what, x.Count, shortDecimal(x.Amount), rail)
	}
	if a.Before > 0 {
		fmt.Fprintf(t, "before\t%d payments\n", a.Before)
	}
	return t.Flush()
}
