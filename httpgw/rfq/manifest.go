package rfq

import (
	"strings"

	"blockdesk/catalog"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Placeholders of the examples. The signature is well formed and made up. The wallet is
// refused, because a claim of a pasted example would reserve capacity for nobody.
const (
	exampleTicket    market.TicketID  = 1
	exampleTranche   market.TrancheID = 1
	exampleWallet                     = "YOUR_WALLET_ADDRESS"
	exampleSignature                  = "EXAMPLEpaymentSignature1111111111111111111111111111111111111111111111111111111111111111"
)

// manifestDocument is the robot manifest: exactly these members in this order
// (docs/specification.md 2.3).
type manifestDocument struct {
	OK         bool            `json:"ok"`
	Schema     string          `json:"schema"`
	Name       string          `json:"name"`
	UpdatedAt  wire.Time       `json:"updated_at"`
	TruthRule  string          `json:"truth_rule"`
	Active     wire.Rails      `json:"active_rails"`
	Priority   wire.Rails      `json:"rail_priority"`
	Fills      []string        `json:"partial_fill_sizes_usd"`
	Read       readEndpoints   `json:"read_endpoints"`
	Claim      claimEndpoints  `json:"claim_endpoints"`
	Submission submissionURLs  `json:"signature_submission"`
	Required   []string        `json:"required_fields"`
	Examples   exampleCommands `json:"examples"`
}

type readEndpoints struct {
	Mirror   mirrorURLs `json:"public_mirror_8012"`
	Registry bookURLs   `json:"registry_backend_8000"`
	Native   bookURLs   `json:"native_backend_1492"`
}

type mirrorURLs struct {
	bookURLs
	Compact string `json:"compact_book"`
	Levels  string `json:"levels"`
	Pairs   string `json:"pairs"`
	Rails   string `json:"rails"`
}

type bookURLs struct {
	Tickets  string `json:"market_tickets"`
	Sellable string `json:"current_sellable_ticket"`
}

type claimEndpoints struct {
	Modular      string `json:"preferred_modular_claim"`
	Atomic       string `json:"preferred_atomic_claim"`
	AliasModular string `json:"public_alias_modular_claim"`
	AliasAtomic  string `json:"public_alias_atomic_claim"`
}

type submissionURLs struct {
	Primary  string `json:"primary_1492"`
	Alias    string `json:"public_alias_1492"`
	Fallback string `json:"fallback_8000"`
}

type dvpURLs struct {
	Handshake string `json:"handshake"`
	Build     string `json:"build"`
	Submit    string `json:"submit"`
	Builds    string `json:"build_state"`
}

// exampleCommands are command lines for a POSIX shell.
type exampleCommands struct {
	ReadBook        string `json:"read_book"`
	ReadLevels      string `json:"read_levels"`
	BuildClaim      string `json:"build_claim"`
	VerifySignature string `json:"verify_signature"`
}

func (p *pages) manifest(e *snapshot) manifestDocument {
	urls := p.urls
	d := manifestDocument{
		OK: true, Schema: "svc_rfq_robot_manifest_v1", Name: p.about.Service + " RFQ robot manifest",
		UpdatedAt: p.updatedAt(e.view), TruthRule: truthRule,
		Active: activeRails(e.view), Priority: wire.Rails(market.AllRails), Fills: fillSizes(),
		Read: readURLs(&urls), Claim: claimURLs(&urls), Submission: submitURLs(&urls),
		Required: []string{"order_id", "tranche_id", "ticket_label", "fill_usd", "payment_rail", "l1_signature"},
	}
	order, tranche := exampleIDs(e.sellable)
	d.Examples = exampleCommands{
		ReadBook:        curl(d.Read.Mirror.Tickets, nil),
		ReadLevels:      curl(d.Read.Mirror.Levels, nil),
		BuildClaim:      curl(d.Claim.Modular, claimExample{exampleWallet, order, tranche, market.FillUSD(1).String()}),
		VerifySignature: curl(d.Submission.Primary, verifyExample{order, tranche, exampleSignature}),
	}
	return d
}

func readURLs(u *catalog.URLs) readEndpoints {
	return readEndpoints{
		Mirror: mirrorURLs{
			bookURLs: bookURLs{u.Mirror + PathTickets, u.Mirror + PathSellable},
			Compact:  u.Mirror + PathCompact, Levels: u.Mirror + pathLevels,
			Pairs: u.Mirror + PathPairs, Rails: u.Mirror + pathRails,
		},
		Registry: bookURLs{u.API + PathTickets, u.API + PathSellable},
		Native:   bookURLs{u.Native + pathNativeTickets, u.Native + pathNativeSellable},
	}
}

func claimURLs(u *catalog.URLs) claimEndpoints {
	return claimEndpoints{
		Modular: u.Native + PathNativeModular, Atomic: u.Native + PathNativeAtomic,
		AliasModular: u.Base + PathModular, AliasAtomic: u.Base + PathAtomic,
	}
}

func submitURLs(u *catalog.URLs) submissionURLs {
	return submissionURLs{
		Primary: u.Native + PathNativeVerify, Alias: u.Base + PathAliasVerify, Fallback: u.API + PathFallbackVerify,
	}
}

type claimExample struct {
	Wallet  string `json:"bot_wallet"`
	Order   string `json:"order_id"`
	Tranche string `json:"tranche_id"`
	Fill    string `json:"fill_usd"`
}

type verifyExample struct {
	Order     string `json:"order_id"`
	Tranche   string `json:"tranche_id"`
	Signature string `json:"l1_signature"`
}

// exampleIDs returns the ids of the first tranche that the current sellable ticket can
// sell, or placeholders if nothing is for sale.
func exampleIDs(t *rfq.Ticket) (order, tranche string) {
	ticket, number := exampleTicket, exampleTranche
	if t != nil {
		ticket = t.ID
		for i := range t.Tranches {
			if sellable(&t.Tranches[i]) {
				number = t.Tranches[i].ID
				break
			}
		}
	}
	return string(market.AppendTicketID(nil, ticket)), string(market.AppendTrancheID(nil, ticket, number))
}

// curl returns a command line that gets a URL, or posts body to it.
func curl(url string, body any) string {
	line := "curl -sS " + shellQuote(url)
	if body == nil {
		return line
	}
	return line + " -H 'Content-Type: application/json' -d " + shellQuote(string(wire.Encode(body)))
}

// shellQuote quotes a word for a POSIX shell.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// discoveryDocument is /.well-known/svc-rfq.json: all URLs, and the order in which to
// submit a signature to the surfaces. Its shape is our choice.
type discoveryDocument struct {
	OK            bool           `json:"ok"`
	Schema        string         `json:"schema"`
	Name          string         `json:"name"`
	Version       string         `json:"version"`
	UpdatedAt     wire.Time      `json:"updated_at"`
	Service       string         `json:"service"`
	Specification string         `json:"specification"`
	Manifest      string         `json:"robot_manifest"`
	Status        string         `json:"status"`
	Board         string         `json:"board"`
	DeskStatus    string         `json:"desk_status"`
	TruthRule     string         `json:"truth_rule"`
	Surfaces      surfacesJSON   `json:"surfaces"`
	Read          readEndpoints  `json:"read_endpoints"`
	Claim         claimEndpoints `json:"claim_endpoints"`
	Submission    struct {
		Priority []string `json:"priority"` // names of the members below, in order
		submissionURLs
	} `json:"signature_submission"`
	DvP       dvpURLs    `json:"dvp"`
	Priority  wire.Rails `json:"rail_priority"`
	Fills     []string   `json:"partial_fill_sizes_usd"`
	Network   string     `json:"execution_network"`
	ChainID   int        `json:"control_chain_id"`
	ChainRole string     `json:"control_chain_role"`
	ChainRPC  bool       `json:"control_chain_rpc_compatible"`
}

// discovery returns the discovery document, which depends only on the configuration and the
// network.
func (p *pages) discovery(e *snapshot) discoveryDocument {
	urls := p.urls
	d := discoveryDocument{
		OK: true, Schema: "svc_rfq_discovery_v1", Name: p.about.Service + " RFQ", Version: Version,
		UpdatedAt: wire.Time(p.startedAt), Service: urls.Base + wire.DescriptionPath, Specification: urls.Base + wire.SpecificationPath,
		Manifest: urls.Mirror + pathManifest, Status: urls.Mirror + PathStatus,
		Board: urls.Base + PathBoard, DeskStatus: urls.Base + PathDeskStatus,
		TruthRule: truthRule, Surfaces: surfacesOf(&urls), Read: readURLs(&urls), Claim: claimURLs(&urls),
		DvP: dvpURLs{
			urls.Base + terms.PathHandshake, urls.Base + terms.PathBuild, urls.Base + terms.PathSubmit, urls.Base + terms.PathBuilds + terms.BuildSegment,
		},
		Priority: wire.Rails(market.AllRails), Fills: fillSizes(),
		Network: e.network, ChainID: catalog.ControlChainID, ChainRole: catalog.ControlChainRole,
	}
	d.Submission.Priority = []string{"primary_1492", "public_alias_1492", "fallback_8000"}
	d.Submission.submissionURLs = submitURLs(&urls)
	return d
}
