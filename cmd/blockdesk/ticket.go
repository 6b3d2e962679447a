package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/httpgw/admin"
	"blockdesk/service/operator"
)

// ticketAnswer is the answer to a request of one ticket.
type ticketAnswer struct {
	Ticket operator.Ticket `json:"ticket"`
}

func ticketCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "ticket", Short: "Post, amend, withdraw and list the desk's tickets",
		Long: "Post, amend, withdraw and list the desk's tickets: its offers, in tranches. Every change is\n" +
			"journaled with your name.",
	})
	var f operatorFlags
	f.add(cmd)
	list := &cobra.Command{
		Use: "list", Short: "List the tickets with their tranches", Args: cobra.NoArgs,
		Long:    "List every ticket with its tranches, in USD: available, reserved by claims, filled, and capacity.\nAn ended ticket is listed for a day.",
		Example: "  blockdesk ticket list",
		RunE: operatorCommand(s, &f, func([]string) (string, any, error) { return "/desk/tickets", nil, nil },
			func(w io.Writer, a *operator.TicketsAnswer) error { return showTickets(w, a.Tickets) }),
	}
	withdraw := &cobra.Command{
		Use: "withdraw ORDER_ID", Short: "Withdraw a ticket: only reserved and paid claims continue", Args: cobra.ExactArgs(1),
		Long:    "Withdraw a ticket for good: nothing new is sold from it. Reserved and paid claims continue.",
		Example: "  blockdesk ticket withdraw T7",
		RunE: operatorCommand(s, &f, func(args []string) (string, any, error) {
			return "/desk/tickets/" + args[0] + "/withdraw", struct{}{}, checkOrderID(args[0])
		}, showTicket),
	}
	cmd.AddCommand(ticketPostCommand(s, &f), ticketAmendCommand(s, &f), withdraw, list)
	return cmd
}

func ticketPostCommand(s *settings, f *operatorFlags) *cobra.Command {
	var in operator.TicketPost
	var expires string
	var priority int
	cmd := &cobra.Command{
		Use: "post", Short: "Offer a pair's base asset in tranches", Args: cobra.NoArgs,
		Long: "Offer a pair's base asset in tranches in USD. Clients see the ticket at once. It sells only with a\n" +
			"fresh price (blockdesk price list) and with inventory.",
		Example: "  blockdesk ticket post --pair SLUSD/USDC --label 'Block A' --tranches 250000,100000 --expires 48h",
		RunE: operatorCommand(s, f, func([]string) (string, any, error) {
			var err error
			in.Priority = &priority
			in.ExpiresAt, err = expiry(expires, time.Now())
			return "/desk/tickets", &in, err
		}, showTicket),
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Pair, "pair", "", "the pair, e.g. SLUSD/USDC")
	flags.StringVar(&in.Label, "label", "", "label for clients, 1 to 40 characters")
	flags.StringSliceVar(&in.Tranches, "tranches", nil, "capacities in USD, e.g. 250000,100000")
	flags.StringSliceVar(&in.Rails, "rails", nil, "rails of payment (default: the pair's)")
	flags.IntVar(&priority, "priority", admin.DefaultPriority, "0 to 65535, lower is sold first")
	flags.StringVar(&in.ReferencePriceUSD, "price", "", "reference price in USD of this ticket (default: the pair's)")
	flags.StringVar(&expires, "expires", "", "a time such as 2030-01-02T15:04:05Z, or a duration such as 48h (default: never)")
	return requireFlags(cmd, "pair", "label", "tranches")
}

// requireFlags marks required flags, which must exist.
func requireFlags(cmd *cobra.Command, names ...string) *cobra.Command {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return cmd
}

