package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// Limits of a [Backfill].
const (
	// MaxPending is the default bound of the transactions since the last poll that are
	// listed before they are read, at some 100 bytes each. Beyond it the history
	// restarts.
	MaxPending = 100_000
	// maxTries is the number of polls for which a transaction may be unknown or
	// unreadable before it is skipped, or the past may be empty before that is believed.
	// maxMisses is the number for which the newest transaction read may be missing in the
	// list before the history restarts. Within that time another node should have taken
	// over.
	maxTries  = 8
	maxMisses = 30
	// maxSlotsAhead bounds how far a listed slot may be above the newest slot that
	// the caller passed to Poll: about an hour.
	maxSlotsAhead = 10_000
)

// Errors of a [Backfill].
var (
	// ErrBackfillOptions means invalid options.
	ErrBackfillOptions = errors.New("mirror: invalid backfill options")
	// ErrHistory means a list that does not continue from the last one, from a node that
	// lags, has deleted history, or lies.
	ErrHistory = errors.New("mirror: a node's history does not continue what was read before")
	// ErrNotFound means a listed transaction that the node does not have.
	ErrNotFound = errors.New("mirror: no node returned a transaction that is listed")
	// ErrAnswer means an answer to a request that was not made.
	ErrAnswer = errors.New("mirror: internal error: answer without a request")
)

// BackfillOptions are the settings of a [Backfill]. Zero values take the defaults, if
// there are any.
type BackfillOptions struct {
	// Pair are the pool's vaults.
	Pair VaultPair
	// Account is the account whose history is read: the pool's, which its program writes in
	// every swap, or one of the vaults of a pool without a program.
	Account solana.Address
	// Horizon is how far back the history is read; 0 = to its beginning.
	Horizon time.Duration
	// PageSize is the number of transactions of a list, 2 to rpc.MaxSignaturesACall,
	// which is the default.
	PageSize int
	// MaxPending bounds the listed transactions that were not read. Default [MaxPending].
	MaxPending int
	// MaxAhead bounds a block's time beyond ours; a later one counts as unknown. Default
	// one minute.
	MaxAhead time.Duration
}

// Validate checks the options. Errors: [ErrVaults], [ErrBackfillOptions].
func (o *BackfillOptions) Validate() error {
	if err := o.Pair.Validate(); err != nil {
		return err
	}
	if o.Account == (solana.Address{}) || o.Horizon < 0 || o.MaxPending < 0 || o.MaxAhead < 0 || o.PageSize != 0 && (o.PageSize < 2 || o.PageSize > rpc.MaxSignaturesPerCall) {
		return fmt.Errorf("%w: account %s, horizon %v, page size %d, max pending %d", ErrBackfillOptions, solana.Base58(o.Account), o.Horizon, o.PageSize, o.MaxPending)
	}
	return nil
}

func (o BackfillOptions) withDefaults() BackfillOptions {
	o.PageSize = cmp.Or(o.PageSize, rpc.MaxSignaturesPerCall)
	o.MaxPending = cmp.Or(o.MaxPending, MaxPending)
	o.MaxAhead = cmp.Or(o.MaxAhead, time.Minute)
	return o
}

// TxRef refers to a transaction of the history. The zero value is none.
type TxRef struct {
	Signature solana.Signature
	Slot      uint64
	// Time is in Unix seconds, 0 if unknown.
	Time int64
}

// Cursor is the gapless run of transactions that was read, and all that a backfill needs
// to continue after a restart. The zero value has read nothing.
type Cursor struct {
	// Newest and Oldest are the run's ends. Before is the newest transaction of a slot
	// before Newest's, zero if there is none: a list that goes back to it must contain
	// Newest, in whatever order its node lists a slot.
	Newest, Before, Oldest TxRef
	// Complete: the run begins with the vaults' creation.
	Complete bool
}

// ProgressKind is the result of a step.
type ProgressKind uint8

