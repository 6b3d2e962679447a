// Package wire reads and writes FIX 4.4 messages: bytes on one side, values on the other.
// It owns the form of each message that the gateway receives or sends, the texts and codes
// of refusals, and the custom fields. It has no session and does no input or output.
//
//	bytes ─▶ ScanFrame ─▶ CheckFrame ─┬─▶ Ordinary.Scan ───────────────┬─▶ DecodeNew ─▶ book.Order
//	                                  └─▶ quickfix, ScanOrderRequest ──┘
//	ExecutionReport, ClaimReport, … ─▶ AppendBody ─▶ AppendFrame ─▶ bytes
//
// A message is read in two steps. Scan finds its fields and cannot fail: a value is the
// bytes of the message, nil if the field is absent. Decode and Check turn the fields into
// values of package market, or return a Refusal: a text that begins with a code, and the
// reason code that FIX 4.4 has for that message. Content is a hash of the fields that
// matter, by which a repeated request with other content is recognized.
//
// A body is written in the form that a session numbers: "tag=value" with SOH between,
// without the name of the first tag and without the last SOH. Package session adds header
// and trailer.
//
// # Invariants
//
//  1. Whatever the bytes are, nothing panics, and a value that a text quotes is cut and
//     printable. The fuzz tests hold this.
//  2. Every message that is written fits the stock FIX44 dictionary, but for the custom fields
//     (TagCustomFields to TagFeedSeq). These come last, so that WithoutCustom can cut them off.
//  3. Prices and quantities are exact: decimals are read into ticks and lots without a
//     float, and a value between two ticks is refused.
//  4. A text for logs (AppendLogText) never has a password or a signature.
//
// # Cost
//
// Scanning, decoding and reporting an order allocates nothing. Values that are read alias the
// message, so a caller that keeps one copies it.
//
// # Limits
//
// A frame's header is at most MaxHeader bytes; the caller gives the size of the message.
// MaxClOrdID, MaxQuoteReqID, MaxRequestID and the constants beside each message limit its ids
// and entries.
package wire
