package httpgw

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/runtest"
)

// liveManifest reads the manifest of a running gateway.
func liveManifest(t *testing.T, g *Gateway) (m struct {
	Read     map[string]map[string]string `json:"read_endpoints"`
	Claim    map[string]string            `json:"claim_endpoints"`
	Submit   map[string]string            `json:"signature_submission"`
	Examples map[string]string
},
) {
	t.Helper()
	_, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/rfq/robot-manifest", "")
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManifestURLsAnswer: on default URLs, every URL of the manifest answers.
func TestManifestURLsAnswer(t *testing.T) {
	g := startDesk(t, nil)
	m := liveManifest(t, g)
	client := &http.Client{Timeout: runtest.HangTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	n := 0
	for in, urls := range m.Read {
		for name, url := range urls {
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if n++; resp.StatusCode != 200 {
				t.Errorf("%s %s: %s: status %d", in, name, url, resp.StatusCode)
			}
		}
	}
	if n != 10 || len(m.Claim) != 4 || len(m.Submit) != 3 {
		t.Errorf("%d reads, %d claims, %d submissions", n, len(m.Claim), len(m.Submit))
	}
}

// TestExamplesRun runs the manifest's command lines as they are printed.
func TestExamplesRun(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		runtest.SkipMissing(t, "curl", "apt-get install curl")
	}
	m := liveManifest(t, startDesk(t, nil))
	for name, command := range m.Examples {
		var output, complaint bytes.Buffer
		sh := exec.Command("sh", "-c", command)
		// No proxy and no ~/.curlrc of the user.
		sh.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "NO_PROXY=*"}
		sh.Stdout, sh.Stderr = &output, &complaint
		if err := sh.Run(); err != nil || complaint.Len() > 0 {
			t.Errorf("%s: %s: %v: %s", name, command, err, complaint.Bytes())
			continue
		}
		var answer struct {
			OK   *bool
			Code string
		}
		if err := json.Unmarshal(output.Bytes(), &answer); err != nil || answer.OK == nil {
			t.Errorf("%s: %s answered %s", name, command, output.Bytes())
			continue
		}
		if read := strings.HasPrefix(name, "read_"); read && !*answer.OK {
			t.Errorf("%s: %s answered %s", name, command, output.Bytes())
		}
		if name == "build_claim" {
			// Its wallet is a placeholder, so that the example reserves nothing.
			if answer.Code != wire.CodeInvalidField || !strings.Contains(output.String(), `"field":"bot_wallet"`) {
				t.Errorf("%s: %s answered %s", name, command, output.Bytes())
			}
			continue
		}
		switch answer.Code {
		case wire.CodeInvalidJSON, wire.CodeInvalidField, wire.CodeMissingField, wire.CodeUnsupportedMedia, wire.CodeMethodNotAllowed, wire.CodeUnknownRoute:
			t.Errorf("%s: %s is no right request: %s", name, command, output.Bytes())
		}
	}
}

// TestURLDefaults: the mirror and the native backend default to the base address.
func TestURLDefaults(t *testing.T) {
	g := startDesk(t, func(o *Options) {
		o.URLs = catalog.URLs{Base: "https://desk.example/", Native: "https://native.example//"}
	})
	u := g.URLs()
	if u.Base != "https://desk.example" || u.Mirror != u.Base || u.Native != "https://native.example" || u.API != "http://"+g.APIAddr().String() {
		t.Errorf("URLs %+v", u)
	}
}
