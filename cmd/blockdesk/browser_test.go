package main

import "testing"

func TestBrowserCommand(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:8080/board"
	for system, want := range map[string]string{"linux": "xdg-open", "freebsd": "xdg-open", "darwin": "open", "windows": "rundll32"} {
		name, args := browserCommand(system, url)
		if name != want || args[len(args)-1] != url {
			t.Errorf("%s: %s %q", system, name, args)
		}
	}
}
