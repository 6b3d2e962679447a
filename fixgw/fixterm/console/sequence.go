package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// SequenceFile is the fixclient.Numbers of a file: two lines of fixed width, written in
// place. The file is not synced: after a crash of the machine its numbers may be too
// low, which the gateway refuses, and the session must be reset.
type SequenceFile struct {
	file           *os.File
	Sender, Target int // next numbers when the file was opened; 1 = new
}

// Lines of a sequence file: "sender 0000000001".
const (
	sequenceLine  = "%s %010d\n"
	sequenceWidth = len("sender 0000000001\n")
)

// OpenSequenceFile opens path; if it is empty, a file named after the session in the
// user's configuration folder. The file stays open until the program ends.
func OpenSequenceFile(path, sender, target, address string) (*SequenceFile, error) {
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return nil, fmt.Errorf("no default folder for the sequence numbers: set --sequence-file: %w", err)
		}
		dir = filepath.Join(dir, "blockdesk")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("sequence numbers: %w", err)
		}
		name := strings.NewReplacer(":", "_", "/", "_", "[", "", "]", "").Replace(fmt.Sprintf("fix-%s-%s-%s.seq", sender, target, address))
		path = filepath.Join(dir, name)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sequence numbers: %w", err)
	}
	s := &SequenceFile{file: file, Sender: 1, Target: 1}
	text, err := io.ReadAll(io.LimitReader(file, int64(2*sequenceWidth)+1))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sequence numbers: %w", err), file.Close())
	}
	if len(text) == 0 {
		return s, errors.Join(s.SetSender(1), s.SetTarget(1))
	}
	n, err := fmt.Sscanf(string(text), "sender %d\ntarget %d\n", &s.Sender, &s.Target)
	if err != nil || n != 2 || s.Sender < 1 || s.Target < 1 || !bytes.HasSuffix(text, []byte("\n")) {
		return nil, errors.Join(fmt.Errorf("sequence numbers: %s has no sequence numbers: remove it and start with --reset", path), file.Close())
	}
	return s, nil
}

// SetSender implements fixclient.Numbers.
func (s *SequenceFile) SetSender(next int) error {
	_, err := s.file.WriteAt(fmt.Appendf(nil, sequenceLine, "sender", next), 0)
	return err
}

// SetTarget implements fixclient.Numbers.
func (s *SequenceFile) SetTarget(next int) error {
	_, err := s.file.WriteAt(fmt.Appendf(nil, sequenceLine, "target", next), int64(sequenceWidth))
	return err
}
