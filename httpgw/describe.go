package httpgw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
)

// APIVersion is the version of the market and public API (spec, part 9).
const APIVersion = catalog.APIVersion

// Description is what GET / says about the service (spec, 2.4).
type Description struct {
	Service   string            // default "blockdesk"
	UpdatedAt string            // date of the last update, default the API's own
	Operator  string            // default "unnamed operator"
	Contacts  map[string]string // channel to address; may be empty
	GitHub    string            // URL; may be empty

	// QualificationLabel and QualificationNature: what guarantees the offers,
	// and that it is the operator's word (spec, 1.10).
	QualificationLabel, QualificationNature string
}

func (d *Description) applyDefaults() {
	d.Service = cmp.Or(d.Service, "blockdesk")
	d.UpdatedAt = cmp.Or(d.UpdatedAt, "2026-11-20")
	d.Operator = cmp.Or(d.Operator, "unnamed operator")
	d.QualificationLabel = cmp.Or(d.QualificationLabel, "offers guaranteed by a staking asset")
	d.QualificationNature = cmp.Or(d.QualificationNature, "declared by the operator; the underlying amount is not independently verified")
	if d.Contacts == nil {
		d.Contacts = map[string]string{}
	}
}

// description is the body of GET /, members in the order of the spec.
type description struct {
	OK            bool               `json:"ok"`
	Service       string             `json:"service"`
	Version       string             `json:"version"`
	UpdatedAt     string             `json:"mise_a_jour"`
	Operator      string             `json:"operateur"`
	Contacts      map[string]string  `json:"contacts"`
	Encoding      string             `json:"encodage"`
	Specification string             `json:"specification_openapi"`
	SDK           string             `json:"sdk_public"`
	GitHub        string             `json:"github"`
	Endpoints     map[group][]string `json:"endpoints"`
	Qualification struct {
		Label  string `json:"libelle"`
		Nature string `json:"nature"`
	} `json:"qualification"`
	UnknownRoute string `json:"erreur_route_inconnue"`
}

// describe renders GET / from the options and the table: each endpoint with its
// method and its public URL.
func (g *Gateway) describe(table []route) (*page, error) {
	o := &g.opts.Description
	d := description{
		OK: true, Service: o.Service, Version: APIVersion, UpdatedAt: o.UpdatedAt, Operator: o.Operator,
		Contacts: o.Contacts, Encoding: "UTF-8", Specification: specificationPath, SDK: "/public-sdk/",
		GitHub: o.GitHub, Endpoints: make(map[group][]string),
		UnknownRoute: fmt.Sprintf("404 %s: the path is echoed only when it is made of letters, digits and / . _ - "+
			"and at most %d characters long; otherwise %s", codeUnknownRoute, MaxEcho, hiddenPath),
	}
	d.Qualification.Label, d.Qualification.Nature = o.QualificationLabel, o.QualificationNature
	urls := g.URLs()
	for i := range table {
		r := &table[i]
		if r.group != "" {
			d.Endpoints[r.group] = append(d.Endpoints[r.group], methodNames[r.method]+" "+urls.of(r)+r.path)
		}
	}
	body, err := json.Marshal(&d)
	if err != nil {
		return nil, fmt.Errorf("httpgw: service description: %w", err)
	}
	return hashPage(body), nil
}

func (g *Gateway) serveDescription([]byte) (*page, *problem) { return g.about, nil }

// URLs returns the public URLs: those of the options, or those of the listeners.
func (g *Gateway) URLs() URLs {
	u := g.opts.URLs
	u.Base = cmp.Or(u.Base, "http://"+printable(g.BaseAddr()))
	u.API = cmp.Or(u.API, "http://"+printable(g.APIAddr()))
	u.WS = cmp.Or(u.WS, "ws://"+printable(g.WSAddr()))
	u.Mirror = cmp.Or(u.Mirror, u.Base)
	u.Native = cmp.Or(u.Native, u.Base)
	for _, text := range []*string{&u.Base, &u.API, &u.WS, &u.Mirror, &u.Native} {
		*text = strings.TrimRight(*text, "/")
	}
	return u
}

// of returns the URL that a route is best reached under.
func (u URLs) of(r *route) string {
	switch {
	case r.surfaces&onWS != 0:
		return u.WS
	case r.surfaces&onBase != 0:
		return u.Base
	default:
		return u.API
	}
}

// printable names a listener so that a client on this machine reaches it.
func printable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// healthPage makes a route of a function that returns a value for JSON.
func healthPage(health func() any) func([]byte) (*page, *problem) {
	return func([]byte) (*page, *problem) {
		body, err := json.Marshal(health())
		if err != nil {
			return nil, &problem{
				status: fasthttp.StatusInternalServerError, code: codeInternal,
				text: "The health of the WebSocket could not be told.",
			}
		}
		return &page{body: body}, nil
	}
}
