package rfq

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestTranscripts runs testdata/transcripts: a line is a request or an event around the desk,
// its records follow. Each file is one desk, restarted from its snapshot after every block.
//
//	verb [words] [key=value]...
//
// The token, which is the id of the new quote or claim, counts up from 1 unless token= sets it.
// +15s lets time pass without a command.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		s := &script{desk: newDesk()}
		s.at = testAt
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			answer := s.run(t, d.Input)
			s.check(t)
			s.restart(t)
			return answer
		})
	})
}

type script struct {
	*desk
	token uint64
}

func (s *script) run(t *testing.T, input string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fmt.Fprintln(&b, line)
		for _, rec := range s.line(t, line) {
			fmt.Fprintf(&b, "  %s\n", textOfRecord(rec))
		}
	}
	return b.String()
}

func (s *script) line(t *testing.T, line string) []Record {
	t.Helper()
	l, err := parseLine(line)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	switch {
	case l.verb[0] == '+':
		s.at += l.duration(l.verb[1:])
		return nil
	case l.verb == "tick":
		return s.expire(t)
	case l.verb == "book":
		if mid := l.price("mid"); mid != 0 {
			s.mids[l.instrument()] = mid
		} else {
			delete(s.mids, l.instrument())
		}
		return nil
	case l.verb == "next":
		return []Record{remark(fmt.Sprint("next expiry ", when(s.m.NextExpiry())))}
	case l.verb == "sellable":
		if t := Sellable(s.model.View().Tickets); t != nil {
			return []Record{remark(fmt.Sprint("sellable ", t.ID))}
		}
		return []Record{remark("nothing is sellable")}
	case l.verb == "raw":
		data, err := hex.DecodeString(l.text("hex"))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return s.applyBytes(t, data)
	}
	r := l.request()
	if r == nil || l.err != nil {
		t.Fatalf("%q: %v", line, l.err)
	}
	s.token++
	h := r.Head()
	h.RequestID = l.number("token", s.token)
	h.Operator = market.OperatorID(l.number("op", 0))
	copy(h.Key.ID[:], l.text("key"))
	for key := range l.args {
		if !l.used[key] {
			t.Fatalf("%q: %s= is not asked for", line, key)
		}
	}
	return s.apply(t, r)
}

// remark is a line without a record.
type remark string

func (remark) Tag() Tag    { return 0 }
func (remark) walk(*codec) {}

// words are the words of a line.
type words struct {
	verb  string
	plain []string
	args  map[string]string
	used  map[string]bool
	err   error
}

func parseLine(line string) (*words, error) {
	l := &words{args: map[string]string{}, used: map[string]bool{}}
	for i, word := range strings.Fields(line) {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case i == 0:
			l.verb = word
		case ok:
			l.args[key] = value
		default:
			l.plain = append(l.plain, word)
		}
	}
	return l, nil
}

func (l *words) fail(err error) {
	if l.err == nil && err != nil {
		l.err = err
	}
}

func (l *words) text(key string) string {
	l.used[key] = true
	return l.args[key]
}

func (l *words) number(key string, none uint64) uint64 {
	text := l.text(key)
	if text == "" {
		return none
	}
	n, err := strconv.ParseUint(text, 10, 64)
	l.fail(err)
	return n
}

func (l *words) price(key string) market.USDPrice {
	return market.USDPrice(l.decimal(key, market.USDPriceDecimals))
}

func (l *words) decimal(key string, decimals int) uint64 {
	text := l.text(key)
	if text == "" {
		return 0
	}
	v, err := market.ParseDecimal([]byte(text), decimals)
	l.fail(err)
	return v
}

func (l *words) instrument() market.InstrumentID { return market.InstrumentID(l.number("in", 0)) }

// duration parses 15s, 2m, 1h, 3d.
func (l *words) duration(text string) int64 {
	if text == "" {
		return 0
	}
	unit := map[byte]int64{'s': second, 'm': 60 * second, 'h': hour, 'd': day}[text[len(text)-1]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 64)
	l.fail(err)
	return n * unit
}

// expires parses a time relative to the desk's start.
func (l *words) expires() int64 {
	if text := l.text("expires"); text != "" {
		return testAt + l.duration(text)
	}
	return 0
}

