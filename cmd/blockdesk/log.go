package main

import (
	"io"
	"log/slog"
)

// LogConfig says what goes to standard error, and how.
type LogConfig struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text: key=value; json: an object a line
}

// logger writes to w. Both formats escape what strangers have sent, line ends and
// control characters among it, so that one record stays one line.
func (c LogConfig) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(c.Level)) != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
