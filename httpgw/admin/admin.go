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

// DefaultAddr is the admin address: this machine only.
const DefaultAddr = "127.0.0.1:8090"

// adminConns bounds the connections of the admin address; one more is answered
// 503 and closed.
const adminConns = 64

// Check is one condition of readiness.
type Check struct {
	Name string
	// Err returns nil while the condition holds. It must not block.
	Err func() error
	// Wait, if not 0, is of what the service can do without. A start waits for
	// it, so long at most; once it has held, or that time is over, a failure is
	// told and the service stays ready, so that nobody takes the rest away.
	Grace time.Duration
}

// Options configures an Admin. The zero value of a field means its default
// or leaves its part out.
type Options struct {
	Addr string // default DefaultAddr; port 0 takes a free one
	// Listen binds Addr; default net.Listen.
	Listen func(network, addr string) (net.Listener, error)

	// Live returns an error when the process can only be helped by a restart.
	Live func() error
	// Ready are the conditions of serving: recovered, journal writable, not
	// read-only, and so on. Names are unique.
	Ready []Check

	// Operate is behind the operator's endpoints; nil leaves them out.
	Operate *Operations

	Desk       DeskSources
	Settlement SettlementSources
	Mirror     MirrorSources
	Collectors []prometheus.Collector // of the other packages, Gateway.Collectors among them
	Logger     *slog.Logger           // default: none

	// ShutdownTimeout is for requests under way when Run ends; default
	// DefaultShutdownTimeout.
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

// Validate reports the first field that is wrong.
func (o Options) Validate() error {
	names := make(map[string]bool)
	for i, c := range o.Ready {
		switch {
		case c.Name == "" || c.Err == nil:
			return fmt.Errorf("httpgw: readiness check %d has no name or no function", i)
		case names[c.Name]:
			return fmt.Errorf("httpgw: readiness check %s: named twice", c.Name)
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

// Server serves /metrics, /healthz, /readyz, /debug/pprof/, in a group /cluster, and
// the operator's endpoints under /desk/ on an address of its own. Only the last ask for a
// token: keep it off public addresses.
type Server struct {
	opts     Options
	started  time.Time
	passed   []atomic.Bool // of each of opts.Ready: it has held once
	listener *wire.Listener
	server   *http.Server
	ids      *wire.RequestIDs
}

// New listens and serves nothing yet. A caller that does not call Run calls
// Close. It fails when a collector's metrics clash with another's.
func New(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.applyDefaults()
	registry := prometheus.NewRegistry()
	refused := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "blockdesk_admin_connections_refused_total",
		Help: "Connections to the admin address refused because too many were open.",
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
	mux.HandleFunc("/debug/pprof", outer.unknown) // which the mux would redirect
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	// The command line is left out: a flag may hold a secret. Nobody needs it here.
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	if o.Operate != nil {
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

// Close stops listening. Only for an Admin that Run was not called on.
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
			// A profile under way: break it off.
			return a.server.Close()
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

// ready asks all checks.
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

// readiness is what /readyz says, as metrics.
type readiness struct{ admin *Server }

const (
	readyHelp = "1 while /readyz says that the service is ready."
	checkHelp = "1 while the condition of readiness holds; /readyz says why it does not. Some the service can be ready without."
)

func (readiness) descs() (ready, check *prometheus.Desc) {
	return prometheus.NewDesc("blockdesk_ready", readyHelp, nil, nil),
		prometheus.NewDesc("blockdesk_readiness_check", checkHelp, []string{"check"}, nil)
}

// Describe sends the descriptions.
func (r readiness) Describe(out chan<- *prometheus.Desc) {
	ready, check := r.descs()
	out <- ready
	out <- check
}

// Collect sends the values of now.
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
