package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

type (
	marketsAnswer struct {
		Markets []struct {
			Pair    string `json:"pair"`
			Source  string `json:"book_source"`
			Status  string `json:"status"`
			Auction *struct {
				Price      string `json:"indicative_price"`
				Volume     string `json:"indicative_volume"`
				EndsAt     string `json:"ends_at"`
				Uncrossing bool   `json:"uncrossing"`
			} `json:"auction"`
		} `json:"markets"`
	}
	// marketChange is the body of a request to change the status of a book.
	marketChange struct {
		Pair   string `json:"pair"`
		Status string `json:"status"`
		CallS  int64  `json:"call_s,omitempty"`
	}
)

func marketCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "market", Short: "Halt and resume the matching of a pair, or hold an auction",
		Long: "Halt and resume the matching of a pair, or hold a call auction. It is journaled with your name, and\n" +
			"a restart does not undo it. Quotes and claims have locks instead: see blockdesk lock.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List the pairs: trading, halted, or in an auction", Args: cobra.NoArgs,
		Long:    "List the pairs: whether each trades, is halted, or is in an auction, with the price and the\nquantity at which the gathered orders would trade now.",
		Example: "  blockdesk market list",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/markets", nil, nil }, showMarkets),
	}
	cmd.AddCommand(list)
	changes := []struct {
		status string
		cmd    cobra.Command
	}{
		{"halted", cobra.Command{
			Use: "halt", Short: "Stop matching: a pair takes only cancels",
			Long:    "Stop the matching of a pair: it takes only cancels, and the desk gives no quote at its price.\nOrders stay, also those that have gathered for an auction. It works on a full disk too.",
			Example: "  blockdesk market halt --pair SLUSD/USDC",
		}},
		{"auction", cobra.Command{
			Use: "call", Short: "Begin an auction: orders gather, then trade at one price",
			Long: "Begin an auction, of a pair that trades or is halted: orders gather --for a time, or until\n" +
				"blockdesk market resume, and then trade at one price. Repeated, it sets a new end.",
			Example: "  blockdesk market call --pair SLUSD/USDC --for 5m",
		}},
		{"trading", cobra.Command{
			Use: "resume", Short: "Match again, after a call if the pair has one",
			Long: "Resume the matching of a halted pair: after an auction of opening_call_s if the configuration has\n" +
				"one, or an auction at once if orders have gathered. In an auction it ends the call.",
			Example: "  blockdesk market resume --pair SLUSD/USDC",
		}},
	}
	for i := range changes {
		change, in := &changes[i], &marketChange{Status: changes[i].status}
		change.cmd.Args = cobra.NoArgs
		change.cmd.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
		var gather time.Duration
		if in.Status == "auction" {
			change.cmd.Flags().DurationVar(&gather, "for", 0, "how long orders gather, whole seconds (default: until market resume)")
		}
		change.cmd.RunE = operatorCommand(s, &f, func([]string) (string, any, error) {
			if gather%time.Second != 0 || gather < 0 {
				return "", nil, usagef("--for %v: want whole seconds, e.g. 5m", gather)
			}
			in.CallS = int64(gather / time.Second)
			return "/desk/markets", in, nil
		}, showMarkets)
		cmd.AddCommand(requireFlags(&change.cmd, "pair"))
	}
	return cmd
}

func showMarkets(w io.Writer, a *marketsAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAIR\tBOOK\tSTATUS\tWOULD TRADE\tAT\tCALL ENDS")
	for _, m := range a.Markets {
		volume, price, ends := "-", "-", "-"
		if m.Auction != nil {
			if ends = "market resume"; m.Auction.EndsAt != "" {
				ends = shortTime(m.Auction.EndsAt)
			}
			if m.Auction.Price != "" {
				volume, price = shortDecimal(m.Auction.Volume), shortDecimal(m.Auction.Price)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Pair, m.Source, m.Status, volume, price, ends)
	}
	return t.Flush()
}
