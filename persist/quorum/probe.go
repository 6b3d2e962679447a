package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"
)

// A probe asks a peer, outside of raft, what it has and what it can read: a node with an
// empty folder before it votes, and a leader before the log's format changes. It is a
// connection to the peer's raft address, with TLS as any other, that begins with a byte
// that no call of raft begins with. Version 1, little-endian:
//
//	question                                     answer
//	0xBD, version u8, id len u8, birth [16], id  0xBD, version u8, flags u8, 0, reads u16, format u16, term u64, last u64, birth [16]
//
// A program without probes closes the connection.
const (
	probeMagic   = 0xBD
	probeVersion = 1
	probeHeader  = 3 + birthBytes
	probeAnswers = 24 + birthBytes
	birthBytes   = 16
)

// Flags of an answer.
const (
	probeHasLog  = 1 << iota // the peer has a log, a term or a snapshot
	probeVoter               // the asking node is a voter in the configuration of that log
	probeFounder             // the asking folder was seen empty when the peer began that log
)

const (
	// probeTimeout bounds a probe.
	probeTimeout = 2 * time.Second
	// maxGreeted is how many incoming connections may have sent nothing yet; another one
	// is closed.
	maxGreeted = 256
)

// errOldProgram says that a peer closed a probe without an answer.
var errOldProgram = errors.New("the peer's program is too old to answer probes")

// birth identifies a data folder: random bytes, written when the folder was empty.
type birth [birthBytes]byte

type probeQuestion struct {
	id    string
	birth birth
}

type probeAnswer struct {
	hasLog, voter, founder bool
	reads                  uint16 // newest format that the program reads
	format                 uint16 // of the log, as far as it is applied
	term, last             uint64
	birth                  birth // of the peer's folder
}

func (q *probeQuestion) encode() []byte {
	p := append([]byte{probeMagic, probeVersion, byte(len(q.id))}, q.birth[:]...)
	return append(p, q.id...)
}

// readQuestion reads a question after its first byte.
func readQuestion(r io.Reader) (q probeQuestion, err error) {
	var head [probeHeader - 1]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	id := make([]byte, head[1])
	if _, err = io.ReadFull(r, id); err != nil {
		return q, err
	}
	if head[0] != probeVersion || len(id) == 0 || len(id) > MaxNameBytes {
		return q, fmt.Errorf("%w: probe of version %d with an id of %d bytes", errEntry, head[0], len(id))
	}
	q.id = string(id)
	copy(q.birth[:], head[2:])
	return q, nil
}

func (a *probeAnswer) encode() []byte {
	var flags byte
	for i, set := range []bool{a.hasLog, a.voter, a.founder} {
		if set {
			flags |= 1 << i
		}
	}
	le := binary.LittleEndian
	p := le.AppendUint16([]byte{probeMagic, probeVersion, flags, 0}, a.reads)
	p = le.AppendUint16(p, a.format)
	return append(le.AppendUint64(le.AppendUint64(p, a.term), a.last), a.birth[:]...)
}

func decodeAnswer(p []byte) (a probeAnswer, err error) {
	if len(p) != probeAnswers || p[0] != probeMagic || p[1] != probeVersion || p[2] > probeHasLog|probeVoter|probeFounder || p[3] != 0 {
		return a, fmt.Errorf("%w: the answer to a probe is invalid", errEntry)
	}
	le := binary.LittleEndian
	return probeAnswer{
		hasLog: p[2]&probeHasLog != 0, voter: p[2]&probeVoter != 0, founder: p[2]&probeFounder != 0,
		reads: le.Uint16(p[4:]), format: le.Uint16(p[6:]), term: le.Uint64(p[8:]), last: le.Uint64(p[16:]), birth: birth(p[24:]),
	}, nil
}

