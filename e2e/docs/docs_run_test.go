package docs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// terminal is one shell that a reader types a document's lines into, one after the
// other. Assigned and exported variables and the working directory stay.
type terminal struct {
	dir    string
	env    []string
	places *strings.Replacer // what the document's addresses and paths are here
	shell  *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	mark   int
	left   []*exec.Cmd // that go on until the terminal is closed
	slept  bool        // the last line was a sleep
	prefix []string    // the command that runs the shell; empty: none
}

// start starts the shell.
func (t *terminal) start() error {
	command := append(slices.Clone(t.prefix), "/bin/sh")
	t.shell = exec.Command(command[0], command[1:]...)
	t.shell.Dir, t.shell.Env = t.dir, t.env
	t.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := t.shell.StdinPipe()
	if err != nil {
		return err
	}
	out, err := t.shell.StdoutPipe()
	if err != nil {
		return err
	}
	t.in, t.out = in, bufio.NewReader(out)
	return t.shell.Start()
}

// close ends the shell and all that it has started.
func (t *terminal) close() error {
	errs := []error{t.in.Close(), ignoreExit(t.shell.Wait())}
	for _, cmd := range t.left {
		errs = append(errs, endGroup(cmd))
	}
	return errors.Join(errs...)
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// endGroup makes a command and its children to end, and waits for it.
func endGroup(cmd *exec.Cmd) error {
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return ignoreExit(cmd.Wait())
}

// assigns matches a line that only sets a variable, which must not be empty then.
var assigns = regexp.MustCompile(`^([A-Za-z_]+)=([^\s$]*\$\((?s:.*)\)\S*|\S+)$`)

// run types a line and returns what it prints and its status; a line that hangs
// is an error, and the shell has ended.
func (t *terminal) run(line string) (printed string, status int, err error) {
	t.mark++
	end := fmt.Sprintf("end of line %d:", t.mark)
	line = t.places.Replace(line)
	if m := assigns.FindStringSubmatch(line); m != nil {
		line += fmt.Sprintf("\nif [ -n \"$%s\" ]; then echo \"$%[1]s\"; else echo %[1]s is empty; false; fi", m[1])
	}
	expired := time.AfterFunc(lineTime, func() { _ = syscall.Kill(-t.shell.Process.Pid, syscall.SIGKILL) })
	defer expired.Stop()
	if _, err := fmt.Fprintf(t.in, "{ %s\n} 2>&1 </dev/null\nprintf '\\n%s %%d\\n' $?\n", line, end); err != nil {
		return "", 0, err
	}
	var out strings.Builder
	for {
		text, err := t.out.ReadString('\n')
		if number, ok := strings.CutPrefix(text, end); ok {
			status, err := strconv.Atoi(strings.TrimSpace(number))
			return strings.TrimSuffix(out.String(), "\n"), status, err
		}
		out.WriteString(text)
		if err != nil {
			return out.String(), 0, fmt.Errorf("not over in %v, or the shell has ended: %w", lineTime, err)
		}
	}
}

// growing is what a command that goes on has printed so far.
type growing struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // one is there whenever there may be more
}

func (g *growing) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case g.more <- struct{}{}:
	default:
	}
	return g.text.Write(p)
}

func (g *growing) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.String()
}

// watch runs a line that does not end by itself until it has printed what matches.
// A command that others of the document need is kept until the terminal is closed.
func (t *terminal) watch(line string, want *regexp.Regexp, keep bool) (printed string, err error) {
	g := &growing{more: make(chan struct{}, 1)}
	cmd := exec.Command("/bin/sh", "-c", t.places.Replace(line))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.dir, t.env, g, g
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = runtest.HangTimeout
	if err := cmd.Start(); err != nil {
		return "", err
	}
	t.left = append(t.left, cmd)
	ctx, cancel := context.WithTimeout(context.Background(), lineTime)
	defer cancel()
	for !want.MatchString(g.String()) {
		select {
		case <-g.more:
		case <-ctx.Done():
			return g.String(), fmt.Errorf("not in %v", lineTime)
		}
	}
	if !keep {
		t.left = t.left[:len(t.left)-1]
		err = endGroup(cmd)
	}
	return g.String(), err
}

