package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/store"
)

// Unreadable is the reason of an unmatched payment about which no node has given a
// usable answer: its amount is unknown.
const Unreadable = "unreadable"

// Errors after which the watch retries a transaction.
var (
	errNotFinal = errors.New("a node lists the transaction as final, but no node returns it")
	errDeskFull = errors.New("the desk's list of refunds is full: pay refunds that are due")
	errCursor   = errors.New("no node has the transaction where the watch continues")
)

// account is an account that the watch follows. Its history is a list from old to new:
//
//	… examined | cursor | examined, some to be retried | not listed yet
//
// The cursor is durable. Transactions after it are examined again after a restart, which
// changes nothing, because a signature is recorded once.
type account struct {
	address solana.Address
	// since is Options.Since in seconds of the chain's Unix time. history: no cursor
	// was stored, and blocks before since are not examined, because no claim is paid in
	// them.
	since      int64
	history    bool
	positioned bool
	cursor     solana.Signature
	// floor is the cursor's slot, 0 if unknown. A node that lists older slots does not
	// know the cursor.
	floor uint64
	// done are the signatures after the cursor that are finished, failed those to be
	// retried, with the time of their first failure.
	done   map[solana.Signature]finishedAt
	failed map[solana.Signature]time.Time
	// seen are the confirmed transactions that see has looked at, with the number of
	// looks.
	seen map[solana.Signature]int
	// cursorMissingSince is the time since which no node has the cursor's
	// transaction.
	cursorMissingSince time.Time
}

// finishedAt is when a transaction was finished, and its slot.
type finishedAt struct {
	at   time.Time
	slot uint64
}

// Run watches every account to be paid until the context ends, and examines each
// finalized transaction that names it, as Verify does, so that a payment that no
// client reports is recorded, or stored as unmatched. A failing node delays it; see
// [Prover.Stats]. Only one Run at a time.
func (p *Prover) Run(ctx context.Context) error {
	since := p.options.Since.Unix()
	var group errgroup.Group
	for i := range p.destinations {
		a := &account{
			address: p.destinations[i].target.PayTo, since: since,
			done: map[solana.Signature]finishedAt{}, failed: map[solana.Signature]time.Time{}, seen: map[solana.Signature]int{},
		}
		group.Go(func() error {
			ticker := time.NewTicker(p.options.WatchEvery)
			defer ticker.Stop()
			for {
				p.report(ctx, i, a, p.follow(ctx, a))
				if err := p.see(ctx, a); err != nil && ctx.Err() == nil {
					p.options.Logger.Debug("looking for confirmed payments failed", "account", solana.Base58(a.address), "error", err)
				}
				select {
				case <-ctx.Done():
					return nil
				case <-ticker.C:
				}
			}
		})
	}
	return group.Wait()
}

// Place stores, for each watched account that has no cursor yet, the one after the newest
// transaction that the nodes list: everything up to there is history. Call it before the
// first claim can be taken; then no clock, of the chain or ours, decides whether a
// payment is seen. It asks all nodes and takes the middle answer, so that a minority that
// lags or lies moves no cursor. Errors: rpc.Error, ctx.Err(), errors of the store;
// [rpc.ErrNoMajority] if too few nodes answer.
func (p *Prover) Place(ctx context.Context) error {
	for i := range p.destinations {
		address := p.destinations[i].target.PayTo
		if _, ok, err := p.store.Cursor(address); err != nil || ok {
			if err != nil {
				return err
			}
			continue
		}
		newest, err := p.newestListed(ctx, address)
		if err != nil {
			return fmt.Errorf("first cursor of %s: %w", solana.Base58(address), err)
		}
		if err := p.store.SetCursor(address, newest); err != nil {
			return err
		}
	}
	return nil
}

