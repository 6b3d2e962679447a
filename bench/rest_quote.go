package bench

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

// Round trips of each kind, and how many of one kind follow each other.
const (
	quoteTrips = 10_000
	quoteBurst = 200
)

// quotes compares the time of a quote with that of a depth read: one connection,
// one request in flight, in bursts of one kind and of the other. The client has
// a core of its own: on the server's, the kernel would hand it each answer as a
// coroutine's, which no real client gets.
func (b *restBench) quotes(ctx context.Context, depth string) error {
	return onCore(b.loadCore, func() error { return b.quotesHere(ctx, depth) })
}

func (b *restBench) quotesHere(ctx context.Context, depth string) error {
	base := b.ours.Addresses.Base
	order, tranche, err := firstOffer(base)
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(base, "http://")
	body := fmt.Sprintf(`{"order_id":%q,"tranche_id":%q,"fill_usd":"1000","rail":"USDC"}`, order, tranche)
	line, err := dialLine(host)
	if err != nil {
		return err
	}
	defer line.socket.Close()
	kinds := []struct {
		request []byte
		series  *Series
	}{
		{getText(depth), &Series{Name: "depth read, one in flight", Hist: NewHistogram()}},
		{postText(quoteTarget, body), &Series{Name: "quote, one in flight, interval", Hist: NewHistogram()}},
	}
	warm := NewHistogram()
	for done := -quoteBurst; done < quoteTrips; done += quoteBurst {
		for _, kind := range kinds {
			hist := kind.series.Hist
			if done < 0 {
				hist = warm
			}
			before, err := cpuOf(b.ours.PID())
			if err != nil {
				return err
			}
			start := time.Now()
			if err := line.trips(ctx, kind.request, quoteBurst, hist); err != nil {
				return fmt.Errorf("%s: %w", kind.series.Name, err)
			}
			elapsed := time.Since(start)
			after, err := cpuOf(b.ours.PID())
			if err != nil {
				return err
			}
			if done >= 0 {
				kind.series.Ops += quoteBurst
				kind.series.Elapsed += elapsed
				kind.series.CPU += after - before
			}
		}
	}
	for _, kind := range kinds {
		kind.series.Summary = summarize(kind.series.Hist)
		b.r.Series = append(b.r.Series, kind.series)
	}
	b.r.Ratios = append(b.r.Ratios, Ratio{
		Name:  "quote p50 / depth read p50, interval",
		Value: float64(kinds[1].series.Summary.P50) / float64(kinds[0].series.Summary.P50), Goal: 2, AtMost: true,
	})
	return nil
}

// getText and postText are requests as a client writes them; headers are whole lines.
func getText(target string, headers ...string) []byte {
	return []byte("GET " + target + " HTTP/1.1\r\n" + strings.Join(append([]string{"Host: bench"}, headers...), "\r\n") + "\r\n\r\n")
}

func postText(target, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", target, len(body), body)
}

// line is one kept-alive connection of a client that does nothing but wait for
// the end of the answer, so that the time is the server's. Its socket blocks:
// a goroutine bound to its thread would need another one to be woken.
type line struct {
	socket *os.File
	r      *bufio.Reader
	// refusals: an answer of status 4xx counts too.
	refusals bool
}

func dialLine(host string) (*line, error) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	socket, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	// Fd makes it block. What never comes is an error after 10 s.
	patience := unix.Timeval{Sec: 10}
	if err := unix.SetsockoptTimeval(int(socket.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return &line{socket: socket, r: bufio.NewReaderSize(socket, 64<<10)}, nil
}

// trips makes n round trips and records each.
func (l *line) trips(ctx context.Context, request []byte, n int, hist *hdrhistogram.Histogram) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for range n {
		start := time.Now()
		if _, err := l.socket.Write(request); err != nil {
			return err
		}
		if err := l.answer(); err != nil {
			return err
		}
		_ = hist.RecordValue(int64(time.Since(start)))
	}
	return nil
}

// answer reads one answer.
func (l *line) answer() error {
	length := 0
	for first := true; ; first = false {
		text, err := l.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) && (!l.refusals || !bytes.HasPrefix(text, []byte("HTTP/1.1 4"))) {
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
