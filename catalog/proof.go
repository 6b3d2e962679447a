package catalog

import "strconv"

type proofDocument struct {
	header
	Proof   proofRecord  `json:"proof"`
	Subject proofSubject `json:"subject"`
	Hash    string       `json:"proof_hash"`
	How     string       `json:"recompute"`
}

// proofSubject is the value that proof_hash is the hash of.
type proofSubject struct {
	At     Time        `json:"timestamp_exact"`
	Proof  proofRecord `json:"proof"`
	Slot   uint64      `json:"slot"`
	Pools  []poolState `json:"pools"`
	Prices []priceRef  `json:"prices"`
}

type priceRef struct {
	Symbol string   `json:"symbol"`
	Price  *Decimal `json:"price_usd"`
	Epoch  Epoch    `json:"epoch"`
	Seq    uint64   `json:"seq"`
}

// Proof returns the program that runs, its source, and a hash over the published chain
// state and prices, which a reader can recompute.
func Proof(f *Facts, schema string) any {
	subject := newProofSubject(f)
	return &proofDocument{
		header: newHeader(f, schema), Proof: subject.Proof, Subject: subject, Hash: hashOf(subject),
		How: "sha256 of the member subject as it stands in this document, without spaces; a pool's, of the pool as it stands in subject, but for its proof_hash",
	}
}

func newProofSubject(f *Facts) proofSubject {
	s := proofSubject{At: f.At, Proof: newProofRecord(f), Slot: f.Chain.Slot, Pools: []poolState{}, Prices: []priceRef{}}
	for i := range f.Pairs {
		p := &f.Pairs[i]
		s.Prices = append(s.Prices, priceRef{p.Symbol, dollarPrice(p.PriceUSD), p.Epoch, p.Seq})
		if p.Pool.wasRead() {
			s.Pools = append(s.Pools, *p.Pool.record())
		}
	}
	return s
}

type proofRecord struct {
	Truth        string `json:"source_of_truth"`
	Verification string `json:"verification_status"`
	Executable   string `json:"executable_hash"`
	Commit       string `json:"source_commit"`
}

func newProofRecord(f *Facts) proofRecord {
	p := proofRecord{
		Truth: "journal_of_the_engine", Verification: "reproducible_by_replay",
		Executable: f.Service.Build.ExecutableHash, Commit: f.Service.Build.SourceCommit,
	}
	if f.Chain.Configured {
		p.Truth = "journal_of_the_engine_and_finalized_chain_state"
	}
	return p
}

// poolState is onchain_pool_state.
type poolState struct {
	poolReading
	// ProofHash is the hash of poolReading.
	ProofHash string `json:"proof_hash"`
}

// poolReading is a pool's state as read from the chain.
type poolReading struct {
	Pool       string   `json:"pool_id"`
	BaseMint   string   `json:"base_mint"`
	QuoteMint  string   `json:"quote_mint"`
	BaseVault  string   `json:"base_vault"`
	QuoteVault string   `json:"quote_vault"`
	BaseAtoms  string   `json:"base_vault_balance_atoms"`
	Base       Decimal  `json:"base_vault_balance"`
	QuoteAtoms string   `json:"quote_vault_balance_atoms"`
	Quote      Decimal  `json:"quote_vault_balance"`
	Spot       *Decimal `json:"spot_price_usd"`
	Slot       uint64   `json:"slot"`
	SeenAt     Time     `json:"ts"`
}

// record returns onchain_pool_state; nil unless the pool was read.
func (p *Pool) record() *poolState {
	if !p.wasRead() {
		return nil
	}
	seen := poolReading{
		Pool: p.Address, BaseMint: p.BaseMint, QuoteMint: p.QuoteMint, BaseVault: p.BaseVault, QuoteVault: p.QuoteVault,
		BaseAtoms: strconv.FormatUint(uint64(p.BaseAtoms), 10), Base: wholeUnits(p.BaseAtoms, p.BaseDecimals),
		QuoteAtoms: strconv.FormatUint(uint64(p.QuoteAtoms), 10), Quote: wholeUnits(p.QuoteAtoms, p.QuoteDecimals),
		Spot: dollarPrice(p.Spot), Slot: p.Slot, SeenAt: p.At,
	}
	return &poolState{seen, hashOf(seen)}
}