// newestListed returns the newest confirmed transaction that contains an account, by the
// middle answer of the nodes; zero if there is none.
func (p *Prover) newestListed(ctx context.Context, a solana.Address) (solana.Signature, error) {
	views, err := p.node.SignaturePageFromEach(ctx, a, rpc.Page{Limit: 1}, rpc.Confirmed)
	if err != nil {
		return solana.Signature{}, err
	}
	var newest []rpc.SignatureInfo
	var failure error
	for i := range views {
		switch {
		case views[i].Err != nil:
			failure = views[i].Err
		case len(views[i].List) == 0:
			newest = append(newest, rpc.SignatureInfo{})
		default:
			newest = append(newest, views[i].List[0])
		}
	}
	if len(newest) < len(views)/2+1 {
		return solana.Signature{}, fmt.Errorf("%w: %d of %d answer: %w", rpc.ErrNoMajority, len(newest), len(views), failure)
	}
	slices.SortFunc(newest, func(x, y rpc.SignatureInfo) int { return cmp.Compare(x.Slot, y.Slot) })
	return newest[(len(newest)-1)/2].Signature, nil
}

// report records how a round of account i ended.
func (p *Prover) report(ctx context.Context, i int, a *account, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w, text := &p.watches[i], ""
	if err != nil {
		text = err.Error()
	} else {
		w.RoundAt = p.options.Now().UnixNano()
	}
	switch {
	case text == w.Error:
	case err != nil:
		p.options.Logger.Warn("watch of the treasury failed", "account", solana.Base58(a.address), "error", text, "waiting", len(a.failed))
	default:
		p.options.Logger.Info("watch of the treasury works again", "account", solana.Base58(a.address))
	}
	w.Error, w.Waiting = text, len(a.failed)
}

// follow examines the new transactions of one account, as far as the nodes and the
// desk allow.
func (p *Prover) follow(ctx context.Context, a *account) error {
	if !a.positioned {
		if err := p.findCursor(ctx, a); err != nil {
			return err
		}
	}
	list, err := p.list(ctx, a)
	if err != nil {
		return err
	}
	err = p.examineNew(ctx, a, list)
	return errors.Join(err, p.advance(ctx, a, list))
}

// findCursor finds where to begin: at the stored cursor, or without one after the
// history, which holds no payments of ours. With Options.Rewind it ignores the stored
// cursor; that cursor stays until the chain has answered.
func (p *Prover) findCursor(ctx context.Context, a *account) error {
	cursor, ok, err := p.store.Cursor(a.address)
	switch {
	case err != nil:
		return err
	case !ok || p.options.Rewind:
		if cursor, a.floor, err = p.newestOld(ctx, a); err != nil {
			return err
		}
		a.history = true
		if err := p.store.SetCursor(a.address, cursor); err != nil {
			return err
		}
	case cursor != solana.Signature{}:
		if a.floor, err = p.slotOf(ctx, a, cursor); err != nil {
			return err
		}
	}
	a.cursor, a.positioned = cursor, true
	return nil
}

// slotOf returns the slot of the stored cursor, as a majority of the nodes has it: a slot
// that is too high would hide payments. A node that does not know the cursor would list
// everything before it too, so slotOf fails until a majority knows it; after
// Options.GiveUpAfter it returns 0. Nodes that fail decide nothing.
func (p *Prover) slotOf(ctx context.Context, a *account, cursor solana.Signature) (uint64, error) {
	c, found, err := p.node.TransactionByQuorum(ctx, cursor, rpc.Finalized)
	switch {
	case found && err == nil:
		return c.Slot, nil
	case rpc.KindOf(err) == 0 && (errors.Is(err, rpc.ErrNoMajority) || errors.Is(err, rpc.ErrDisagree)):
		// All answer, and most do not know it, or not in the same slot.
	case err != nil && !concernsOneTransaction(err):
		return 0, err
	}
	now := p.options.Now()
	if a.cursorMissingSince.IsZero() {
		a.cursorMissingSince = now
	}
	if now.Sub(a.cursorMissingSince) < p.options.GiveUpAfter {
		return 0, fmt.Errorf("cursor %s: %w", cursor, errors.Join(errCursor, err))
	}
	return 0, nil
}

// old reports whether a transaction is in a block before since.
func (a *account) old(s rpc.SignatureInfo) bool { return s.BlockTime != 0 && s.BlockTime < a.since }

// newestOld returns the newest old transaction and its slot; zero if there is none.
func (p *Prover) newestOld(ctx context.Context, a *account) (s solana.Signature, slot uint64, err error) {
	err = p.pages(ctx, a, func(got []rpc.SignatureInfo) bool {
		at := slices.IndexFunc(got, a.old)
		if at >= 0 {
			s, slot = got[at].Signature, got[at].Slot
		}
		return at < 0
	})
	return s, slot, err
}

