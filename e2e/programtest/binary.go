// Package programtest builds the program from this source tree, starts it and sends it
// requests; the end-to-end tests of all subjects share it.
//
// The first test process builds it and the others wait; it is built again when a file that
// it is made of has changed. Binary is the program as users have it; NodeBinary is
// cmd/blockdesk's test binary, whose disk and clock can have simulated faults (Faults),
// and which answers questions about the command tree. Ports are free ones that the system
// chooses. Every wait ends with runtest.HangTimeout, every child with its test.
package programtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"blockdesk/internal/runtest"
)

// Binary returns the path of the program, built from this source tree. If the test has
// the race detector, the program has it too.
func Binary(t testing.TB) string {
	t.Helper()
	return pathOf(t, program)
}

// NodeBinary returns the path of the program as cmd/blockdesk's own test binary. A
// process of it is the program if AsProgram is in its environment; if MachineFile is
// there too, its disk and clock have the faults in that file (see Faults).
func NodeBinary(t testing.TB) string {
	t.Helper()
	return pathOf(t, node)
}

// Variables of configuration keys that all programs of tests get, so that a disk that is nearly
// full of other things neither makes them read-only nor cuts their history, and so that many of
// them do not take room in reserve.
const (
	DiskLowPercent  = "BLOCKDESK_JOURNAL_DISK_LOW_PERCENT"
	diskShedPercent = "BLOCKDESK_JOURNAL_DISK_SHED_PERCENT"
	diskReserveMiB  = "BLOCKDESK_JOURNAL_DISK_RESERVE_MIB"
)

// DiskVariables returns these variables, which an older program may not know.
func DiskVariables() []string { return []string{DiskLowPercent, diskShedPercent, diskReserveMiB} }

func pathOf(t testing.TB, path func() (string, error)) string {
	t.Helper()
	if err := errors.Join(os.Setenv(DiskLowPercent, "1"), os.Setenv(diskShedPercent, "1"), os.Setenv(diskReserveMiB, "0")); err != nil {
		t.Fatal(err)
	}
	exe, err := path()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

var (
	program = sync.OnceValues(func() (string, error) {
		return binary{name: "blockdesk", build: []string{"build", "-buildvcs=false"}, list: []string{"list", "-deps"}}.path()
	})
	node = sync.OnceValues(func() (string, error) {
		return binary{name: "blockdesk.test", build: []string{"test", "-c"}, list: []string{"list", "-deps", "-test"}}.path()
	})
)

// binary is a program that test processes share: the first one builds it, and the others
// wait for it. It is built again when a file that it is made of has changed.
//
// The test process itself looks at all those files, so that go test runs a test again,
// and does not show a result that it remembers, when one of them changes.
type binary struct {
	name        string   // of its file
	list, build []string // of the go command: what it is made of, and how
}

// stamp is what a binary was built from.
type stamp struct {
	Files []string // source files and their folders
	Sum   string   // of their sizes and times
}

func (b binary) path() (exe string, err error) {
	root, err := sourceRoot()
	if err != nil {
		return "", err
	}
	// Not in the source tree: a demo would find the local chain's server from there.
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "blockdesk-e2e", strings.ReplaceAll(root, string(filepath.Separator), "-"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if runtest.RaceEnabled {
		b.name, b.build = b.name+"-race", append(slices.Clone(b.build), "-race")
	}
	exe = filepath.Join(dir, b.name)
	lock, err := os.OpenFile(exe+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	var was stamp
	if text, err := os.ReadFile(exe + ".json"); err == nil && json.Unmarshal(text, &was) == nil {
		if _, err := os.Stat(exe); err == nil && was.Sum == sumOf(was.Files) {
			return exe, nil
		}
	}
	files, err := b.sources(root)
	if err != nil {
		return "", err
	}
	now := stamp{Files: files, Sum: sumOf(files)} // before the build: what changes meanwhile is built next time
	if _, err := goCommand(root, append(slices.Clone(b.build), "-o", exe+".new", "./cmd/blockdesk")...); err != nil {
		return "", err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return "", err
	}
	return exe, errors.Join(os.Rename(exe+".new", exe), os.WriteFile(exe+".json", text, 0o644))
}

// sources lists the files of this module that the binary is made of, with their folders.
func (b binary) sources(root string) (files []string, err error) {
	out, err := goCommand(root, append(slices.Clone(b.list), "-json=Dir,Module,GoFiles,CgoFiles,SFiles,HFiles,CFiles,EmbedFiles", "./cmd/blockdesk")...)
	if err != nil {
		return nil, err
	}
	files = []string{filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")}
	// The program starts the local chain, which is no Go.
	err = filepath.WalkDir(filepath.Join(root, "internal", "sandbox"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules":
			files = append(files, filepath.Join(path, ".package-lock.json"))
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for packages := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                                                   string
			Module                                                struct{ Main bool }
			GoFiles, CgoFiles, SFiles, HFiles, CFiles, EmbedFiles []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if !p.Module.Main {
			continue
		}
		files = append(files, p.Dir)
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles, p.HFiles, p.CFiles, p.EmbedFiles) {
			if !filepath.IsAbs(name) { // that would be a test's main function, which go makes
				files = append(files, filepath.Join(p.Dir, name))
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// DependsOn makes go test run the test again, and show no remembered result, when a file
// below dir has changed. It is for files that other processes read.
func DependsOn(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == "__pycache__") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sumOf returns a hash of what the files look like from outside, and of the compiler.
func sumOf(files []string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), os.Getenv("GOFLAGS"))
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			fmt.Fprintln(sum, name, err)
			continue
		}
		fmt.Fprintln(sum, name, info.Size(), info.Mode(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func goCommand(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%v: %w\n%s", cmd.Args, err, exit.Stderr)
	}
	return out, err
}

// sourceRoot returns the folder of this source tree. A test may change its folder later.
var sourceRoot = sync.OnceValues(runtest.ModuleRoot)
