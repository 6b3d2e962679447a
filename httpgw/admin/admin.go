package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/httpgw/wire"
)

// DefaultAddr is the default admin address, on the loopback interface only.
const DefaultAddr = "127.0.0.1:8090"

// adminConns bounds the connections. A connection above it is answered 503 and closed.
const adminConns = 64

// Check is a readiness check.
type Check struct {
	Name string
	// Err returns nil while the check passes. It must not block.
	Err func() error
	// Grace, if not 0, makes the check optional. The service is not ready until the check
	// has passed once or Grace is over; after that a failure is reported and the service
	// stays ready, so that its other functions remain available.
	Grace time.Duration
}

// Options configures a Server. The zero value of a field means its default or disables
// the function.
type Options struct {
	Addr string // default DefaultAddr; port 0 takes a free one
	// Listen binds Addr; default net.Listen.
	Listen func(network, addr string) (net.Listener, error)

	// Live returns an error if only a restart can help the process.
	Live func() error
	// Ready are the readiness checks: recovered, journal writable, not read-only, and so
	// on. Names are unique.
	Ready []Check

	Operate *Operations // the operators' endpoints; nil = none

	Desk       DeskSources
	Settlement SettlementSources
	Mirror     MirrorSources
	Collectors []prometheus.Collector // metrics of other packages, such as Gateway.Collectors
	Logger     *slog.Logger           // default: none

	// ShutdownTimeout is the time for requests in progress when Run ends; default
	// wire.DefaultShutdownTimeout.
	ShutdownTimeout time.Duration
}

func (o *Options) applyDefaults() {
	o.Addr = cmp.Or(o.Addr, DefaultAddr)
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.ShutdownTimeout = cmp.Or(o.ShutdownTimeout, wire.DefaultShutdownTimeout)
}

// Validate reports the first invalid field.
func (o Options) Validate() error {
	names := make(map[string]bool)
	for i, c := range o.Ready {
		switch {
		case c.Name == "" || c.Err == nil:
			return fmt.Errorf("httpgw: readiness check %d has no name or no function", i)
		case names[c.Name]:
			return fmt.Errorf("httpgw: two readiness checks are named %s", c.Name)
		}
		names[c.Name] = true
	}
	if o.ShutdownTimeout < 0 {
		return errors.New("httpgw: admin shutdown timeout is negative")
	}
	if o.Operate != nil {
		return o.Operate.validate()
	}
	return nil
}

// Server serves the admin address. Most of its paths require no token, so it must not be
// public.
type Server struct {
	opts     Options
	started  time.Time
	passed   []atomic.Bool // by index of opts.Ready: the check has passed once
	listener *wire.Listener
	server   *http.Server
	ids      *wire.RequestIDs
}

// New listens on the admin address; Run serves it. A caller that does not call Run calls
// Close. New fails if two collectors have the same metric.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.applyDefaults()
	registry := prometheus.NewRegistry()
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "blockdesk_admin_connections_refused_total",
		Help: "Connections to the admin address refused as too many.",
	})
	a := &Server{opts: o, started: time.Now(), passed: make([]atomic.Bool, len(o.Ready))}
	all := append(a.opts.Desk.collectors(), a.opts.Settlement.collectors()...)
	all = append(all, a.opts.Mirror.collectors()...)
	all = append(all, o.Collectors...)
	all = append(all, refused, readiness{a}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range all {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("httpgw: metrics: %w", err)
		}
	}
	listener, err := o.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("httpgw: admin address: %w", err)
	}
	ids := wire.NewRequestIDs()
	open := wire.NewConns(adminConns, adminConns, &wire.Proxies{}, ids, refused, false)
	a.ids = ids
	a.listener = wire.NewListener(deadlineListener{listener}, open, 0)
	mux := http.NewServeMux()
	outer := &outerHandler{next: mux, ids: ids, bodyTime: wire.DefaultReadTimeout}
	mux.HandleFunc("/", outer.unknown)
	mux.Handle("/metrics", outer.readOnly(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})))
	mux.Handle("/healthz", outer.readOnly(http.HandlerFunc(a.healthz)))
	mux.Handle("/readyz", outer.readOnly(http.HandlerFunc(a.readyz)))
	mux.HandleFunc("/debug/pprof", outer.unknown) // otherwise the mux would redirect it
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	// Without /debug/pprof/cmdline: flags may contain secrets.
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	if o.Operate != nil {
		if err := registerPage(mux, outer); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		newEndpoints(*o.Operate, ids, o.Logger).register(mux)
		if o.Operate.Cluster != nil {
			mux.Handle("/cluster", outer.readOnly(http.HandlerFunc(a.clusterStatus)))
		}
	}
	a.server = &http.Server{
		Handler:           http.MaxBytesHandler(outer, wire.DefaultMaxBodyBytes),
		ReadHeaderTimeout: wire.DefaultReadTimeout,
		IdleTimeout:       wire.DefaultIdleTimeout,
		MaxHeaderBytes:    wire.DefaultMaxHeaderBytes,
		ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				open.Remove(c)
			}
		},
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return a, nil
}

