// Package mirrortest writes accounts of exchanges as their programs on the chain would:
// the book of a Manifest market and the pool of a Raydium CPMM, with given orders and
// reserves.
//
// It shares no code with the decoders of package mirror, so that an error in a layout is
// not in both. Mirror's tests decode real accounts as well, so both are held to what the
// programs write. All functions are pure. Tests make hostile accounts by changing its
// bytes.
package mirrortest

import (
	"encoding/binary"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// Order is an order of a Manifest book.
type Order struct {
	Bid bool
	// Price is in quote atoms a base atom × 10^18, Size in base atoms.
	Price market.Uint128
	Size  uint64
	// LastSlot is the last slot in which the order is valid, 0 for ever.
	LastSlot uint32
}

const (
	manifestHeader = 256
	manifestNode   = 80
	manifestNone   = 1<<32 - 1
)

// BestFirst returns one side's orders in price-time priority.
func BestFirst(orders []Order, bid bool) (side []Order) {
	for _, o := range orders {
		if o.Bid == bid {
			side = append(side, o)
		}
	}
	slices.SortStableFunc(side, func(a, b Order) int {
		if bid {
			a, b = b, a
		}
		return a.Price.Cmp(b.Price)
	})
	return side
}

// Manifest writes a market's account: all orders in one array, bids first, and each side
// linked as a balanced tree with the best order rightmost.
func Manifest(base, quote mirror.Coin, orders []Order) []byte {
	d := make([]byte, manifestHeader+manifestNode*len(orders))
	binary.LittleEndian.PutUint64(d, 4859840929024028656) // discriminator
	d[9], d[10] = base.Decimals, quote.Decimals
	copy(d[16:], base.Mint[:])
	copy(d[48:], quote.Mint[:])
	binary.LittleEndian.PutUint32(d[152:], uint32(manifestNode*len(orders)))
	at := 0
	for i, bid := range []bool{true, false} {
		side := BestFirst(orders, bid)
		nodes := d[manifestHeader:]
		for j := range side {
			side[j].write(nodes[manifestNode*(at+j):])
		}
		best := uint32(manifestNone)
		if len(side) > 0 {
			best = uint32(manifestNode * at)
		}
		binary.LittleEndian.PutUint32(d[156+8*i:], join(nodes, at, at+len(side)))
		binary.LittleEndian.PutUint32(d[160+8*i:], best)
		at += len(side)
	}
	return d
}

// write fills a node without its links.
func (o *Order) write(node []byte) {
	node[13] = 2 // an order
	binary.LittleEndian.PutUint64(node[16:], o.Price.Lo)
	binary.LittleEndian.PutUint64(node[24:], o.Price.Hi)
	binary.LittleEndian.PutUint64(node[32:], o.Size)
	binary.LittleEndian.PutUint32(node[52:], o.LastSlot)
	if o.Bid {
		node[56] = 1
	}
}

// join links the nodes from..to, the best of which is the first, and returns the root's
// offset.
func join(nodes []byte, from, to int) uint32 {
	if from == to {
		return manifestNone
	}
	middle := (from + to) / 2
	b := nodes[manifestNode*middle:]
	for link, child := range []uint32{join(nodes, middle+1, to), join(nodes, from, middle)} {
		binary.LittleEndian.PutUint32(b[4*link:], child)
		if child != manifestNone {
			binary.LittleEndian.PutUint32(nodes[child+8:], uint32(manifestNode*middle))
		}
	}
	binary.LittleEndian.PutUint32(b[8:], manifestNone)
	return uint32(manifestNode * middle)
}

// Reserve is one side of a CPMM pool.
type Reserve struct {
	Vault   solana.Address
	Coin    mirror.Coin
	Program solana.Address // of the mint and the vault
	// Protocol, Fund and Creator are uncollected fees in the vault, in atoms.
	Protocol, Fund, Creator uint64
}

// CPMM writes a pool account of Raydium's CPMM program, with token 0 and 1.
func CPMM(reserves [2]Reserve) []byte {
	d := make([]byte, 637)
	binary.LittleEndian.PutUint64(d, 0x46dec3d7f5e3edf7) // discriminator
	for i := range reserves {
		r := &reserves[i]
		copy(d[72+32*i:], r.Vault[:])
		copy(d[168+32*i:], r.Coin.Mint[:])
		copy(d[232+32*i:], r.Program[:])
		d[331+i] = r.Coin.Decimals
		binary.LittleEndian.PutUint64(d[341+8*i:], r.Protocol)
		binary.LittleEndian.PutUint64(d[357+8*i:], r.Fund)
		binary.LittleEndian.PutUint64(d[397+8*i:], r.Creator)
	}
	return d
}
