package mirror

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// A Manifest market is one account, little-endian:
//
//	  0 u64 discriminant ‖ u8 version ‖ u8 base decimals ‖ u8 quote decimals
//	 16 base mint ‖ quote mint ‖ base vault ‖ quote vault
//	144 u64 sequence ‖ u32 bytes allocated
//	156 u32 bids' root ‖ u32 best bid ‖ u32 asks' root ‖ u32 best ask
//	256 nodes of 80 bytes, addressed by their offset from here
//
// A node: u32 left ‖ u32 right ‖ u32 parent ‖ u8 colour ‖ u8 kind ‖ 2 bytes, then,
// if the node holds an order, u128 price × 10^18 in quote atoms a base atom ‖ u64 base atoms ‖
// u64 sequence ‖ u32 trader ‖ u32 last valid slot, 0 for ever ‖ u8 is a bid ‖ u8
// type. Both sides' trees have the best order rightmost.
//
// Global orders (type 3) are backed by their trader's global account. They are shown like
// the others, as the program matches them (our choice).
const (
	manifestDiscriminant = 4859840929024028656
	manifestVersion      = 0
	manifestHeader       = 256
	manifestNode         = 80
	manifestOrder        = 2 // the kind of a node
	manifestNil          = math.MaxUint32
	// manifestHeight bounds a tree's height. A red-black tree of as many nodes as an account
	// can hold has less than half of it.
	manifestHeight = 64
	// manifestPriceDecimals is the number of fractional digits of a price.
	manifestPriceDecimals = 18
	// maxExpiredOrders is the number of expired orders that a walk visits before the others are
	// searched in memory order. maxUnexpiredOrders bounds a side's unexpired orders for that search.
	maxExpiredOrders   = 1024
	maxUnexpiredOrders = 1024
)

type manifest struct {
	listing  Listing
	scale    scale
	accounts []solana.Address
}

func openManifest(l Listing, account *rpc.Account) (Book, error) {
	s, err := l.scale(1, 1, -manifestPriceDecimals)
	if err != nil {
		return nil, err
	}
	b := &manifest{l, s, []solana.Address{l.Market}}
	if _, err := b.nodes(account); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *manifest) Accounts() []solana.Address { return b.accounts }

// nodes checks the header and returns the nodes in use.
func (b *manifest) nodes(a *rpc.Account) ([]byte, error) {
	if err := check(a, b.listing.Market, b.listing.Program); err != nil {
		return nil, err
	}
	d := a.Data
	if len(d) < manifestHeader || binary.LittleEndian.Uint64(d) != manifestDiscriminant || d[8] != manifestVersion {
		return nil, malformed(a.Address, "not a Manifest market of version %d", manifestVersion)
	}
	base, quote := Coin{solana.Address(d[16:48]), d[9]}, Coin{solana.Address(d[48:80]), d[10]}
	if err := b.listing.coins(base, quote); err != nil {
		return nil, err
	}
	allocated := uint64(binary.LittleEndian.Uint32(d[152:]))
	if allocated > uint64(len(d)-manifestHeader) || allocated%manifestNode != 0 {
		return nil, malformed(a.Address, "%d bytes of nodes do not fit an account of %d bytes", allocated, len(d))
	}
	return d[manifestHeader:][:allocated], nil
}

// Decode reads both trees of the one account.
func (b *manifest) Decode(into *Depth, at Clock, accounts []*rpc.Account) error {
	into.reset()
	if err := count(accounts, b.accounts); err != nil {
		return err
	}
	nodes, err := b.nodes(accounts[0])
	if err != nil {
		return err
	}
	d := accounts[0].Data
	bids := levelBuilder{scale: &b.scale, side: market.Buy, levels: into.Bids}
	asks := levelBuilder{scale: &b.scale, side: market.Sell, levels: into.Asks}
	var found unexpiredOrders
	if err := b.side(&bids, nodes, d[156:164], at.Slot, &found); err != nil {
		return err
	}
	if err := b.side(&asks, nodes, d[164:172], at.Slot, &found); err != nil {
		return err
	}
	into.take(&bids, &asks)
	return nil
}

// unexpiredOrders has the offsets of both sides' unexpired orders after a search. A side with
// more than maxUnexpiredOrders of them has too many for the search.
type unexpiredOrders struct {
	searched   bool
	bids, asks [maxUnexpiredOrders + 1]uint32
	nBids      int
	nAsks      int
}

// side adds a side's orders, best first. If too many of them are expired, it searches the
// unexpired ones in memory order, which is ten times as fast as following links.
func (b *manifest) side(g *levelBuilder, nodes, ends []byte, slot uint64, found *unexpiredOrders) error {
	before := *g
	over, err := b.walk(g, nodes, ends, slot, maxExpiredOrders)
	if !over || err != nil {
		return err
	}
	if !found.searched {
		found.search(nodes, slot)
	}
	live := found.asks[:found.nAsks]
	if g.side == market.Buy {
		live = found.bids[:found.nBids]
	}
	*g = before
	if len(live) > maxUnexpiredOrders {
		_, err := b.walk(g, nodes, ends, slot, len(nodes))
		return err
	}
	return b.inTree(g, nodes, live, binary.LittleEndian.Uint32(ends))
}

