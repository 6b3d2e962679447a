// Package cosign is the desk's signature: what it takes to have one, and who holds
// the key.
package cosign
