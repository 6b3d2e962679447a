// Package orders handles the orders of FIX sessions: D, F, G, H, q, and the mass quotes of
// market makers (i, Z). It checks a request and submits it to the engine; it has the state
// of orders as their clients see it, and makes their reports.
//
//	Session.Request ─▶ checks, ClOrdID (package reports) ─▶ Entry.Engine
//	reports.Follower ─▶ Reporter.Apply ─▶ order's state, 8, 9, r, b, AE, package history
//
// # Our choices
//
// Day orders end with the UTC day; without TimeInForce an order is a day order, the rule of
// FIX 4.4. A market order is IOC unless it is FOK. A mass cancel cancels all orders of the
// participant; every other request affects the session's own orders. Cancel on disconnect
// cancels the session's orders when the client disconnects, not when the service stops;
// after a start it waits for the client. AvgPx is rounded down, six digits after the
// instrument's own where it is not exact.
//
// # Concurrency
//
// A request is handled under the session's lock. Only the reporter changes an order, under
// the mutex of its Session; requests read it under the same mutex. The canceller has a
// goroutine of its own, which waits while the engine's queue is full.
//
// From the frame to the command, and from the event to the message, an ordinary order
// allocates nothing but its own records.
package orders
