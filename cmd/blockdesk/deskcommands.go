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

// lockChange is the body that locks or unlocks.
type lockChange struct {
	Pair   string `json:"pair,omitempty"`
	Rail   string `json:"rail,omitempty"`
	Locked bool   `json:"locked"`
	Reason string `json:"reason,omitempty"`
}

func lockCommand(s *settings) *cobra.Command {
	var f operatorFlags
	var list bool
	in := lockChange{Locked: true}
	cmd := &cobra.Command{
		Use: "lock", Short: "Stop quotes and claims: of everything, a pair, or a rail", Args: cobra.NoArgs,
		Long: "Stop quotes, claims and co-signatures: of everything, or of one pair or rail. What is\n" +
			"reserved or paid already goes on. With --list it shows the locks. It is journaled with your\n" +
			"name and survives a restart.",
		Example: "  blockdesk lock --pair SLUSD/USDC --reason 'price feed down'\n  blockdesk lock --list",
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
		Use: "unlock", Short: "Open again what lock has stopped", Args: cobra.NoArgs,
		Long: "Open again what lock has stopped. A pair and a rail have locks of their own: each is\n" +
			"opened by itself, and unlock alone opens the lock of everything.",
		Example: "  blockdesk unlock --pair SLUSD/USDC",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/locks", &in, nil }, showLocks),
	}
	f.add(cmd)
	in.flags(cmd)
	return cmd
}

func (in *lockChange) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
	cmd.Flags().StringVar(&in.Rail, "rail", "", "one rail, USDC or SOL")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "why, 1 to 40 characters")
	cmd.MarkFlagsMutuallyExclusive("pair", "rail")
}

func showLocks(w io.Writer, a *locksAnswer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	shut := 0
	for _, l := range a.Locks {
		state := "open"
		if l.Locked {
			state = "LOCKED"
			shut++
		}
		fmt.Fprintf(t, "%s\t%s\tsince %s\tby %s\t%s\n", l.Name, state, shortTime(l.Since), l.By, l.Reason)
	}
	if shut == 0 {
		fmt.Fprintln(t, "nothing is locked")
	}
	return t.Flush()
}

func priceCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "price", Short: "Set and list what pairs and SOL are worth in USD",
		Long: "Set and list what pairs and SOL are worth in USD: a pair's anchor, which its reference price\n" +
			"must lie near, and the price of SOL, which claims over that rail are paid at. One that is too\n" +
			"old sells nothing.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List the prices with their age and corridor", Args: cobra.NoArgs,
		Long:    "List the prices of pairs and rails, since when, how old they may get, and between what a\nreference price must lie.",
		Example: "  blockdesk price list",
		RunE:    operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/prices", nil, nil }, showPrices),
	}
	var in operator.PriceChange
	var maxAge time.Duration
	set := &cobra.Command{
		Use: "set", Short: "Set the anchor of a pair, or the price of SOL", Args: cobra.NoArgs,
		Long: "Set the anchor of a pair (--pair), or the price of SOL (--rail SOL). It holds at once, for\n" +
			"quotes and claims from now on, and is journaled with your name. A restart does not undo it.",
		Example: "  blockdesk price set --pair SLUSD/USDC --usd 0.999\n  blockdesk price set --rail SOL --usd 151.20 --max-age 10m",
	}
	set.Flags().StringVar(&in.Pair, "pair", "", "one pair, e.g. SLUSD/USDC")
	set.Flags().StringVar(&in.Rail, "rail", "", "SOL")
	set.Flags().StringVar(&in.PriceUSD, "usd", "", "dollars a unit, e.g. 0.999")
	set.Flags().DurationVar(&maxAge, "max-age", 0, "of a rail's price: older, it prices nothing (default: as before)")
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
	fmt.Fprintln(t, "OF\tUSD\tSET\tMAX AGE\tSTATE\tCORRIDOR\tREFERENCE")
	for _, p := range a.Prices {
		state, corridor, set, price := "fresh", "", "", shortDecimal(p.PriceUSD)
		switch {
		case p.PriceUSD == "":
			state, price = "NONE: not sold", "-"
		case p.Stale:
			state = "STALE: not sold"
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
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Pair, p.Rail, price, set, age, state, corridor, p.Source)
	}
	return t.Flush()
}

func inventoryCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "inventory", Short: "Set and list how much of each pair's base asset may be sold",
		Long: "Set and list how much of each pair's base asset may be sold in all. It is a limit of its own\n" +
			"beside the tickets and what the desk's wallet holds.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List what may be sold, is reserved, and is sold", Args: cobra.NoArgs,
		Long: "List each pair's inventory: in all, free, reserved by claims, and sold.", Example: "  blockdesk inventory list",
		RunE: operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/inventory", nil, nil }, showInventory),
	}
	var in struct {
		Pair      string `json:"pair"`
		Inventory string `json:"inventory"`
	}
	set := &cobra.Command{
		Use: "set", Short: "Set how much may be sold in all, what is sold already included", Args: cobra.NoArgs,
		Long:    "Set how much of a pair's base asset may be sold in all, what is sold and reserved already\nincluded. It is journaled with your name, and a restart does not undo it.",
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
