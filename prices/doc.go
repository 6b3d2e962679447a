// Package prices decides what an asset costs in dollars, so that nobody has to type it.
//
// An asset has a [Rule]: which sources may price it, in the order of preference, how old
// a source's price may be, how wide its confidence interval, and how far apart the
// sources may lie. [Rule.Judge] takes what the sources say now and returns one price, or
// the reason why there is none. [Average] turns the states of a pool into its
// time-weighted price. A [Feed] reads the sources every second and publishes what comes
// of them.
//
// Invariants:
//  1. A price is never older than the rule allows. Without a price that is young enough
//     there is none; an old one is never repeated.
//  2. The first source of the rule that is usable gives the price. Every other usable
//     source must lie within the spread of it, or there is no price: two sources that
//     disagree are worth no more than none.
//  3. Pyth's price is what a majority of the configured nodes agrees on.
//  4. A source whose time lies ahead of ours is not used. [MaxAhead] is allowed for
//     clocks that are not quite equal.
//
// All arithmetic is exact, with rounding named at each step.
//
// Cost: one getMultipleAccounts a node and second, whatever the number of assets.
//
// Concurrency: Judge is pure; an Average belongs to one goroutine; a Feed's State may be
// read by any.
package prices
