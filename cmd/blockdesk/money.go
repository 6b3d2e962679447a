package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The lists of money that needs an operator, as the admin address names them.
const (
	moneyFailing        = "stuck_deliveries"
	moneyOutcomeUnknown = "doubtful"
	moneyRefunds        = "refunds_due"
	moneyRefunding      = "refunding"
	moneyUnmatched      = "strays"
	moneyRefunded       = "refunded"
)

type (
	// moneyItem is one amount; unknown values are empty.
	moneyItem struct {
		Signature string `json:"l1_signature"`
		Claim     string `json:"claim_id"`
		Reason    string `json:"reason"`
		Rail      string `json:"rail"`
		Amount    string `json:"amount"`
		Atoms     string `json:"amount_atoms"`
		Payer     string `json:"payer"`
		At        string `json:"at"`
		Attempts  int    `json:"attempts"`
		Delivery  string `json:"delivery_signature"`
		Refund    string `json:"refund_signature"`
		OrderedBy string `json:"refund_ordered_by"`
		Problem   string `json:"refund_problem"`
	}
	moneyAnswer struct {
		Counts map[string]int `json:"counts"`
		Lists  map[string]struct {
			Items []moneyItem `json:"items"`
			Next  string      `json:"next"`
		} `json:"lists"`
	}
)

func moneyCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "money", Short: "List money that needs an operator, and settle it",
		Long: "List money that needs an operator, pay it back, and record what was done. Of these commands only\n" +
			"money refund moves money. docs/operating.md has a procedure for each list.",
	})
	var f operatorFlags
	f.add(cmd)
	cmd.AddCommand(
		moneyListCommand(s, &f), moneyRefundCommand(s, &f), moneyRefundedCommand(s, &f), moneyAbandonCommand(s, &f), moneyReleaseCommand(s, &f), moneyResolveCommand(s, &f),
	)
	return cmd
}

func moneyListCommand(s *settings, f *operatorFlags) *cobra.Command {
	query := url.Values{}
	var kind, after string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List failing deliveries, unknown outcomes, due refunds, and unmatched payments", Args: cobra.NoArgs,
		Long: "List money that needs an operator, most urgent first: deliveries that keep failing\n" +
			"(stuck_deliveries), claims whose outcome on the chain is unknown (doubtful), due refunds\n(refunds_due), refunds that are not final (refunding), and payments without a claim (strays).\n" +
			"--kind refunded lists what the desk has paid back. It needs a service that settles.",
		Example: "  blockdesk money list\n  blockdesk money list --kind refunds_due --limit 20",
		RunE: operatorCommand(s, f, func([]string) (string, any, error) {
			for name, value := range map[string]string{"kind": kind, "after": after} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if limit != 0 {
				query.Set("limit", strconv.Itoa(limit))
			}
			return "/desk/money?" + query.Encode(), nil, nil
		}, showMoney),
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "one list: "+strings.Join([]string{moneyFailing, moneyOutcomeUnknown, moneyRefunds, moneyRefunding, moneyUnmatched, moneyRefunded}, ", "))
	flags.StringVar(&after, "after", "", "continue a list of this kind after this item")
	flags.IntVar(&limit, "limit", 0, "list at most this many items (default: the service's limit)")
	return cmd
}

func moneyRefundedCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in struct {
		Payment string `json:"l1_signature"`
		Refund  string `json:"refund_signature"`
	}
	cmd := &cobra.Command{
		Use: "refunded SIGNATURE", Short: "Record that a payment was refunded", Args: cobra.ExactArgs(1),
		Long: "Record that the payment with this SIGNATURE was refunded by the transaction --by. It moves no\n" +
			"money: send the refund first, with your own wallet, or use money refund instead. It is journaled,\nand cannot be recorded twice with different refunds.",
		Example: "  blockdesk money refunded 5Kd… --by 3xP…",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			in.Payment = args[0]
			return "/desk/money/refunded", &in, nil
		}, func(w io.Writer, a *struct {
			Payment struct {
				State string `json:"state"`
			} `json:"payment"`
		},
		) error {
			_, err := fmt.Fprintln(w, "the payment is", a.Payment.State)
			return err
		}),
	}
	cmd.Flags().StringVar(&in.Refund, "by", "", "signature of the refund")
	return requireFlags(cmd, "by")
}

