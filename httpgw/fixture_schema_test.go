package httpgw

import (
	"testing"

	"blockdesk/sdk"
	"blockdesk/sdk/openapitest"
)

// specification is the document that integrators download.
func specification(t testing.TB) []byte {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func described(t testing.TB) *openapitest.Document {
	t.Helper()
	d, err := openapitest.Parse(specification(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
