package main

import (
	"time"

	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/mirror"
)

// selectionMode is rpc_policy.selection_mode.
const selectionMode = "preferred_primary_with_failover"

// chain is what is known of the chain and the nodes, as the canonical pair has it
// where that is mirrored: another pair neither makes it fresher nor worse. There
// must be a state.
func (m *mirrorFacts) chain(canonical string, mirrored bool) catalog.Chain {
	s := m.state
	c := catalog.Chain{
		Configured: true, Selection: selectionMode, Slot: s.Slot, SyncedAt: momentOf(s.SyncedAt), LastSig: signatureText(s.LastSignature),
		Failover: s.Failover, Active: s.Active, MostSlot: s.MaxSlot,
	}
	for i := range s.Pairs {
		k := mirroredPair{state: &s.Pairs[i]}
		c.Synced = c.Synced || k.fresh()
	}
	if mirrored {
		c.Slot, c.SyncedAt, c.LastSig, c.Synced = 0, 0, "", false
		if k := m.pair(canonical); k.wasRead() {
			c.Slot, c.SyncedAt, c.Synced = k.state.At.Slot, momentOf(k.state.ReadAt), k.fresh()
			c.LastSig = signatureText(k.state.Swaps.Newest.Signature)
		}
	}
	if c.Slot > 0 {
		behind := c.MostSlot - min(c.Slot, c.MostSlot)
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
		addProvider(&c, p)
	}
	return c
}

// addProvider adds a node behind those that are preferred to it.
func addProvider(c *catalog.Chain, p catalog.Provider) {
	if len(c.Providers) == 0 {
		c.Primary = p.URL
	} else {
		c.Fallbacks = append(c.Fallbacks, p.URL)
	}
	c.Providers = append(c.Providers, p)
}

// provider is what is known of a node. Its name is no URL, so that it holds no
// secret.
func provider(h *rpc.UpstreamHealth) catalog.Provider {
	p := catalog.Provider{URL: h.Name, Available: h.Available, LatestSlot: h.Slot, LastError: h.LastError, LastOkAt: momentOf(h.LastOK)}
	if !h.LastOK.IsZero() {
		latency := h.Latency.Milliseconds()
		p.LatencyMS = &latency
	}
	return p
}

// momentOf is a time; zero stays none.
func momentOf(t time.Time) catalog.Time {
	if t.IsZero() {
		return 0
	}
	return catalog.Time(t.UnixNano())
}

// signatureText is empty for none.
func signatureText(s solana.Signature) string {
	if s == (solana.Signature{}) {
		return ""
	}
	return solana.Text(s)
}
