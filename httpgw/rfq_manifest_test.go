package httpgw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"blockdesk/catalog"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
)

// manifestShape are the members of the robot manifest in the order of spec 2.3,
// those of an object in parentheses.
const manifestShape = "ok schema name updated_at truth_rule active_rails rail_priority partial_fill_sizes_usd " +
	"read_endpoints(" +
	"public_mirror_8012(market_tickets current_sellable_ticket compact_book levels pairs rails) " +
	"registry_backend_8000(market_tickets current_sellable_ticket) " +
	"native_backend_1492(market_tickets current_sellable_ticket)) " +
	"claim_endpoints(preferred_modular_claim preferred_atomic_claim public_alias_modular_claim public_alias_atomic_claim) " +
	"signature_submission(primary_1492 public_alias_1492 fallback_8000) " +
	"required_fields examples(read_book read_levels build_claim verify_signature)"

// TestManifestShape: these members, in this order, and nothing else.
func TestManifestShape(t *testing.T) {
	p := pagesOf(t, showing(fixedView()), newDeskClock())
	if got := shapeOf(t, p.get(docManifest).body); got != manifestShape {
		t.Errorf("members\n%s\nwant\n%s", got, manifestShape)
	}
	var m struct {
		Schema    string
		UpdatedAt time.Time `json:"updated_at"`
		Fills     []string  `json:"partial_fill_sizes_usd"`
		Priority  []string  `json:"rail_priority"`
		Required  []string  `json:"required_fields"`
	}
	if err := json.Unmarshal(p.get(docManifest).body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Schema != "svc_rfq_robot_manifest_v1" || m.UpdatedAt.IsZero() ||
		fmt.Sprint(m.Fills) != "[250 1000 25000 250000 1000000 2500000]" || fmt.Sprint(m.Priority) != "[USDC SOL]" ||
		fmt.Sprint(m.Required) != "[order_id tranche_id ticket_label fill_usd payment_rail l1_signature]" {
		t.Errorf("manifest %+v", m)
	}
}

// shapeOf writes the names of an object's members in order.
func shapeOf(t *testing.T, object []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		text := name.(string)
		if value[0] == '{' {
			text += "(" + shapeOf(t, value) + ")"
		}
		names = append(names, text)
	}
	return strings.Join(names, " ")
}

// liveManifest reads the manifest of a running gateway.
func liveManifest(t *testing.T, g *Gateway) (m struct {
	Read     map[string]map[string]string `json:"read_endpoints"`
	Claim    map[string]string            `json:"claim_endpoints"`
	Submit   map[string]string            `json:"signature_submission"`
	Examples map[string]string
},
) {
	t.Helper()
	_, body := ask(t, g.BaseAddr(), "GET", "/api/v1/rfq/robot-manifest", "")
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestManifestURLsAnswer: on default URLs, what the manifest names is there.
func TestManifestURLsAnswer(t *testing.T) {
	g := startDesk(t, nil)
	m := liveManifest(t, g)
	client := &http.Client{Timeout: runtest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
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
		runtest.Missing(t, "curl", "apt-get install curl")
	}
	m := liveManifest(t, startDesk(t, nil))
	for name, command := range m.Examples {
		var said, complaint bytes.Buffer
		sh := exec.Command("sh", "-c", command)
		// No proxy and no ~/.curlrc of whoever runs the test.
		sh.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "NO_PROXY=*"}
		sh.Stdout, sh.Stderr = &said, &complaint
		if err := sh.Run(); err != nil || complaint.Len() > 0 {
			t.Errorf("%s: %s: %v: %s", name, command, err, complaint.Bytes())
			continue
		}
		var answer struct {
			OK   *bool
			Code string
		}
		if err := json.Unmarshal(said.Bytes(), &answer); err != nil || answer.OK == nil {
			t.Errorf("%s: %s answered %s", name, command, said.Bytes())
			continue
		}
		if read := strings.HasPrefix(name, "read_"); read && !*answer.OK {
			t.Errorf("%s: %s answered %s", name, command, said.Bytes())
		}
		switch answer.Code {
		case codeInvalidJSON, codeInvalidField, codeMissingField, codeUnsupportedMedia, codeMethodNotAllowed, codeUnknownRoute:
			t.Errorf("%s: %s is no right request: %s", name, command, said.Bytes())
		}
	}
}

// TestExampleIDs: the examples name what can be taken, or placeholders while
// nothing can.
func TestExampleIDs(t *testing.T) {
	for _, c := range []struct {
		view           *rfq.View
		order, tranche string
	}{
		{fixedView(), "T7", "T7-2"}, // its first tranche has less than the smallest fill
		{&rfq.View{}, "T1", "T1-1"},
	} {
		if order, tranche := exampleIDs(c.view); order != c.order || tranche != c.tranche {
			t.Errorf("%s %s, want %s %s", order, tranche, c.order, c.tranche)
		}
	}
	for text, size := range map[string]int{exampleWallet: 32, exampleSignature: 64} {
		raw, err := base58.Decode(text)
		if err != nil || len(raw) != size || base58.Encode(raw) != text {
			t.Errorf("%s: %d bytes, %v", text, len(raw), err)
		}
	}
}

// TestShellQuote: a shell gives back what was quoted.
func TestShellQuote(t *testing.T) {
	for _, text := range []string{"", "plain", "it's", `'; echo $HOME "x" \`, "a\nb", "https://x/?a=1&b=$(id)"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q came back as %q, %v", text, out, err)
		}
	}
}

// TestURLDefaults: the mirror and the native backend are the base address unless
// they have URLs of their own.
func TestURLDefaults(t *testing.T) {
	g := startDesk(t, func(o *Options) { o.URLs = catalog.URLs{Base: "https://desk.example/", Native: "https://native.example//"} })
	u := g.URLs()
	if u.Base != "https://desk.example" || u.Mirror != u.Base || u.Native != "https://native.example" || u.API != "http://"+g.APIAddr().String() {
		t.Errorf("URLs %+v", u)
	}
}

// TestDiscovery: the native surface comes first.
func TestDiscovery(t *testing.T) {
	p := pagesOf(t, showing(fixedView()), newDeskClock())
	var d struct {
		Submission struct {
			Priority []string
			Primary  string `json:"primary_1492"`
		} `json:"signature_submission"`
		Version string
	}
	if err := json.Unmarshal(p.get(docDiscovery).body, &d); err != nil {
		t.Fatal(err)
	}
	if d.Submission.Priority[0] != "primary_1492" || d.Version != "1.0.0" ||
		d.Submission.Primary != "https://native.example/rfq-native/settlement/verify-payment" {
		t.Errorf("discovery %+v", d)
	}
}
