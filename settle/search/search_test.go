package search_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/settle/search"
)

var (
	deskKey     = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	deskAddress = solana.Address(deskKey.Public().(ed25519.PublicKey))
	errDown     = errors.New("down")
)

// transaction returns one that the desk has signed. signed false: an invention.
func transaction(t *testing.T, text string, signed bool) *ledger.Confirmed {
	t.Helper()
	m := tx.Message{
		Version: tx.V0, Header: tx.Header{Required: 1, ReadonlyUnsigned: 1},
		Keys: []solana.Address{deskAddress, solana.MemoProgram}, Instructions: []tx.Instruction{{Program: 1, Data: []byte(text)}},
	}
	message, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := solana.Signature(ed25519.Sign(deskKey, message))
	if !signed {
		s[3] ^= 1
	}
	return &ledger.Confirmed{Tx: &tx.Transaction{Signatures: []solana.Signature{s}, Message: m, Signed: message}}
}

// node is what one node lists and has.
type node struct {
	listFails, readFails bool
	firstFails           bool
	first                uint64 // the slot of its first block
	list                 []rpc.SignatureInfo
	has                  map[solana.Signature]*ledger.Confirmed
}

// honest is a node that lists and has the transactions.
func honest(all ...*ledger.Confirmed) node {
	n := node{has: map[solana.Signature]*ledger.Confirmed{}}
	for _, t := range all {
		n.list = append(n.list, rpc.SignatureInfo{Signature: t.Signature(), Failed: t.Failed})
		n.has[t.Signature()] = t
	}
	return n
}

type nodes []node

func (n nodes) SignaturePageFromEach(_ context.Context, _ solana.Address, page rpc.Page, _ rpc.Commitment) (out []rpc.NodeSignatures, err error) {
	for _, x := range n {
		if x.listFails {
			out = append(out, rpc.NodeSignatures{Err: errDown})
			continue
		}
		out = append(out, rpc.NodeSignatures{List: x.list[:min(len(x.list), page.Limit)]})
	}
	return out, nil
}

func (n nodes) TransactionFromEach(_ context.Context, s solana.Signature, _ rpc.Commitment) (out []rpc.NodeTransaction, err error) {
	for _, x := range n {
		if x.readFails {
			out = append(out, rpc.NodeTransaction{Err: errDown})
			continue
		}
		out = append(out, rpc.NodeTransaction{Transaction: x.has[s]})
	}
	return out, nil
}

func (n nodes) FirstBlockFromEach(context.Context) (out []rpc.NodeFirstBlock, err error) {
	for _, x := range n {
		if x.firstFails {
			out = append(out, rpc.NodeFirstBlock{Err: errDown})
			continue
		}
		out = append(out, rpc.NodeFirstBlock{First: rpc.FirstBlock{Slot: x.first}})
	}
	return out, nil
}

// from returns the node with a first block.
func (x node) from(slot uint64) node {
	x.first = slot
	return x
}

// TestSearch: what nodes that lie, are down, behind or fail make of a search.
func TestSearch(t *testing.T) {
	ours, stranger, invented := transaction(t, "ours", true), transaction(t, "stranger", true), transaction(t, "ours", false)
	failed := *ours
	failed.Failed = true
	// A bogus node returns other bytes under the signature of ours.
	bogus := honest(ours)
	bogus.has[ours.Signature()] = &ledger.Confirmed{Tx: &tx.Transaction{
		Signatures: ours.Tx.Signatures, Message: stranger.Tx.Message, Signed: stranger.Tx.Signed,
	}}
	down := node{listFails: true, readFails: true}
	mute := honest(ours) // lists, and then fails
	mute.readFails = true
	forgets := honest(ours)
	forgets.has = nil
	mutedFirst := honest()
	mutedFirst.firstFails = true
	stranger2 := honest(stranger) // lists, and then fails
	stranger2.readFails = true
	for name, x := range map[string]struct {
		nodes nodes
		found bool
		err   error
	}{
		"one has it":                             {nodes{honest(stranger, ours)}, true, nil},
		"one has another":                        {nodes{honest(stranger)}, false, nil},
		"all have it":                            {nodes{honest(ours), honest(ours), honest(ours)}, true, nil},
		"one hides it":                           {nodes{honest(), honest(ours), honest(ours)}, true, nil},
		"one hides it, one is down":              {nodes{honest(), honest(ours), down}, true, nil},
		"one hides it, the others are down":      {nodes{honest(), down, down}, false, search.ErrNodes},
		"one hides it, the others list and fail": {nodes{honest(), mute, mute}, false, search.ErrNodes},
		"one has it, the others are down":        {nodes{honest(ours), down, down}, false, search.ErrNodes},
		"one returns other bytes":                {nodes{bogus, honest(ours), honest()}, true, nil},
		"all return other bytes":                 {nodes{bogus, bogus, bogus}, false, search.ErrNodes},
		"one invents it":                         {nodes{honest(invented), honest(), honest()}, false, nil},
		"one node lists an unknown transaction":  {nodes{forgets, honest(), honest()}, false, nil},
		"two nodes list an unknown transaction":  {nodes{forgets, forgets, honest()}, false, search.ErrUnread},
		"none has the blocks":                    {nodes{honest().from(101), honest().from(101), honest().from(101)}, false, search.ErrHistory},
		"one has the blocks":                     {nodes{honest(), honest().from(101), honest().from(101)}, false, search.ErrHistory},
		"one has the blocks, one is down":        {nodes{honest(), honest().from(101), down}, false, search.ErrHistory},
		"two have the blocks":                    {nodes{honest().from(100), honest().from(2), honest().from(101)}, false, nil},
		"it is found without the blocks":         {nodes{honest(ours).from(101), honest().from(101), honest().from(101)}, true, nil},
		"two that have the blocks do not say so": {nodes{mutedFirst, mutedFirst, honest()}, false, search.ErrNodes},
		// The node that could deny it has not answered about it, and the other two lack the blocks.
		"the one with the blocks fails":   {nodes{stranger2, honest(stranger).from(101), honest(stranger)}, false, search.ErrHistory},
		"it has failed":                   {nodes{honest(&failed), honest(&failed), down}, false, nil},
		"one says that it has failed":     {nodes{honest(&failed), honest(ours), honest(ours)}, true, nil},
		"one says that it has not failed": {nodes{honest(&failed), honest(&failed), honest(ours)}, false, nil},
	} {
		s := search.Search{Since: 100, Ours: func(message []byte) bool { return slices.Equal(message, ours.Tx.Signed) }}
		r, err := s.Run(t.Context(), x.nodes)
		if (r.Found != nil) != x.found || !errors.Is(err, x.err) || x.found && r.Found.Signature() != ours.Signature() {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		s.Known = []solana.Signature{ours.Signature()}
		if r, _ := s.Run(t.Context(), x.nodes); r.Found != nil {
			t.Errorf("%s: a known one is found", name)
		}
	}
}

// TestSearchLimit: no more than Max transactions of a node are read, and more are reported.
func TestSearchLimit(t *testing.T) {
	var all []*ledger.Confirmed
	for i := range search.Max + 1 {
		all = append(all, transaction(t, string(rune('a'+i)), true))
	}
	for n, more := range map[int]bool{search.Max: false, search.Max + 1: true} {
		read := 0
		s := search.Search{Ours: func([]byte) bool { read++; return false }}
		if r, err := s.Run(t.Context(), nodes{honest(all[:n]...)}); err != nil || r.More != more || read != search.Max {
			t.Errorf("%d: %+v, %v, %d read", n, r, err, read)
		}
	}
}
