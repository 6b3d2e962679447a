package docs

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/service/operator"
)

const operatingDocument = "docs/operating.md"

var (
	commandRow = regexp.MustCompile("^\\| `blockdesk ([a-z-]+(?: [a-z][a-z-]*)?)[^`]*` \\| (.*) \\|$")
	flagSpan   = regexp.MustCompile("`(--[a-z][^`]*)`")
	// shortCommand is a command without the program's name.
	shortCommand = regexp.MustCompile("`((?:unlock|lock|money|ticket|price|inventory|token) [a-z-][^`]*)`")
	endpointRow  = regexp.MustCompile("^\\| `(GET|POST) (/desk/[^`]*)` \\|")
)

// TestOperatingNames: the options that a row of operating.md's tables names are the
// command's, and commands that stand without the program's name are commands.
func TestOperatingNames(t *testing.T) {
	t.Parallel()
	text, options, short := readTracked(t, operatingDocument), 0, 0
	for line := range strings.Lines(text) {
		if row := commandRow.FindStringSubmatch(strings.TrimSpace(line)); row != nil {
			for _, flag := range flagSpan.FindAllStringSubmatch(row[2], -1) {
				options++
				if err := programtest.KnownFlags(row[1] + " " + flag[1]); err != nil {
					t.Errorf("%s: %s: %s: %v", operatingDocument, row[1], flag[1], err)
				}
			}
		}
		for _, m := range shortCommand.FindAllStringSubmatch(line, -1) {
			short++
			if err := programtest.KnownFlags(m[1]); err != nil {
				t.Errorf("%s: %s: %v", operatingDocument, m[1], err)
			}
		}
	}
	if options < 10 || short < 8 {
		t.Errorf("only %d options and %d commands are checked", options, short)
	}
}

// callEndpoints sends a request to each endpoint that operating.md lists: a GET is answered
// with 200, and a POST without what it needs is refused by the endpoint itself.
func callEndpoints(t *testing.T, d *programtest.Service) {
	token, err := operator.LocalToken(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	for line := range strings.Lines(readTracked(t, operatingDocument)) {
		m := endpointRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.HasPrefix(m[2], "/desk/cluster") { // of a group: TestClusterRunbook
			continue
		}
		called++
		path := strings.NewReplacer("{order_id}", "T999", "{token_id}", "K18e997c54c02cd15", "{comp_id}", "NOBODY").Replace(m[2])
		req, err := http.NewRequestWithContext(t.Context(), m[1], d.At.Admin+path, strings.NewReader(`{"unknown_member":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		var answer struct{ Code string }
		if err != nil || json.Unmarshal(body, &answer) != nil {
			t.Errorf("%s %s: %d %.200s, %v", m[1], path, resp.StatusCode, body, err)
			continue
		}
		read := m[1] == http.MethodGet && resp.StatusCode == http.StatusOK
		refused := m[1] == http.MethodPost && (resp.StatusCode == http.StatusBadRequest || strings.HasPrefix(answer.Code, "UNKNOWN_") && answer.Code != "UNKNOWN_ROUTE")
		if !read && !refused {
			t.Errorf("%s %s: %d %.200s", m[1], path, resp.StatusCode, body)
		}
	}
	if called < 20 {
		t.Errorf("only %d endpoints are called", called)
	}
}
