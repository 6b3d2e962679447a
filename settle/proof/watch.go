package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine/event"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/store"
)

// Unreadable is the reason of a stray of which no node has given an answer that
// can be read: nothing of its amount is known.
const Unreadable = "unreadable"

// clockAhead is how many seconds the chain's clock may be ahead of ours for the
// watch to know history as such. Within them nobody takes a claim and pays it.
const clockAhead = 2

// Reasons for which the watch tries a transaction again.
var (
	errNotFinal = errors.New("listed as final, and not found")
	errDeskFull = errors.New("the desk has no room for it")
	errCursor   = errors.New("no node knows the transaction at the cursor")
)

// account is one that the watch follows. Its history is a list from old to new:
//
//	… looked at | cursor | looked at, some not to an end | not listed yet
//
// The cursor is durable. What is after it is looked at again after a restart,
// which changes nothing: a signature is booked once.
type account struct {
	address solana.Address
	// since is Options.Since in seconds of the chain's Unix time. Where no cursor is
	// stored, what is in blocks up to then is not looked at: it is history, and no
	// claim is paid in it. history says so.
	since   int64
	history bool
	placed  bool
	cursor  solana.Signature
	// floor is the cursor's slot, 0 if not known. What is listed below it is from
	// a node that does not know the cursor.
	floor uint64
	// done are the signatures after the cursor that are through; failed those that
	// are not, with the time of their first failure.
	done   map[solana.Signature]finishedAt
	failed map[solana.Signature]time.Time
	// lost is since when the cursor cannot be found.
	cursorMissingSince time.Time
}

// passed is when a transaction was through, and its slot.
type finishedAt struct {
	at   time.Time
	slot uint64
}

// Run watches every account that is paid until the context ends, and looks at
// each finalized transaction that names one as Verify does: so money that nobody
// reports is booked, or kept as stray. A node that fails delays it; see
// [Prover.Stats]. It must run once only at a time.
func (p *Prover) Run(ctx context.Context) error {
	since := p.options.Since.Unix() + clockAhead
	var group errgroup.Group
	for i := range p.destinations {
		a := &account{
			address: p.destinations[i].target.PayTo, since: since,
			done: map[solana.Signature]finishedAt{}, failed: map[solana.Signature]time.Time{},
		}
		group.Go(func() error {
			ticker := time.NewTicker(p.options.WatchEvery)
			defer ticker.Stop()
			for {
				p.report(ctx, i, a, p.follow(ctx, a))
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

// report enters how a round of account i ended.
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
	if text != w.Error {
		p.options.Logger.Warn("treasury_watch", "account", solana.Text(a.address), "error", text, "waiting", len(a.failed))
	}
	w.Error, w.Waiting = text, len(a.failed)
}

// follow brings one account up to date, as far as the node and the desk let it.
func (p *Prover) follow(ctx context.Context, a *account) error {
	if !a.placed {
		if err := p.placeCursor(ctx, a); err != nil {
			return err
		}
	}
	list, err := p.list(ctx, a)
	if err != nil {
		return err
	}
	err = p.examineNew(ctx, a, list)
	return errors.Join(err, p.advance(a, list))
}

// place finds where to begin: at the stored cursor; the first time, after what is
// old, so that no history is taken for money that came. So it does where it is to
// rewind; the cursor that is stored then stays until the chain has answered.
func (p *Prover) placeCursor(ctx context.Context, a *account) error {
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
	a.cursor, a.placed = cursor, true
	return nil
}

// slotOf returns the slot of the stored cursor. A node that does not know the
// cursor lists everything before it too, so one is waited for that does; 0 after
// Options.GiveUpAfter.
func (p *Prover) slotOf(ctx context.Context, a *account, cursor solana.Signature) (uint64, error) {
	c, found, err := p.node.Transaction(ctx, cursor, rpc.Finalized)
	switch {
	case found && err == nil:
		return c.Slot, nil
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

// old reports whether a transaction is of a block up to the desk's beginning.
func (a *account) old(s rpc.SignatureInfo) bool { return s.BlockTime != 0 && s.BlockTime <= a.since }

// first returns the newest transaction that is old, zero where there is none, and
// its slot.
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

// list returns what is after the cursor, the oldest first; where that is more
// than MaxAhead, the oldest of it.
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

// pages lists what is after the cursor from new to old, until a page is empty:
// that one is short proves nothing. It stops where f returns false. Errors:
// [ErrAnswer] after MaxPages.
func (p *Prover) pages(ctx context.Context, a *account, f func([]rpc.SignatureInfo) bool) error {
	page := rpc.Page{Until: a.cursor}
	for range MaxPages {
		got, err := p.node.Signatures(ctx, a.address, page, rpc.Finalized)
		if err != nil || len(got) == 0 || !f(got) {
			return err
		}
		page.Before = got[len(got)-1].Signature
	}
	return fmt.Errorf("%w: over %d pages of signatures", ErrAnswer, MaxPages)
}

// examineNew looks at what is new, the oldest first, some at a time. It stops where
// the node or the desk cannot serve; what only one transaction suffers from waits
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
		// Failed ones moved nothing but their fee: a node that lies there could as
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
		switch {
		case !tried[i]:
		case p.finished(s, results[i], since, now):
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
	a.failed = failed
	return failure
}

// through reports whether a transaction need not be looked at again. One that no
// node has given a readable answer about since so long is left to a person.
func (p *Prover) finished(s *rpc.SignatureInfo, err error, since, now time.Time) bool {
	switch {
	case err == nil:
		return true
	case since.IsZero() || now.Sub(since) < p.options.GiveUpAfter || !concernsOneTransaction(err):
		return false
	case errors.Is(err, errDeskFull) || errors.Is(err, store.ErrFull):
		return false
	}
	return p.addUnmatched(&store.UnmatchedPayment{Signature: s.Signature, Reason: Unreadable, Slot: s.Slot, SeenAt: now.UnixNano()}) == nil
}

// witness has one transaction looked at; nil means that it is through, whatever
// came of it.
func (p *Prover) examineListed(ctx context.Context, s solana.Signature) error {
	f, err := p.find(ctx, lookup{signature: s})
	switch {
	case err != nil:
		return err
	case f.pending && f.claim == nil || f.notFinal:
		return fmt.Errorf("payment %s: %w", s, errNotFinal)
	case f.refused == event.ReasonDeskFull && f.payment == nil:
		return fmt.Errorf("payment %s: %w", s, errDeskFull)
	}
	return nil
}

// concernsOneTransaction reports whether an error is a matter of the one transaction: others
// may still be looked at.
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

// advance moves the cursor over what is through and has been so for a while.
func (p *Prover) advance(a *account, list []rpc.SignatureInfo) error {
	now := p.options.Now()
	n := 0
	for n < len(list) {
		x, ok := a.done[list[n].Signature]
		if !ok || now.Sub(x.at) < p.options.CursorDelay {
			break
		}
		n++
	}
	if n == 0 {
		return nil
	}
	last := &list[n-1]
	if err := p.store.SetCursor(a.address, last.Signature); err != nil {
		return err
	}
	a.cursor, a.floor = last.Signature, max(a.floor, last.Slot)
	for i := range n {
		delete(a.done, list[i].Signature)
	}
	// What a node listed once and never again is forgotten with its slot.
	for s, x := range a.done {
		if x.slot < a.floor {
			delete(a.done, s)
		}
	}
	return nil
}
