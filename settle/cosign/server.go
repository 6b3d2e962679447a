package cosign

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
)

const (
	// MaxSignerConnections bounds the connections that are served at a time. One more
	// is answered with RefusalBusy.
	MaxSignerConnections = 16
	// MaxAllowedUsers bounds ServerOptions.AllowUIDs.
	MaxAllowedUsers = 16

	defaultSignerTimeout = 5 * time.Second
	// acceptPause is the pause after a failed accept, for example without a free file
	// descriptor.
	acceptPause = 100 * time.Millisecond
)

// Errors of a server, wrapped with the detail.
var (
	// ErrOptions: an option is out of its range.
	ErrOptions = errors.New("cosign: invalid options")
	// ErrSocketInUse: a server answers at the socket's path, or the path is no socket.
	ErrSocketInUse = errors.New("cosign: the path of the socket is in use")
)

// ServerOptions are the settings of a [Server].
type ServerOptions struct {
	// Path is the path of the socket, at most 107 bytes.
	Path string
	// Record is the file of signed messages. It belongs to the key: move it with the
	// key.
	Record string
	// Spent is the file of what has left, for the ceilings. Default: Record with
	// ".spent" appended.
	Spent string
	// Limits are the limits at the start; nil: none, and no refunds.
	Limits *Limits
	// Signer holds the key.
	Signer Signer
	// AllowUIDs are the users whose processes may connect. If it is empty, only the
	// user of this process may, and the socket's mode is 0600. Otherwise the mode
	// is 0660, and the operator must give the socket's folder a group that the
	// users share.
	AllowUIDs []uint32
	// Timeout bounds a connection. Default 5 s.
	Timeout time.Duration
	// Logger gets a line for each signature and each refusal. Default: none.
	Logger *slog.Logger
	// Now is the clock of the entries. Default time.Now.
	Now func() time.Time
}

func (o *ServerOptions) fill() error {
	o.Timeout = cmp.Or(o.Timeout, defaultSignerTimeout)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Spent = cmp.Or(o.Spent, o.Record+".spent")
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Path == "" || o.Record == "":
		return fmt.Errorf("%w: the paths of the socket and the record are required", ErrOptions)
	case o.Signer == nil || o.Signer.Address() == (solana.Address{}):
		return fmt.Errorf("%w: a key is required", ErrOptions)
	case o.Timeout < 0:
		return fmt.Errorf("%w: Timeout %v: want 0 or more", ErrOptions, o.Timeout)
	case len(o.AllowUIDs) > MaxAllowedUsers:
		return fmt.Errorf("%w: %d AllowUIDs, at most %d", ErrOptions, len(o.AllowUIDs), MaxAllowedUsers)
	}
	return nil
}

// Server signs for a gateway in another process, which it does not trust: it checks
// every message itself, and records what it signs.
type Server struct {
	o        ServerOptions
	address  solana.Address
	listener net.Listener
	record   *record
	spent    *spent
	limits   atomic.Pointer[Limits]
	slots    chan struct{}

	closing  sync.Once
	closeErr error
}

// NewServer opens the record and the socket. A Server that is not Run must be closed.
// Errors: [ErrOptions], [ErrSocketInUse], errors of the record and of what has left
// ([ErrRecord], [ErrRecordInUse], [ErrSpent], [ErrKeyFile]), errors of the file system.
func NewServer(o ServerOptions) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	mode := fs.FileMode(privateMode)
	if len(o.AllowUIDs) == 0 {
		o.AllowUIDs = []uint32{uint32(os.Geteuid())}
	} else {
		mode = sharedMode
	}
	s := &Server{o: o, address: o.Signer.Address(), slots: make(chan struct{}, MaxSignerConnections)}
	var err error
	if s.record, err = openRecord(o.Record, s.address); err != nil {
		return nil, err
	}
	if s.spent, err = openSpent(o.Spent, s.address, o.Now().UnixNano()); err != nil {
		return nil, errors.Join(err, s.record.close())
	}
	if err = removeStaleSocket(o.Path); err == nil {
		s.listener, err = listenPrivate(o.Path, mode)
	}
	if err != nil {
		return nil, errors.Join(err, s.spent.close(), s.record.close())
	}
	s.limits.Store(o.Limits)
	return s, nil
}

// SetLimits replaces the limits; what has left counts on. Any goroutine may call it.
func (s *Server) SetLimits(l *Limits) { s.limits.Store(l) }

// Uses returns how much of each ceiling is used, in the order of the file of limits; none
// without one.
func (s *Server) Uses() []LimitUse { return s.spent.uses(s.limits.Load(), s.o.Now().UnixNano()) }

// removeStaleSocket removes the socket of a server that has ended. Errors:
// [ErrSocketInUse], errors of the file system.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%w: %s is not a socket", ErrSocketInUse, path)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		c.Close()
		return fmt.Errorf("%w: a signer answers at %s already", ErrSocketInUse, path)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: %w", ErrSocketInUse, err)
	}
	return os.Remove(path)
}

// Address returns the key's address.
func (s *Server) Address() solana.Address { return s.address }

// SignedMessages returns the number of messages in the record.
func (s *Server) SignedMessages() int { return s.record.len() }

// Close closes the socket and the record. Run does it at its end; a second call does
// nothing.
func (s *Server) Close() error {
	s.closing.Do(func() {
		// If Run has closed the listener already, that is no error.
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			s.closeErr = err
		}
		s.closeErr = errors.Join(s.closeErr, s.spent.close(), s.record.close())
	})
	return s.closeErr
}

