package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// ticketSource has a test's tickets and remembers what each pair had after each change.
type ticketSource struct {
	mu    sync.Mutex
	seq   uint64
	items map[market.TicketID]ticketRow
	past  map[uint64]map[market.InstrumentID]map[string]string // by seq: record by order_id
	looks []time.Time
	hold  time.Duration // 0 = for hours
}

// forHours is a hold of tickets that change by commands only.
func forHours() time.Duration { return 24 * time.Hour }

// holds is the hold of the source.
func (s *ticketSource) holds() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.hold, forHours())
}

type ticketRow struct {
	in     market.InstrumentID
	record []byte
}

// put sets a ticket's record; an empty one removes it. It does not wake the feed.
func (s *ticketSource) put(in market.InstrumentID, id market.TicketID, record string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[market.TicketID]ticketRow{}
	}
	s.seq++
	if record == "" {
		delete(s.items, id)
		return
	}
	s.items[id] = ticketRow{in, []byte(record)}
}

// tickets is a Tickets.
func (s *ticketSource) tickets(each func(market.InstrumentID, market.TicketID, []byte)) (uint64, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, time.Now())
	now := map[market.InstrumentID]map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(s.items)) {
		it := s.items[id]
		each(it.in, id, it.record)
		if now[it.in] == nil {
			now[it.in] = map[string]string{}
		}
		now[it.in][string(market.AppendTicketID(nil, id))] = string(it.record)
	}
	if s.past == nil {
		s.past = map[uint64]map[market.InstrumentID]map[string]string{}
	}
	s.past[s.seq] = now
	return s.seq, int64(s.seq) * int64(time.Second)
}

// shown returns the records of a pair at a seq; false if the feed did not read them then.
func (s *ticketSource) shown(seq uint64, in market.InstrumentID) (map[string]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, looked := s.past[seq]
	return all[in], looked
}

// record returns a test record with a text of that length.
func record(id market.TicketID, state string, length int) string {
	return fmt.Sprintf(`{"order_id":%q,"state":%q,"x":%q}`, market.AppendTicketID(nil, id), state, strings.Repeat("x", length))
}

// newTicketFeed runs a feed with a ticket source.
func newTicketFeed(t testing.TB, change ...feedOption) (*testFeed, *ticketSource) {
	t.Helper()
	s := &ticketSource{}
	return newTestFeedWith(t, func(f *Feed) { f.ServeTickets(s.tickets, s.holds) }, change...), s
}

// change sets a record and wakes the feed.
func (s *ticketSource) change(d *testFeed, in market.InstrumentID, id market.TicketID, record string) {
	s.put(in, id, record)
	d.feed.TicketsChanged()
}

// settle waits until every shard has all changes.
func (s *ticketSource) settle(d *testFeed) {
	d.t.Helper()
	s.mu.Lock()
	seq := s.seq
	s.mu.Unlock()
	await.True(d.t, fmt.Sprintf("the feed to have change %d of the desk", seq), func() bool { return d.feed.Stats().DeskSeq >= seq })
}

// ticketList is a client's list of one pair's tickets, from the messages alone.
type ticketList struct {
	seq, engineSeq uint64
	epoch          string
	tickets        map[string]string // record by order_id
}

