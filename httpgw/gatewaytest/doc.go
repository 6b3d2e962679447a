// Package gatewaytest has what tests of the gateway and of its surfaces share: books,
// views of a desk, a scripted desk, and requests as bytes on a socket.
package gatewaytest
