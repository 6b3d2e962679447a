package wire

import (
	"testing"

	"blockdesk/fixgw/wire/wiretest"
)

func BenchmarkFastPathScan(b *testing.B) {
	frame := wiretest.Message(wiretest.OrdinaryRequests[0])
	var x Ordinary
	b.ReportAllocs()
	for b.Loop() {
		if !x.Scan(frame, "MM", "US") {
			b.Fatal("not ordinary")
		}
	}
}
