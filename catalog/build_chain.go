package catalog

import (
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/mirror"
)

// selectionMode is rpc_policy.selection_mode.
const selectionMode = "preferred_primary_with_failover"

// chain returns the state of settlement's RPC nodes. It is published if no market is
// mirrored.
func (s *Settlement) chain(now Time) Chain {
	if s == nil {
		return Chain{Selection: "none"}
	}
	c := Chain{Configured: true, Selection: selectionMode}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		p := provider(n)
		if n.Available && n.Slot > 0 && c.Active == "" {
			lag := n.Lag
			c.Active, c.LatencyMS, c.Slot, c.SlotBehind, c.Failover = n.Name, p.LatencyMS, n.Slot, &lag, i > 0
		}
		c.MaxSlot, c.SyncedAt = max(c.MaxSlot, n.Slot), max(c.SyncedAt, p.LastOkAt)
		c.addProvider(p)
	}
	c.Synced = c.Active != "" && time.Duration(now-c.SyncedAt) < 2*Cycle
	return c
}

// mirrorChain returns the state of the chain and the nodes according to the mirror. If the
// canonical pair is mirrored, only its reading decides how current the chain data is.
func mirrorChain(s *mirror.State, canonical *mirroredPair, mirrored bool) Chain {
	c := Chain{
		Configured: true, Selection: selectionMode, Slot: s.Slot, SyncedAt: timeOf(s.SyncedAt), LastSig: signatureText(s.LastSignature),
		Failover: s.Failover, Active: s.Active, MaxSlot: s.MaxSlot,
	}
	for i := range s.Pairs {
		c.Synced = c.Synced || s.Pairs[i].Fresh()
	}
	if mirrored {
		c.Slot, c.SyncedAt, c.LastSig, c.Synced = 0, 0, "", false
		if k := canonical; k.wasRead() {
			c.Slot, c.SyncedAt, c.Synced = k.state.At.Slot, timeOf(k.state.ReadAt), k.fresh()
			c.LastSig = signatureText(k.state.Swaps.Newest.Signature)
		}
	}
	if c.Slot > 0 {
		behind := c.MaxSlot - min(c.Slot, c.MaxSlot)
		c.SlotBehind = &behind
	}
	var reasons mirror.Reasons
	if s.Failover {
		reasons = reasons.With(mirror.Failover)
	}
	if s.Active == "" {
		reasons = reasons.With(mirror.NoUpstream)
	}
	c.Reasons = reasons.Words()
	for i := range s.Upstreams {
		u := &s.Upstreams[i]
		p := provider(&u.UpstreamHealth)
		if u.Refused != nil {
			p.LastError = u.Refused.Error()
		}
		if u.Name == s.Active {
			c.LatencyMS = p.LatencyMS
		}
		c.addProvider(p)
	}
	return c
}

// addProvider adds the next node in the order of preference.
func (c *Chain) addProvider(p Provider) {
	if len(c.Providers) == 0 {
		c.Primary = p.URL
	} else {
		c.Fallbacks = append(c.Fallbacks, p.URL)
	}
	c.Providers = append(c.Providers, p)
}

// provider describes a node by its name, because its URL may contain a secret.
func provider(h *rpc.UpstreamHealth) Provider {
	p := Provider{URL: h.Name, Available: h.Available, LatestSlot: h.Slot, LastError: h.LastError, LastOkAt: timeOf(h.LastOK)}
	if !h.LastOK.IsZero() {
		latency := h.Latency.Milliseconds()
		p.LatencyMS = &latency
	}
	return p
}

// signatureText returns a signature in base58; empty for the zero signature.
func signatureText(s solana.Signature) string {
	if s == (solana.Signature{}) {
		return ""
	}
	return solana.Base58(s)
}
