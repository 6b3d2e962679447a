// Package wire is FIX 4.4 as the gateway writes and reads it: bytes on one side, values
// on the other. It finds messages in a stream (frame.go), reads Logons and requests,
// encodes reports, market data, quotes and claims, and shows messages to people
// without their secrets (logtext.go). It knows no session and does no input or output.
//
// Bodies are appended in the form that a session numbers: "tag=value" with SOH
// between, without the name of the first tag and without the last SOH.
//
// What is read aliases the message; nil means that a field is absent. An order is
// scanned, decoded and reported without allocation.
package wire
