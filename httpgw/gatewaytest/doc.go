// Package gatewaytest has the fixtures that the tests of the HTTP gateway and of its
// surfaces share: instruments with full books, facts of the catalog, views of a desk,
// desks whose answers a test scripts, the OpenAPI document, and raw requests over a
// socket.
//
// Values are fixed (ViewTime, ids, addresses), so that expected bytes can be written down.
// ScriptedDesk records the requests that it gets and is safe for concurrent use; the
// functions that take a testing.TB fail the test themselves.
package gatewaytest