// probe asks the peer at an address. The error wraps errOldProgram if the peer's program
// has no probes.
func (n *Node) probe(address string, q *probeQuestion) (probeAnswer, error) {
	conn, err := n.stream.Dial(raft.ServerAddress(address), probeTimeout)
	if err != nil {
		return probeAnswer{}, err
	}
	a, err := exchange(conn, q)
	_ = conn.Close() // the answer is there, or an error
	return a, err
}

func exchange(conn net.Conn, q *probeQuestion) (probeAnswer, error) {
	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return probeAnswer{}, err
	}
	if _, err := conn.Write(q.encode()); err != nil {
		return probeAnswer{}, err
	}
	var p [probeAnswers]byte
	if _, err := io.ReadFull(conn, p[:1]); err != nil {
		if errors.Is(err, io.EOF) {
			return probeAnswer{}, errOldProgram
		}
		return probeAnswer{}, err
	}
	if _, err := io.ReadFull(conn, p[1:]); err != nil {
		return probeAnswer{}, err
	}
	return decodeAnswer(p[:])
}

// run accepts connections until the stream is closed: it answers probes, and passes the
// calls of raft on to Accept.
func (s *stream) run(answer func(*probeQuestion) (probeAnswer, bool)) {
	var greeting errgroup.Group
	greeting.SetLimit(maxGreeted)
	for {
		conn, err := s.accept()
		if err != nil {
			if s.isClosed() {
				break
			}
			time.Sleep(retryInterval) // no descriptor was free
			continue
		}
		if !greeting.TryGo(func() error { s.greet(conn, answer); return nil }) {
			_ = conn.Close() // the peer tries again
		}
	}
	_ = greeting.Wait() // they return nil
}

// greet reads the first byte of a connection.
func (s *stream) greet(conn net.Conn, answer func(*probeQuestion) (probeAnswer, bool)) {
	var first [1]byte
	err := conn.SetReadDeadline(time.Now().Add(transportTimeout))
	if err == nil {
		_, err = io.ReadFull(conn, first[:])
	}
	if err == nil && first[0] == probeMagic {
		s.reply(conn, answer)
	}
	if err != nil || first[0] == probeMagic || conn.SetReadDeadline(time.Time{}) != nil {
		_ = conn.Close() // there is nobody to report an error to
		return
	}
	s.deliver(&prefixedConn{Conn: conn, first: bytes.NewReader(first[:])})
}

// reply answers a probe, if this node can.
func (s *stream) reply(conn net.Conn, answer func(*probeQuestion) (probeAnswer, bool)) {
	q, err := readQuestion(conn)
	if err != nil {
		return
	}
	if a, ok := answer(&q); ok && conn.SetWriteDeadline(time.Now().Add(probeTimeout)) == nil {
		_, _ = conn.Write(a.encode()) // the asking node asks again
	}
}

// deliver hands a connection of raft to Accept, or closes it while raft does not run.
func (s *stream) deliver(conn net.Conn) {
	select {
	case <-s.raft:
	default:
		_ = conn.Close() // the peer tries again
		return
	}
	select {
	case s.incoming <- conn:
	case <-s.done:
		_ = conn.Close() // it is closed already
	}
}

// prefixedConn is a connection of which the first byte was read.
type prefixedConn struct {
	net.Conn
	first *bytes.Reader
}

// Read implements net.Conn.
func (c *prefixedConn) Read(p []byte) (int, error) {
	if c.first.Len() > 0 {
		return c.first.Read(p)
	}
	return c.Conn.Read(p)
}

// probePeers asks all other peers at once. An error is in the place of an answer.
func (n *Node) probePeers(ctx context.Context, others []Peer, q *probeQuestion) (answers []probeAnswer, errs []error) {
	answers, errs = make([]probeAnswer, len(others)), make([]error, len(others))
	var asking errgroup.Group
	for i := range others {
		asking.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				answers[i], errs[i] = n.probe(others[i].Address, q)
			}
			return nil
		})
	}
	_ = asking.Wait() // errs has the errors
	return answers, errs
}