// apply applies a message of the channel and returns what is wrong with it.
func (r *ticketList) apply(m *msg) error {
	var body struct {
		Tickets []json.RawMessage `json:"tickets"`
		Removed []string          `json:"gone"`
	}
	if err := json.Unmarshal([]byte(m.raw), &body); err != nil {
		return err
	}
	switch {
	case m.Type == "snapshot" && m.PrevSeq == 0 && body.Removed == nil:
		r.tickets = map[string]string{}
	case m.Type != "update" || m.PrevSeq != r.seq || m.Seq != r.seq+1 || m.Epoch != r.epoch:
		return fmt.Errorf("a gap: at %s %d, then %s", r.epoch, r.seq, m.raw)
	case len(body.Tickets)+len(body.Removed) == 0:
		return fmt.Errorf("nothing is said: %s", m.raw)
	}
	r.seq, r.epoch, r.engineSeq = m.Seq, m.Epoch, m.EngineSeq
	for _, text := range body.Tickets {
		var head struct {
			ID string `json:"order_id"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			return err
		}
		r.tickets[head.ID] = string(text)
	}
	for _, id := range body.Removed {
		if _, there := r.tickets[id]; !there {
			return fmt.Errorf("%s is removed but was never listed: %s", id, m.raw)
		}
		delete(r.tickets, id)
	}
	return nil
}

const subscribeTickets = `{"action":"SUBSCRIBE_MARKET","channels":["tickets"],"symbols":["SLUSD/USDC"]}`

// TestTicketsChangeByThemselves: a price that grows too old is published without a command.
func TestTicketsChangeByThemselves(t *testing.T) {
	d, s := newTicketFeed(t)
	s.hold = time.Millisecond
	s.change(d, 0, 7, record(7, "priced", 0))
	s.settle(d)
	c := d.dial()
	c.send(subscribeTickets)
	for !strings.Contains(c.next().raw, "priced") {
	}
	s.put(0, 7, record(7, "without a price", 0)) // does not wake the feed
	for !strings.Contains(c.next().raw, "without a price") {
	}
}

// The life of tickets, byte for byte: existing, posted, sold out, and removed.
func TestTickets(t *testing.T) {
	d, s := newTicketFeed(t)
	s.change(d, 0, 7, record(7, "open", 0))
	s.settle(d)
	c, other := d.dial(), d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["tickets"],"symbols":["SLUSD/USDC","92C/SLUSD"],"id":1}`)
	other.send(`{"action":"SUBSCRIBE_MARKET","channels":["ticker","l2","trades"],"symbols":["SLUSD/USDC"]}`)
	for range 4 {
		other.next()
	}
	head := func(form, symbol string, seq, prev, engineSeq int) string {
		return fmt.Sprintf(`{"channel":"tickets","type":%q,"symbol":%q,"epoch":"e1","seq":%d,"prev_seq":%d,"engine_seq":%d,"ts":"1970-01-01T00:00:%02d.000000Z","tickets":[`,
			form, symbol, seq, prev, engineSeq, engineSeq)
	}
	want := func(what, text string) {
		t.Helper()
		if m := c.next(); m.raw != text {
			t.Fatalf("%s:\n got %s\nwant %s", what, m.raw, text)
		}
	}
	want("ack", `{"channel":"control","type":"ack","id":1,"action":"SUBSCRIBE_MARKET","success":true,"subscribed":[`+
		`{"channel":"tickets","symbol":"SLUSD/USDC","seq":2,"resumed":false},`+
		`{"channel":"tickets","symbol":"92C/SLUSD","seq":1,"resumed":false}],"rejected":[]}`)
	want("snapshot", head("snapshot", "SLUSD/USDC", 2, 0, 1)+record(7, "open", 0)+`]}`)
	want("no ticket", head("snapshot", "92C/SLUSD", 1, 0, 0)+`]}`)

	s.change(d, 1, 9, record(9, "open", 0))
	want("posted", head("update", "92C/SLUSD", 2, 1, 2)+record(9, "open", 0)+`],"gone":[]}`)
	s.put(0, 8, record(8, "open", 0))
	s.change(d, 0, 7, record(7, "exhausted", 0))
	want("sold out", head("update", "SLUSD/USDC", 3, 2, 4)+record(7, "exhausted", 0)+`,`+record(8, "open", 0)+`],"gone":[]}`)
	s.put(0, 8, "")
	s.change(d, 0, 7, "")
	want("forgotten", head("update", "SLUSD/USDC", 4, 3, 6)+`],"gone":["T7","T8"]}`)

	// Woken without a change, and with a rewritten equal record: no message.
	s.change(d, 1, 9, record(9, "open", 0))
	s.settle(d)
	c.send(`{"action":"RESYNC","channels":["tickets"],"symbols":["92C/SLUSD"]}`)
	want("ack", `{"channel":"control","type":"ack","action":"RESYNC","success":true,"subscribed":[`+
		`{"channel":"tickets","symbol":"92C/SLUSD","seq":2,"resumed":false}],"rejected":[]}`)
	want("resync", head("snapshot", "92C/SLUSD", 2, 0, 2)+record(9, "open", 0)+`]}`)
	c.send(`{"action":"UNSUBSCRIBE_MARKET","channels":["tickets"],"symbols":["92C/SLUSD"]}`)
	c.wait("control", "ack")

	// A client without a subscription gets nothing.
	other.send(`{"action":"PING"}`)
	if m := other.next(); m.Type != "pong" {
		t.Errorf("not asked for: %s", m.raw)
	}
}

// Without a desk the channel does not exist.
func TestTicketsWithoutDesk(t *testing.T) {
	d := newTestFeed(t)
	d.feed.TicketsChanged() // of no consequence
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["tickets","trades"],"symbols":["SLUSD/USDC"]}`)
	const rejected = `"rejected":[{"channel":"tickets","code":"UNKNOWN_CHANNEL"}]}`
	if m := c.next(); len(m.Subscribed) != 1 || !strings.HasSuffix(m.raw, rejected) {
		t.Error(m.raw)
	}
}

// A heartbeat has the last message's sequence number.
func TestTicketsHeartbeat(t *testing.T) {
	d, s := newTicketFeed(t, func(o *Options) { o.Heartbeat = 10 * time.Millisecond })
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["tickets"],"symbols":["SLUSD/USDC"],"heartbeat":true}`)
	r := &ticketList{}
	for n := 0; n < 10; {
		s.change(d, 0, 1, record(1, "open", n))
		switch m := c.next(); m.Channel {
		case "tickets":
			if err := r.apply(m); err != nil {
				t.Fatal(err)
			}
		case "heartbeat":
			n++
			if m.Seqs["tickets:SLUSD/USDC"] != r.seq || len(m.Seqs) != 1 {
				t.Fatalf("at %d: %s", r.seq, m.raw)
			}
		}
	}
}

