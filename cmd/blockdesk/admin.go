package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"blockdesk/engine"
	"blockdesk/httpgw/admin"
)

// maxFeedLag is how long readers may be behind before the service says that it
// is not ready: our choice.
const maxFeedLag = 5 * time.Second

// feedConsumer is the feed's name among the engine's consumers.
const feedConsumer = "feed"

// chainWait is how long a start waits for the chain before it is ready without
// it: orders, market data and quotes need none.
const chainWait = 30 * time.Second

func (s *service) adminOptions() admin.Options {
	readOnly := func() error {
		if st := s.eng.Stats(); st.Failed != nil {
			return fmt.Errorf("read-only: %w", st.Failed)
		}
		return nil
	}
	o := admin.Options{
		Addr: s.cfg.Listen.Admin, Listen: s.listenOn, Operate: s.operate(),
		Ready: []admin.Check{
			{Name: "engine", Err: readOnly},
			{Name: "journal", Err: func() error { return s.journal.Health().Failed }},
			{Name: "fix_store", Err: s.fixStore.Failed},
			{Name: "desk_store", Err: s.deskStore.Failed},
			{Name: "history_store", Err: s.historyStore.Failed},
			{Name: "settlement_store", Err: s.settleStore.Failed},
			{Name: "mirror_store", Err: s.mirrorStore.Failed},
			{Name: "feed", Err: s.feedReady},
			{Name: "disk", Err: func() error {
				if h := s.journal.Health(); h.DiskLow {
					return fmt.Errorf("%d %% free: only cancels are taken", h.FreePercent)
				}
				return nil
			}},
			{Name: "snapshot", Err: func() error { return s.journal.Health().SnapshotFailed }},
		},
		Desk:       admin.DeskSources{Stats: s.desk.Stats, View: s.desk.View, Instruments: s.set, Now: func() int64 { return time.Now().UnixNano() }},
		Collectors: s.collectors(), Logger: s.log,
	}
	if s.reign != nil {
		o.ShutdownTimeout = deposedGrace
	}
	if s.mirror.service != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "mirror", Err: s.mirrorReady, Wait: mirrorWait(&s.cfg.Mirror)})
		o.Mirror = s.mirrorSources()
	}
	if door := s.settleDoor(); door != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "chain", Err: door.Ready, Wait: chainWait})
		o.Settlement = door.sources()
	}
	return o
}

// feedReady returns nil where readers are not far behind.
func (s *service) feedReady() error {
	return feedBehind(s.feed.Stats().Lag, s.eng.Stats().Consumers)
}

// feedBehind is the error of a feed whose last batch was late by lag while further
// events wait for it. If none do it is level, whenever the last ones were of: a
// follower may begin on a quiet market with a batch that is an hour old.
func feedBehind(lag time.Duration, consumers []engine.Lag) error {
	if lag <= maxFeedLag || !slices.ContainsFunc(consumers, func(c engine.Lag) bool { return c.Name == feedConsumer && c.Events > 0 }) {
		return nil
	}
	return fmt.Errorf("readers are %v behind", lag.Round(time.Millisecond))
}

// operate is what operators command.
func (s *service) operate() *admin.Operations {
	o := &admin.Operations{
		Instruments: s.set, Operators: s.operators, Backup: s.backUp, FIX: fixSessions{s.fix, s.watch}, Cluster: s.cluster,
	}
	if s.cfg.RFQ.Enabled {
		o.Desk = s.desk
	}
	if door := s.settleDoor(); door != nil {
		o.Money = door
	}
	if tokens := s.settlement.access; tokens != nil {
		o.Tokens = tokenDoor{tokens}
	}
	return o
}

func (s *service) adminURL() string { return "http://" + s.admin.Addr().String() }

// addresses is DIR/addresses.json and the answer of `serve --json`.
type addresses struct {
	Base  string `json:"base_url"`
	API   string `json:"api_url"`
	WS    string `json:"ws_url"`
	FIX   string `json:"fix"`
	Admin string `json:"admin_url"`
	Chain string `json:"chain_url,omitempty"` // of the demo's local chain
	PID   int    `json:"pid"`
}

// keep writes them to addresses.json in the data folder, for programs.
func (a *addresses) keep(dataDir string) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dataDir, addressesFile), append(text, '\n'))
}

// announce prints where everything is, and writes it to addresses.json in the
// data folder for programs.
func (s *service) announce(w io.Writer, asJSON bool) error {
	urls := s.http.URLs()
	a := addresses{
		Base: urls.Base, API: urls.API, WS: urls.WS, FIX: s.fix.Addr().String(),
		Admin: s.adminURL(), PID: os.Getpid(),
	}
	if s.chain != nil {
		a.Chain = s.chain.URL()
	}
	if err := a.keep(s.cfg.DataDir); err != nil {
		return err
	}
	if asJSON {
		return printJSON(w, a)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "blockdesk %s\tdata in %s\n", version, s.cfg.DataDir)
	fmt.Fprintf(t, "REST\t%s and %s\n", a.Base, a.API)
	fmt.Fprintf(t, "WebSocket\t%s/ws/rfq\n", a.WS)
	fmt.Fprintf(t, "FIX 4.4\t%s (TargetCompID %s)\n", a.FIX, s.cfg.FIX.CompID)
	fmt.Fprintf(t, "admin\t%s/metrics, /healthz, /readyz\n", a.Admin)
	if line := s.chainLine(); line != "" {
		fmt.Fprintf(t, "chain\t%s\n", line)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "try:\n")
	for _, line := range s.tryCommands(a) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if s.cfg.Demo {
		fmt.Fprintf(w, "demo: log on to FIX as %s, user %s, password %s\n", demoGuest, demoGuest, demoPassword)
	}
	return nil
}

// chainLine says what claims are settled on; empty where nothing is said.
func (s *service) chainLine() string {
	switch {
	case s.chain != nil:
		return s.chain.URL() + ", local; wallets in " + chainDir(s.cfg)
	case s.chainNote != "":
		return "unavailable: " + s.chainNote + "; all but claims works"
	case !s.cfg.Settles():
		return ""
	}
	return strings.Join(s.cfg.ChainHosts(), ", ")
}

// tryCommands are the first commands for a person, to run as they are printed.
func (s *service) tryCommands(a addresses) []string {
	out := []string{
		"curl -s " + a.Base + "/",
		"curl -s '" + a.Base + "/api/v1/market/depth?symbol=" + s.instruments[0].Symbol + "&limit=5'",
	}
	if s.deskPlan != nil {
		out = append(out, "curl -s "+a.Base+"/api/v1/rfq/current-sellable-ticket")
	}
	if s.deskPlan != nil && s.cfg.Demo {
		out = append(out, "curl -s -H 'Content-Type: application/json' -d '"+demoQuote+"' "+a.Base+"/api/v1/rfq/quote")
	}
	if s.deskPlan != nil && a.Chain != "" {
		out = append(out, "curl -s -H 'Content-Type: application/json' -d '"+demoClaim()+"' "+a.Base+"/rfq-native/modular-claim-take | "+
			os.Args[0]+" wallet pay --data "+s.cfg.DataDir)
	}
	out = append(out, "curl -s "+a.Admin+"/readyz")
	if s.deskPlan != nil {
		out = append(out, os.Args[0]+" ticket list --data "+s.cfg.DataDir)
	}
	return out
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
