// Package rfq is the desk: tickets, tranches, quotes, claims and payments as one
// pure state machine.
package rfq
