package gatewaytest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and fails when one leaves a goroutine behind. Three are
// fasthttp's: its clock of the Date header never ends, and the cleaners of a
// server's worker pool and of a client's idle connections wake up after seconds to
// see that they have ended.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	)
}