// list returns the transactions after the cursor, oldest first, at most the oldest
// MaxAhead.
func (p *Prover) list(ctx context.Context, a *account) (list []rpc.SignatureInfo, err error) {
	err = p.pages(ctx, a, func(got []rpc.SignatureInfo) bool {
		end := slices.IndexFunc(got, func(x rpc.SignatureInfo) bool { return x.Slot < a.floor || x.Signature == a.cursor })
		if end >= 0 {
			got = got[:end]
		}
		list = append(list, got...)
		if over := len(list) - MaxAhead; over > 0 {
			list = slices.Delete(list, 0, over)
		}
		return end < 0
	})
	slices.Reverse(list)
	return list, err
}

// pages calls f with pages of the transactions after the cursor, newest first, until
// a page is empty or f returns false. A short page proves nothing. Errors:
// [ErrAnswer] after MaxPages.
func (p *Prover) pages(ctx context.Context, a *account, f func([]rpc.SignatureInfo) bool) error {
	page := rpc.Page{Until: a.cursor}
	for range MaxPages {
		// Another node lists at each call: one that hides a payment delays it.
		got, err := p.node.SignaturesInTurn(ctx, a.address, page, rpc.Finalized)
		if err != nil || len(got) == 0 || !f(got) {
			return err
		}
		page.Before = got[len(got)-1].Signature
	}
	return fmt.Errorf("%w: more than %d pages of signatures", ErrAnswer, MaxPages)
}

// examineNew examines the new transactions, oldest first, several at a time. It stops
// at an error of the node or the desk; an error that concerns one transaction waits
// for the next round.
func (p *Prover) examineNew(ctx context.Context, a *account, list []rpc.SignatureInfo) error {
	results := make([]error, len(list))
	tried := make([]bool, len(list))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(p.options.Readers)
	for i := range list {
		s := &list[i]
		if _, ok := a.done[s.Signature]; ok {
			continue
		}
		if looking.Err() != nil {
			break
		}
		// Failed ones moved only their fee: a node that lies about that could as
		// well leave the transaction out. Old ones are final only now.
		if s.Failed || a.history && a.old(*s) {
			tried[i] = true
			continue
		}
		group.Go(func() error {
			err := p.examineListed(looking, s.Signature)
			if looking.Err() == nil {
				results[i], tried[i] = err, true
			}
			if err != nil && !concernsOneTransaction(err) {
				return err
			}
			return nil
		})
	}
	failure := group.Wait()
	if failure == nil {
		failure = ctx.Err()
	}
	now := p.options.Now()
	failed := map[solana.Signature]time.Time{}
	for i := range list {
		s := &list[i]
		since, known := a.failed[s.Signature]
		delete(a.failed, s.Signature)
		switch {
		case !tried[i]:
		case p.finished(ctx, a, list, i, results[i], since):
			a.done[s.Signature], known = finishedAt{now, s.Slot}, false
		default:
			if failure == nil {
				failure = results[i]
			}
			if !known && concernsOneTransaction(results[i]) {
				since, known = now, true
			}
		}
		if known {
			failed[s.Signature] = since
		}
	}
	// The node that was asked this time may hide what others list.
	for s, since := range a.failed {
		if now.Sub(since) < 2*p.options.GiveUpAfter && len(failed) < MaxAhead {
			failed[s] = since
		}
	}
	a.failed = failed
	return failure
}

// finished reports whether transaction i of a list need not be examined again. A
// transaction that no node has returned usably for Options.GiveUpAfter is stored for a
// person, unless only a minority of the nodes lists it: that is an invention.
func (p *Prover) finished(ctx context.Context, a *account, list []rpc.SignatureInfo, i int, err error, since time.Time) bool {
	now := p.options.Now()
	switch {
	case err == nil:
		return true
	case since.IsZero() || now.Sub(since) < p.options.GiveUpAfter || !concernsOneTransaction(err):
		return false
	case errors.Is(err, errDeskFull) || errors.Is(err, store.ErrFull):
		return false
	}
	s := &list[i]
	listed, answered, majority, failure := p.voteOnList(ctx, a, list, i, func([]rpc.SignatureInfo) bool { return true })
	switch {
	case failure != nil || answered < majority:
		return false
	case listed < majority:
		p.options.Logger.Warn("listed transaction is unknown to most nodes, ignored", "account", solana.Base58(a.address), "signature", s.Signature.String())
		return true
	}
	return p.addUnmatched(&store.UnmatchedPayment{Signature: s.Signature, Reason: Unreadable, Slot: s.Slot, SeenAt: now.UnixNano()}) == nil
}