func moneyAbandonCommand(s *settings, f *operatorFlags) *cobra.Command {
	return &cobra.Command{
		Use: "abandon CLAIM_ID", Short: "Give up a paid claim that cannot be delivered: its refund is due", Args: cobra.ExactArgs(1),
		Long: "Give up a paid claim that cannot be delivered. Its refund is due then, and is listed under\n" +
			"refunds_due. Refused while a delivery is in progress.",
		Example: "  blockdesk money abandon C000000000002e",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			return "/desk/money/abandon", map[string]string{"claim_id": args[0]}, nil
		}, showClaimState),
	}
}

// claimState is the answer to a request about a claim.
type claimState struct {
	Claim string `json:"claim_id"`
	State string `json:"state"`
}

func showClaimState(w io.Writer, a *claimState) error {
	_, err := fmt.Fprintf(w, "claim %s is %s\n", a.Claim, a.State)
	return err
}

func moneyReleaseCommand(s *settings, f *operatorFlags) *cobra.Command {
	var looked bool
	cmd := &cobra.Command{
		Use: "release CLAIM_ID", Short: "Release a claim with no transaction on the chain", Args: cobra.ExactArgs(1),
		Long: "Release a claim that `money list` shows as doubtful: its transaction can no longer land, and the\n" +
			"nodes cannot prove whether it has landed. First search two explorers of different operators: for\n" +
			"the transaction's signature, and in the history of the claim's wallet for a transaction with the\n" +
			"claim's memo. Only if it is in neither: an atomic claim is released, and the next delivery of a\n" +
			"paid claim is signed at once. If the transaction is on the chain after all, the tokens are\n" +
			"delivered twice.",
		Example: "  blockdesk money release C000000000002e --i-have-looked",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			if !looked {
				return "", nil, usageError{errNotConfirmed}
			}
			return "/desk/money/release", map[string]any{"claim_id": args[0], "confirm": true}, nil
		}, showClaimState),
	}
	cmd.Flags().BoolVar(&looked, "i-have-looked", false, "two explorers show that the transaction is not on the chain")
	return requireFlags(cmd, "i-have-looked")
}

// errNotConfirmed refuses a release without a search for the transaction.
var errNotConfirmed = errors.New("look in two explorers first: the transaction must not be on the chain")

func moneyResolveCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in struct {
		Payment string `json:"l1_signature"`
		Note    string `json:"note"`
	}
	cmd := &cobra.Command{
		Use: "resolve SIGNATURE", Short: "Record what was done about an unmatched payment", Args: cobra.ExactArgs(1),
		Long:    "Record what was done about a payment without a claim. It moves no money, and removes the payment\nfrom the list.",
		Example: "  blockdesk money resolve 5Kd… --note 'sent back by 3xP…'",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			in.Payment = args[0]
			return "/desk/money/resolve", &in, nil
		}, func(w io.Writer, _ *struct{}) error {
			_, err := fmt.Fprintln(w, "recorded")
			return err
		}),
	}
	cmd.Flags().StringVar(&in.Note, "note", "", "what was done, 1 to 500 characters")
	return requireFlags(cmd, "note")
}

// showMoney prints the lists, the most urgent first.
func showMoney(w io.Writer, a *moneyAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tSINCE\tCLAIM\tAMOUNT\tREASON\tPAYER\tPAYMENT\tDELIVERIES\tTRANSACTION\tORDERED BY\tWAITS FOR")
	listed := 0
	for _, kind := range []string{moneyFailing, moneyOutcomeUnknown, moneyRefunds, moneyRefunding, moneyUnmatched, moneyRefunded} {
		list := a.Lists[kind]
		listed += len(list.Items)
		for _, m := range list.Items {
			amount := m.Atoms + " atoms"
			if m.Amount != "" {
				amount = shortDecimal(m.Amount) + " " + m.Rail
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
				kind, shortTime(m.At), dash(m.Claim), amount, dash(m.Reason), dash(m.Payer), dash(m.Signature), m.Attempts, dash(cmp.Or(m.Refund, m.Delivery)),
				dash(m.OrderedBy), dash(m.Problem))
		}
		if list.Next != "" {
			fmt.Fprintf(t, "%s\tmore of %d: --kind %s --after %s\n", kind, a.Counts[kind], kind, list.Next)
		}
	}
	switch {
	case listed > 0:
	case a.Counts[moneyFailing]+a.Counts[moneyOutcomeUnknown]+a.Counts[moneyRefunds]+a.Counts[moneyUnmatched] > 0: // of a kind that was not asked for
		fmt.Fprintln(t, "none of this kind")
	default:
		fmt.Fprintln(t, "nothing needs an operator")
	}
	return t.Flush()
}

// dash returns "-" for an empty text.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
