package rfq

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// The client of a reserved claim gets a News (35=B) with the transaction to sign: see
// appendPackage. Making it takes requests to the chain, so workers do it, not the reporter.
//
// A claim needs a transaction package while it is reserved and the store has no record that one was
// sent. The claim is committed with the reporter's position, that record with the News. A
// crash that loses the record loses the News too, and the News is sent again, with
// PossResend. If the claim's commit is also lost, the replay makes the claim again first.

// Limits of transaction packages.
const (
	packageWorkers = 4
	// packageTimeout bounds one attempt.
	packageTimeout = 5 * time.Second
	// packagePause is the pause before the second attempt; it doubles up to
	// packageMaxPause.
	packagePause    = 250 * time.Millisecond
	packageMaxPause = 5 * time.Second
	// packageMargin is how long before the claim's deadline the last attempt is: a later
	// package could not be paid in time.
	packageMargin = time.Second
)

// errNoChain means that no settlement is configured.
var errNoChain = errors.New("no chain is configured")

// Packages sends transaction packages to the clients of reserved claims. The goroutines of its queue work.
type Packages struct {
	entry    *Entry
	sessions session.Directory[Session]
	logger   *slog.Logger
	most     int // packages being made; further claims get theirs later
	queue    *retryQueue

	mu    sync.Mutex // guards tasks and overflowed; never taken with a session's held
	tasks map[market.ClaimID]*packageTask
	// overflowed reports that claims are waiting because the queue was full.
	overflowed bool

	sending sync.Mutex // guards out and body
	out     session.Outbox
	body    []byte
}

// packageTask is the transaction package of one claim.
type packageTask struct {
	sender     *Packages
	owner      *Session
	claim      rfq.Claim     // as it was reserved
	possResend bool          // a News may have been sent before a crash
	pause      time.Duration // before the next attempt
}

// NewPackages returns a sender without tasks. most is how many packages are made at once;
// further claims get theirs later.
func NewPackages(entry *Entry, sessions session.Directory[Session], most int, logger *slog.Logger) *Packages {
	return &Packages{
		entry: entry, sessions: sessions, most: most, logger: logger, queue: newRetryQueue(packageWorkers),
		tasks: make(map[market.ClaimID]*packageTask),
	}
}

// Run makes packages until ctx ends.
func (p *Packages) Run(ctx context.Context) error { return p.queue.Run(ctx) }

// Waiting returns how many packages are being made.
func (p *Packages) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tasks)
}

// reserved takes a claim of s that waits for its payment; again reports that it may have
// been taken before the start of the process. It does not wait. Any goroutine.
func (p *Packages) reserved(s *Session, c rfq.Claim, again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks[c.ID] != nil {
		return
	}
	if len(p.tasks) >= p.most {
		p.overflowed = true
		return
	}
	t := &packageTask{sender: p, owner: s, claim: c, possResend: again}
	p.tasks[c.ID] = t
	p.queue.add(t, 0)
}

// refill queues the claims that did not fit into the queue. It leaves out those whose News
// was sent: with more of them than the queue takes, it would queue them again and again.
func (p *Packages) refill() {
	for _, s := range p.sessions.All() {
		for _, c := range s.reserved() {
			sent, err := p.sent(&c)
			if err != nil {
				s.Fail(err)
				return
			}
			if !sent {
				p.reserved(s, c, true)
			}
		}
	}
}

// sent reports whether the store has the record that the News of c was sent.
func (p *Packages) sent(c *rfq.Claim) (bool, error) {
	_, sent, err := p.entry.Store.Get(packageSentKey(nil, c))
	if err != nil {
		return false, fmt.Errorf("claim %s: %w", market.AppendClaimID(nil, c.ID), err)
	}
	return sent, nil
}

// Expired returns the range of records of sent packages of the days before day.
func Expired(day uint32) (lo, hi []byte) { return reports.ExpiredOf(keyPackageSent, day) }

