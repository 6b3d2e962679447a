package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Host is the state of the machine at one moment. Figures of two runs are comparable only
// if it was the same for both.
type Host struct {
	// Load is the load average of the last minute; 0 where the system does not say.
	Load float64 `json:"load_1m"`
	// Loop is how long a fixed loop took that needs no memory: more than at another time
	// means that the processor is slower or shared.
	Loop time.Duration `json:"loop_ns"`
}

// hostLoop is the length of the fixed loop, about 2 ms.
const hostLoop = 1 << 21

// paceShare is how much longer the loop may take at the end than at the beginning, or the
// other way around.
const paceShare = 1.25

// ReadHost measures the host for some milliseconds.
func ReadHost() Host {
	h := Host{Loop: time.Hour}
	for range 3 { // the shortest was disturbed least
		start, x := time.Now(), uint64(loopSeed)
		for range hostLoop {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		if x == 0 {
			panic("a xorshift never returns to 0")
		}
		h.Loop = min(h.Loop, time.Since(start))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		h.Load, _ = strconv.ParseFloat(first, 64) // 0 if it is something else
	}
	return h
}

// loopSeed is the first value of the loop.
const loopSeed = 88172645463325252

// hostNotes describe the host before and after a run.
func hostNotes(hosts []Host) []string {
	if len(hosts) != 2 {
		return nil
	}
	a, b := hosts[0], hosts[1]
	list := []string{fmt.Sprintf("host: load %.1f before, %.1f after; a fixed loop took %.2f ms before, %.2f ms after",
		a.Load, b.Load, a.Loop.Seconds()*1e3, b.Loop.Seconds()*1e3)}
	if max(a.Loop, b.Loop) > time.Duration(paceShare*float64(min(a.Loop, b.Loop))) {
		list = append(list, "host: ITS PACE CHANGED during the run: trust ratios of series that ran in turn, and CPU before time")
	}
	return list
}