// time parses a time relative to the desk's start: 15s, -2m.
func (l *words) time(key string) int64 {
	text := l.text(key)
	if before, ok := strings.CutPrefix(text, "-"); ok {
		return testAt - l.duration(before)
	} else if text == "" {
		return 0
	}
	return testAt + l.duration(text)
}

func (l *words) yes(key string) bool { return l.text(key) == "yes" }

func (l *words) origin() PriceOrigin {
	return map[string]PriceOrigin{"pyth": OriginPyth, "pool": OriginPool, "operator": OriginOperator}[l.text("source")]
}

func (l *words) word(i int) string {
	if i >= len(l.plain) {
		l.fail(fmt.Errorf("word %d is missing", i+1))
		return ""
	}
	return l.plain[i]
}

func (l *words) ticket() market.TicketID {
	id, ok := market.ParseTicketID([]byte(l.word(0)))
	if !ok {
		l.fail(fmt.Errorf("no ticket: %q", l.word(0)))
	}
	return id
}

func (l *words) tranche() (market.TicketID, market.TrancheID) {
	ticket, tranche, ok := market.ParseTrancheID([]byte(l.word(0)))
	if !ok {
		l.fail(fmt.Errorf("no tranche: %q", l.word(0)))
	}
	return ticket, tranche
}

// claim parses C7.
func (l *words) claim() market.ClaimID {
	n, err := strconv.ParseUint(strings.TrimPrefix(l.word(0), "C"), 10, 64)
	l.fail(err)
	return market.ClaimID(n)
}

func (l *words) fill(i int) market.FillUSD {
	f, _ := market.ParseFill([]byte(l.word(i)))
	return f
}

func (l *words) rail(text string) market.Rail {
	r, _ := market.ParseRail([]byte(text))
	return r
}

func (l *words) rails() (s market.Rails) {
	for _, name := range strings.FieldsFunc(l.text("rails"), func(r rune) bool { return r == '+' }) {
		s = s.With(l.rail(name))
	}
	return s
}

func (l *words) dollars(text string) market.USD {
	v, err := market.ParseDecimal([]byte(text), market.USDDecimals)
	l.fail(err)
	return market.USD(v)
}

// request parses the request of the line.
func (l *words) request() Request {
	switch l.verb {
	case "policy":
		return &SetPolicy{Policy: l.policy()}
	case "pair":
		return &SetPair{Pair: l.pair()}
	case "operator":
		return &SetOperator{Of: Operator{ID: market.OperatorID(l.number("id", 0)), Name: l.text("name")}}
	case "anchor":
		return &SetAnchor{
			Instrument: l.instrument(), Price: l.price("price"), Source: l.origin(), Confidence: l.price("confidence"),
			PublishedAt: l.time("published"), Withdrawn: l.yes("withdrawn"),
		}
	case "rail":
		return &SetRailPrice{
			Rail: l.rail(l.word(0)), Price: l.price("price"), MaxAge: l.duration(l.text("max_age")), Source: l.origin(),
			Confidence: l.price("confidence"), PublishedAt: l.time("published"), Withdrawn: l.yes("withdrawn"),
		}
	case "balance":
		return &SetBalance{Instrument: l.instrument(), Atoms: l.decimal("base", testDecimals), Slot: 9}
	case "inventory":
		return &SetInventory{Instrument: l.instrument(), Atoms: l.decimal("base", testDecimals)}
	case "lock", "unlock":
		return l.lock()
	case "post":
		r := &PostTicket{
			Label: l.text("label"), Instrument: l.instrument(), Rails: l.rails(), Priority: uint16(l.number("priority", 0)),
			Reference: l.price("reference"), ExpiresAt: l.expires(),
		}
		for _, capacity := range l.plain {
			r.Capacities = append(r.Capacities, l.dollars(capacity))
		}
		return r
	case "amend":
		return &AmendTicket{
			Ticket: l.ticket(), Rails: l.rails(), Priority: uint16(l.number("priority", 0)),
			Reference: l.price("reference"), ExpiresAt: l.expires(),
		}
	case "number":
		return &SetFirstTicket{First: l.ticket()}
	case "tranche":
		ticket, tranche := l.tranche()
		return &SetTranche{Ticket: ticket, Tranche: tranche, Capacity: l.dollars(l.word(1))}
	case "withdraw":
		return &WithdrawTicket{Ticket: l.ticket()}
	case "quote":
		ticket, tranche := l.tranche()
		return &RequestQuote{Ticket: ticket, Tranche: tranche, Fill: l.fill(1), Rail: l.rail(l.word(2))}
	case "claim", "atomic":
		ticket, tranche := l.tranche()
		mode := Modular
		if l.verb == "atomic" {
			mode = Atomic
		}
		return &TakeClaim{
			Ticket: ticket, Tranche: tranche, Fill: l.fill(1), Rail: l.rail(l.word(2)), Mode: mode,
			Quote: market.QuoteID(l.number("quote", 0)), Wallet: address(l.text("wallet")),
			Client: ClientAddress(l.number("client", 0)), Proven: l.yes("proven"),
		}
	}
	return l.step()
}

