// Package prices decides what an asset costs in dollars, so that no operator has to set
// its price by hand.
//
// An asset has a [Rule]: its sources in the order of preference, the maximum age of a
// price, the maximum width of its confidence interval, and the maximum spread between
// sources. [Rule.Judge] takes the prices of the sources and returns one price, or the
// reason why there is none. [Average] is the time-weighted price of a pool. A [Feed]
// reads the sources every second and publishes the judgements.
//
// Invariants:
//  1. A price is never older than the rule allows. If all prices are too old, the asset
//     has no price; an old price is never published again.
//  2. The first usable source of the rule gives the price. Every other usable source
//     must be within the spread of it, or the asset has no price, because it is not
//     known which of the two is right.
//  3. A price of Pyth counts if a majority of the configured nodes returns it.
//  4. A price from the future is not used. [MaxAhead] allows for clocks that differ a
//     little.
//
// All arithmetic is exact, with rounding named at each step.
//
// Cost: one getMultipleAccounts a second from each node, for all assets together.
//
// Concurrency: Judge is pure; an Average belongs to one goroutine; State,
// SetOperatorPrice and CheckOperatorPrice of a Feed may be called from any goroutine.
package prices
