package httpgw

import (
	"encoding/json"
	"fmt"

	"blockdesk/catalog"
)

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

// Describe renders GET / from the options and the table of all routes: each endpoint
// with its method and its public URL.
func (e *siteEndpoints) Describe(table []route) *page {
	o := e.o.About
	d := description{
		OK: true, Service: o.Service, Version: catalog.APIVersion, UpdatedAt: o.UpdatedAt, Operator: o.Operator,
		Contacts: o.Contacts, Encoding: "UTF-8", Specification: specificationPath, SDK: "/public-sdk/",
		GitHub: o.GitHub, Endpoints: make(map[group][]string),
		UnknownRoute: fmt.Sprintf("404 %s: the path is echoed only when it is made of letters, digits and / . _ - "+
			"and at most %d characters long; otherwise %s", codeUnknownRoute, MaxEcho, hiddenPath),
	}
	d.Qualification.Label, d.Qualification.Nature = o.QualificationLabel, o.QualificationNature
	for i := range table {
		r := &table[i]
		if r.group != "" {
			d.Endpoints[r.group] = append(d.Endpoints[r.group], methodNames[r.method]+" "+bestURL(&e.o.URLs, r)+r.path)
		}
	}
	body, err := json.Marshal(&d)
	if err != nil {
		panic("httpgw: a description that cannot be encoded: " + err.Error())
	}
	return hashPage(body)
}

// bestURL returns the URL that clients should use for a route.
func bestURL(u *catalog.URLs, r *route) string {
	switch {
	case r.surfaces&onWS != 0:
		return u.WS
	case r.surfaces&onBase != 0:
		return u.Base
	default:
		return u.API
	}
}
