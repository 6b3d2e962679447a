package reference

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"blockdesk/internal/runtest"
)

// TestFiles: every file that a page names exists, with a media type, and loads nothing
// from other sites.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string][]byte{}
	for _, f := range files {
		there[f.Name] = f.Body
		if f.Media == "" || len(f.Body) == 0 {
			t.Errorf("%s: %d bytes of %q", f.Name, len(f.Body), f.Media)
		}
	}
	for _, own := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllSubmatch(there[Page], -1) {
		name, mine := bytes.CutPrefix(own[1], []byte("/docs/"))
		if mine && there[string(name)] == nil {
			t.Errorf("no %s", name)
		}
		if !bytes.HasPrefix(own[1], []byte("/")) || bytes.HasPrefix(own[1], []byte("//")) {
			t.Errorf("%s is elsewhere", own[1])
		}
	}
	for _, elsewhere := range []string{"cdn.redoc.ly", "fonts.googleapis", "sourceMappingURL=redoc"} {
		for name, body := range there {
			if bytes.Contains(body, []byte(elsewhere)) {
				t.Errorf("%s names %s", name, elsewhere)
			}
		}
	}
}

// TestBuilt: dist/ is the build of the sources.
func TestBuilt(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		runtest.SkipMissing(t, "node", "apt-get install nodejs")
	}
	if _, err := os.Stat("node_modules/redoc"); err != nil {
		runtest.SkipMissing(t, "Redoc of npm", "npm --prefix httpgw/reference ci")
	}
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	if output, err := exec.CommandContext(ctx, node, "build.mjs", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadDir(out)
	if err != nil || len(made) != len(files) {
		t.Fatalf("%d files are made, %d are committed: %v", len(made), len(files), err)
	}
	for _, f := range files {
		if fresh, err := os.ReadFile(filepath.Join(out, f.Name)); err != nil || !bytes.Equal(fresh, f.Body) {
			t.Errorf("dist/%s is not what src/ makes: run make docs (%v)", f.Name, err)
		}
	}
}
