package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"blockdesk/fixgw/messagelog"
	"blockdesk/fixgw/wire"
	"blockdesk/sdk"
)

const (
	// fixDictionaryFile is the dictionary with our custom fields, in sdk.Files.
	fixDictionaryFile = "fix/FIX44-blockdesk.xml"
	// logPoll is the time between two reads of a followed log.
	logPoll = 200 * time.Millisecond
	// maxLogLine bounds a line of a message log, in bytes, well above the longest message
	// of the gateway with each byte escaped.
	maxLogLine = 8 << 20
)

// fixLogFlags select messages of a log.
type fixLogFlags struct {
	compID, since, types string
	follow, header       bool
}

func fixLogCommand(s *settings) *cobra.Command {
	var f fixLogFlags
	cmd := &cobra.Command{
		Use: "log [FILE|DIR]", Short: "Read the gateway's message log", Args: cobra.MaximumNArgs(1),
		Long: "Print the messages of the gateway's log (fix.message_log_dir) with the names of their fields. The\n" +
			"default of FILE or DIR is the configured folder.",
		Example: "  blockdesk fix log --comp-id GUEST --type D,8 --since 10m\n" +
			"  blockdesk fix log --follow var/fix-log",
		RunE: func(cmd *cobra.Command, args []string) error {
			path := append(args, "")[0]
			if path == "" {
				cfg, err := s.load()
				if err != nil {
					return err
				}
				if path = cfg.FIX.MessageLogDir; path == "" {
					return usagef("name a file or folder: fix.message_log_dir is not set")
				}
			}
			p, err := f.printer(cmd.OutOrStdout(), s.json, time.Now())
			if err != nil {
				return err
			}
			return p.run(cmd.Context(), path, f.follow)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.compID, "comp-id", "", "only this session's messages")
	flags.StringVar(&f.since, "since", "", "only messages since then: 10m, or 2026-01-02T15:04:05Z")
	flags.StringVar(&f.types, "type", "", "only these MsgTypes, e.g. D,8")
	flags.BoolVar(&f.follow, "follow", false, "wait for more messages")
	flags.BoolVar(&f.header, "header", false, "show the fields of header and trailer too")
	return cmd
}

// logPrinter prints entries of a message log.
type logPrinter struct {
	names  *wire.Names
	out    io.Writer
	json   bool
	header bool
	compID string
	since  time.Time
	types  []string // empty = all
}

func (f *fixLogFlags) printer(out io.Writer, asJSON bool, now time.Time) (*logPrinter, error) {
	dictionary, err := sdk.Files.ReadFile(fixDictionaryFile)
	if err != nil {
		return nil, err
	}
	p := &logPrinter{out: out, json: asJSON, header: f.header, compID: f.compID}
	if p.names, err = wire.ReadNames(dictionary); err != nil {
		return nil, err
	}
	if f.types != "" {
		p.types = strings.Split(f.types, ",")
	}
	if f.since == "" {
		return p, nil
	}
	if span, err := time.ParseDuration(f.since); err == nil {
		p.since = now.Add(-span)
		return p, nil
	}
	if p.since, err = time.Parse(time.RFC3339Nano, f.since); err != nil {
		return nil, fmt.Errorf("--since: %q is neither a duration such as 10m nor a time such as 2026-01-02T15:04:05Z", f.since)
	}
	return p, nil
}

// run prints a file, or all files of a folder, and with follow later messages too.
func (p *logPrinter) run(ctx context.Context, path string, follow bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	list := func() ([]string, error) { return []string{path}, nil }
	if info.IsDir() {
		list = func() ([]string, error) { return messagelog.Files(path) }
	}
	var done []string
	for {
		files, err := list()
		if err != nil {
			return err
		}
		files = slices.DeleteFunc(files, func(f string) bool { return slices.Contains(done, f) })
		for i, file := range files {
			// The newest file may grow until there is another one.
			grows := func() (bool, error) {
				if !follow || i < len(files)-1 {
					return false, nil
				}
				now, err := list()
				return err == nil && (len(now) == 0 || now[len(now)-1] == file), err
			}
			if err := p.file(ctx, file, grows); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		done = append(done, files...)
		done = done[max(0, len(done)-maxFollowed):]
		if !pauseLog(ctx) {
			return nil
		}
	}
}

// maxFollowed bounds the remembered names of read files: more than a folder may have.
const maxFollowed = 20_000

// pauseLog waits until the next read; false = ctx has ended.
func pauseLog(ctx context.Context) bool {
	select {
	case <-time.After(logPoll):
		return true
	case <-ctx.Done():
		return false
	}
}

// file prints the lines of a file, and those that are added while it grows. An incomplete
// last line is omitted: it is still being written, or was interrupted.
func (p *logPrinter) file(ctx context.Context, path string, grows func() (bool, error)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	var line []byte
	last := false // the file does not grow: this read is the last
	for number := 1; ; {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			if err := p.line(strings.TrimSuffix(string(line), "\n")); err != nil {
				return fmt.Errorf("%s:%d: %w", path, number, err)
			}
			line = line[:0]
			number++
		case len(line) > maxLogLine:
			return fmt.Errorf("%s:%d: a line of more than %d bytes", path, number, maxLogLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return err
		case last:
			return nil
		default:
			more, err := grows()
			if err != nil {
				return err
			}
			if last = !more; more && !pauseLog(ctx) {
				return nil
			}
		}
	}
}

// line prints one line if it matches.
func (p *logPrinter) line(text string) error {
	e, err := wire.ParseLogLine(text)
	if err != nil {
		return err
	}
	if e.At.Before(p.since) {
		return nil
	}
	if e.Lost > 0 {
		return p.lost(&e)
	}
	if p.compID != "" && e.CompID != p.compID || len(p.types) > 0 && !slices.Contains(p.types, e.Get(35)) {
		return nil
	}
	if p.json {
		return p.object(&e)
	}
	var b strings.Builder
	way := "in "
	if e.Out {
		way = "out"
	}
	msgType := e.Get(35)
	fmt.Fprintf(&b, "%s %s %s #%s %s (%s)", e.At.Format("2006-01-02 15:04:05.000000"), way, e.CompID, e.Get(34), p.names.Message(msgType), msgType)
	for _, f := range e.Fields {
		if p.header || !headerTag(f.Tag) {
			b.WriteString(" " + p.field(f))
		}
	}
	_, err = fmt.Fprintln(p.out, b.String())
	return err
}

// field returns a field with its name and the name of its value.
func (p *logPrinter) field(f wire.LogField) string {
	if f.Tag == 0 {
		return f.Value
	}
	name := p.names.Field(f.Tag)
	if name == "" {
		name = strconv.Itoa(f.Tag)
	}
	value := f.Value
	if strings.ContainsAny(value, " \"=") || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		value = strconv.QuoteToASCII(value)
	}
	if word := p.names.Value(f.Tag, f.Value); word != "" {
		value += "(" + word + ")"
	}
	return name + "=" + value
}

// headerTag reports whether a field belongs to the standard header or trailer.
func headerTag(tag int) bool {
	switch tag {
	case 8, 9, 35, 49, 56, 34, 52, 10:
		return true
	}
	return false
}

func (p *logPrinter) lost(e *wire.LogEntry) error {
	if p.json {
		return json.NewEncoder(p.out).Encode(map[string]any{"time": e.At, "lost": e.Lost})
	}
	_, err := fmt.Fprintf(p.out, "%s %d messages are missing here: the log's queue was full\n", e.At.Format("2006-01-02 15:04:05.000000"), e.Lost)
	return err
}

// logObject is a message as JSON.
type logObject struct {
	Time    time.Time  `json:"time"`
	Sent    bool       `json:"sent"` // by the gateway
	CompID  string     `json:"comp_id"`
	MsgType string     `json:"msg_type"`
	Message string     `json:"message"`
	Fields  []logValue `json:"fields"`
}

type logValue struct {
	Tag   int    `json:"tag"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

func (p *logPrinter) object(e *wire.LogEntry) error {
	o := logObject{Time: e.At, Sent: e.Out, CompID: e.CompID, MsgType: e.Get(35), Message: p.names.Message(e.Get(35))}
	for _, f := range e.Fields {
		o.Fields = append(o.Fields, logValue{f.Tag, p.names.Field(f.Tag), f.Value})
	}
	return json.NewEncoder(p.out).Encode(o)
}
