package main

import (
	"io"
	"log/slog"

	"blockdesk/service/config"
)

// newLogger returns a logger to w. Both formats escape line ends and control characters in
// values that clients have sent, so that a record stays one line.
func newLogger(c config.Log, w io.Writer) *slog.Logger {
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
