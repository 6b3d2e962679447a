package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"blockdesk/persist"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/program"
	"blockdesk/service/standby"
)

// announce prints the addresses of a service and where to begin, and writes the addresses
// to addresses.json in the data folder.
func announce(s *settings, w io.Writer, cfg *config.Config, of *service.Service) error {
	a := of.Addresses()
	if err := a.Write(cfg.DataDir); err != nil {
		return err
	}
	if s.json {
		return printJSON(w, a)
	}
	chain := chainLine(cfg, &a, of.ChainNote())
	if err := printAddresses(w, cfg, &a, "data in "+cfg.DataDir, "", chain); err != nil {
		return err
	}
	if cfg.Demo {
		fmt.Fprintf(w, "demo: log on to FIX as %s, user %s, password %s\n", demo.Guest, demo.Guest, demo.Password)
	}
	if warning := diskWarning(cfg); warning != "" {
		fmt.Fprintf(w, "\nWARNING: %s\n", warning)
	}
	return printFirstSteps(w, cfg, &a)
}

// diskWarning returns a sentence if so little of the disk is free that only cancels are
// admitted: a newcomer would otherwise look for the reason of each refusal.
func diskWarning(cfg *config.Config) string {
	free, err := persist.FreePercent(cfg.DataDir)
	if err != nil || free >= cfg.Journal.DiskLowPercent {
		return "" // the journal reports what it cannot read
	}
	return fmt.Sprintf("%d %% of the disk of %s is free, below journal.disk_low_percent (%d): orders, quotes and claims are refused.\n"+
		"Free some space, or start again with --set journal.disk_low_percent=%d", free, cfg.DataDir, cfg.Journal.DiskLowPercent, max(1, free/2))
}

// printFirstSteps prints the pages of a service, and one request to try.
func printFirstSteps(w io.Writer, cfg *config.Config, a *operator.Addresses) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nboard\t%s/board\n", a.Base)
	if cfg.RFQ.Enabled {
		fmt.Fprintf(t, "wallet\t%s/wallet\n", a.Base)
	}
	fmt.Fprintf(t, "docs\t%s/docs\n", a.Base)
	fmt.Fprintf(t, "try\t%s\n", firstCommand(cfg, a))
	return t.Flush()
}

// firstCommand returns a request for a newcomer, to run as printed.
func firstCommand(cfg *config.Config, a *operator.Addresses) string {
	if cfg.RFQ.Enabled && cfg.Demo {
		return "curl -s -H 'Content-Type: application/json' -d '" + demo.Quote + "' '" + a.Base + "/api/v1/rfq/quote?pretty'"
	}
	return "curl -s '" + a.Base + "/api/v1/market/depth?symbol=" + cfg.Instruments[0].Symbol + "&limit=5&pretty'"
}

// announceBound is announce for a process that does not serve all the time: what it is, and
// when it serves.
func announceBound(s *settings, w io.Writer, cfg *config.Config, what, when string) error {
	a := standby.Addresses(cfg)
	if err := a.Write(cfg.DataDir); err != nil {
		return err
	}
	if s.json {
		return printJSON(w, a)
	}
	return printAddresses(w, cfg, &a, what+", data in "+cfg.DataDir, ", "+when, "")
}

func printAddresses(w io.Writer, cfg *config.Config, a *operator.Addresses, what, when, chain string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "blockdesk %s\t%s\n", program.Version, what)
	fmt.Fprintf(t, "REST\t%s and %s%s\n", a.Base, a.API, when)
	fmt.Fprintf(t, "WebSocket\t%s/ws/rfq\n", a.WS)
	fmt.Fprintf(t, "FIX 4.4\t%s (TargetCompID %s)\n", a.FIX, cfg.FIX.CompID)
	fmt.Fprintf(t, "admin\t%s/metrics, /healthz, /readyz\n", a.Admin)
	if chain != "" {
		fmt.Fprintf(t, "chain\t%s\n", chain)
	}
	return t.Flush()
}

// chainLine returns the chain of settlement; empty if there is none. note is why the demo's
// local chain does not run.
func chainLine(cfg *config.Config, a *operator.Addresses, note string) string {
	switch {
	case a.Chain != "":
		return a.Chain + ", local; wallets in " + demo.ChainDir(cfg)
	case note != "":
		return "unavailable: " + note + "; all but claims and the pool works"
	case !cfg.Settles():
		return ""
	}
	return strings.Join(cfg.ChainHosts(), ", ")
}
