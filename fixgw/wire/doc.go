// Package wire reads and writes FIX 4.4 messages: bytes on one side, values on the other.
// It finds messages in a stream (frame.go), reads Logons and requests, encodes reports,
// market data, quotes and claims, and renders messages for people without their secrets
// (logtext.go). It has no session and does no input or output.
//
// A body is encoded in the form that a session numbers: "tag=value" with SOH between,
// without the name of the first tag and without the last SOH.
//
// Values that are read alias the message; nil means that a field is absent. An order is
// scanned, decoded and reported without allocation.
package wire
