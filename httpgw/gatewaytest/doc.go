// Package gatewaytest has the fixtures of the tests of the gateway and its surfaces:
// books, views of a desk, scripted desks, and raw requests over a socket.
package gatewaytest
