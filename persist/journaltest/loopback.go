package journaltest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Loopback returns an address of this machine for a server that goes away and comes
// back on the same port. On Linux it is one of the 16 million that nobody else here
// uses; on 127.0.0.1, which others have, the port may be taken meanwhile.
func Loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
