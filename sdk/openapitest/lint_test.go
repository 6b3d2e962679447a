package openapitest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/internal/runtest"
)

// linterFolder is where npm's linter and its rules are.
var linterFolder = filepath.Join("..", "..", "internal", "clients", "openapi")

// TestLint: Redocly's linter finds no fault in the document, not even one to warn
// of, and finds those that are planted in a copy.
func TestLint(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		runtest.SkipMissing(t, "node", "apt-get install nodejs")
	}
	cli := filepath.Join(linterFolder, "node_modules", "@redocly", "cli", "bin", "cli.js")
	if _, err := os.Stat(cli); err != nil {
		runtest.SkipMissing(t, "Redocly's linter", "make lint-openapi")
	}
	text, err := os.ReadFile(filepath.Join("..", "openapi", "svc_public_api_v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	lint := func(name string, document []byte) (output string, faults bool) {
		t.Helper()
		file := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(file, document, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, cli, "lint", "--config", filepath.Join(linterFolder, "redocly.yaml"), "--format", "stylish", file)
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		out, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		return string(out), err != nil
	}
	if output, faults := lint("ours", text); faults || !strings.Contains(output, "is valid") || strings.Contains(output, "warning ") {
		t.Errorf("the document:\n%s", output)
	}

	planted := text
	rules := []string{}
	for _, fault := range []struct{ from, to, rule string }{
		{`"operationId": "getDepth"`, `"operationId": "getTicker"`, "operation-operationId-unique"},
		{`"#/components/schemas/Depth"`, `"#/components/schemas/Deep"`, "no-unresolved-refs"},
		{`"code": "MISSING_FIELD"`, `"code": "MISSED_FIELD"`, "no-invalid-media-type-examples"},
		{`"description": "Market data."`, `"x-planted": true`, "tag-description"},
		{`"X-Request-Id": {`, `"Request-Id": {`, "response-contains-header"},
	} {
		if !bytes.Contains(planted, []byte(fault.from)) {
			t.Errorf("no %s to plant a fault in", fault.from)
		}
		planted = bytes.Replace(planted, []byte(fault.from), []byte(fault.to), 1)
		rules = append(rules, fault.rule)
	}
	output, faults := lint("planted", planted)
	for _, rule := range rules {
		if !faults || !strings.Contains(output, rule) {
			t.Errorf("%s is not noticed:\n%s", rule, output)
		}
	}
}