// Addr returns the address that New listens on.
func (a *Server) Addr() net.Addr { return a.listener.Addr() }

// Close stops listening. Only a caller that does not call Run calls it.
func (a *Server) Close() error { return a.listener.Close() }

// Run serves until ctx ends and returns nil after an orderly end.
func (a *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := a.server.Serve(a.listener)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("httpgw: serve admin: %w", err)
	})
	group.Go(func() error {
		<-ctx.Done()
		polite, cancel := context.WithTimeout(context.Background(), a.opts.ShutdownTimeout)
		defer cancel()
		if err := a.server.Shutdown(polite); err != nil {
			return a.server.Close() // aborts a profile in progress
		}
		return nil
	})
	return group.Wait()
}

// health is the body of /healthz and /readyz.
type health struct {
	OK     bool          `json:"ok"`
	Error  string        `json:"error,omitempty"`
	Checks []checkResult `json:"checks,omitempty"`
}

type checkResult struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

func (a *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	h := health{OK: true}
	if a.opts.Live != nil {
		if err := a.opts.Live(); err != nil {
			h = health{Error: err.Error()}
		}
	}
	a.write(w, h)
}

func (a *Server) readyz(w http.ResponseWriter, _ *http.Request) { a.write(w, a.ready()) }

// ready runs all checks.
func (a *Server) ready() health {
	h := health{OK: true}
	for i, c := range a.opts.Ready {
		result := checkResult{Name: c.Name, OK: true}
		if err := c.Err(); err == nil {
			a.passed[i].Store(true)
		} else {
			result = checkResult{Name: c.Name, Error: err.Error()}
			h.OK = h.OK && c.Grace > 0 && (a.passed[i].Load() || time.Since(a.started) > c.Grace)
		}
		h.Checks = append(h.Checks, result)
	}
	return h
}

// readiness collects the results of the readiness checks as metrics.
type readiness struct{ admin *Server }

const (
	readyHelp = "1 while the service is ready (/readyz)."
	checkHelp = "1 while the check passes; /readyz has the reason of a failure."
)

func (readiness) descs() (ready, check *prometheus.Desc) {
	return prometheus.NewDesc("blockdesk_ready", readyHelp, nil, nil),
		prometheus.NewDesc("blockdesk_readiness_check", checkHelp, []string{"check"}, nil)
}

// Describe implements prometheus.Collector.
func (r readiness) Describe(out chan<- *prometheus.Desc) {
	ready, check := r.descs()
	out <- ready
	out <- check
}

// Collect implements prometheus.Collector.
func (r readiness) Collect(out chan<- prometheus.Metric) {
	ready, check := r.descs()
	h := r.admin.ready()
	out <- prometheus.MustNewConstMetric(ready, prometheus.GaugeValue, BoolValue(h.OK))
	for _, c := range h.Checks {
		out <- prometheus.MustNewConstMetric(check, prometheus.GaugeValue, BoolValue(c.OK), c.Name)
	}
}

func (a *Server) write(w http.ResponseWriter, h health) {
	w.Header().Set("Content-Type", wire.JSONType)
	w.Header().Set("Cache-Control", string(wire.CacheControl[wire.NeverCached]))
	if !h.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		a.opts.Logger.Debug("admin answer not delivered", "error", err)
	}
}
