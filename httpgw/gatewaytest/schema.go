package gatewaytest

import (
	"testing"

	"blockdesk/sdk"
	"blockdesk/sdk/openapitest"
)

// Specification returns the OpenAPI document.
func Specification(t testing.TB) []byte {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// OpenAPI returns the OpenAPI document, parsed.
func OpenAPI(t testing.TB) *openapitest.Document {
	t.Helper()
	d, err := openapitest.Parse(Specification(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
