package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/service/config"
)

// standbyGrace is what requests to the admin address have when the standby ends: the
// listeners are wanted by who serves.
const standbyGrace = 20 * time.Millisecond

// standby holds a process's addresses while it does not serve them, and tells
// clients who does.
type standby struct {
	cfg    *config.Config
	log    *slog.Logger
	listen func(network, addr string) (net.Listener, error)
	leader func() httpgw.Leader // must not block
	admin  admin.Options
}

// while holds them until wait returns, whose error it returns.
func (s *standby) while(ctx context.Context, wait func(context.Context) error) (err error) {
	secure, err := s.cfg.FIX.ServerTLS()
	if err != nil {
		return err
	}
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return err
	}
	web, err := httpgw.NewStandby(httpgw.StandbyOptions{
		Base: s.cfg.Listen.Base, API: s.cfg.Listen.API, WS: s.cfg.Listen.WS, Listen: s.listen, Leader: s.leader,
		TrustedProxies: proxies, Logger: s.log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(web.Close())) }()
	fix, err := fixgw.NewStandby(fixgw.StandbyOptions{
		Address: s.cfg.Listen.FIX, Listen: s.listen, TLS: secure, CompID: s.cfg.FIX.CompID, Logger: s.log,
		Leader: func() string { return leaderText(s.leader()) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(fix.Close())) }()
	s.admin.ShutdownTimeout = standbyGrace
	s.admin.Collectors = append(s.admin.Collectors, web.Collectors()...)
	admin, err := admin.New(s.admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(admin.Close())) }()

	held, stop := context.WithCancel(ctx)
	defer stop()
	group, held := errgroup.WithContext(held)
	for _, p := range []part{{"http", web.Run}, {"fix", fix.Run}, {"admin", admin.Run}} {
		group.Go(func() error { return named(p.name, p.run(held)) })
	}
	err = wait(held)
	stop()
	if failed := group.Wait(); failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(failed, err)
	}
	return err
}

// leaderText names a leader and where FIX clients find it; empty where nobody is
// known to lead.
func leaderText(l httpgw.Leader) string {
	if l.ID == "" || l.FIX == "" {
		return l.ID
	}
	return l.ID + " at " + l.FIX
}

// bindAll binds the addresses of a process and has the configuration name what
// they are.
func (l *lender) bindAll(c *config.Listen) error {
	for key, addr := range map[string]*string{"base": &c.Base, "api": &c.API, "ws": &c.WS, "fix": &c.FIX, "admin": &c.Admin} {
		bound, err := l.bind(*addr)
		if err != nil {
			return fmt.Errorf("listen.%s: %w", key, err)
		}
		*addr = bound
	}
	return nil
}

// announceLent prints where a process is found whose gateways come and go, what it
// is and when it serves, and writes it for programs.
func announceLent(c *config.Config, w io.Writer, asJSON bool, what, when string) error {
	l := &c.Listen
	a := addresses{
		Base: cmp.Or(c.URLs.Base, "http://"+l.Base), API: cmp.Or(c.URLs.API, "http://"+l.API), WS: cmp.Or(c.URLs.WS, "ws://"+l.WS),
		FIX: l.FIX, Admin: "http://" + l.Admin, PID: os.Getpid(),
	}
	if err := a.keep(c.DataDir); err != nil {
		return err
	}
	if asJSON {
		return printJSON(w, a)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "blockdesk %s\t%s, data in %s\n", version, what, c.DataDir)
	fmt.Fprintf(t, "REST\t%s and %s, %s\n", a.Base, a.API, when)
	fmt.Fprintf(t, "WebSocket\t%s/ws/rfq\n", a.WS)
	fmt.Fprintf(t, "FIX 4.4\t%s (TargetCompID %s)\n", a.FIX, c.FIX.CompID)
	fmt.Fprintf(t, "admin\t%s/metrics, /healthz, /readyz\n", a.Admin)
	return t.Flush()
}
