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
	// MaxPending is how many transactions since the last poll are listed before
	// they are read, by default, at some 100 bytes each. More than that, and the
	// history is begun anew.
	MaxPending = 100_000
	// maxTries is how many polls a transaction may be unknown or unreadable for
	// before it is passed over, or the past may have no more before that is
	// believed, and maxMisses how many the newest transaction
	// read may be missing from the list for before the history is begun anew.
	// Within so long another node should have taken over.
	maxTries  = 8
	maxMisses = 30
	// maxSlotsAhead is how far a block's slot may be ahead of the newest that the
	// caller knows of: about an hour.
	maxSlotsAhead = 10_000
)

// Errors of a [Backfill].
var (
	// ErrBackfillOptions: options that cannot work.
	ErrBackfillOptions = errors.New("mirror: invalid backfill options")
	// ErrHistory: a list that does not go on from where the last one ended, as of
	// a node that is behind, or has forgotten, or lies.
	ErrHistory = errors.New("mirror: a history that does not join")
	// ErrNotFound: a listed transaction that the node does not have.
	ErrNotFound = errors.New("mirror: a listed transaction is not found")
	// ErrAnswer: an answer to something that was not asked.
	ErrAnswer = errors.New("mirror: an answer that was not asked for")
)

// BackfillOptions are a [Backfill]'s. Zero values take the defaults, where one is
// named.
type BackfillOptions struct {
	// Pair is what the pool trades out of.
	Pair VaultPair
	// Account is whose history is followed: the pool's account, which its program
	// writes in every swap, or, of a bare pair, one of the vaults.
	Account solana.Address
	// Horizon is how far back the history is read; 0 is to its beginning.
	Horizon time.Duration
	// PageSize is how many transactions one call lists, 2 to
	// rpc.MaxSignaturesPerCall, which is the default.
	PageSize int
	// MaxPending bounds what is listed and not read. Default [MaxPending].
	MaxPending int
	// MaxAhead is how far a block's time may be ahead of ours; one that is further
	// is unknown. Default one minute.
	MaxAhead time.Duration
}

// Validate checks the options. Errors: [ErrVaults], [ErrBackfillOptions].
func (o *BackfillOptions) Validate() error {
	if err := o.Pair.Validate(); err != nil {
		return err
	}
	if o.Account == (solana.Address{}) || o.Horizon < 0 || o.MaxPending < 0 || o.MaxAhead < 0 || o.PageSize != 0 && (o.PageSize < 2 || o.PageSize > rpc.MaxSignaturesPerCall) {
		return fmt.Errorf("%w: account %s, horizon %v, %d a page, %d pending", ErrBackfillOptions, solana.Text(o.Account), o.Horizon, o.PageSize, o.MaxPending)
	}
	return nil
}

func (o BackfillOptions) withDefaults() BackfillOptions {
	o.PageSize = cmp.Or(o.PageSize, rpc.MaxSignaturesPerCall)
	o.MaxPending = cmp.Or(o.MaxPending, MaxPending)
	o.MaxAhead = cmp.Or(o.MaxAhead, time.Minute)
	return o
}

// Mark is a transaction's place in the history. The zero value is none.
type TxRef struct {
	Signature solana.Signature
	Slot      uint64
	// Time is in seconds of Unix time, 0 if unknown.
	Time int64
}

// Cursor is the gapless run of the history that has been read. It is all that a
// backfill needs to go on after a restart; the zero value has read nothing.
type Cursor struct {
	// Newest and Oldest are the run's ends. Before is the newest transaction of a
	// slot before Newest's, zero if there is none: a list that goes back to it must
	// show Newest, in whatever order its node tells a slot.
	Newest, Before, Oldest TxRef
	// Whole: the run begins with the vaults' creation.
	Complete bool
}

// ProgressKind says what a step came to.
type ProgressKind uint8

const (
	// ReadNewer and ReadOlder: the run has grown by a transaction at its end or
	// at its beginning.
	ReadNewer ProgressKind = 1
	ReadOlder ProgressKind = 2
	// Begun: a new run begins, that need not join what was read before.
	Restarted ProgressKind = 3
)

// Progress is what a step came to; of kind 0 the run is as it was.
type Progress struct {
	Kind  ProgressKind
	Trace Trace
	// Err is why the trace has no movements though there may have been some.
	Err error
	// AsOf, if not zero: everything that was final at AsOf, when the newest list
	// was asked for, has now been read.
	AsOf time.Time
}

// RequestKind says what a [Backfill] wants to know next.
type RequestKind uint8

const (
	// RequestList: a page of the account's history. Answer with Listed.
	RequestList RequestKind = 1
	// RequestTransaction: answer with Read or Unread.
	RequestTransaction RequestKind = 2
	// RequestSkip: the next transaction is listed as failed, so it moved nothing.
	// Answer with Pass.
	RequestSkip RequestKind = 3
)

// Ask is a question to a node; of kind 0 there is none until the next poll.
type Request struct {
	Kind        RequestKind
	Page        rpc.Page
	Transaction solana.Signature
}

// listed is a transaction that is in a list.
type listedTx struct {
	TxRef
	failed, contested bool
}

// edgeSlot is the slot at an end of the run, and which of its transactions are
// known to have been read: all since the backfill was made.
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