// ticketAmendCommand sends a request for the ticket and one for each named tranche, and
// prints the last answer.
func ticketAmendCommand(s *settings, f *operatorFlags) *cobra.Command {
	var rails, tranches, added []string
	var price, expires string
	var priority int
	cmd := &cobra.Command{
		Use: "amend ORDER_ID", Short: "Change the named values of a ticket", Args: cobra.ExactArgs(1),
		Long: "Change the named values of a ticket. A tranche's capacity cannot fall below what is reserved and\n" +
			"filled. The ticket and each tranche are separate requests: if one is refused, those before it\nare done, and the error says so.",
		Example: "  blockdesk ticket amend T7 --priority 1 --expires never --tranche T7-1=300000 --add-tranche 50000",
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&rails, "rails", nil, "rails of payment")
	flags.IntVar(&priority, "priority", 0, "0 to 65535, lower is sold first")
	flags.StringVar(&price, "price", "", "reference price in USD of this ticket; pair: the pair's")
	flags.StringVar(&expires, "expires", "", "a time, a duration, or never")
	flags.StringSliceVar(&tranches, "tranche", nil, "a tranche's new capacity in USD, e.g. T7-1=300000 (repeatable)")
	flags.StringSliceVar(&added, "add-tranche", nil, "capacity in USD of a further tranche (repeatable)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOrderID(args[0]); err != nil {
			return err
		}
		fields := map[string]any{}
		if flags.Changed("rails") {
			fields["rails"] = rails
		}
		if flags.Changed("priority") {
			fields["priority"] = priority
		}
		if flags.Changed("price") {
			fields["reference_price_usd"] = strings.TrimSuffix(price, "pair")
		}
		if flags.Changed("expires") {
			at, err := expiry(expires, time.Now())
			if err != nil {
				return err
			}
			fields["expires_at"] = at
		}
		requests, err := trancheRequests(tranches, added)
		if err != nil {
			return err
		}
		return amendTicket(cmd, s, f, "/desk/tickets/"+args[0], fields, requests)
	}
	return cmd
}

func amendTicket(cmd *cobra.Command, s *settings, f *operatorFlags, path string, fields map[string]any, tranches []map[string]string) error {
	if len(fields)+len(tranches) == 0 {
		return usagef("nothing to amend: give at least one flag")
	}
	client, err := f.dial(s)
	if err != nil {
		return err
	}
	var answer []byte
	if len(fields) > 0 {
		if answer, err = client.Do(cmd.Context(), path+"/amend", fields); err != nil {
			return err
		}
	}
	for i, in := range tranches {
		if answer, err = client.Do(cmd.Context(), path+"/tranches", in); err != nil {
			return fmt.Errorf("tranche change %d of %d failed (the earlier ones are done): %w", i+1, len(tranches), err)
		}
	}
	return showAnswer(cmd.OutOrStdout(), s.json, answer, showTicket)
}

func trancheRequests(changed, added []string) ([]map[string]string, error) {
	var out []map[string]string
	for _, text := range changed {
		id, capacity, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--tranche %s: want TRANCHE_ID=CAPACITY", text)
		}
		out = append(out, map[string]string{"tranche_id": id, "capacity_usd": capacity})
	}
	for _, capacity := range added {
		out = append(out, map[string]string{"capacity_usd": capacity})
	}
	return out, nil
}

// checkOrderID refuses a text that cannot be an order_id, before it gets into a URL.
func checkOrderID(text string) error {
	if rest, ok := strings.CutPrefix(text, "T"); !ok || rest == "" || strings.Trim(rest, "0123456789") != "" {
		return usagef("%q is not an order_id: want T and a number, see blockdesk ticket list", text)
	}
	return nil
}

// expiry returns a time, a duration from now, or never, as the API formats it.
func expiry(text string, now time.Time) (string, error) {
	if text == "" || text == "never" {
		return "", nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d).UTC().Format(time.RFC3339), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", usagef("--expires %q: want a time such as 2030-01-02T15:04:05Z, a duration such as 48h, or never", text)
	}
	return at.UTC().Format(time.RFC3339), nil
}

func showTicket(w io.Writer, a *ticketAnswer) error {
	return showTickets(w, []operator.Ticket{a.Ticket})
}

// showTickets prints a line for each tranche.
func showTickets(w io.Writer, tickets []operator.Ticket) error {
	if len(tickets) == 0 {
		_, err := fmt.Fprintln(w, "no tickets")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TRANCHE\tPAIR\tSTATE\tAVAILABLE\tRESERVED\tFILLED\tCAPACITY USD\tRAILS\tPRIORITY\tPRICE\tEXPIRES\tBY\tLABEL")
	for i := range tickets {
		k := &tickets[i]
		price, expires := "pair's", "never"
		if k.ReferencePriceUSD != "" {
			price = shortDecimal(k.ReferencePriceUSD)
		}
		if k.ExpiresAt != "" {
			expires = shortTime(k.ExpiresAt)
		}
		for _, r := range k.Tranches {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.TrancheID, k.Pair, k.State,
				shortDecimal(r.AvailableUSD), shortDecimal(r.ReservedUSD), shortDecimal(r.FilledUSD), shortDecimal(r.CapacityUSD),
				strings.Join(k.Rails, ","), k.Priority, price, expires, k.PostedBy, k.Label)
		}
	}
	return t.Flush()
}