// voteOnList asks all nodes for their lists from the cursor to transaction i of a list, and
// returns how many list that one and agree about the older ones, how many answer, and how
// many are a majority. With one node there is nothing to ask.
func (p *Prover) voteOnList(
	ctx context.Context, a *account, list []rpc.SignatureInfo, i int, agrees func(older []rpc.SignatureInfo) bool,
) (votes, answered, majority int, err error) {
	if p.node.Upstreams() == 1 {
		return 1, 1, 1, nil
	}
	page := rpc.Page{Until: a.cursor}
	if i+1 < len(list) {
		page.Before = list[i+1].Signature
	}
	views, err := p.node.SignaturePageFromEach(ctx, a.address, page, rpc.Finalized)
	for k := range views {
		v := &views[k]
		if v.Err != nil {
			continue
		}
		answered++
		at := slices.IndexFunc(v.List, func(x rpc.SignatureInfo) bool { return x.Signature == list[i].Signature })
		if at >= 0 && agrees(v.List[at+1:]) {
			votes++
		}
	}
	return votes, answered, len(views)/2 + 1, err
}

// examineListed examines one transaction; nil means that it is finished, with whatever
// result.
func (p *Prover) examineListed(ctx context.Context, s solana.Signature) error {
	f, err := p.find(ctx, requestKey{signature: s}, p.node.TransactionByQuorum)
	switch {
	case err != nil:
		return err
	case f.undecided != nil:
		return f.undecided
	case f.pending && f.claim == nil || f.notFinal:
		return fmt.Errorf("payment %s: %w", s, errNotFinal)
	case f.refused == event.ReasonDeskFull && f.payment == nil:
		return fmt.Errorf("payment %s: %w", s, errDeskFull)
	}
	return nil
}

// concernsOneTransaction reports whether an error concerns only the one transaction,
// so that others may still be examined.
func concernsOneTransaction(err error) bool {
	switch rpc.KindOf(err) {
	case rpc.WrongAnswer, rpc.Rejected, rpc.Preflight:
		return true
	case rpc.Down, rpc.Behind, rpc.RateLimited:
		return false
	}
	return slices.ContainsFunc([]error{
		errNotFinal, errDeskFull, ErrAnswer, ErrWallet, payment.ErrOverflow, payment.ErrUnknownBalance,
		ledger.ErrMalformed, ledger.ErrIncomplete, ledger.ErrInconsistent, store.ErrFull,
	}, func(e error) bool { return errors.Is(err, e) })
}

// maxAdvance bounds the transactions that the cursor moves over at once: fewer than a page
// has, so that the pages of all nodes reach back to the cursor.
const maxAdvance = rpc.MaxSignaturesPerCall / 2