// step parses a request about a claim or payment.
func (l *words) step() Request {
	switch l.verb {
	case "pay":
		rail := l.rail(l.word(2))
		if !rail.Valid() {
			return &ProvePayment{Claim: l.claim(), Signature: signature(l.text("sig"))}
		}
		amount, err := market.ParseDecimal([]byte(l.word(1)), rail.Decimals())
		l.fail(err)
		return &ProvePayment{
			Claim: l.claim(), Rail: rail, Signature: signature(l.text("sig")), Payer: address("payer"), Amount: amount, Slot: 9,
			BlockTime: l.time("block") / second,
		}
	case "see":
		return &SeePayment{Claim: l.claim()}
	case "unbuilt":
		return &ReleaseUnbuilt{Claim: l.claim()}
	case "deliver":
		return &BeginDelivery{Claim: l.claim(), Proof: proof(l.text("proof"))}
	case "expire":
		return &ExpireDelivery{Claim: l.claim(), Proof: proof(l.text("proof"))}
	case "settle":
		return &SettleClaim{Claim: l.claim(), Proof: proof(l.text("proof"))}
	case "cosign":
		return &CosignClaim{Claim: l.claim(), Proof: proof(l.text("proof"))}
	case "release":
		return &ReleaseClaim{Claim: l.claim()}
	case "abandon":
		r := &AbandonDelivery{Claim: l.claim()}
		if name := l.text("reason"); name != "" {
			for r.Reason = 1; r.Reason.String() != name; r.Reason++ {
			}
		}
		return r
	case "begin_refund":
		return &BeginRefund{Signature: signature(l.text("sig")), Proof: proof(l.text("proof"))}
	case "expire_refund":
		return &ExpireRefund{Signature: signature(l.text("sig")), Proof: proof(l.text("proof"))}
	case "refund":
		return &RefundPayment{Signature: signature(l.text("sig")), Proof: proof(l.text("proof"))}
	}
	return nil
}

func (l *words) policy() Policy {
	p := testPolicy()
	if l.text("rules") == "guarded" {
		p = guardedPolicy()
	}
	p.UnprovenPerClient = market.USD(l.number("per_client", uint64(p.UnprovenPerClient)/1_000_000)) * 1_000_000
	p.UnprovenShareBps = uint16(l.number("share", uint64(p.UnprovenShareBps)))
	for key, field := range map[string]*int64{
		"quote_ttl": &p.QuoteTTL, "claim_ttl": &p.ClaimTTL, "late": &p.LateWindow, "grace": &p.Grace, "unproven_ttl": &p.UnprovenTTL,
	} {
		if text := l.text(key); text != "" {
			*field = l.duration(text)
		}
	}
	p.FeeBps = uint16(l.number("fee", uint64(p.FeeBps)))
	p.WalletClaims = uint16(l.number("wallet", uint64(p.WalletClaims)))
	if l.text("sol") == "none" {
		p.PayTo[market.RailSOL] = market.Address{}
	}
	return p
}