const (
	// ReadNewer and ReadOlder: the run has grown by a transaction at that end.
	ReadNewer ProgressKind = 1
	ReadOlder ProgressKind = 2
	// Restarted: a new run begins, which may not join the one before.
	Restarted ProgressKind = 3
)

// Progress is the result of a step. Of kind 0 the run is unchanged.
type Progress struct {
	Kind  ProgressKind
	Trace Trace
	// Err is why the trace has no movements although there may have been some.
	Err error
	// AsOf is not zero if everything that was final at AsOf, when the newest list
	// was requested, was read.
	AsOf time.Time
}

// RequestKind is the kind of a [Backfill]'s next request.
type RequestKind uint8

const (
	// RequestList: a page of the account's history. Answer with Listed.
	RequestList RequestKind = 1
	// RequestTransaction: a transaction. Answer with Read or Unavailable.
	RequestTransaction RequestKind = 2
	// RequestSkip: the next transaction is listed as failed, so it moved nothing. Answer
	// with Skip.
	RequestSkip RequestKind = 3
)

// Request is a request to a node. Of kind 0 there is none until the next poll.
type Request struct {
	Kind        RequestKind
	Page        rpc.Page
	Transaction solana.Signature
}

// listedTx is a transaction of a list.
type listedTx struct {
	TxRef
	failed, contested bool
}

// edgeSlot is the slot at an end of the run, with those of its transactions that the
// backfill has read since it was made.
type edgeSlot struct {
	slot uint64
	read map[solana.Signature]struct{}
}

func (e *edgeSlot) add(m *TxRef) {
	if e.read == nil || e.slot != m.Slot {
		e.slot, e.read = m.Slot, map[solana.Signature]struct{}{}
	}
	e.read[m.Signature] = struct{}{}
}

func (e *edgeSlot) has(m *TxRef) bool {
	_, ok := e.read[m.Signature]
	return ok && e.slot == m.Slot
}

// Backfill reads an account's finalized transactions, each once: new ones as they come,
// oldest first, and between polls the past, newest first, until its beginning or the
// horizon. It is a state machine without clock or node: [Backfill.Next] returns the next
// request, and the answers advance it.
//
// Invariants:
//  1. The transactions read form one gapless run. It grows at its newer end only by a
//     list that contains the run's newest transaction, which a node that lags or has
//     deleted history cannot return.
//  2. A list's order is the chain's, newest first. The order within a slot may differ
//     between lists.
//  3. An impossible answer changes only a count of misses.
//  4. A contested transaction that cannot be read does not end the run, because it may
//     never have existed. All of one poll together wait no longer than one transaction.
//
// Not safe for concurrent use.
type Backfill struct {
	o      BackfillOptions
	cursor Cursor
	now    time.Time
	// page collects the list of newer transactions, newest first, until it joins the run.
	page []listedTx
	// newer and older are to be read: next newer's last and older's first.
	newer, older []listedTx
	asOf         time.Time
	slot         uint64
	// polling: the list of newer transactions was requested and does not join yet.
	// catchingUp: not all of it was read.
	polling, catchingUp bool
	// blocked: no request until the next poll. exhausted: the nodes had no more of the
	// past; exhaustedPolls counts how often in a row.
	blocked, exhausted     bool
	misses, exhaustedPolls int
	// newerTries and olderTries count how often the next transaction at that end was
	// unavailable, so that one end never delays the other forever.
	newerTries, olderTries int
	// first and last are the slots at the run's ends. skipped are the contested
	// transactions skipped since the run last grew at its newer end; contestedTries
	// counts the tries for contested transactions since everything listed was read.
	first, last    edgeSlot
	skipped        map[solana.Signature]struct{}
	contestedTries int
}

// NewBackfill continues from a cursor. Its first request comes after the first Poll.
// Errors: [ErrVaults], [ErrBackfillOptions].
func NewBackfill(o BackfillOptions, at Cursor) (*Backfill, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	b := &Backfill{o: o.withDefaults(), cursor: at, blocked: true}
	if at.Newest != (TxRef{}) {
		b.last.add(&at.Newest)
		b.first.add(&at.Oldest)
	}
	return b, nil
}