// Backfill reads an account's finalized transactions, each once: new ones as they
// come, oldest first, and in between the past, newest first, until its beginning
// or the horizon. It is a machine without a clock or a node: [Backfill.Next] says
// what to ask, and the answers move it on.
//
// Invariants:
//  1. What has been read is one gapless run. It grows at its newer end only by a
//     list that shows the run's newest transaction, which a node that is behind
//     or has forgotten cannot.
//  2. The order of a list is believed to be the chain's, newest first. That of a
//     slot may be another in the next list.
//  3. An answer that cannot be right changes nothing but a count of misses.
//  4. A contested transaction that cannot be had is no end of the run: it may
//     never have been. All of one poll's wait no longer than one transaction does.
//
// Not safe for concurrent use.
type Backfill struct {
	o      BackfillOptions
	cursor Cursor
	now    time.Time
	// page collects what is newer than the run, newest first, until it joins.
	page []listedTx
	// newer and older wait to be read. The next one is newer's last and older's
	// first.
	newer, older []listedTx
	asOf         time.Time
	slot         uint64
	// polling: the list of newer ones has been asked for and does not join yet.
	// catching: what it listed has not all been read.
	polling, catchingUp bool
	// blocked: nothing is to be asked until the next poll. dry: the nodes had no
	// more of the past, dries how often in a row.
	blocked, exhausted     bool
	misses, exhaustedPolls int
	// How often the next transaction at each end could not be had. Each end has its
	// own, so that one that goes on does not have the other wait for ever.
	newerTries, olderTries int
	// first and last are the slots at the run's ends. passed are the contested
	// ones that have been passed over since the run last grew at its newer end,
	// and doubts the tries that such have cost since all that is listed was read.
	first, last    edgeSlot
	skipped        map[solana.Signature]struct{}
	contestedTries int
}

// NewBackfill goes on from a cursor. It asks for nothing before the first Poll.
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

// Cursor returns where the backfill stands. What it has told before must be kept
// before the cursor is, or with it; what is told again after a crash counts once.
func (b *Backfill) Cursor() Cursor { return b.cursor }

// Pending returns how many transactions are listed and not read.
func (b *Backfill) Pending() int { return len(b.page) + len(b.newer) + len(b.older) }

// Poll lets the backfill ask for what is new. Without it, it rests once it has
// read all that it knows of. slot is the newest final slot that the caller knows
// of, 0 for none: lists must be as of it at least.
func (b *Backfill) Poll(now time.Time, slot uint64) {
	b.now, b.slot, b.blocked, b.exhausted = now, max(b.slot, slot), false, false
	if !b.polling && !b.catchingUp || b.polling && len(b.page) == 0 {
		b.polling, b.asOf = true, now
	}
}

// Next returns what to ask now.
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

// next returns which transaction is to be read next, nil if none is, and to
// which end of the run it goes.
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

// wantsOlder reports whether the past is to be read further.
func (b *Backfill) wantsOlder() bool {
	c := &b.cursor
	return c.Oldest != (TxRef{}) && !c.Complete && !b.exhausted && !b.beyondHorizon(&c.Oldest)
}

// PastRead reports how far the past is read: done is that the run goes back to the
// vaults' creation or the horizon, dry that the nodes have had no more of it for so
// many polls that they must have forgotten it.
func (b *Backfill) PastRead() (done, dry bool) {
	c := &b.cursor
	begun := c.Oldest != (TxRef{}) && len(b.older) == 0
	return begun && (c.Complete || b.beyondHorizon(&c.Oldest)), begun && b.exhaustedPolls >= maxTries
}

// past reports whether a transaction is beyond the horizon.
func (b *Backfill) beyondHorizon(m *TxRef) bool {
	return b.o.Horizon > 0 && m.Time > 0 && m.Time <= b.now.Add(-b.o.Horizon).Unix()
}

// told returns when the list was asked for that has now been read, once.
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

// Read takes a transaction. Errors: [ErrAnswer], and as [Backfill.Unavailable] for one
// that is not as it was listed.
func (b *Backfill) Read(c *ledger.Confirmed) (Progress, error) {
	l, _ := b.next()
	if b.Next().Kind != RequestTransaction || c.Signature() != l.Signature {
		return Progress{}, fmt.Errorf("%w: transaction %s", ErrAnswer, c.Signature())
	}
	if c.Slot != l.Slot || c.Failed && !l.contested || l.Time != 0 && c.BlockTime != 0 && c.BlockTime != l.Time {
		return b.Unavailable(fmt.Errorf("%w: transaction %s is not as it was listed", ErrHistory, c.Signature()))
	}
	trace, err := b.o.Pair.Decode(c)
	if trace.Time = b.plausible(trace.Time); trace.Time == 0 {
		trace.Time = l.Time
	}
	return b.extend(trace, err), nil
}

// Unread takes that a transaction cannot be had, and why. It is asked for again
// after the next poll, and passed over with the error after enough of them.
// Errors: [ErrAnswer], or why.
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

// skipContested leaves a contested transaction out of the run, and in doubt.
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

// Pass takes a failed transaction. Errors: [ErrAnswer].
func (b *Backfill) Skip() (Progress, error) {
	if b.Next().Kind != RequestSkip {
		return Progress{}, fmt.Errorf("%w: nothing", ErrAnswer)
	}
	l, _ := b.next()
	return b.extend(l.trace(), nil), nil
}

// trace is all that a list tells.
func (l *listedTx) trace() Trace { return Trace{Signature: l.Signature, Slot: l.Slot, Time: l.Time} }

// grow takes the next transaction into the run.
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
