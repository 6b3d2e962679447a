package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The kinds of money that need a person, as the admin address names them.
const (
	moneyStuck    = "stuck_deliveries"
	moneyDoubtful = "doubtful"
	moneyRefunds  = "refunds_due"
	moneyStrays   = "strays"
)

type (
	// moneyItem is one sum; what it does not have is empty.
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
		Use: "money", Short: "List the money that needs a person, and note what was done about it",
		Long: "List the money that needs a person, and note what was done about it. None of these\n" +
			"commands moves money: a refund is a transaction of your own. docs/operating.md says what\n" +
			"to do about each kind.",
	})
	var f operatorFlags
	f.add(cmd)
	cmd.AddCommand(
		moneyListCommand(s, &f), moneyRefundedCommand(s, &f), moneyAbandonCommand(s, &f), moneyReleaseCommand(s, &f), moneyResolveCommand(s, &f),
	)
	return cmd
}

func moneyListCommand(s *settings, f *operatorFlags) *cobra.Command {
	query := url.Values{}
	var kind, after string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List stuck and doubtful deliveries, refunds that are due, and strays", Args: cobra.NoArgs,
		Long: "List the money that needs a person, in the order of its haste: deliveries that do not get\n" +
			"through, claims of which the chain does not tell, refunds that are due, and payments that no\nclaim is known for. It needs a service that settles.",
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
	flags.StringVar(&kind, "kind", "", "one list: "+strings.Join([]string{moneyStuck, moneyDoubtful, moneyRefunds, moneyStrays}, ", "))
	flags.StringVar(&after, "after", "", "go on from where a list of this kind ended")
	flags.IntVar(&limit, "limit", 0, "items of a list, at most (default: the service's)")
	return cmd
}

func moneyRefundedCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in struct {
		Payment string `json:"l1_signature"`
		Refund  string `json:"refund_signature"`
	}
	cmd := &cobra.Command{
		Use: "refunded SIGNATURE", Short: "Note that a payment was paid back", Args: cobra.ExactArgs(1),
		Long: "Note that the payment with this SIGNATURE was paid back by the transaction --by. It moves\n" +
			"nothing: send the refund before, with your own wallet program. It is journaled, and cannot be\nnoted twice with different refunds.",
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
	cmd.Flags().StringVar(&in.Refund, "by", "", "signature of the transaction that paid it back")
	return requireFlags(cmd, "by")
}

func moneyAbandonCommand(s *settings, f *operatorFlags) *cobra.Command {
	return &cobra.Command{
		Use: "abandon CLAIM_ID", Short: "Give up a paid claim that can never be delivered: its payment is owed back", Args: cobra.ExactArgs(1),
		Long: "Give up a paid claim that can never be delivered. Its payment is owed back from then on, and\n" +
			"stands under refunds_due. Refused while a delivery of it is under way.",
		Example: "  blockdesk money abandon C000000000002e",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			return "/desk/money/abandon", map[string]string{"claim_id": args[0]}, nil
		}, showClaimState),
	}
}

// claimState is the answer about a claim that something was done with.
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
		Use: "release CLAIM_ID", Short: "End a doubtful claim, whose transaction you have seen not to be on the chain", Args: cobra.ExactArgs(1),
		Long: "End a claim that `money list` has as doubtful: its transaction can land no more, and the\n" +
			"nodes cannot tell whether it has landed. Look first, in two explorers of different operators:\n" +
			"under the transaction's signature, and in the history of the claim's wallet for a transaction\n" +
			"with the claim's memo. Only where it is in neither: an atomic claim is released, and the next\n" +
			"delivery of a paid one is signed at once. Where it is on the chain after all, that\n" +
			"delivers twice.",
		Example: "  blockdesk money release C000000000002e --i-have-looked",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			if !looked {
				return "", nil, usageError{errNotLooked}
			}
			return "/desk/money/release", map[string]any{"claim_id": args[0], "confirm": true}, nil
		}, showClaimState),
	}
	cmd.Flags().BoolVar(&looked, "i-have-looked", false, "two explorers show that the transaction is not on the chain")
	return requireFlags(cmd, "i-have-looked")
}

// errNotLooked ends a release of what nobody has looked for.
var errNotLooked = errors.New("look first, in two explorers: the transaction must not be on the chain")

func moneyResolveCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in struct {
		Payment string `json:"l1_signature"`
		Note    string `json:"note"`
	}
	cmd := &cobra.Command{
		Use: "resolve SIGNATURE", Short: "Note what was done about a stray", Args: cobra.ExactArgs(1),
		Long:    "Note what was done about a stray, a payment that no claim is known for. It moves nothing, and\ntakes it off the list.",
		Example: "  blockdesk money resolve 5Kd… --note 'sent back by 3xP…'",
		RunE: operatorCommand(s, f, func(args []string) (string, any, error) {
			in.Payment = args[0]
			return "/desk/money/resolve", &in, nil
		}, func(w io.Writer, _ *struct{}) error {
			_, err := fmt.Fprintln(w, "noted")
			return err
		}),
	}
	cmd.Flags().StringVar(&in.Note, "note", "", "what was done, 1 to 500 characters")
	return requireFlags(cmd, "note")
}

// showMoney prints the lists in the order of their haste.
func showMoney(w io.Writer, a *moneyAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tSINCE\tCLAIM\tAMOUNT\tREASON\tPAYER\tPAYMENT\tDELIVERIES\tTRANSACTION")
	for _, kind := range []string{moneyStuck, moneyDoubtful, moneyRefunds, moneyStrays} {
		list := a.Lists[kind]
		for _, m := range list.Items {
			amount := m.Atoms + " atoms"
			if m.Amount != "" {
				amount = shortDecimal(m.Amount) + " " + m.Rail
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
				kind, shortTime(m.At), dash(m.Claim), amount, dash(m.Reason), dash(m.Payer), dash(m.Signature), m.Attempts, dash(m.Delivery))
		}
		if list.Next != "" {
			fmt.Fprintf(t, "%s\tmore of %d: --kind %s --after %s\n", kind, a.Counts[kind], kind, list.Next)
		}
	}
	if a.Counts[moneyStuck]+a.Counts[moneyDoubtful]+a.Counts[moneyRefunds]+a.Counts[moneyStrays] == 0 {
		fmt.Fprintln(t, "nothing needs a person")
	}
	return t.Flush()
}

// dash stands for a text that is not there.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
