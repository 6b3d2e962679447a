package demo

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/service/config"
)

// PoolSymbol is the instrument that mirrors the demo's pool.
const PoolSymbol = "92C/USDC"

const (
	// PoolOwner is the key that owns the pool's vaults and signs what leaves them, as an
	// exchange's program would. Its address is the pool's.
	PoolOwner = "pool-92c-usdc"
	// PoolReserve is the key of an observed account.
	PoolReserve = "reserve-92c"
	// poolSwappers is how many wallets swap with the pool.
	poolSwappers = 3
	// poolFeeBps stays in the pool: what a swap gives is 0.25 % less.
	poolFeeBps = 25

	// The first swaps of a start come after 1, 2, 4, … seconds, so that figures are there
	// soon; later ones every swapEvery, because the chain keeps its newest transactions in
	// memory.
	firstSwap = time.Second
	swapEvery = 30 * time.Second

	// poolDecimals is that of both mints.
	poolDecimals = 6
	million      = 1_000_000
	// poolHome is the price, in millionths, that swaps pull the pool back to: that of the
	// book of 92C/SLUSD in dollars.
	poolHome = 349_650
	// poolBase and poolQuote are the first liquidity, at that price.
	poolBase  = 2_000_000 * million
	poolQuote = 699_300 * million
	reserve   = 1_000_000 * million
	// A swapper gets purse atoms of a token, and SOL, when it has less than a swap needs.
	purse      = 1_000_000 * million
	swapperSOL = 1_000_000_000 // lamports

	// A swap is worth smallestSwap to largestSwap millionths of a dollar.
	smallestSwap = 50 * million
	largestSwap  = 2_000 * million
)

// swapper returns the name of the n-th swapper's key, from 1.
func swapper(n int) string { return fmt.Sprintf("swapper-%d", n) }

// addPoolInstrument adds the instrument that mirrors the demo's pool behind the usual
// instruments, whether or not the chain can run: a journal that has an instrument needs it
// ever after. A configuration with instruments or mirrored pairs of its own stays as it is.
func addPoolInstrument(c *config.Config) {
	if !slices.Equal(c.Instruments, config.Default().Instruments) || c.Mirrors() || len(c.Groups) > 0 {
		return
	}
	c.Instruments = append(slices.Clone(c.Instruments), config.Instrument{
		Symbol: PoolSymbol, PriceDecimals: poolDecimals, QtyDecimals: poolDecimals, Tick: "0.000001", Lot: "0.000001",
		MinQty: "0.01", MaxQty: "100000000", MaxPrice: "1000000", BookSource: market.Mirrored.String(),
	})
}

// Pool is the demo's pool on its local chain, with wallets that swap with it. Two vaults
// and a constant product stand in for an exchange's program: each swap is a transaction
// that the chain really executes, and the service reads it as it reads other pools.
type Pool struct {
	node        *sandbox.Node
	chain       *rpc.Client
	base, quote token.Checked
	accounts    *solana.AccountCache
	random      *rand.Rand
	log         *slog.Logger
	failed      bool
}

// OpenPool makes the pool on the chain, unless it is there, and lets the configuration
// mirror it. It returns nil if the configuration has no instrument of the pool's.
func OpenPool(ctx context.Context, c *config.Config, node *sandbox.Node, log *slog.Logger) (*Pool, error) {
	i := slices.IndexFunc(c.Instruments, func(in config.Instrument) bool { return in.Symbol == PoolSymbol })
	if i < 0 || c.Instruments[i].BookSource != market.Mirrored.String() || c.Mirrors() {
		return nil, nil
	}
	o := rpc.DefaultOptions()
	o.Upstreams = []rpc.Upstream{{URL: node.URL()}}
	o.Timeout, o.AttemptTimeout = time.Minute, time.Minute // as for a chain on a busy machine
	client, err := rpc.New(o)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		node: node, chain: client, accounts: &solana.AccountCache{}, log: log,
		random: rand.New(rand.NewPCG(rand.Uint64(), 0)),
	}
	pair, err := p.open(ctx)
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("demo's pool: %w", err)
	}
	c.Mirror.Pairs = append(c.Mirror.Pairs, *pair)
	return p, nil
}

// Close closes the pool's connections.
func (p *Pool) Close() { p.chain.Close() }