// Cursor returns the run that was read. Store the results of the steps before the cursor,
// or with it; a result that is repeated after a crash counts once.
func (b *Backfill) Cursor() Cursor { return b.cursor }

// Pending returns the number of listed transactions that were not read.
func (b *Backfill) Pending() int { return len(b.page) + len(b.newer) + len(b.older) }

// Poll makes the backfill request new transactions. Without Poll it stops once it has
// read all listed transactions. slot is the newest final slot that the caller has seen,
// 0 for none: lists must not be older.
func (b *Backfill) Poll(now time.Time, slot uint64) {
	b.now, b.slot, b.blocked, b.exhausted = now, max(b.slot, slot), false, false
	if !b.polling && !b.catchingUp || b.polling && len(b.page) == 0 {
		b.polling, b.asOf = true, now
	}
}

// Next returns the next request.
func (b *Backfill) Next() Request {
	switch l, _ := b.next(); {
	case b.blocked:
		return Request{}
	case b.polling:
		page := rpc.Page{Until: b.cursor.Before.Signature, Limit: b.o.PageSize, MinSlot: b.slot}
		if n := len(b.page); n > 0 {
			page.Before = b.page[n-1].Signature
		}
		return Request{Kind: RequestList, Page: page}
	case l != nil && l.failed:
		return Request{Kind: RequestSkip}
	case l != nil:
		return Request{Kind: RequestTransaction, Transaction: l.Signature}
	case b.wantsOlder():
		return Request{Kind: RequestList, Page: rpc.Page{Before: b.cursor.Oldest.Signature, Limit: b.o.PageSize, MinSlot: b.slot}}
	default:
		return Request{}
	}
}

// next returns the next transaction to read, nil if there is none, and whether it is at
// the newer end.
func (b *Backfill) next() (l *listedTx, newer bool) {
	switch n := len(b.newer); {
	case n > 0:
		return &b.newer[n-1], true
	case len(b.older) > 0:
		return &b.older[0], false
	default:
		return nil, false
	}
}

// wantsOlder reports whether to read further back.
func (b *Backfill) wantsOlder() bool {
	c := &b.cursor
	return c.Oldest != (TxRef{}) && !c.Complete && !b.exhausted && !b.beyondHorizon(&c.Oldest)
}

// PastRead reports how far back the history was read. done: to the vaults' creation or
// the horizon. exhausted: for maxTries polls the nodes had no more, so they must have
// deleted it.
func (b *Backfill) PastRead() (done, exhausted bool) {
	c := &b.cursor
	begun := c.Oldest != (TxRef{}) && len(b.older) == 0
	return begun && (c.Complete || b.beyondHorizon(&c.Oldest)), begun && b.exhaustedPolls >= maxTries
}

// beyondHorizon reports whether a transaction is older than the horizon.
func (b *Backfill) beyondHorizon(m *TxRef) bool {
	return b.o.Horizon > 0 && m.Time > 0 && m.Time <= b.now.Add(-b.o.Horizon).Unix()
}

// caughtUp returns, once, the time of the request for the list that is now read
// entirely.
func (b *Backfill) caughtUp() time.Time {
	if !b.catchingUp || len(b.newer) > 0 || b.cursor.Newest == (TxRef{}) && len(b.older) > 0 {
		return time.Time{}
	}
	b.catchingUp = false
	if len(b.older) == 0 {
		b.contestedTries = 0
	}
	return b.asOf
}

// Read handles the answer to RequestTransaction. Errors: [ErrAnswer], and those of
// [Backfill.Unavailable] for a transaction that differs from its listing.
func (b *Backfill) Read(c *ledger.Confirmed) (Progress, error) {
	l, _ := b.next()
	if b.Next().Kind != RequestTransaction || c.Signature() != l.Signature {
		return Progress{}, fmt.Errorf("%w: transaction %s", ErrAnswer, c.Signature())
	}
	if c.Slot != l.Slot || c.Failed && !l.contested || l.Time != 0 && c.BlockTime != 0 && c.BlockTime != l.Time {
		return b.Unavailable(fmt.Errorf("%w: transaction %s differs from its listing", ErrHistory, c.Signature()))
	}
	trace, err := b.o.Pair.Decode(c)
	if trace.Time = b.plausible(trace.Time); trace.Time == 0 {
		trace.Time = l.Time
	}
	return b.extend(trace, err), nil
}

