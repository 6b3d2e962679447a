package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// GetText is a request as a client writes them; headers are whole lines.
func GetText(target string, headers ...string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\n" + strings.Join(append([]string{"Host: bench"}, headers...), "\r\n") + "\r\n\r\n")
}

// PostText is a request with a JSON body.
func PostText(target, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body)
}

// Line is one kept-alive connection of a client that does nothing but wait for
// the end of the answer, so that the time is the server's. Its socket blocks:
// a goroutine bound to its thread would need another one to be woken.
type Line struct {
	Socket *os.File
	r      *bufio.Reader
	// Refusals: an answer of status 4xx counts too.
	Refusals bool
}

// DialLine connects to host:port.
func DialLine(host string) (*Line, error) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	// Fd makes the socket block. A read that gets nothing fails after a minute.
	patience := unix.Timeval{Sec: 60}
	if err := unix.SetsockoptTimeval(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &Line{Socket: socket, r: bufio.NewReaderSize(socket, 64<<10)}, nil
}

// Trips makes n round trips and records each.
func (l *Line) Trips(ctx context.Context, request []byte, n int, hist *hdrhistogram.Histogram) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for range n {
		start := time.Now()
		if _, err := l.Socket.Write(request); err != nil {
			return err
		}
		if err := l.Answer(); err != nil {
			return err
		}
		_ = hist.RecordValue(int64(time.Since(start)))
	}
	return nil
}

// Answer reads one answer.
func (l *Line) Answer() error {
	length := 0
	for first := true; ; first = false {
		text, err := l.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) && (!l.Refusals || !bytes.HasPrefix(text, []byte("HTTP/1.1 4"))) {
			return fmt.Errorf("answer: %s", bytes.TrimSpace(text))
		}
		if len(text) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	_, err := io.CopyN(io.Discard, l.r, int64(length))
	return err
}

// MetricsLines reads an answer of /metrics.
func MetricsLines(body io.Reader) *bufio.Scanner {
	return bufio.NewScanner(io.LimitReader(body, 64<<20))
}
