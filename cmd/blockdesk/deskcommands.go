package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/service/operator"
)

type (
	locksAnswer struct {
		Locks []struct {
			Name   string `json:"name"`
			Locked bool   `json:"locked"`
			Since  string `json:"since"`
			By     string `json:"by"`
			Reason string `json:"reason"`
		} `json:"locks"`
	}
	inventoryAnswer struct {
		Inventory []struct {
			Pair      string `json:"pair"`
			Inventory string `json:"inventory"`
			Free      string `json:"free"`
			Reserved  string `json:"reserved"`
			Sold      string `json:"sold"`
		} `json:"inventory"`
	}
)

// lockChange is the body of a request to lock or unlock.
type lockChange struct {
	Pair       string `json:"pair,omitempty"`
	Rail       string `json:"rail,omitempty"`
	Deliveries bool   `json:"deliveries,omitempty"`
	Locked     bool   `json:"locked"`
	Reason     string `json:"reason,omitempty"`
}

func lockCommand(s *settings) *cobra.Command {
	var f operatorFlags
	var list bool
	in := lockChange{Locked: true}
	cmd := &cobra.Command{
		Use: "lock", Short: "Stop quotes and claims, or everything that goes out", Args: cobra.NoArgs,
		Long: "Stop quotes, claims and co-signatures for everything, or for one pair or rail. Reserved and paid\n" +
			"claims continue. With --deliveries it stops what goes out instead: deliveries, co-signatures and\n" +
			"refunds. Nothing is lost by it: claims are taken and paid as before, and wait. With --list it\n" +
			"shows the locks. A lock is journaled with your name and survives a restart.",
		Example: "  blockdesk lock --deliveries --reason 'a node lies'\n" +
			"  blockdesk lock --pair SLUSD/USDC --reason 'price feed down'\n  blockdesk lock --list",
		RunE: operatorCommand(s, &f, func([]string) (string, any, error) {
			if list {
				return "/desk/locks", nil, nil
			}
			if in.Reason == "" {
				return "", nil, usagef("--reason is required: it is journaled and shown on the status")
			}
			return "/desk/locks", &in, nil
		}, showLocks),
	}
	f.add(cmd)
	in.flags(cmd)
	cmd.Flags().BoolVar(&list, "list", false, "show the locks")
	return cmd
}

func unlockCommand(s *settings) *cobra.Command {
	var f operatorFlags
	var in lockChange
	cmd := &cobra.Command{
		Use: "unlock", Short: "Remove a lock", Args: cobra.NoArgs,
		Long: "Remove a lock. Pairs, rails and deliveries have locks of their own: unlock without a flag removes\n" +
			"only the lock of everything. After unlock --deliveries what has waited goes out.",
		Example: "  blockdesk unlock --pair SLUSD/USDC\n  blockdesk unlock --deliveries",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/locks", &in, nil }, showLocks),
	}
	f.add(cmd)
	in.flags(cmd)
	return cmd
}

func (in *lockChange) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
	cmd.Flags().StringVar(&in.Rail, "rail", "", "one rail, USDC or SOL")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, 1 to 40 characters")
	cmd.Flags().BoolVar(&in.Deliveries, "deliveries", false, "everything that goes out: deliveries, co-signatures, refunds")
	cmd.MarkFlagsMutuallyExclusive("pair", "rail", "deliveries")
}

func showLocks(w io.Writer, a *locksAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	locked := 0
	for _, l := range a.Locks {
		state := "open"
		if l.Locked {
			state = "LOCKED"
			locked++
		}
		fmt.Fprintf(t, "%s\t%s\tsince %s\tby %s\t%s\n", l.Name, state, shortTime(l.Since), l.By, l.Reason)
	}
	if locked == 0 {
		fmt.Fprintln(t, "nothing is locked")
	}
	return t.Flush()
}

func priceCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "price", Short: "Set and list the prices of pairs and of SOL in USD",
		Long: "Set and list prices in USD: a pair's anchor, which bounds its reference price, and the price of\n" +
			"SOL, at which claims over that rail are paid. Nothing is sold at a stale price.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List the prices with their age and corridor", Args: cobra.NoArgs,
		Long:    "List the prices of pairs and rails, with their time, their longest age, the bounds of the\nreference price and their source. Below a price are the sources of the configuration (prices:).",
		Example: "  blockdesk price list",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/prices", nil, nil }, showPrices),
	}
	var in operator.PriceChange
	var maxAge time.Duration
	set := &cobra.Command{
		Use: "set", Short: "Set the anchor of a pair, or the price of SOL", Args: cobra.NoArgs,
		Long: "Set the anchor of a pair (--pair), or the price of SOL (--rail SOL). It applies at once to new\n" +
			"quotes and claims, and is journaled with your name. A restart does not undo it. Where the\n" +
			"configuration names sources (prices:), operator must be one of them, and the price must agree\n" +
			"with the others.",
		Example: "  blockdesk price set --pair SLUSD/USDC --usd 0.999\n  blockdesk price set --rail SOL --usd 151.20",
	}
	set.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
	set.Flags().StringVar(&in.Rail, "rail", "", "SOL")
	set.Flags().StringVar(&in.PriceUSD, "usd", "", "USD per unit, e.g. 0.999")
	set.Flags().DurationVar(&maxAge, "max-age", 0, "longest age of a rail's price, without a rule in prices: (default: unchanged)")
	set.MarkFlagsMutuallyExclusive("pair", "rail")
	set.MarkFlagsOneRequired("pair", "rail")
	set.RunE = operatorCommand(s, &f, func([]string) (string, any, error) {
		if set.Flags().Changed("max-age") {
			seconds := int64(maxAge / time.Second)
			in.MaxAgeS = &seconds
		}
		return "/desk/prices", &in, nil
	}, showPrices)
	cmd.AddCommand(requireFlags(set, "usd"), list)
	return cmd
}

func showPrices(w io.Writer, a *operator.PricesAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAIR/RAIL\tUSD\tSET\tMAX AGE\tSTATE\tCORRIDOR\tREFERENCE\tSOURCE")
	for _, p := range a.Prices {
		state, corridor, set, price := "fresh", "", "", shortDecimal(p.PriceUSD)
		switch {
		case p.PriceUSD == "":
			state, price = "NONE: not sold", "-"
			if p.Fault != "" {
				state = p.Fault + ": not sold"
			}
		case p.Stale:
			state = "STALE: not sold"
		case p.NotSold != "":
			state = p.NotSold + ": not sold"
		}
		if p.SetAt != "" {
			set = shortTime(p.SetAt)
		}
		if p.MinPriceUSD != "" {
			corridor = shortDecimal(p.MinPriceUSD) + " to " + shortDecimal(p.MaxPriceUSD)
		}
		age := "any"
		if p.MaxAgeS > 0 {
			age = (time.Duration(p.MaxAgeS) * time.Second).String()
		}
		from := p.Origin
		if p.ConfidenceUSD != "" {
			from += " ±" + shortDecimal(p.ConfidenceUSD)
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Pair, p.Rail, price, set, age, state, corridor, p.Source, from)
		for _, s := range p.Sources {
			price, at, state := "-", "", "usable"
			if s.PriceUSD != "" {
				price = shortDecimal(s.PriceUSD)
			}
			if s.PublishedAt != "" {
				at = shortTime(s.PublishedAt)
			}
			if s.Fault != "" {
				state = s.Fault
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t\t%s\t\t\t\n", s.Name, price, at, state)
		}
	}
	return t.Flush()
}

func inventoryCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "inventory", Short: "Set and list how much of each pair's base asset may be sold",
		Long: "Set and list how much of each pair's base asset may be sold in total. This limit is independent of\n" +
			"the tickets and of the balance of the desk's wallet.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List the inventory: total, free, reserved and sold", Args: cobra.NoArgs,
		Long: "List each pair's inventory: total, free, reserved by claims, and sold.", Example: "  blockdesk inventory list",
		RunE: operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/inventory", nil, nil }, showInventory),
	}
	var in struct {
		Pair      string `json:"pair"`
		Inventory string `json:"inventory"`
	}
	set := &cobra.Command{
		Use: "set", Short: "Set the total inventory, sold already included", Args: cobra.NoArgs,
		Long:    "Set how much of a pair's base asset may be sold in total, including what is already sold and\nreserved. It is journaled with your name, and a restart does not undo it.",
		Example: "  blockdesk inventory set --pair SLUSD/USDC --amount 5000000",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/inventory", &in, nil }, showInventory),
	}
	set.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
	set.Flags().StringVar(&in.Inventory, "amount", "", "units of the base asset")
	cmd.AddCommand(requireFlags(set, "pair", "amount"), list)
	return cmd
}

func showInventory(w io.Writer, a *inventoryAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PAIR\tINVENTORY\tFREE\tRESERVED\tSOLD")
	for _, p := range a.Inventory {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Pair, shortDecimal(p.Inventory), shortDecimal(p.Free), shortDecimal(p.Reserved), shortDecimal(p.Sold))
	}
	return t.Flush()
}
