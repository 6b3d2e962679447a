// Package terms is the desk's JSON that several surfaces share: the body members that
// name an offer, the terms of quotes and claims, the words of states, and the HTTP error
// of each refusal of the desk and of the settlement.
//
// An answer of the desk is a function of its result, the pair's mint and decimals, the
// USDC mint and the claim's transaction package. The same Idempotency-Key and body therefore get the
// same bytes again; a refusal differs in its request_id. A request that is refused before
// it reaches the desk leaves no trace of its key.
package terms
