package mirror

import (
	"encoding/binary"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// A crit-bit tree of orders, as Serum and OpenBook v2 keep it: an array of nodes
// of one size, little-endian. Of an inner node
//
//	0 u8 tag 1 ‖ 3 bytes ‖ u32 prefix ‖ u128 key ‖ 24 u32 left ‖ u32 right
//
// and of a leaf
//
//	0 u8 tag 2 ‖ 7 bytes ‖ 8 u64 sequence ‖ 16 u64 price ‖ 24 owner ‖ 56 u64 quantity
//
// Leaves stand in the order of (price, sequence) from left to right.
const (
	critInner = 1
	critLeaf  = 2
	// critHeight bounds the stack of a walk: a key has 128 bits.
	critHeight = 129
)

// critTree is the tree of one side.
type critTree struct {
	account solana.Address
	nodes   []byte
	stride  int // size of a node in bytes
	used    int // nodes that were ever in use
	root    uint32
	leaves  uint64
}

// walk visits the leaves in order, from the right if reverse, until visit returns false.
func (t *critTree) walk(reverse bool, visit func(leaf []byte) (more bool, err error)) error {
	var stack [critHeight]uint32
	waiting, leaves := 0, uint64(0)
	if t.leaves > 0 {
		stack[0], waiting = t.root, 1
	}
	for seen := 0; waiting > 0; seen++ {
		waiting--
		at := int(stack[waiting])
		if at >= t.used || seen == t.used {
			return malformed(t.account, "node %d is outside the tree of %d nodes (visited %d)", at, t.used, seen+1)
		}
		node := t.nodes[at*t.stride:][:t.stride]
		switch node[0] {
		case critInner:
			if waiting+2 > len(stack) {
				return malformed(t.account, "more levels than a key has bits")
			}
			near, far := binary.LittleEndian.Uint32(node[24:]), binary.LittleEndian.Uint32(node[28:])
			if reverse {
				near, far = far, near
			}
			stack[waiting], stack[waiting+1] = far, near
			waiting += 2
		case critLeaf:
			leaves++
			if more, err := visit(node); !more || err != nil {
				return err
			}
		default:
			return malformed(t.account, "node %d has the unknown tag %d", at, node[0])
		}
	}
	if leaves != t.leaves {
		return malformed(t.account, "the tree has %d orders, its header counts %d", leaves, t.leaves)
	}
	return nil
}

// lotMarket has the immutable members of a market that counts in lots.
type lotMarket struct {
	bids, asks        solana.Address
	quoteLot, baseLot uint64 // in atoms, above 0
	// closes is when trading ends, in Unix seconds; 0 = never.
	closes int64
}

// lotLayout parses the accounts of a program that counts in lots.
type lotLayout struct {
	// market parses a market's account, whose owner was checked.
	market func(l *Listing, a *rpc.Account) (lotMarket, error)
	// side parses an account of bids or asks, and returns its tree and the number of
	// orders outside of it.
	side func(a *rpc.Account, side market.Side) (t critTree, unshown int, err error)
	// unexpired reports whether a leaf has not expired.
	unexpired func(leaf []byte, at Clock) bool
	// maxLots is the largest price and quantity in lots.
	maxLots uint64
}

// lotBook is the Book of a market with an account of bids and one of asks.
type lotBook struct {
	listing  Listing
	layout   *lotLayout
	market   lotMarket
	scale    scale
	accounts []solana.Address
}

func openLots(l Listing, layout *lotLayout, account *rpc.Account) (Book, error) {
	b := &lotBook{listing: l, layout: layout}
	var err error
	if b.market, err = b.read(account); err != nil {
		return nil, err
	}
	if b.scale, err = l.scale(b.market.quoteLot, b.market.baseLot, 0); err != nil {
		return nil, err
	}
	b.accounts = []solana.Address{l.Market, b.market.bids, b.market.asks}
	return b, nil
}

func (b *lotBook) Accounts() []solana.Address { return b.accounts }

func (b *lotBook) read(a *rpc.Account) (lotMarket, error) {
	if err := check(a, b.listing.Market, b.listing.Program); err != nil {
		return lotMarket{}, err
	}
	m, err := b.layout.market(&b.listing, a)
	if err == nil && (m.quoteLot == 0 || m.baseLot == 0 || m.bids == m.asks) {
		err = malformed(a.Address, "lots of %d and %d atoms must be above 0, bids (%s) and asks (%s) two accounts", m.quoteLot, m.baseLot, solana.Base58(m.bids), solana.Base58(m.asks))
	}
	return m, err
}

// Decode reads the market, which may have been closed since, and both trees.
func (b *lotBook) Decode(into *Depth, at Clock, accounts []*rpc.Account) error {
	into.reset()
	if err := count(accounts, b.accounts); err != nil {
		return err
	}
	m, err := b.read(accounts[0])
	switch {
	case err != nil:
		return err
	case m != b.market:
		return malformed(b.listing.Market, "its sides or lots have changed")
	case m.closes != 0 && at.Unix > m.closes:
		return closed(b.listing.Market)
	}
	bids := levelBuilder{scale: &b.scale, side: market.Buy, levels: into.Bids}
	asks := levelBuilder{scale: &b.scale, side: market.Sell, levels: into.Asks}
	if err := b.readSide(&bids, at, accounts[1], m.bids); err != nil {
		return err
	}
	if err := b.readSide(&asks, at, accounts[2], m.asks); err != nil {
		return err
	}
	into.take(&bids, &asks)
	return nil
}

// readSide reads one side's account.
func (b *lotBook) readSide(g *levelBuilder, at Clock, a *rpc.Account, address solana.Address) error {
	if err := check(a, address, b.listing.Program); err != nil {
		return err
	}
	tree, unshown, err := b.layout.side(a, g.side)
	if err != nil {
		return err
	}
	g.omitted += unshown
	return tree.walk(g.side == market.Buy, func(leaf []byte) (bool, error) {
		price, quantity := binary.LittleEndian.Uint64(leaf[16:]), binary.LittleEndian.Uint64(leaf[56:])
		switch {
		case price > b.layout.maxLots || quantity > b.layout.maxLots:
			return false, malformed(address, "an order of %d lots at price %d", quantity, price)
		case quantity == 0 || !b.layout.unexpired(leaf, at):
			return true, nil
		}
		more, ok := g.add(market.Uint128{Lo: price}, market.Mul(quantity, b.market.baseLot))
		if !ok {
			return false, malformed(address, "price %d is out of order", price)
		}
		return more, nil
	})
}
