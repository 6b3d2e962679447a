// Package echo has the yardsticks of the FIX gateway: a raw TCP echo, which is the least
// that any server can do, and two bare quickfix acceptors that send every application
// message back. One of these is quickfix as it comes, with a store in memory and no log;
// the other (Guarded) is tuned so that its session does not spin.
//
// Each runs in a process of its own, as the gateway does, and serves one client on a free
// port of the loopback interface. None of them validates, stores or logs.
package echo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"
)

// Kinds of echo.
const (
	TCP = "tcp"
	// Default is quickfix as it comes, with its store in memory and no log.
	Default = "quickfix"
	// Guarded is the same with a store and a log that yield the processor when the
	// session's loop would spin.
	Guarded = "guarded"
)

// CompIDs of a quickfix echo and of its one client.
const (
	CompID = "ECHO"
	Client = "BENCH"
)

// Serve listens on a free port, writes the address and a newline to out, and
// echoes until ctx ends.
func Serve(ctx context.Context, kind string, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	switch kind {
	case TCP:
		return serveTCP(ctx, listener, out)
	case Default, Guarded:
		return serveFIX(ctx, kind == Guarded, listener, out)
	}
	return errors.Join(fmt.Errorf("echo %q: must be %s, %s or %s", kind, TCP, Default, Guarded), listener.Close())
}

func serveTCP(ctx context.Context, listener net.Listener, out io.Writer) error {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return nil
		}
		for {
			n, err := conn.Read(buf)
			if err != nil {
				break
			}
			if _, err := conn.Write(buf[:n]); err != nil {
				break
			}
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
}

func serveFIX(ctx context.Context, guarded bool, listener net.Listener, out io.Writer) error {
	settings := quickfix.NewSettings()
	global := settings.GlobalSettings()
	global.Set(config.SocketAcceptPort, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	global.Set(config.BeginString, quickfix.BeginStringFIX44)
	global.Set(config.SenderCompID, CompID)
	global.Set(config.ResetOnLogon, "Y")
	one := quickfix.NewSessionSettings()
	one.Set(config.TargetCompID, Client)
	if _, err := settings.AddSession(one); err != nil {
		return err
	}
	stores := quickfix.NewMemoryStoreFactory()
	logs := quickfix.NewNullLogFactory()
	if guarded {
		var moved atomic.Uint64
		stores, logs = guardStores{stores, &moved}, guardLogs{logs, &moved}
	}
	acceptor, err := quickfix.NewAcceptor(application{}, stores, settings, logs)
	if err != nil {
		return err
	}
	acceptor.SetNewListenerCallback(func(string, *tls.Config) (net.Listener, error) { return listener, nil })
	if err := acceptor.Start(); err != nil {
		return err
	}
	defer acceptor.Stop()
	// Its sessions sleep to the next full second.
	const margin = 50 * time.Millisecond
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + margin)))
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// application sends every application message back.
type application struct{}

func (application) OnCreate(quickfix.SessionID)                       {}
func (application) OnLogon(quickfix.SessionID)                        {}
func (application) OnLogout(quickfix.SessionID)                       {}
func (application) ToAdmin(*quickfix.Message, quickfix.SessionID)     {}
func (application) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }

func (application) FromAdmin(*quickfix.Message, quickfix.SessionID) quickfix.MessageRejectError {
	return nil
}

func (application) FromApp(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	msgType, err := m.Header.GetString(35)
	if err != nil {
		return err
	}
	m.Header.Clear()
	m.Trailer.Clear()
	m.Header.SetString(35, msgType)
	if err := quickfix.SendToTarget(m, id); err != nil {
		return quickfix.NewBusinessMessageRejectError(err.Error(), 0, nil)
	}
	return nil
}

// guardStores and guardLogs count the messages of a session. The session's loop reads the
// store's creation time on every pass: if no message has passed since the last one, the
// loop spins, and guardStore yields the processor.
type guardStores struct {
	quickfix.MessageStoreFactory
	messages *atomic.Uint64
}

func (g guardStores) Create(id quickfix.SessionID) (quickfix.MessageStore, error) {
	inner, err := g.MessageStoreFactory.Create(id)
	return &guardStore{MessageStore: inner, moved: g.messages}, err
}

type guardStore struct {
	quickfix.MessageStore
	moved *atomic.Uint64
	seen  uint64
}

func (s *guardStore) CreationTime() time.Time {
	if now := s.moved.Load(); now != s.seen {
		s.seen = now
	} else {
		runtime.Gosched()
	}
	return s.MessageStore.CreationTime()
}

type guardLogs struct {
	quickfix.LogFactory
	moved *atomic.Uint64
}

func (g guardLogs) CreateSessionLog(id quickfix.SessionID) (quickfix.Log, error) {
	inner, err := g.LogFactory.CreateSessionLog(id)
	return guardLog{inner, g.moved}, err
}

type guardLog struct {
	quickfix.Log
	moved *atomic.Uint64
}

func (l guardLog) OnIncoming([]byte) { l.moved.Add(1) }

func (l guardLog) OnOutgoing([]byte) {
	l.moved.Add(1)
	runtime.Gosched()
}