// Unavailable handles the failure of RequestTransaction; why is the reason. The
// transaction is requested again after the next poll, and skipped with that error
// after maxTries polls. Errors: [ErrAnswer], or the reason.
func (b *Backfill) Unavailable(why error) (Progress, error) {
	if b.Next().Kind != RequestTransaction {
		return Progress{}, fmt.Errorf("%w: %w", ErrAnswer, why)
	}
	l, newer := b.next()
	tries := &b.olderTries
	switch {
	case l.contested:
		tries = &b.contestedTries
	case newer:
		tries = &b.newerTries
	}
	if *tries++; *tries < maxTries {
		b.blocked = true
		return Progress{}, why
	}
	if l.contested {
		return b.skipContested(l, newer, why), nil
	}
	return b.extend(l.trace(), why), nil
}

// skipContested leaves a contested transaction out of the run, as uncertain.
func (b *Backfill) skipContested(l *listedTx, newer bool, why error) Progress {
	p := Progress{Kind: ReadOlder, Trace: l.trace(), Err: why}
	if b.skipped == nil {
		b.skipped = map[solana.Signature]struct{}{}
	}
	b.skipped[l.Signature] = struct{}{}
	if newer {
		p.Kind, b.newer = ReadNewer, b.newer[:len(b.newer)-1]
	} else {
		b.older = b.older[1:]
	}
	p.AsOf = b.caughtUp()
	return p
}

// Skip handles RequestSkip: it adds the failed transaction to the run without
// movements. Errors: [ErrAnswer].
func (b *Backfill) Skip() (Progress, error) {
	if b.Next().Kind != RequestSkip {
		return Progress{}, fmt.Errorf("%w: no transaction to skip was requested", ErrAnswer)
	}
	l, _ := b.next()
	return b.extend(l.trace(), nil), nil
}

// trace returns a trace with the fields that the list contains.
func (l *listedTx) trace() Trace { return Trace{Signature: l.Signature, Slot: l.Slot, Time: l.Time} }

// extend adds the next transaction to the run.
func (b *Backfill) extend(t Trace, err error) Progress {
	c, m := &b.cursor, TxRef{t.Signature, t.Slot, t.Time}
	p := Progress{Kind: ReadOlder, Trace: t, Err: err}
	if _, newer := b.next(); newer {
		p.Kind, b.newer, b.newerTries = ReadNewer, b.newer[:len(b.newer)-1], 0
		if m.Slot > c.Newest.Slot {
			c.Before = c.Newest
		}
		c.Newest, b.skipped = m, nil
		b.last.add(&m)
		if m.Slot == c.Oldest.Slot {
			b.first.add(&m)
		}
	} else {
		b.older, b.olderTries = b.older[1:], 0
		switch {
		case c.Newest == (TxRef{}):
			c.Newest = m
		case c.Before == (TxRef{}) && m.Slot < c.Newest.Slot:
			c.Before = m
		}
		if m.Slot == c.Newest.Slot {
			b.last.add(&m)
		}
		c.Oldest = m
		b.first.add(&m)
	}
	if t.Base.Created || t.Quote.Created {
		c.Complete = true
	}
	if c.Complete || b.beyondHorizon(&c.Oldest) {
		b.older = nil
	}
	p.AsOf = b.caughtUp()
	return p
}

// plausible returns a block's time, or 0 for an impossible one.
func (b *Backfill) plausible(seconds int64) int64 {
	if seconds < 0 || seconds > b.now.Add(b.o.MaxAhead).Unix() {
		return 0
	}
	return seconds
}
