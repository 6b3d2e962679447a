package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"blockdesk/bench/yardstick"
)

// Fdatasyncs measures one 4 KB append with fdatasync on a prewritten file, in a
// tight loop or perSecond times a second.
func Fdatasyncs(ctx context.Context, r *Report, dir string, window time.Duration, perSecond int) (s *Series, err error) {
	path := filepath.Join(dir, "fdatasync")
	file, err := yardstick.NewFile(path, 64<<20)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	hist := NewHistogram()
	record := make([]byte, 4092)
	one := func(int) error {
		start := time.Now()
		if err := file.Append(record); err != nil {
			return err
		}
		return hist.RecordValue(int64(time.Since(start)))
	}
	name := "one fdatasync of 4 KB, tight loop"
	if perSecond > 0 {
		name = fmt.Sprintf("one fdatasync of 4 KB, at %d/s", perSecond)
	}
	s, err = r.Measure(name, 0, hist, func() error {
		if perSecond > 0 {
			return OpenLoop(ctx, time.Now(), int(window.Seconds()*float64(perSecond)), perSecond, one)
		}
		for end := time.Now().Add(window); time.Now().Before(end) && ctx.Err() == nil; {
			if err := one(0); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	s.Ops = hist.TotalCount()
	s.Summary, s.Offered = Summarize(hist), float64(perSecond)
	return s, err
}