func (l *words) pair() Pair {
	p := testPair(l.instrument())
	p.BaseDecimals = uint8(l.number("decimals", testDecimals))
	p.CorridorBps = uint16(l.number("corridor", uint64(p.CorridorBps)))
	p.MaxAge = l.duration(l.text("max_age"))
	p.FirmBps = [market.RailCount]uint16{1: uint16(l.number("firm_usdc", 0)), 2: uint16(l.number("firm_sol", 0))}
	p.Via = market.InstrumentID(l.number("via", uint64(NoInstrument)))
	if s := l.rails(); s != 0 {
		p.Rails = s
	}
	if l.text("source") == "book" {
		p.Source = SourceBook
	}
	if mint := l.text("mint"); mint != "" {
		p.BaseMint = address(mint)
	}
	return p
}

func (l *words) lock() Request {
	r := &SetLock{Locked: l.verb == "lock", Reason: l.text("reason")}
	switch l.word(0) {
	case "all":
		r.Scope = LockAll
	case "deliveries":
		r.Scope = LockDeliveries
	case "clock":
		r.Scope = LockClock
	case "pair":
		r.Scope, r.Instrument = LockPair, l.instrument()
	case "USDC", "SOL":
		r.Scope, r.Rail = LockRail, l.rail(l.word(0))
	}
	return r
}

// Records as text.

var (
	ticketStates  = map[TicketState]string{1: "open", 2: "exhausted", 3: "withdrawn", 4: "expired"}
	paymentStates = map[PaymentState]string{1: "applied", 2: "refund_due", 3: "refunded", 4: "refunding"}
	wayNames      = map[SettlementMode]string{1: "modular", 2: "atomic"}
)

func textOfRecord(rec Record) string {
	switch r := rec.(type) {
	case remark:
		return string(r)
	case *Policy:
		text := fmt.Sprintf("policy quotes %ds claims %ds late %ds fee %d discounts %v wallet %d",
			r.QuoteTTL/second, r.ClaimTTL/second, r.LateWindow/second, r.FeeBps, r.Discounts, r.WalletClaims)
		if r.Rules != 0 {
			text += fmt.Sprintf(" rules %d grace %ds unproven %ds, %s a client, %d bps, dust %v", r.Rules, r.Grace/second, r.UnprovenTTL/second,
				amount(uint64(r.UnprovenPerClient), 6), r.UnprovenShareBps, r.Dust[1:])
		}
		return text
	case *Pair:
		return textOfV2Pair(r) + fmt.Sprintf("pair %d source %d anchor %s corridor %d: inventory %s = free %s + reserved %s + sold %s", r.Instrument, r.Source,
			amount(uint64(r.Anchor), 9), r.CorridorBps, amount(r.Inventory, testDecimals), amount(r.Free(), testDecimals),
			amount(r.Reserved, testDecimals), amount(r.Sold, testDecimals))
	case *Operator:
		return fmt.Sprintf("operator %d %s", r.ID, r.Name)
	case *Lock:
		return fmt.Sprintf("lock scope %d pair %d rail %d locked %v since %s by %d %q", r.Scope, r.Instrument, r.Rail, r.Locked, when(r.Since), r.By, r.Reason)
	case *Ticket:
		return fmt.Sprintf("ticket T%d %q %s priority %d rails %d reference %s expires %s updated %s seq %d by %d", r.ID, r.Label, ticketStates[r.State],
			r.Priority, r.Rails, amount(uint64(r.Reference), 9), when(r.ExpiresAt), when(r.UpdatedAt), r.Seq, r.By)
	case *TicketTranche:
		return fmt.Sprintf("tranche T%d-%d %s = available %s + reserved %s + filled %s", r.Ticket, r.ID, amount(uint64(r.Capacity), 6),
			amount(uint64(r.Available()), 6), amount(uint64(r.Reserved), 6), amount(uint64(r.Filled), 6))
	case *RailPrice:
		return fmt.Sprintf("rail %v price %s at %s", r.Rail, amount(uint64(r.Price), 9), when(r.At)) +
			textOfOrigin(r.Source, r.Confidence, r.PublishedAt, r.Withdrawn)
	case *KeyUsed:
		return fmt.Sprintf("key %s used by %d", strings.TrimRight(string(r.Key.ID[:]), "\x00"), r.RequestID)
	}
	return textOfDeal(rec)
}