// Run serves until ctx is done. A request that has arrived is still answered; a
// connection without a request is cut off.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.listener.Close() })
	defer stop()
	var conns sync.WaitGroup
	for {
		c, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			conns.Wait()
			return s.Close()
		case err != nil:
			s.o.Logger.Warn("accepting a signer connection failed", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			s.reply(c, refusalFrame(RefusalBusy))
			c.Close()
			continue
		}
		conns.Go(func() {
			defer func() { <-s.slots }()
			defer c.Close()
			s.serve(ctx, c)
		})
	}
}

func (s *Server) serve(ctx context.Context, c net.Conn) {
	c.SetDeadline(time.Now().Add(s.o.Timeout))
	user, err := peerUser(c)
	if err != nil || !slices.Contains(s.o.AllowUIDs, user) {
		s.o.Logger.Warn("signer connection refused", "uid", user, "error", err)
		return
	}
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	request, err := readFrame(c)
	stop()
	switch {
	case errors.Is(err, errFrame):
		s.o.Logger.Warn("signer request is malformed", "uid", user)
		s.reply(c, refusalFrame(RefusalFrame))
	case err == nil:
		s.reply(c, s.answer(context.WithoutCancel(ctx), request))
	case !errors.Is(err, io.EOF):
		s.o.Logger.Warn("reading a signer request failed", "uid", user, "error", err)
	}
}

// reply writes an answer. An error does not matter, because the client can repeat the
// request.
func (s *Server) reply(c net.Conn, f frame) {
	if _, err := c.Write(f.append(nil)); err != nil {
		s.o.Logger.Debug("writing a signer answer failed", "error", err)
	}
}

func (s *Server) answer(ctx context.Context, request frame) frame {
	switch {
	case request.kind == requestAddress && len(request.body) == 0:
		return addressFrame(s.address)
	case request.kind == requestSign && len(request.body) > 0:
		signature, refusal := s.sign(ctx, Kind(request.body[0]), request.body[1:])
		if refusal != 0 {
			return refusalFrame(refusal)
		}
		return signatureFrame(signature)
	case request.kind == requestLimits && len(request.body) == 2:
		return limitsFrame(s.Uses(), int(binary.LittleEndian.Uint16(request.body)))
	default:
		return refusalFrame(RefusalFrame)
	}
}

// sign adds a transaction's message to the record and then signs it.
func (s *Server) sign(ctx context.Context, kind Kind, raw []byte) (solana.Signature, Refusal) {
	d, err := decodeJob(kind, raw, s.address)
	if err != nil {
		refusal := RefusalShape
		if errors.Is(err, errSlots) {
			refusal = RefusalSlots
		}
		s.o.Logger.Warn("signing refused", "kind", kind.String(), "refusal", refusal.String(), "error", err)
		return solana.Signature{}, refusal
	}
	entries := d.entries(s.o.Now().UnixNano())
	log := s.o.Logger.With(entries[0].logged()).With("kind", kind.String(), "message", d.hash.String())
	if refusal := s.admit(d, entries); refusal != 0 {
		log.Warn("signing refused", "refusal", refusal.String())
		return solana.Signature{}, refusal
	}
	signature, err := s.o.Signer.Sign(ctx, Job{d})
	if err != nil {
		log.Error("signing with the key failed", "error", err)
		return solana.Signature{}, RefusalKey
	}
	log.Info("transaction signed")
	return signature, 0
}

// admit checks the limits and adds the message to the record.
func (s *Server) admit(d *draft, entries []entry) Refusal {
	limits := s.limits.Load()
	if refusal := limits.check(d); refusal != 0 {
		return refusal
	}
	of, atoms, lamports, ok := d.leaves()
	if !ok {
		return RefusalShape
	}
	return s.record.admit(entries, func() Refusal {
		return s.spent.leave(limits, &departure{of, entries[0].at, atoms, uint32(lamports)})
	})
}

// errSlots: the desk's signature is set already, or another one does not verify.
var errSlots = errors.New("cosign: wrong signatures in the transaction to sign")

// decodeJob decodes and checks a job of another process: the right shape, the desk's
// signature empty, and every other one verified. The result shares raw. Errors:
// [ErrShape], errSlots.
func decodeJob(kind Kind, raw []byte, desk solana.Address) (*draft, error) {
	t, err := tx.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	if kind == Refund {
		return decodeRefund(t, raw, desk)
	}
	var shape Summary
	switch kind {
	case Cosign:
		shape, err = CheckAtomic(t.Signed, desk)
	case Deliver:
		shape, err = CheckDelivery(t.Signed, desk)
	default:
		err = fmt.Errorf("%w: unknown kind %d of request", ErrShape, kind)
	}
	if err != nil {
		return nil, err
	}
	d := &draft{Summary: shape, raw: raw, hash: tx.MessageHash(t.Signed)}
	for i, signer := range t.Message.Signers() {
		switch {
		case signer == desk && t.Signatures[i] == (solana.Signature{}):
			d.slot = i
		case signer == desk:
			return nil, fmt.Errorf("%w: the desk's signature is set already", errSlots)
		case !eddsa.Verify(signer, t.Signed, t.Signatures[i]):
			return nil, fmt.Errorf("%w: the signature of %s is missing or wrong", errSlots, solana.Base58(signer))
		}
	}
	return d, nil
}

// decodeRefund is decodeJob of refunds.
func decodeRefund(t *tx.Transaction, raw []byte, desk solana.Address) (*draft, error) {
	shape, err := CheckRefund(t.Signed, desk)
	if err != nil {
		return nil, err
	}
	if t.Signatures[0] != (solana.Signature{}) {
		return nil, fmt.Errorf("%w: the desk's signature is set already", errSlots)
	}
	return refundDraft(&shape, raw, tx.MessageHash(t.Signed)), nil
}
