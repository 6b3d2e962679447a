package main

import (
	"context"
	"log/slog"
	"os/exec"
	"runtime"
)

// openInBrowser starts the desktop's program for web pages. A machine without one keeps
// serving: the address is printed.
func openInBrowser(ctx context.Context, url string, log *slog.Logger) {
	name, args := browserCommand(runtime.GOOS, url)
	if err := exec.CommandContext(ctx, name, args...).Start(); err != nil {
		log.Warn("cannot open a browser", "url", url, "error", err)
	}
}

// browserCommand returns the command that opens a URL on an operating system.
func browserCommand(system, url string) (name string, args []string) {
	switch system {
	case "darwin":
		return "open", []string{url}
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	return "xdg-open", []string{url}
}