// A client that reconnects gets a snapshot, whatever seq it names, because another
// process of the same epoch may have numbered differently.
func TestTicketsDoNotResume(t *testing.T) {
	d, s := newTicketFeed(t)
	c := d.dial()
	c.send(subscribeTickets)
	c.wait("tickets", "snapshot")
	for n := range 5 {
		s.change(d, 0, 1, record(1, "open", n))
		c.wait("tickets", "update")
	}
	for _, resume := range []string{
		`"epoch":"e1","tickets:SLUSD/USDC":3`, `"epoch":"e1","tickets:SLUSD/USDC":6`, `"epoch":"e1","tickets:SLUSD/USDC":7`, `"epoch":"e2","tickets:SLUSD/USDC":3`,
	} {
		back := d.dial()
		back.send(strings.TrimSuffix(subscribeTickets, "}") + `,"resume":{` + resume + `}}`)
		if ack := back.next(); ack.Subscribed[0].Seq != 6 || ack.Subscribed[0].Resumed {
			t.Errorf("%s: %s", resume, ack.raw)
		}
		if m := back.next(); m.Type != "snapshot" || m.Seq != 6 {
			t.Errorf("%s: %s", resume, m.raw)
		}
	}
}

// A new epoch, as on a replica of a new leader: a snapshot, from 1.
func TestTicketsEpoch(t *testing.T) {
	d, s := newTicketFeed(t)
	s.change(d, 0, 1, record(1, "open", 0))
	c := d.dial()
	c.send(subscribeTickets)
	r := &ticketList{}
	for len(r.tickets) == 0 {
		if m := c.next(); m.Channel == "tickets" {
			if err := r.apply(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.feed.epoch.Store(2)
	d.feed.TicketsChanged()
	if m := c.next(); m.Type != "snapshot" || m.Seq != 1 || m.Epoch != "e2" || r.apply(m) != nil || len(r.tickets) != 1 {
		t.Error(m.raw)
	}
	s.change(d, 0, 1, record(1, "withdrawn", 0))
	if err := r.apply(c.next()); err != nil {
		t.Error(err)
	}
}

// An update of maxTicketsUpdate bytes is sent. With one byte more a snapshot is sent
// instead, and then updates again.
func TestTicketsUpdateLimit(t *testing.T) {
	d, s := newTicketFeed(t)
	c := d.dial()
	c.send(subscribeTickets)
	c.wait("tickets", "snapshot")
	s.change(d, 0, 1, record(1, "open", 0))
	shortest := len(c.wait("tickets", "update").raw)
	const header = 4 // of a frame of up to 64 KiB
	most := maxTicketsUpdate - header - shortest
	for _, test := range []struct {
		more int
		form string
	}{{most, "update"}, {most + 1, "snapshot"}, {0, "update"}, {2 * most, "snapshot"}, {1, "update"}} {
		s.change(d, 0, 1, record(1, "open", test.more))
		if m := c.next(); m.Type != test.form {
			t.Errorf("%d bytes: %.120s…", len(m.raw)+header, m.raw)
		}
	}
}

// A shard that lost updates sends a snapshot, and later updates follow it.
func TestTicketsOverrun(t *testing.T) {
	d, s := newTicketFeed(t, func(o *Options) { o.Shards = 1 })
	c := d.dial()
	c.send(subscribeTickets)
	c.wait("tickets", "snapshot")
	inbox := &d.feed.shards[0].inbox
	inbox.mu.Lock()
	s.change(d, 0, 1, record(1, "open", 0))
	await.True(t, "the book to move", func() bool { return d.feed.lists[0].Load().seq > 1 })
	inbox.overrun = true
	inbox.mu.Unlock()
	r := &ticketList{}
	if m := c.next(); m.Type != "snapshot" || r.apply(m) != nil || len(r.tickets) != 1 {
		t.Fatal(m.raw)
	}
	s.change(d, 0, 2, record(2, "open", 0))
	if err := r.apply(c.next()); err != nil || len(r.tickets) != 2 {
		t.Fatal(err)
	}
}

// However often the feed is woken, it reads the tickets at most once every
// ticketsInterval, and ends with the last state.
func TestTicketsPace(t *testing.T) {
	d, s := newTicketFeed(t)
	c := d.dial()
	c.send(subscribeTickets)
	r, last := &ticketList{}, record(1, "open", 2000)
	for n := range 2001 {
		s.change(d, 0, 1, record(1, "open", n))
	}
	for r.tickets["T1"] != last {
		if m := c.next(); m.Channel == "tickets" {
			if err := r.apply(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.looks); i++ {
		if gap := s.looks[i].Sub(s.looks[i-1]); gap < ticketsInterval {
			t.Errorf("look %d came %v after the one before", i, gap)
		}
	}
}

// Whatever changes, every client, slow ones too, has the tickets of that moment after
// each message, without a gap.
func TestTicketsFollow(t *testing.T) {
	d, s := newTicketFeed(t, func(o *Options) { o.SendBuffer, o.MaxPending, o.MaxPerIP = 4<<10, 8<<10, 50 })
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	pace := newStepCounter(d)
	defer pace.end()
	change := func() {
		id := market.TicketID(1 + rng.IntN(40))
		in := market.InstrumentID(id % 2)
		switch rng.IntN(5) {
		case 0:
			s.put(in, id, "")
		default:
			s.put(in, id, record(id, []string{"open", "exhausted"}[rng.IntN(2)], rng.IntN(900)))
		}
		if rng.IntN(3) == 0 {
			d.feed.TicketsChanged()
			s.settle(d)
		}
		pace.step()
	}
	var followers sync.WaitGroup
	for n := range 8 {
		in := market.InstrumentID(n % 2)
		c := d.dialSlow(pace, seed, n)
		c.send(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["tickets","ticker"],"symbols":[%q]}`, instruments()[in].Symbol))
		followers.Go(func() {
			if err := c.followTickets(s, in); err != nil {
				t.Errorf("client %d: %v", n, err)
			}
		})
		for range 20 {
			change()
		}
	}
	for range 400 {
		change()
	}
	s.put(0, 50, record(50, "last", 0))
	s.put(1, 51, record(51, "last", 0))
	d.feed.TicketsChanged()
	pace.end()
	followers.Wait()
	if d.feed.Stats().Collapsed == 0 {
		t.Error("no client fell behind: this run shows nothing")
	}
}

// followTickets reads until the last ticket and checks each message against the source.
func (c *client) followTickets(s *ticketSource, in market.InstrumentID) error {
	r := &ticketList{}
	for {
		m, err := c.tryNext()
		if err != nil {
			return err
		}
		if m.Channel != "tickets" {
			continue
		}
		if err := r.apply(m); err != nil {
			return err
		}
		want, looked := s.shown(m.EngineSeq, in)
		if !looked {
			return fmt.Errorf("a state at which the feed has not looked: %s", m.raw)
		}
		if !maps.Equal(r.tickets, want) {
			return fmt.Errorf("at %d: %v; the desk showed %v", m.EngineSeq, r.tickets, want)
		}
		if _, over := want[string(market.AppendTicketID(nil, market.TicketID(50+in)))]; over {
			return nil
		}
	}
}

// TestTicketsDifference: diff turns one list into the other, without repetitions and
// unchanged records.
func TestTicketsDifference(t *testing.T) {
	draw := func(rt *rapid.T, name string) (list []deskRecord) {
		drawn := rapid.MapOf(rapid.Uint64Range(1, 12), rapid.SampledFrom([]string{"a", "b", "bb"})).Draw(rt, name)
		for _, id := range slices.Sorted(maps.Keys(drawn)) {
			list = append(list, deskRecord{id, []byte(drawn[id])})
		}
		return list
	}
	var d deskPublisher
	rapid.Check(t, func(rt *rapid.T) {
		prev, next := draw(rt, "prev"), draw(rt, "next")
		d.diff(prev, next)
		now := map[uint64]string{}
		for _, r := range prev {
			now[r.id] = string(r.text)
		}
		for _, r := range d.changed {
			if old, there := now[r.id]; there && old == string(r.text) {
				rt.Fatalf("ticket %d has not changed", r.id)
			}
			now[r.id] = string(r.text)
		}
		for _, id := range d.removed {
			if _, there := now[uint64(id)]; !there {
				rt.Fatalf("ticket %d was not there", id)
			}
			delete(now, uint64(id))
		}
		if len(now) != len(next) || !slices.IsSorted(d.removed) {
			rt.Fatalf("%v and gone %v of %v; want %v", now, d.removed, prev, next)
		}
		for _, r := range next {
			if now[r.id] != string(r.text) {
				rt.Fatalf("ticket %d: %q; want %q", r.id, now[r.id], r.text)
			}
		}
	})
}
