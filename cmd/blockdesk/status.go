package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"blockdesk/service/operator"
)

// statusAnswer is the answer of GET /desk/status.
type statusAnswer struct {
	Network   string `json:"execution_network"`
	Accepting bool   `json:"accepting"`
	Reason    string `json:"accepting_reason"`
	locksAnswer
	operator.PricesAnswer
	Balances []struct {
		Asset   string `json:"asset"`
		Balance string `json:"balance"`
		Needed  string `json:"needed"`
		Problem string `json:"problem"`
	} `json:"balances"`
	Nodes []struct {
		Name      string  `json:"name"`
		Available bool    `json:"available"`
		Lag       *uint64 `json:"lag_slots"`
	} `json:"nodes"`
	Money map[string]int `json:"money"`
}

// mainnetName is execution_network of mainnet.
const mainnetName = "solana-mainnet-beta"

func statusCommand(s *settings) *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show what the desk does now: claims, locks, prices, balances, nodes", Args: cobra.NoArgs,
		Long: "Show whether the desk takes claims and why not, on which network it settles, the locks, the prices\n" +
			"with source, age and faults, what its wallet holds, its chain nodes, and the money that needs a\n" +
			"person.",
		Example: "  blockdesk status\n  blockdesk status --json | jq .prices",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/status", nil, nil }, showStatus),
	}
	f.add(cmd)
	return cmd
}

func showStatus(w io.Writer, a *statusAnswer) error {
	claims := "accepted"
	if !a.Accepting {
		claims = "NOT accepted: " + a.Reason
	}
	network := a.Network
	if network != "" && network != mainnetName {
		network += " (not mainnet: its tokens have no value)"
	}
	fmt.Fprintf(w, "claims   %s\nnetwork  %s\n", claims, network)
	if m := a.Money; m != nil {
		fmt.Fprintf(w, "money    %d deliveries failing, %d outcomes unknown, %d refunds due, %d unmatched payments\n",
			m[moneyFailing], m[moneyOutcomeUnknown], m[moneyRefunds], m[moneyUnmatched])
	}
	fmt.Fprintln(w)
	if err := showLocks(w, &a.locksAnswer); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := showPrices(w, &a.PricesAnswer); err != nil {
		return err
	}
	if len(a.Balances)+len(a.Nodes) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nWALLET\tBALANCE\tNEEDED\tSTATE")
	for _, b := range a.Balances {
		state := "ok"
		if b.Problem != "" {
			state = "LOW: " + b.Problem
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", b.Asset, shortDecimal(b.Balance), shortDecimal(b.Needed), state)
	}
	fmt.Fprintln(t, "\nNODE\tSTATE\tSLOTS BEHIND\t")
	for _, n := range a.Nodes {
		state, lag := "available", ""
		if !n.Available {
			state = "UNAVAILABLE"
		}
		if n.Lag != nil {
			lag = fmt.Sprint(*n.Lag)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", n.Name, state, lag)
	}
	return t.Flush()
}