// open reads the mints, makes what is missing, and returns the pair to mirror.
func (p *Pool) open(ctx context.Context) (pair *config.MirrorPair, err error) {
	if p.base, err = p.mint(ctx, Mint92C); err != nil {
		return nil, err
	}
	if p.quote, err = p.mint(ctx, MintUSDC); err != nil {
		return nil, err
	}
	baseVault, err := p.fill(ctx, PoolOwner, "92C", p.base, 1, poolBase)
	if err != nil {
		return nil, err
	}
	quoteVault, err := p.fill(ctx, PoolOwner, "USDC", p.quote, 1, poolQuote)
	if err != nil {
		return nil, err
	}
	reserve, err := p.fill(ctx, PoolReserve, "92C", p.base, 1, reserve)
	if err != nil {
		return nil, err
	}
	return &config.MirrorPair{
		Symbol: PoolSymbol, BaseMint: Address(Mint92C), BaseDecimals: poolDecimals, QuoteMint: Address(MintUSDC), QuoteDecimals: poolDecimals,
		Pool: config.MirrorPool{
			Layout: config.LayoutVaultPair, Address: Address(PoolOwner),
			BaseVault: solana.Base58(baseVault), QuoteVault: solana.Base58(quoteVault),
		},
		Observed: []config.Observed{{Address: solana.Base58(reserve), Role: "guarantee_reserve", Label: "demo reserve on the local chain"}},
	}, nil
}

// mint reads one of the demo's mints.
func (p *Pool) mint(ctx context.Context, name string) (c token.Checked, err error) {
	at := addressOf(name)
	read, _, err := p.chain.Accounts(ctx, []solana.Address{at}, rpc.Confirmed, 0)
	if err != nil {
		return c, err
	}
	if read[0] == nil {
		return c, fmt.Errorf("no mint %s", solana.Base58(at))
	}
	m, err := token.ParseMint(at, read[0].Owner, read[0].Data)
	if err != nil {
		return c, err
	}
	if m.Decimals != poolDecimals {
		return c, fmt.Errorf("mint %s has %d decimals", solana.Base58(at), m.Decimals)
	}
	return m.Check(0)
}

func addressOf(name string) solana.Address { return solana.Address(Key(name)[ed25519.SeedSize:]) }

// fill lets the chain's faucet mint tokens to an owner that has fewer than least, and
// returns the owner's token account.
func (p *Pool) fill(ctx context.Context, owner, symbol string, mint token.Checked, least, atoms market.Amount) (at solana.Address, err error) {
	if at, err = p.accounts.TokenAccount(addressOf(owner), mint.Address(), mint.Program()); err != nil {
		return at, err
	}
	has, err := p.balances(ctx, at)
	if err != nil || has[0] >= least {
		return at, err
	}
	return at, p.node.Call(ctx, "sandbox_fund", map[string]any{"wallet": Address(owner), "symbol": symbol, "amount": atoms}, nil)
}

// balances returns what token accounts hold; 0 for one that is not there.
func (p *Pool) balances(ctx context.Context, list ...solana.Address) ([]market.Amount, error) {
	read, _, err := p.chain.Accounts(ctx, list, rpc.Confirmed, 0)
	if err != nil {
		return nil, err
	}
	out := make([]market.Amount, len(list))
	for i, a := range read {
		if a == nil {
			continue
		}
		t, err := token.ParseAccount(a.Owner, a.Data)
		if err != nil {
			return nil, err
		}
		out[i] = t.Amount
	}
	return out, nil
}

// Run lets the wallets swap with the pool until ctx ends. A failure is logged once, until
// it is over.
func (p *Pool) Run(ctx context.Context) error {
	defer p.Close()
	for pause := firstSwap; ; pause = min(2*pause, swapEvery) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		err := p.Swap(ctx)
		if err != nil && !p.failed && ctx.Err() == nil {
			p.log.Warn("demo pool: swaps fail", "error", err)
		}
		p.failed = err != nil
	}
}

// Swap lets one of the wallets swap with the pool.
func (p *Pool) Swap(ctx context.Context) error {
	name := swapper(1 + p.random.IntN(poolSwappers))
	for symbol, mint := range map[string]token.Checked{"92C": p.base, "USDC": p.quote} {
		if _, err := p.fill(ctx, name, symbol, mint, purse/2, purse); err != nil {
			return err
		}
	}
	lamports, _, err := p.chain.Balance(ctx, addressOf(name), rpc.Confirmed)
	if err != nil {
		return err
	}
	if lamports < swapperSOL/2 {
		if err := p.node.Call(ctx, "requestAirdrop", []any{Address(name), swapperSOL}, nil); err != nil {
			return err
		}
	}
	base, quote, err := p.reserves(ctx)
	if err != nil {
		return err
	}
	buys, in, out, err := p.terms(base, quote)
	if err != nil {
		return err
	}
	raw, err := p.signed(ctx, name, buys, in, out)
	if err != nil {
		return err
	}
	_, err = p.chain.Send(ctx, raw, rpc.SendOptions{})
	return err
}