// expectation is what a line has to print, beyond ending well.
type expectation struct {
	in     string // the line has this in it
	prints string // a regular expression; empty: nothing need be printed
	goesOn bool   // it does not end by itself: it is ended when it has printed that
	keep   bool   // … or runs on, since later lines need it
	fails  bool   // it is shown to fail, and does
}

// lineTime ends a line that hangs.
const lineTime = runtest.HangTimeout

// silent are programs that print nothing when all is well.
var silent = regexp.MustCompile(`^(cd|export|mkdir|mv|cp|rm|chmod|chown|ln|install|test|kill|unset|set|umask)\b`)

// follow types a line and checks the output by the first expectation that
// fits, or else by the common rules: it ends well and prints something, and what a
// service answers in JSON is no error. A sleep is not typed: the line after it is typed
// again until it prints what it should, however long that takes here.
func (t *terminal) follow(p printedLine, expected []expectation) error {
	slept := t.slept
	if t.slept = strings.HasPrefix(p.text, "sleep "); t.slept {
		return nil
	}
	err := t.followOnce(p, expected)
	if err == nil || !slept {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lineTime)
	defer cancel()
	return errors.Join(await.Poll(ctx, p.text, func() bool {
		if _, _, hangs := t.run("sleep 1"); hangs != nil { // a client address has a rate limit
			err = hangs
			return true
		}
		err = t.followOnce(p, expected)
		return err == nil
	}), err)
}

func (t *terminal) followOnce(p printedLine, expected []expectation) error {
	e := expectation{prints: `\S`}
	if silent.MatchString(p.text) {
		e.prints = ""
	}
	plain := true
	for _, candidate := range expected {
		if strings.Contains(p.text, candidate.in) {
			e, plain = candidate, false
			break
		}
	}
	want, err := regexp.Compile(e.prints)
	if err != nil {
		return err
	}
	if e.goesOn || e.keep {
		out, err := t.watch(p.text, want, e.keep)
		if err != nil {
			return fmt.Errorf("%v\n%w: no %q in:\n%s", p, err, e.prints, out)
		}
		return nil
	}
	line := p.text
	if len(p.typed) > 0 { // printf, since a session's lines end when the last one is answered
		line = "{ cat <<'TYPED'\n" + strings.Join(p.typed, "\n") + "\nTYPED\n} | " + line
	}
	out, status, err := t.run(line)
	switch {
	case err != nil:
		return fmt.Errorf("%v\n%w\n%s", p, err, out)
	case (status != 0) != e.fails:
		return fmt.Errorf("%v\nends with status %d:\n%s", p, status, out)
	case !want.MatchString(out):
		return fmt.Errorf("%v\nno %q in:\n%s", p, e.prints, out)
	case plain && refused.MatchString(out):
		return fmt.Errorf("%v\nis refused: %s", p, out)
	}
	return showsAgain(p, out)
}

var withDigits = regexp.MustCompile(`\S*[0-9][^\s,)]*`)

// shape is a line without its spaces and without what has a digit in it.
func shape(line string) string {
	return strings.Join(strings.Fields(withDigits.ReplaceAllString(line, "#")), " ")
}

// showsAgain looks for each line that a session shows among those that came, but for
// its numbers.
func showsAgain(p printedLine, out string) error {
	came := map[string]bool{}
	for line := range strings.Lines(out) {
		came[shape(line)] = true
	}
	for _, line := range p.shown {
		if !came[shape(line)] {
			return fmt.Errorf("%v\nno longer prints a line like\n%s\nbut\n%s", p, line, out)
		}
	}
	return nil
}

// refused is how an answer of the service begins that does not do what was asked.
var refused = regexp.MustCompile(`^\s*\{"ok":\s*false`)

// programFolder returns a folder of programs in which blockdesk is what is tested.
func programFolder(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(programtest.Binary(t), filepath.Join(bin, "blockdesk"))); err != nil {
		t.Fatal(err)
	}
	return bin
}
