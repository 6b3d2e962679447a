package operate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// TestDiskLevels: what a service does while its disk is short of space. The limits move, not
// the disk: any free share lies between 1 and 99 %.
func TestDiskLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, level   string
		limits        []string
		ready         bool
		order, backup string // what refuses them
	}{
		{"shed", "2", []string{"journal.disk_shed_percent=99"}, true, "", ""},
		{"low", "3", []string{"journal.disk_low_percent=99", "journal.disk_critical_percent=1"}, false, "READ_ONLY", ""},
		{"critical", "4", []string{"journal.disk_low_percent=99", "journal.disk_critical_percent=99"}, false, "READ_ONLY", "journal.disk_critical_percent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "desk.yaml")
			if err := os.WriteFile(config, []byte(programtest.Config(t, programtest.DeskConfig)), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--config", config}
			for _, limit := range c.limits {
				args = append(args, "--set", limit)
			}
			d := programtest.StartServe(t, t.TempDir(), args...)
			metrics := func() string { return programtest.Answered(d.At.Admin + "/metrics") }
			await.True(t, "the level "+c.level, func() bool { return strings.Contains(metrics(), "blockdesk_disk_level "+c.level+"\n") })
			if got := programtest.Answered(d.At.Admin + "/readyz"); strings.HasPrefix(got, "200") != c.ready {
				t.Errorf("ready: %s", got)
			}
			run := func(refusal string, args ...string) {
				t.Helper()
				out, err := programtest.Run(t, "", nil, append(args, "--data", d.Data)...)
				if refused := err != nil; refused != (refusal != "") || !strings.Contains(out, refusal) {
					t.Errorf("blockdesk %s: %v\n%s\nwant the refusal %q", strings.Join(args, " "), err, out, refusal)
				}
			}
			run(c.order, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block", "--tranches", "1000000")
			run(c.backup, "backup", filepath.Join(t.TempDir(), "copy"))
		})
	}
}
