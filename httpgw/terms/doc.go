// Package terms is the desk on the wire, where several surfaces share it: the members
// of bodies that name an offer, the terms of quotes and claims, the words of states,
// and what each refusal of the desk and of the settlement is over HTTP.
//
// An answer from the desk is a function of its result, of the pair's mint and
// decimals, of the USDC mint and of the claim's package, so the same Idempotency-Key
// and body get the same bytes again; a refusal differs in its request_id. What was
// refused before the desk was asked is not remembered.
package terms
