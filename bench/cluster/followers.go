package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"blockdesk/bench"
)

// followersInSync is the line that the child of bench cluster writes once all followers
// are in sync.
const followersInSync = "level"

// ServeFollowers is a child of bench cluster: a NATS server in dir and n followers
// of the leader that publishes there. It writes the server's URL and, once all
// followers are in sync, followersInSync. It ends when in or ctx ends.
func ServeFollowers(ctx context.Context, n int, dir string, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ends bench.Closers
	defer func() { err = errors.Join(err, ends.Close()) }()
	nats, end, err := startNATS(ctx, dir)
	if err != nil {
		return err
	}
	ends.Add(end)
	if _, err := fmt.Fprintln(out, nats.URLs[0]); err != nil {
		return err
	}
	for i := range n {
		o := nats
		o.Name = fmt.Sprintf("follower %d", i+1)
		f, err := joinLeader(ctx, o)
		if err != nil {
			return err
		}
		ends.Add(func() error { return f.ends.Close() })
		if err := f.run(ctx); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(out, followersInSync); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// followers is that child as its parent sees it.
type followers struct {
	cmd    *exec.Cmd
	in     io.Closer
	output *bufio.Reader
	url    string
}

func startFollowers(ctx context.Context, exe, dir string, n int) (*followers, error) {
	f := &followers{cmd: exec.CommandContext(ctx, exe, "bench", "followers", strconv.Itoa(n), filepath.Join(dir, "nats"))}
	in, err := f.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.in, f.output = in, bufio.NewReader(out)
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	f.url, err = f.readLine()
	if err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

// readLine returns the next line of the child's output.
func (f *followers) readLine() (string, error) {
	line, err := f.output.ReadString('\n')
	return strings.TrimSpace(line), err
}

// awaitInSync waits until all followers are in sync.
func (f *followers) awaitInSync() error {
	line, err := f.readLine()
	if err == nil && line != followersInSync {
		err = fmt.Errorf("the followers say %q", line)
	}
	return err
}

func (f *followers) stop() error { return errors.Join(f.in.Close(), f.cmd.Wait()) }
