package wire

import "cmp"

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

// ApplyDefaults fills in what is empty.
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