func textOfDeal(rec Record) string {
	switch r := rec.(type) {
	case *Quote:
		return fmt.Sprintf("quote Q%d %s until %s", r.ID, textOfTerms(&r.Terms), when(r.ValidUntil))
	case *Claim:
		text := fmt.Sprintf("claim C%d %s %s", r.ID, wayNames[r.Mode], r.State.Word())
		if r.State == ClaimReserved {
			text += fmt.Sprintf(" %s for %s until %s", textOfTerms(&r.Terms), short(r.Wallet[:]), when(r.Deadline))
		}
		if r.State == ClaimReserved && r.Terms.guarded() {
			text += map[bool]string{true: " proven", false: fmt.Sprintf(" client %d", r.Client)}[r.Proven]
		}
		if r.Quote != 0 {
			text += fmt.Sprintf(" of Q%d", r.Quote)
		}
		if r.Paid != 0 {
			text += " paid " + amount(r.Paid, r.Terms.Rail.Decimals())
		}
		if r.Proof != [32]byte{} {
			text += " proof " + short(r.Proof[:])
		}
		return text + " at " + when(r.ChangedAt)
	case *Payment:
		text := fmt.Sprintf("payment %s for C%d: %s %v %s", short(r.Signature[:]), r.Claim, amount(r.Amount, r.Rail.Decimals()), r.Rail, paymentStates[r.State])
		if r.Reason != 0 {
			text += fmt.Sprintf(" (%v)", r.Reason)
		}
		if r.Applied != 0 || r.Due != 0 {
			text += fmt.Sprintf(" applied %s due %s", amount(r.Applied, r.Rail.Decimals()), amount(r.Due, r.Rail.Decimals()))
		}
		if r.BlockTime != 0 {
			text += " block " + when(r.BlockTime*second)
		}
		if r.Proof != [32]byte{} {
			text += " proof " + short(r.Proof[:])
		}
		return text
	case *Removed:
		return fmt.Sprintf("gone %s%d", map[Tag]string{TagQuote: "Q", TagTicket: "T", TagClaim: "C"}[r.What], r.ID)
	case *Outcome:
		text := fmt.Sprintf("%d done", r.RequestID)
		if r.Reason != event.ReasonNone {
			text = fmt.Sprintf("%d refused: %v", r.RequestID, r.Reason)
		}
		if r.Limit != 0 {
			text += fmt.Sprintf(" (%d)", r.Limit)
		}
		if r.Ticket != 0 {
			text += fmt.Sprintf(" T%d", r.Ticket)
		}
		return text
	}
	return fmt.Sprintf("%T?", rec)
}

// textOfV2Pair returns what a pair has beyond 0.1.0.
func textOfV2Pair(r *Pair) (text string) {
	if r.hasFirmBps() {
		text = fmt.Sprintf("firm %v ", r.FirmBps[1:])
	}
	if r.OnChainAt != 0 {
		text += fmt.Sprintf("on chain %s at %s ", amount(r.OnChain, testDecimals), when(r.OnChainAt))
	}
	if origin := textOfOrigin(r.AnchorSource, r.Confidence, r.PublishedAt, r.Withdrawn); origin != "" {
		text += "anchor" + origin + " "
	}
	return text
}

func textOfOrigin(source PriceOrigin, confidence market.USDPrice, publishedAt int64, withdrawn bool) (text string) {
	if source != 0 {
		text = " of " + source.Word()
	}
	if confidence != 0 {
		text += " within " + amount(uint64(confidence), 9)
	}
	if publishedAt != 0 {
		text += " published " + when(publishedAt)
	}
	if withdrawn {
		text += " withdrawn"
	}
	return text
}

func textOfTerms(t *Terms) string {
	return fmt.Sprintf("T%d-%d %v %v: %s less %d bps = %s, gives %s, takes %s", t.Ticket, t.Tranche, t.Fill, t.Rail, amount(uint64(t.Reference), 9),
		t.DiscountBps, amount(uint64(t.Price), 9), amount(t.Base, testDecimals), amount(t.Payment, t.Rail.Decimals()))
}

// amount prints a decimal without trailing zeros.
func amount(v uint64, decimals int) string {
	text := string(market.AppendDecimal(nil, v, decimals))
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

func short(b []byte) string { return strings.TrimRight(string(b), "\x00") }

// when prints a time relative to the desk's start.
func when(at int64) string {
	if at == 0 {
		return "never"
	}
	return fmt.Sprintf("%gs", float64(at-testAt)/float64(second))
}
