package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// With programtest.AsProgram in its environment the test's own binary is the program:
// what these tests start is main itself, and so is what programtest.NodeBinary builds.
func TestMain(m *testing.M) {
	if os.Getenv(programtest.AsCommandTree) != "" {
		if err := answerAboutCommands(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The workers of a fuzz test inherit the environment too.
	if os.Getenv(programtest.AsProgram) != "" && (len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "-test.")) {
		os.Exit(mainOn(testMachine()))
	}
	if err := os.Setenv(programtest.AsProgram, "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// The traders of these tests. AA and BB are firms; AA-2 is a second session of
// the first one.
const (
	traderA, traderA2, traderB = servicetest.FirmA, servicetest.FirmA2, servicetest.FirmB
	testPassword               = servicetest.Password
	testSymbol                 = "SLUSD/USDC"
	otherSymbol                = "92C/SLUSD"
)

// testConfig returns a configuration with two firms and without limits that
// would slow the tests down; more is YAML for its end.
func testConfig(t testing.TB, more string) string {
	t.Helper()
	return fmt.Sprintf(`fix:
  participants_file: %q
  messages_per_second: 100000
http:
  market_data_per_minute: 0
%s`, servicetest.Participants(t), more)
}

// participantsFile returns the path of the participants in a testConfig.
func participantsFile(config string) string { return strings.Split(config, `"`)[1] }

// startProgram runs the program as a child with this configuration. With the
// test it is told to stop, unless it is gone by then, and has to end cleanly.
func startProgram(t testing.TB, config string) *server.Server {
	t.Helper()
	exe := programtest.Binary(t)
	s, err := server.Start(context.Background(), exe, t.TempDir(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(errors.Join(err, s.Kill()))
		}
	})
	return s
}

// get returns the body of a URL that answers 200.
func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d: %.300s", url, resp.StatusCode, body)
	}
	return string(body)
}

// getJSON reads a URL's JSON into v.
func getJSON(t *testing.T, url string, v any) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(get(t, url))).Decode(v); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

// metric returns a figure of /metrics that has no labels.
func metric(t *testing.T, s *server.Server, name string) float64 {
	t.Helper()
	for line := range strings.Lines(get(t, s.Addresses.Admin+"/metrics")) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return value
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}