// packageSentKey is the key of the record that a claim's News was sent. It is deleted with the day of the
// reservation, long after the claim has ended.
func packageSentKey(dst []byte, c *rfq.Claim) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, keyPackageSent), reports.DayOf(c.ReservedAt))
	return binary.BigEndian.AppendUint64(dst, uint64(c.ID))
}

// attempt requests the package and sends it, or a News that there will be none.
func (t *packageTask) attempt(ctx context.Context) time.Duration {
	again, err := t.build(ctx)
	if err != nil {
		t.owner.Fail(err)
	}
	if again == 0 {
		t.sender.done(t)
	}
	return again
}

func (t *packageTask) build(ctx context.Context) (again time.Duration, err error) {
	p := t.sender
	if needed, err := t.needed(); err != nil || !needed {
		return 0, err
	}
	made, failed := p.request(ctx, &t.claim)
	var refusal *desk.Refusal
	switch {
	case failed == nil:
		return 0, p.send(t, func(dst []byte) []byte { return p.appendPackage(dst, t, &made) })
	case errors.As(failed, &refusal) && refusal.Reason == desk.RefusalUnbuildable:
		return 0, p.send(t, func(dst []byte) []byte {
			return appendNoPackage(dst, t.claim.ID, wire.CodeRefused+": there is no payment that this claim's wallet could sign")
		})
	}
	if again = t.again(); again > 0 { // also when we stop: the next start finds no record of the News
		return again, nil
	}
	p.logger.Warn("no payment package before the claim deadline", "claim", string(market.AppendClaimID(nil, t.claim.ID)), "error", failed)
	return 0, p.send(t, func(dst []byte) []byte {
		return appendNoPackage(dst, t.claim.ID, wire.CodeChainUnavailable+": the payment could not be made before the claim's time was up")
	})
}

// needed reports whether the claim still waits for a payment and its News was not
// sent.
func (t *packageTask) needed() (bool, error) {
	c, ok, err := t.owner.claimOf(t.claim.ID)
	if err != nil || !ok || c.State != rfq.ClaimReserved {
		return false, err
	}
	sent, err := t.sender.sent(&t.claim)
	return !sent && err == nil, err
}

// again returns the pause before the next attempt; 0 = there is no time for one.
func (t *packageTask) again() time.Duration {
	t.pause = min(max(packagePause, 2*t.pause), packageMaxPause)
	left := time.Duration(t.claim.Deadline-t.sender.entry.Now().UnixNano()) - packageMargin
	return max(0, min(t.pause, left))
}

func (p *Packages) request(ctx context.Context, c *rfq.Claim) (desk.Package, error) {
	settlement := p.entry.Settlement
	if settlement == nil {
		return desk.Package{}, errNoChain
	}
	ctx, cancel := context.WithTimeout(ctx, packageTimeout)
	defer cancel()
	return settlement.Package(ctx, c, desk.TakerPays)
}

// send sends the News that appendBody writes and records that it was sent.
func (p *Packages) send(t *packageTask, appendBody func([]byte) []byte) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.body = appendBody(p.body[:0])
	if err := p.out.Send(t.owner.Session.Session, "B", session.TagHeadline, p.body, t.possResend); err != nil {
		return err
	}
	return t.owner.Messages.SaveWith(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(packageSentKey(nil, &t.claim), nil)
	})
}

// done removes a task, and queues claims that did not fit into the queue.
func (p *Packages) done(t *packageTask) {
	p.mu.Lock()
	delete(p.tasks, t.claim.ID)
	more := p.overflowed && len(p.tasks) <= p.most/2
	if more {
		p.overflowed = false
	}
	p.mu.Unlock()
	if more {
		p.refill()
	}
}

