package mirror

import (
	"encoding/binary"
	"math"

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
// in an order, u128 price × 10^18 in quote atoms a base atom ‖ u64 base atoms ‖
// u64 sequence ‖ u32 trader ‖ u32 last valid slot, 0 for ever ‖ u8 is a bid ‖ u8
// type. Both sides' trees have the best order rightmost.
//
// Global orders (type 3) are backed by their trader's global account and are
// shown like the others, as the program matches them: our choice.
const (
	manifestDiscriminant = 4859840929024028656
	manifestVersion      = 0
	manifestHeader       = 256
	manifestNode         = 80
	manifestOrder        = 2 // the kind of a node
	manifestNil          = math.MaxUint32
	// manifestHeight bounds a tree's height: a red-black tree of as many nodes as
	// an account holds has less than half of it.
	manifestHeight = 64
	// manifestPriceDecimals is how many fractional digits a price has.
	manifestPriceDecimals = 18
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

// nodes checks the header and returns the nodes that are in use.
func (b *manifest) nodes(a *rpc.Account) ([]byte, error) {
	if err := check(a, b.listing.Market, b.listing.Program); err != nil {
		return nil, err
	}
	d := a.Data
	if len(d) < manifestHeader || binary.LittleEndian.Uint64(d) != manifestDiscriminant || d[8] != manifestVersion {
		return nil, malformed(a.Address, "no Manifest market of version %d", manifestVersion)
	}
	base, quote := Coin{solana.Address(d[16:48]), d[9]}, Coin{solana.Address(d[48:80]), d[10]}
	if err := b.listing.coins(base, quote); err != nil {
		return nil, err
	}
	allocated := uint64(binary.LittleEndian.Uint32(d[152:]))
	if allocated > uint64(len(d)-manifestHeader) || allocated%manifestNode != 0 {
		return nil, malformed(a.Address, "%d bytes of nodes in %d", allocated, len(d))
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
	bids := gather{scale: &b.scale, side: market.Buy, levels: into.Bids}
	asks := gather{scale: &b.scale, side: market.Sell, levels: into.Asks}
	if err := b.walk(&bids, nodes, d[156:164], at.Slot); err != nil {
		return err
	}
	if err := b.walk(&asks, nodes, d[164:172], at.Slot); err != nil {
		return err
	}
	into.take(&bids, &asks)
	return nil
}

// walk visits a side's orders from the right. ends are its root and its best
// order, which must be the first one visited.
func (b *manifest) walk(g *gather, nodes, ends []byte, slot uint64) error {
	var stack [manifestHeight]uint32
	next, best := binary.LittleEndian.Uint32(ends), binary.LittleEndian.Uint32(ends[4:])
	if (next == manifestNil) != (best == manifestNil) {
		return malformed(b.listing.Market, "%s: a best order without a tree, or a tree without", g.side)
	}
	for height, left := 0, len(nodes)/manifestNode; ; {
		for ; next != manifestNil; left-- {
			switch {
			case left == 0 || height == len(stack):
				return malformed(b.listing.Market, "%s: not a tree", g.side)
			case uint64(next)+manifestNode > uint64(len(nodes)) || next%manifestNode != 0:
				return malformed(b.listing.Market, "%s: node at %d", g.side, next)
			}
			stack[height] = next
			height++
			next = binary.LittleEndian.Uint32(nodes[next+4:])
		}
		if height == 0 {
			return nil
		}
		height--
		at := stack[height]
		if best != manifestNil && at != best {
			return malformed(b.listing.Market, "%s: the best order is at %d, not at %d", g.side, at, best)
		}
		best = manifestNil
		node := nodes[at:][:manifestNode]
		if more, err := b.order(g, node, slot); !more || err != nil {
			return err
		}
		next = binary.LittleEndian.Uint32(node)
	}
}

// order adds one node's order, unless it has expired or is empty, as a reverse
// order is while it waits for its other side.
func (b *manifest) order(g *gather, node []byte, slot uint64) (more bool, err error) {
	bid := byte(0)
	if g.side == market.Buy {
		bid = 1
	}
	if node[13] != manifestOrder || node[56] != bid {
		return false, malformed(b.listing.Market, "%s: kind %d, bid %d in its tree", g.side, node[13], node[56])
	}
	price := market.Uint128{Hi: binary.LittleEndian.Uint64(node[24:]), Lo: binary.LittleEndian.Uint64(node[16:])}
	size := binary.LittleEndian.Uint64(node[32:])
	last := binary.LittleEndian.Uint32(node[52:])
	if size == 0 || last != 0 && uint64(last) < slot {
		return true, nil
	}
	more, ok := g.add(price, market.Uint128{Lo: size})
	if !ok {
		return false, malformed(b.listing.Market, "%s: %v is out of order", g.side, price)
	}
	return more, nil
}
