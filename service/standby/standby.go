// Package standby keeps the addresses of a process bound while it does not serve: a node of
// a group that does not lead, or a follower that joins. REST and WebSocket clients are
// redirected to the leader, a FIX Logon is answered with a Logout that names it, and the
// admin address answers metrics and health.
//
// A Pool binds each address once for the life of the process and gives the listener to one
// gateway after the other, so a client that connects in between waits in the listen queue
// and is never refused.
//
// Limit: when a standby ends, requests to its admin address have grace to finish.
package standby

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/fixgw/session"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/persist/leadership"
	"blockdesk/service/config"
	"blockdesk/service/operator"
	"blockdesk/service/task"
)

// grace bounds how long requests to the admin address may take when the standby ends,
// because the service needs the listeners.
const grace = 20 * time.Millisecond

// Options of a standby.
type Options struct {
	Config *config.Config
	Log    *slog.Logger
	Pool   *Pool
	// Leader returns the current leader; zero if none is known. It must not block.
	Leader func() leadership.Leader
	Admin  admin.Options
}

// Serve answers on the addresses of the process until wait returns, and returns its
// error.
func Serve(ctx context.Context, o Options, wait func(context.Context) error) (err error) {
	secure, err := o.Config.FIX.ServerTLS()
	if err != nil {
		return err
	}
	proxies, err := o.Config.ProxyPrefixes()
	if err != nil {
		return err
	}
	listen := &o.Config.Listen
	web, err := httpgw.NewStandby(httpgw.StandbyOptions{
		Options: httpgw.Options{
			Base: listen.Base, API: listen.API, WS: listen.WS, Listen: o.Pool.Listen, TrustedProxies: proxies, Logger: o.Log,
		},
		Leader: o.Leader,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.IgnoreClosed(web.Close())) }()
	fix, err := session.NewStandby(session.StandbyOptions{
		Address: listen.FIX, Listen: o.Pool.Listen, TLS: secure, CompID: o.Config.FIX.CompID, Logger: o.Log,
		Leader: o.Leader,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.IgnoreClosed(fix.Close())) }()
	o.Admin.ShutdownTimeout = grace
	o.Admin.Collectors = append(o.Admin.Collectors, web.Collectors()...)
	address, err := admin.New(o.Admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, task.IgnoreClosed(address.Close())) }()

	held, stop := context.WithCancel(ctx)
	defer stop()
	group, held := errgroup.WithContext(held)
	task.Go(held, group, task.Task{Name: "http", Run: web.Run}, task.Task{Name: "fix", Run: fix.Run}, task.Task{Name: "admin", Run: address.Run})
	err = wait(held)
	stop()
	if failed := group.Wait(); failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(failed, err)
	}
	return err
}

// Addresses returns the addresses of a process that the pool has bound.
func Addresses(c *config.Config) operator.Addresses {
	l := &c.Listen
	return operator.Addresses{
		Base: cmp.Or(c.URLs.Base, "http://"+l.Base), API: cmp.Or(c.URLs.API, "http://"+l.API), WS: cmp.Or(c.URLs.WS, "ws://"+l.WS),
		FIX: l.FIX, Admin: "http://" + l.Admin, PID: os.Getpid(),
	}
}
