package wire

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.1": true,
		"x-gzip": false, "deflate, gzip;q=1.0, *;q=0.5": true, "identity": false, ",,;,": false,
		"GZIP": true, "gzip;Q=0": false, "gzip;q": true,
	} {
		if acceptsGzip([]byte(header)) != want {
			t.Errorf("%q: want %t", header, want)
		}
	}
}