// advance moves the cursor over transactions that have been finished for
// Options.CursorDelay. Whatever lies behind the cursor is never looked at again, so a
// majority of the nodes must list the transaction at the new cursor, and before it only
// finished ones: a node that hides a payment cannot have the cursor pass it.
func (p *Prover) advance(ctx context.Context, a *account, list []rpc.SignatureInfo) error {
	now := p.options.Now()
	n, most := 0, len(list)
	if p.node.Upstreams() > 1 {
		most = min(most, maxAdvance)
	}
	for n < most {
		x, ok := a.done[list[n].Signature]
		if !ok || now.Sub(x.at) < p.options.CursorDelay {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	votes, _, majority, err := p.voteOnList(ctx, a, list, n-1, a.finishedAll)
	if err != nil || votes < majority {
		return err
	}
	last := &list[n-1]
	if err := p.store.SetCursor(a.address, last.Signature); err != nil {
		return err
	}
	a.cursor, a.floor = last.Signature, max(a.floor, last.Slot)
	for i := range n {
		delete(a.done, list[i].Signature)
	}
	// Forget signatures that a node has listed once and never again.
	for s, x := range a.done {
		if x.slot < a.floor {
			delete(a.done, s)
		}
	}
	return nil
}

// finishedAll reports whether all transactions between a new cursor and the present one are
// finished, as a node lists them, newest first.
func (a *account) finishedAll(older []rpc.SignatureInfo) bool {
	for i := range older {
		x := &older[i]
		if x.Slot < a.floor || x.Signature == a.cursor {
			return true // the node does not know the cursor
		}
		if _, ok := a.done[x.Signature]; !ok {
			return false
		}
	}
	return len(older) < rpc.MaxSignaturesPerCall-maxAdvance // else the page may not reach back
}

const (
	// MaxSeen bounds the confirmed transactions of an account that one round looks at.
	MaxSeen = 256
	// maxLooks bounds the looks at a confirmed transaction that too few nodes have, and
	// maxUnseen such looks of one round, because a node may list inventions (our choice).
	maxLooks  = 16
	maxUnseen = 32
)

// see looks at the confirmed transactions of an account that are not final yet, and
// reports those to the desk that would pay their claim: an unproven claim gets its full
// time then. A majority of the nodes must have the transaction, or a node that lies could
// hold capacity for claims that nobody pays. It does nothing unless a claim waits.
func (p *Prover) see(ctx context.Context, a *account) error {
	if p.options.Unseen == nil || !p.options.Unseen() {
		clear(a.seen)
		return nil
	}
	list, err := p.node.SignaturesInTurn(ctx, a.address, rpc.Page{Until: a.cursor, Limit: MaxSeen}, rpc.Confirmed)
	if err != nil {
		return err
	}
	listed := make(map[solana.Signature]bool, len(list))
	unseen := 0
	for i := range list {
		s := &list[i]
		listed[s.Signature] = true
		if _, final := a.done[s.Signature]; final || s.Failed || s.Slot < a.floor || a.seen[s.Signature] >= maxLooks || unseen == maxUnseen {
			continue
		}
		switch seen, err := p.seeOne(ctx, s.Signature); {
		case err != nil && !concernsOneTransaction(err):
			return err
		case err != nil || seen:
			a.seen[s.Signature] = maxLooks
		default:
			a.seen[s.Signature]++
			unseen++
		}
	}
	for s := range a.seen {
		if !listed[s] {
			delete(a.seen, s)
		}
	}
	return nil
}

// seeOne reports a confirmed payment to the desk if it would pay an unproven claim. seen is
// false while too few nodes have the transaction.
func (p *Prover) seeOne(ctx context.Context, s solana.Signature) (seen bool, err error) {
	c, found, err := p.node.FindTransaction(ctx, s, rpc.Confirmed)
	switch {
	case errors.Is(err, rpc.ErrNoMajority), errors.Is(err, rpc.ErrDisagree), err == nil && !found:
		return false, nil
	case err != nil || c.Failed:
		return err == nil, err
	}
	if err := verifySignatures(c, s); err != nil {
		return false, err
	}
	e, err := p.effectsOf(c)
	if err != nil {
		return false, err
	}
	id, ok := p.wouldPay(e)
	if !ok {
		return true, nil
	}
	// The desk refuses it for a claim that has moved on meanwhile.
	if _, err := p.desk.Do(&rfq.SeePayment{Claim: id}); err != nil {
		return false, fmt.Errorf("payment %s: %w", s, err)
	}
	return true, nil
}

// wouldPay returns the unproven claim that a transaction pays once it is final.
func (p *Prover) wouldPay(e *accountChanges) (market.ClaimID, bool) {
	list := e.claims()
	if len(list) != 1 {
		return 0, false
	}
	h, known, err := p.desk.Claim(list[0])
	if err != nil || !known || h.Claim.State != rfq.ClaimReserved || h.Claim.Mode != rfq.Modular || h.Claim.Proven {
		return 0, false
	}
	terms := &h.Claim.Terms
	at := slices.IndexFunc(p.destinations, func(x destination) bool { return x.rail == terms.Rail && x.wallet == terms.PayTo })
	return list[0], at >= 0 && payment.Decide(e.facts[at], p.termsOf(&h.Claim)).Reason == ""
}