// appendPackage appends the News of a package without "148=". Headline (148) is
// "CLAIM" and the claim's id; LinesOfText (33) are eight Texts (58), each a word, a
// blank and a value:
//
//	PAY 249.750000 USDC      what is paid, and on which rail
//	TO ...                   the account's owner that is paid, base58
//	MINT ...                 the token's mint, base58; "native" = SOL itself
//	FROM ...                 the wallet that pays and signs, base58
//	REFERENCE ...            the read-only account in it, base58
//	MEMO ...                 the memo in it
//	UNTIL 20260101-00:00:00.000  when the claim ends unless it is paid, UTC
//	TRANSACTION 312          bytes of the unsigned version 0 transaction
//
// The transaction itself is in RawData (96), in base64. A client that signs it and sends it
// to the chain has paid; a client that makes its own payment needs the other lines.
func (p *Packages) appendPackage(dst []byte, t *packageTask, made *desk.Package) []byte {
	terms := &t.claim.Terms
	amount := market.AppendDecimal(nil, terms.Payment, terms.Rail.Decimals())
	mint := p.entry.mintOf(terms.Rail)
	dst = market.AppendClaimID(append(dst, "CLAIM "...), t.claim.ID)
	dst = wire.AppendTime(append(dst, "\x0142="...), t.claim.ReservedAt)
	if in := p.entry.Instruments.Get(terms.Instrument); in != nil {
		dst = append(append(dst, "\x01146=1\x0155="...), in.Symbol...)
	}
	dst = append(append(dst, "\x0133=8\x0158=PAY "...), amount...)
	dst = append(append(dst, ' '), terms.Rail.String()...)
	dst = append(append(dst, "\x0158=TO "...), wire.Base58(terms.PayTo[:])...)
	dst = append(append(dst, "\x0158=MINT "...), mint...)
	dst = append(append(dst, "\x0158=FROM "...), wire.Base58(t.claim.Wallet[:])...)
	dst = append(append(dst, "\x0158=REFERENCE "...), wire.Base58(made.Reference[:])...)
	dst = wire.AppendText(append(dst, "\x0158=MEMO "...), made.Memo)
	dst = wire.AppendTime(append(dst, "\x0158=UNTIL "...), t.claim.Deadline)
	dst = strconv.AppendInt(append(dst, "\x0158=TRANSACTION "...), int64(len(made.Transaction)), 10)
	dst = strconv.AppendInt(append(dst, "\x0195="...), int64(base64.StdEncoding.EncodedLen(len(made.Transaction))), 10)
	dst = base64.StdEncoding.AppendEncode(append(dst, "\x0196="...), made.Transaction)
	if !t.owner.Custom.Load() {
		return dst
	}
	dst = wire.AppendCustomText(dst, wire.TagPaymentAmount, string(amount))
	dst = wire.AppendCustomCount(dst, wire.TagPaymentAtoms, terms.Payment)
	dst = wire.AppendCustomText(dst, wire.TagPayTo, wire.Base58(terms.PayTo[:]))
	if terms.Rail != market.RailSOL {
		dst = wire.AppendCustomText(dst, wire.TagPaymentMint, mint)
	}
	dst = wire.AppendCustomText(dst, wire.TagPaymentReference, wire.Base58(made.Reference[:]))
	return wire.AppendText(wire.AppendTag(dst, wire.TagPaymentMemo), made.Memo)
}

// nativeMint is shown for a rail without a mint.
const nativeMint = "native"

// mintOf returns the text of the mint that is paid on a rail.
func (e *Entry) mintOf(rail market.Rail) string {
	if rail == market.RailUSDC {
		if v, refusal := e.view(); refusal == nil {
			return wire.Base58(v.Policy.USDCMint[:])
		}
	}
	return nativeMint
}

// appendNoPackage appends the News that a claim gets no package, without "148=".
func appendNoPackage(dst []byte, id market.ClaimID, text string) []byte {
	dst = market.AppendClaimID(append(dst, "CLAIM "...), id)
	return append(append(dst, "\x0133=1\x0158="...), text...)
}
