package rfq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
)

// TestExampleIDs: the examples name a tranche that is for sale, or placeholders.
func TestExampleIDs(t *testing.T) {
	for _, c := range []struct {
		ticket         *rfq.Ticket
		order, tranche string
	}{
		{gatewaytest.FixedView().Tickets[0], "T7", "T7-2"}, // its first tranche has less than the smallest fill
		{nil, "T1", "T1-1"},
	} {
		if order, tranche := exampleIDs(c.ticket); order != c.order || tranche != c.tranche {
			t.Errorf("%s %s, want %s %s", order, tranche, c.order, c.tranche)
		}
	}
	raw, err := base58.Decode(exampleSignature)
	if err != nil || len(raw) != 64 || base58.Encode(raw) != exampleSignature {
		t.Errorf("%s: %d bytes, %v", exampleSignature, len(raw), err)
	}
	if _, err := base58.Decode(exampleWallet); err == nil {
		t.Errorf("a claim for the wallet %s reserves capacity", exampleWallet)
	}
}

// TestShellQuote: a shell returns the quoted text unchanged.
func TestShellQuote(t *testing.T) {
	for _, text := range []string{"", "plain", "it's", `'; echo $HOME "x" \`, "a\nb", "https://x/?a=1&b=$(id)"} {
		out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q came back as %q, %v", text, out, err)
		}
	}
}

// manifestShape has the members of the robot manifest in the order of
// docs/specification.md 2.3, with those of an object in parentheses.
const manifestShape = "ok schema name updated_at truth_rule active_rails rail_priority partial_fill_sizes_usd " +
	"read_endpoints(" +
	"public_mirror_8012(market_tickets current_sellable_ticket compact_book levels pairs rails) " +
	"registry_backend_8000(market_tickets current_sellable_ticket) " +
	"native_backend_1492(market_tickets current_sellable_ticket)) " +
	"claim_endpoints(preferred_modular_claim preferred_atomic_claim public_alias_modular_claim public_alias_atomic_claim) " +
	"signature_submission(primary_1492 public_alias_1492 fallback_8000) " +
	"required_fields examples(read_book read_levels build_claim verify_signature)"

// TestManifestShape: exactly these members, in this order.
func TestManifestShape(t *testing.T) {
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
	if got := shapeOf(t, p.get(docManifest).Body); got != manifestShape {
		t.Errorf("members\n%s\nwant\n%s", got, manifestShape)
	}
	var m struct {
		Schema    string
		UpdatedAt time.Time `json:"updated_at"`
		Fills     []string  `json:"partial_fill_sizes_usd"`
		Priority  []string  `json:"rail_priority"`
		Required  []string  `json:"required_fields"`
	}
	if err := json.Unmarshal(p.get(docManifest).Body, &m); err != nil {
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

// TestDiscovery: the native surface comes first.
func TestDiscovery(t *testing.T) {
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
	var d struct {
		Submission struct {
			Priority []string
			Primary  string `json:"primary_1492"`
		} `json:"signature_submission"`
		Version string
	}
	if err := json.Unmarshal(p.get(docDiscovery).Body, &d); err != nil {
		t.Fatal(err)
	}
	if d.Submission.Priority[0] != "primary_1492" || d.Version != "1.0.0" ||
		d.Submission.Primary != "https://native.example/rfq-native/settlement/verify-payment" {
		t.Errorf("discovery %+v", d)
	}
}
