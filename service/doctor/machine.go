package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"blockdesk/persist"
	"blockdesk/service/config"
)

// Limits of the checks, our choice.
const (
	maxClockError = 100 * time.Millisecond
	syncs         = 32
	syncBytes     = 4 << 10
	slowSync      = 10 * time.Millisecond
	stalledSync   = 200 * time.Millisecond
	// spareFiles is for the stores, the journal and the logs.
	spareFiles = 1024
)

func configuration(o Options) Finding {
	f := Finding{Check: "configuration", State: OK, Text: "valid, and its files can be read"}
	if o.Check == nil {
		return Finding{Check: f.Check, State: Skipped, Text: "not checked"}
	}
	if err := o.Check(o.Config); err != nil {
		f.State, f.Text, f.Do = Problem, err.Error(), "correct it; serve refuses it too"
	}
	return f
}

// placeholders finds mints that no chain has.
func placeholders(c *config.Config) Finding {
	f := Finding{Check: "mints", State: OK, Text: "configured"}
	switch keys := c.Placeholders(); {
	case !c.RFQ.Enabled:
		f.State, f.Text = Skipped, "the desk is off (rfq.enabled)"
	case len(keys) > 0:
		f.State, f.Text, f.Do = Warning, "placeholders: "+strings.Join(keys, ", "), "set the mints that the desk sells and is paid in"
		if c.Settles() && !c.Demo {
			f.State = Problem
		}
	}
	return f
}

// clockState is what the kernel knows of the clock.
type clockState struct {
	synchronised bool
	maxError     time.Duration
	err          error // the kernel cannot say
}

func clock(s clockState) Finding {
	f := Finding{Check: "clock", State: OK, Text: fmt.Sprintf("synchronised, off by %v at most", s.maxError.Round(time.Millisecond))}
	const run = "run chrony or systemd-timesyncd: expiries, quotes and settlement go by this clock"
	switch {
	case s.err != nil:
		f.State, f.Text = Skipped, s.err.Error()
	case !s.synchronised:
		f.State, f.Text, f.Do = Warning, "the kernel says that it is not synchronised", run
	case s.maxError > maxClockError:
		f.State, f.Text, f.Do = Warning, fmt.Sprintf("it may be off by %v", s.maxError.Round(time.Millisecond)), run
	}
	return f
}

// disk measures the free space and the time of a sync in the data folder.
func disk(c *config.Config) []Finding {
	space := Finding{Check: "disk space", State: OK}
	free, err := persist.FreePercent(c.DataDir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		space.State, space.Text = Skipped, c.DataDir+" does not exist yet"
		return []Finding{space}
	case err != nil:
		space.State, space.Text = Problem, err.Error()
	default:
		space = judgeSpace(free, c.Journal.DiskLowPercent, c.Journal.DiskShedPercent)
	}
	times, err := syncTimes(c.DataDir)
	if err != nil {
		return []Finding{space, {Check: "disk sync", State: Problem, Text: err.Error(), Do: "the service's user must be able to write to the data folder"}}
	}
	return []Finding{space, judgeSync(times, c.Durability.Mode)}
}

func judgeSpace(free, low, shed int) Finding {
	f := Finding{Check: "disk space", State: OK, Text: fmt.Sprintf("%d %% free", free)}
	const do = "free some space, or move the data folder"
	switch {
	case free < low:
		f.State, f.Do = Problem, do
		f.Text += fmt.Sprintf(", below journal.disk_low_percent (%d): only cancels are admitted", low)
	case free < shed:
		f.State, f.Do = Warning, do
		f.Text += fmt.Sprintf(", below journal.disk_shed_percent (%d): old market data is deleted; below %d %% only cancels are admitted", shed, low)
	}
	return f
}

// syncTimes writes and syncs a scratch file in a folder, and returns how long each took.
func syncTimes(dir string) (times []time.Duration, err error) {
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	block := make([]byte, syncBytes)
	for i := range int64(syncs) {
		began := time.Now()
		if _, err := file.WriteAt(block, i*syncBytes); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, nil
}

// judgeSync judges sorted times.
func judgeSync(times []time.Duration, mode string) Finding {
	middle, worst := times[len(times)/2], times[len(times)-1]
	f := Finding{
		Check: "disk sync", State: OK,
		Text: fmt.Sprintf("median %v, worst %v, of %d writes", middle.Round(time.Microsecond), worst.Round(time.Microsecond), len(times)),
	}
	if middle > slowSync || worst > stalledSync {
		f.State = Warning
		f.Do = "put the data folder on an SSD with power-loss protection that nothing else writes to"
		if mode == "sync" {
			f.Do += "; in mode sync each order waits for it"
		}
	}
	return f
}

// files compares the limit of open files with what the connections may need.
func files(c *config.Config) Finding {
	limit, err := openFileLimit()
	if err != nil {
		return Finding{Check: "open files", State: Skipped, Text: err.Error()}
	}
	return judgeFiles(limit, uint64(c.Feed.MaxConnections+c.FIX.MaxSessions+spareFiles))
}

func judgeFiles(limit, need uint64) Finding {
	f := Finding{Check: "open files", State: OK, Text: fmt.Sprintf("limit %d, up to %d needed", limit, need)}
	if limit < need {
		f.State = Warning
		f.Do = fmt.Sprintf("raise it (ulimit -n %d, LimitNOFILE=%d), or lower feed.max_connections and fix.max_sessions", need, need)
	}
	return f
}
