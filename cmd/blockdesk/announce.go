package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/program"
	"blockdesk/service/standby"
)

// announce prints the addresses of a service, and writes them to addresses.json in the data
// folder.
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
	fmt.Fprintf(w, "try:\n")
	for _, line := range tryCommands(cfg, &a) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if cfg.Demo {
		fmt.Fprintf(w, "demo: log on to FIX as %s, user %s, password %s\n", demo.Guest, demo.Guest, demo.Password)
	}
	return nil
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
		return "unavailable: " + note + "; all but claims works"
	case !cfg.Settles():
		return ""
	}
	return strings.Join(cfg.ChainHosts(), ", ")
}

// tryCommands returns first commands for the user, to run as printed.
func tryCommands(cfg *config.Config, a *operator.Addresses) []string {
	out := []string{
		"curl -s " + a.Base + "/",
		"curl -s '" + a.Base + "/api/v1/market/depth?symbol=" + cfg.Instruments[0].Symbol + "&limit=5'",
	}
	desk := cfg.RFQ.Enabled
	if desk {
		out = append(out, "curl -s "+a.Base+"/api/v1/rfq/current-sellable-ticket")
	}
	if desk && cfg.Demo {
		out = append(out, "curl -s -H 'Content-Type: application/json' -d '"+demo.Quote+"' "+a.Base+"/api/v1/rfq/quote")
	}
	if desk && a.Chain != "" {
		out = append(out, "curl -s -H 'Content-Type: application/json' -d '"+demo.Claim()+"' "+a.Base+"/rfq-native/modular-claim-take | "+
			os.Args[0]+" wallet pay --data "+cfg.DataDir)
	}
	out = append(out, "curl -s "+a.Admin+"/readyz")
	if desk {
		out = append(out, os.Args[0]+" ticket list --data "+cfg.DataDir)
	}
	return out
}
