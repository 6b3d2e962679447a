package session

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/quickfixgo/quickfix"
)

// logFactory is quickfix's LogFactory. It never logs messages, because they carry
// passwords. It logs events at level Debug.
type logFactory struct {
	logger   *slog.Logger
	messages storeFactory
}

func (l logFactory) Create() (quickfix.Log, error) {
	return &sessionLog{logger: l.logger}, nil
}

func (l logFactory) CreateSessionLog(id quickfix.SessionID) (quickfix.Log, error) {
	store := l.messages[id.TargetCompID]
	if store == nil {
		return nil, fmt.Errorf("session %s is not configured", id.TargetCompID)
	}
	return &sessionLog{logger: l.logger.With("comp_id", id.TargetCompID), store: store}, nil
}

type sessionLog struct {
	logger *slog.Logger
	store  *MessageStore // nil for what concerns no session
}

// OnIncoming counts the message that the session's loop begins.
func (l *sessionLog) OnIncoming([]byte) {
	if l.store != nil {
		l.store.startedByQuickfix.Add(1)
		l.store.activity.Add(1)
	}
}

// OnOutgoing counts the message, and yields to the writer that was just given it, so
// that the writer is ready for the next: otherwise the session's loop spins until it is.
func (l *sessionLog) OnOutgoing([]byte) {
	if l.store != nil {
		l.store.queuedByQuickfix.Add(1)
		l.store.activity.Add(1)
	}
	runtime.Gosched()
}

// OnEvent logs an event of quickfix. Its text may quote a message that could not be read,
// so it is cut.
func (l *sessionLog) OnEvent(text string) { l.event(text) }

func (l *sessionLog) OnEventf(format string, args ...any) {
	if l.logger.Enabled(context.Background(), slog.LevelDebug) {
		l.event(fmt.Sprintf(format, args...))
	}
}

const maxEventText = 120

func (l *sessionLog) event(text string) {
	if strings.Contains(text, "554=") {
		text = "a message that carries a password"
	}
	l.logger.Debug("quickfix", "event", text[:min(len(text), maxEventText)])
}
