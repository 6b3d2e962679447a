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
	options.ReplaceAttr = errorText
	return slog.New(slog.NewTextHandler(w, options))
}

// errorText makes an error its text. The text format would print the stack trace that some of
// Pebble's errors have, as the JSON format does not.
func errorText(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		a.Value = slog.StringValue(err.Error())
	}
	return a
}
