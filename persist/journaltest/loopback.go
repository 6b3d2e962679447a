package journaltest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
)

// Loopback returns an address of this machine for a server that stops and later listens
// on the same port again. On Linux it is a random one of the 16 million loopback
// addresses, so that no other program takes the port in between, as one might on 127.0.0.1.
func Loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
