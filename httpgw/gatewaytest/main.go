package gatewaytest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package and fails if one leaks a goroutine. It ignores three
// goroutines of fasthttp: the clock of the Date header never ends, and the cleaners of a
// server's worker pool and of a client's idle connections end only after seconds.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	)
}
