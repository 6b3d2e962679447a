package site

import (
	"fmt"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// ServiceDescription is the body of GET / (docs/specification.md 2.4).
type ServiceDescription struct {
	OK            bool                    `json:"ok"`
	Service       string                  `json:"service"`
	Version       string                  `json:"version"`
	UpdatedAt     string                  `json:"mise_a_jour"`
	Operator      string                  `json:"operateur"`
	Contacts      map[string]string       `json:"contacts"`
	Encoding      string                  `json:"encodage"`
	Specification string                  `json:"specification_openapi"`
	SDK           string                  `json:"sdk_public"`
	GitHub        string                  `json:"github"`
	Endpoints     map[wire.Group][]string `json:"endpoints"`
	Qualification struct {
		Label  string `json:"libelle"`
		Nature string `json:"nature"`
	} `json:"qualification"`
	UnknownRoute string `json:"erreur_route_inconnue"`
}

// Describe renders GET / from the options and all routes, each with its method and public
// URL, or its template.
func (e *Endpoints) Describe(table []wire.Route) *wire.Page {
	o := e.o.About
	d := ServiceDescription{
		OK: true, Service: o.Service, Version: catalog.APIVersion, UpdatedAt: o.UpdatedAt, Operator: o.Operator,
		Contacts: o.Contacts, Encoding: "UTF-8", Specification: wire.SpecificationPath, SDK: "/public-sdk/",
		GitHub: o.GitHub, Endpoints: make(map[wire.Group][]string),
		UnknownRoute: fmt.Sprintf("404 %s: the path is echoed only when it is made of letters, digits and / . _ - "+
			"and at most %d characters long; otherwise %s", wire.CodeUnknownRoute, wire.MaxEcho, wire.HiddenPath),
	}
	d.Qualification.Label, d.Qualification.Nature = o.QualificationLabel, o.QualificationNature
	for i := range table {
		r := &table[i]
		if r.Group != "" {
			url := bestURL(&e.o.URLs, r) + r.Path
			if r.Query != "" {
				url += "?" + r.Query
			}
			d.Endpoints[r.Group] = append(d.Endpoints[r.Group], wire.MethodNames[r.Method]+" "+url)
		}
	}
	return wire.NewPage(marshal(&d))
}

// bestURL returns the preferred URL of a route.
func bestURL(u *catalog.URLs, r *wire.Route) string {
	switch {
	case r.On&wire.OnWS != 0:
		return u.WS
	case r.On&wire.OnBase != 0:
		return u.Base
	default:
		return u.API
	}
}
