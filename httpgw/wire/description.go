package wire

import "cmp"

// Description is what GET / says about the service (docs/specification.md 2.4).
type Description struct {
	Service   string            // default "blockdesk"
	UpdatedAt string            // date of the last update; default the API's own
	Operator  string            // default "unnamed operator"
	Contacts  map[string]string // channel to address; may be empty
	GitHub    string            // URL; may be empty

	// QualificationLabel says what guarantees the offers, QualificationNature that
	// this is the operator's declaration (docs/specification.md 1.10).
	QualificationLabel, QualificationNature string
}

// ApplyDefaults sets the default of every empty field except GitHub.
func (d *Description) ApplyDefaults() {
	d.Service = cmp.Or(d.Service, "blockdesk")
	d.UpdatedAt = cmp.Or(d.UpdatedAt, "2026-11-20")
	d.Operator = cmp.Or(d.Operator, "unnamed operator")
	d.QualificationLabel = cmp.Or(d.QualificationLabel, "offers guaranteed by a staking asset")
	d.QualificationNature = cmp.Or(d.QualificationNature, "declared by the operator; the underlying amount is not independently verified")
	if d.Contacts == nil {
		d.Contacts = map[string]string{}
	}
}
