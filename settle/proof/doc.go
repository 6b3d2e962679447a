// Package proof proves payments on the chain to the desk.
package proof