// walk visits a side's orders from the right. ends are the offsets of its root and of its
// best order, which must be visited first. over reports that the walk stopped after more
// than limit expired orders.
func (b *manifest) walk(g *levelBuilder, nodes, ends []byte, slot uint64, limit int) (over bool, err error) {
	var stack [manifestHeight]uint32
	next, best := binary.LittleEndian.Uint32(ends), binary.LittleEndian.Uint32(ends[4:])
	if (next == manifestNil) != (best == manifestNil) {
		return false, malformed(b.listing.Market, "%s: the best order or the tree is missing", g.side)
	}
	for height, left, expired := 0, len(nodes)/manifestNode, 0; ; {
		for ; next != manifestNil; left-- {
			switch {
			case left == 0 || height == len(stack):
				return false, malformed(b.listing.Market, "%s: its nodes are not a tree", g.side)
			case !isNode(nodes, next):
				return false, malformed(b.listing.Market, "%s: no node at offset %d", g.side, next)
			}
			stack[height] = next
			height++
			next = binary.LittleEndian.Uint32(nodes[next+4:])
		}
		if height == 0 {
			return false, nil
		}
		height--
		at := stack[height]
		if best != manifestNil && at != best {
			return false, malformed(b.listing.Market, "%s: the best order is at offset %d, not at %d as the header says", g.side, at, best)
		}
		best = manifestNil
		node := nodes[at:][:manifestNode]
		if !holdsOrder(node, g.side) {
			return false, malformed(b.listing.Market, "%s: its tree has a node of kind %d with bid flag %d", g.side, node[13], node[56])
		}
		next = binary.LittleEndian.Uint32(node)
		if !isUnexpired(node, slot) {
			if expired++; expired > limit {
				return true, nil
			}
			continue
		}
		if more, err := b.order(g, node); !more || err != nil {
			return false, err
		}
	}
}

// isNode reports whether a link is the offset of a node.
func isNode(nodes []byte, at uint32) bool {
	return uint64(at)+manifestNode <= uint64(len(nodes)) && at%manifestNode == 0
}

// holdsOrder reports whether a node is an order of a side.
func holdsOrder(node []byte, side market.Side) bool {
	return node[13] == manifestOrder && (node[56] == 1) == (side == market.Buy) && node[56] <= 1
}

// isUnexpired reports whether an order is neither expired nor empty. A reverse order is empty
// while it waits for its other side.
func isUnexpired(node []byte, slot uint64) bool {
	last := binary.LittleEndian.Uint32(node[52:])
	return (last == 0 || uint64(last) >= slot) && binary.LittleEndian.Uint64(node[32:]) != 0
}

func manifestPrice(node []byte) market.Uint128 {
	return market.Uint128{Hi: binary.LittleEndian.Uint64(node[24:]), Lo: binary.LittleEndian.Uint64(node[16:])}
}

// order adds a node's order.
func (b *manifest) order(g *levelBuilder, node []byte) (more bool, err error) {
	price := manifestPrice(node)
	more, ok := g.add(price, market.Uint128{Lo: binary.LittleEndian.Uint64(node[32:])})
	if !ok {
		return false, malformed(b.listing.Market, "%s: %v is out of order", g.side, price)
	}
	return more, nil
}

// search finds the unexpired orders of both sides.
func (l *unexpiredOrders) search(nodes []byte, slot uint64) {
	l.searched = true
	for at := 0; at+manifestNode <= len(nodes); at += manifestNode {
		node := nodes[at:][:manifestNode]
		switch {
		case !isUnexpired(node, slot):
		case l.nBids < len(l.bids) && holdsOrder(node, market.Buy):
			l.bids[l.nBids] = uint32(at)
			l.nBids++
		case l.nAsks < len(l.asks) && holdsOrder(node, market.Sell):
			l.asks[l.nAsks] = uint32(at)
			l.nAsks++
		}
	}
}

// inTree adds a side's unexpired orders, best first, and checks that each is linked in its
// tree.
func (b *manifest) inTree(g *levelBuilder, nodes []byte, live []uint32, root uint32) error {
	slices.SortStableFunc(live, func(x, y uint32) int {
		order := manifestPrice(nodes[x:]).Cmp(manifestPrice(nodes[y:]))
		if g.side == market.Buy {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(binary.LittleEndian.Uint64(nodes[x+40:]), binary.LittleEndian.Uint64(nodes[y+40:])))
	})
	for _, at := range live {
		if !linked(nodes, at, root) {
			return malformed(b.listing.Market, "%s: the order at offset %d is not in its tree", g.side, at)
		}
		if more, err := b.order(g, nodes[at:][:manifestNode]); !more || err != nil {
			return err
		}
	}
	return nil
}

// linked reports whether a node's links lead up to root and down again.
func linked(nodes []byte, at, root uint32) bool {
	for range manifestHeight {
		if at == root {
			return true
		}
		up := binary.LittleEndian.Uint32(nodes[at+8:])
		if !isNode(nodes, up) {
			return false
		}
		left, right := binary.LittleEndian.Uint32(nodes[up:]), binary.LittleEndian.Uint32(nodes[up+4:])
		if left != at && right != at {
			return false
		}
		at = up
	}
	return false
}