// reserves returns what the vaults hold.
func (p *Pool) reserves(ctx context.Context) (base, quote market.Amount, err error) {
	owner := addressOf(PoolOwner)
	baseVault, err := p.accounts.TokenAccount(owner, p.base.Address(), p.base.Program())
	if err != nil {
		return 0, 0, err
	}
	quoteVault, err := p.accounts.TokenAccount(owner, p.quote.Address(), p.quote.Program())
	if err != nil {
		return 0, 0, err
	}
	has, err := p.balances(ctx, baseVault, quoteVault)
	if err != nil {
		return 0, 0, err
	}
	return has[0], has[1], nil
}

// terms returns a swap at these reserves: whether it buys the base token, and the atoms
// that go into the pool and out of it. Three of four swaps move the price towards its
// home.
func (p *Pool) terms(base, quote market.Amount) (buys bool, in, out market.Amount, err error) {
	spot, err := market.MulDivFloor(uint64(quote), million, max(1, uint64(base)))
	if err != nil {
		return false, 0, 0, err
	}
	buys = spot < poolHome
	if p.random.IntN(4) == 0 {
		buys = !buys
	}
	worth := uint64(smallestSwap) + p.random.Uint64N(largestSwap-smallestSwap)
	if buys {
		in = market.Amount(worth)
		out, err = given(in, quote, base)
		return buys, in, out, err
	}
	atoms, err := market.MulDivFloor(worth, million, max(1, spot))
	if err != nil {
		return false, 0, 0, err
	}
	in = market.Amount(atoms)
	out, err = given(in, base, quote)
	return buys, in, out, err
}

// given returns what a constant product gives for atoms that come in, less the pool's fee,
// rounded down.
func given(in, reserveIn, reserveOut market.Amount) (market.Amount, error) {
	const whole = 10_000
	counted, err := market.MulDivFloor(uint64(in), whole-poolFeeBps, whole)
	if err != nil {
		return 0, err
	}
	out, err := market.MulDivFloor(uint64(reserveOut), counted, uint64(reserveIn)+counted)
	if err == nil && out == 0 {
		err = errors.New("the pool gives nothing")
	}
	return market.Amount(out), err
}

// signed returns a swap's transaction, signed by the wallet, which pays the fee, and the
// pool. It is delivery versus payment: the one that gives USDC pays, the other delivers.
func (p *Pool) signed(ctx context.Context, name string, buys bool, in, out market.Amount) ([]byte, error) {
	hash, err := p.chain.Blockhash(ctx)
	if err != nil {
		return nil, err
	}
	wallet, pool := addressOf(name), addressOf(PoolOwner)
	t := build.Atomic{
		Common: build.Common{
			Blockhash: hash.Hash, Budget: build.Budget{Units: build.MaxUnits, MicroLamports: 1},
			Memo: fmt.Sprintf("demo swap %d", time.Now().UnixNano()), // no two are the same
		},
		Taker: wallet, Desk: pool, FeePayer: build.Taker, RentPayer: build.Taker,
		Payment: build.Leg{Rail: market.RailUSDC, Mint: p.quote, Amount: in, To: pool}, Base: p.base, BaseAmount: out,
	}
	if !buys {
		t.Taker, t.Desk, t.FeePayer, t.RentPayer = pool, wallet, build.Desk, build.Desk
		t.Payment.Amount, t.Payment.To, t.BaseAmount = out, wallet, in
	}
	u, err := t.Build(p.accounts)
	if err != nil {
		return nil, err
	}
	x, err := tx.Decode(u.Bytes())
	if err != nil {
		return nil, err
	}
	for _, signer := range []string{name, PoolOwner} {
		slot, ok := x.Message.Slot(addressOf(signer))
		if !ok {
			return nil, fmt.Errorf("%s is not a signer of its swap", signer)
		}
		x.Signatures[slot] = solana.Signature(ed25519.Sign(Key(signer), x.Signed))
	}
	return x.Append(nil)
}
