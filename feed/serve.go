package feed

import (
	"strconv"
)

// serve handles one request.
func (s *shard) serve(c *conn, r *request) {
	if r.errorMessage != nil {
		s.reply(c, s.enc.errorMessage(r.id, *r.errorMessage))
		return
	}
	switch r.action {
	case subscribe:
		s.subscribe(c, r)
	case unsubscribe:
		s.unsubscribe(c, r)
	case resync:
		s.resync(c, r)
	case list:
		s.acknowledge(c, r, c.subs)
	case ping:
		s.reply(c, s.enc.pong(r.id, s.feed.o.Clock().UnixNano()))
	}
}

// addedSub is a new subscription of a request. If resumed is set, the updates in
// missedUpdates bring the client up to date; otherwise a snapshot does.
type addedSub struct {
	sub           *subscription
	resumed       bool
	missedUpdates []byte
}

// add subscribes c to a topic. It sends nothing yet.
func (s *shard) add(c *conn, ref topicRef) *subscription {
	t := s.topic(ref)
	sub := &subscription{conn: c, topic: t, index: len(t.subs)}
	t.subs = append(t.subs, sub)
	c.subs = append(c.subs, sub)
	t.shared.linger.Store(MaxResume)
	t.shared.subscribers.Add(1)
	if t.kind == l3 && s.views[t.in.ID].Orders == nil {
		s.feed.orders.wakeRun()
	}
	s.feed.stats.subscriptions.Add(1)
	return sub
}

// subscribe adds or restarts subscriptions, acknowledges them, and then sends the updates
// or the snapshot that bring each up to the acknowledged seq.
func (s *shard) subscribe(c *conn, r *request) {
	var added []addedSub
	room := maxPendingAll/2 - c.pendingBytes
	for _, ref := range r.topics {
		if old := c.find(ref); old != nil {
			s.remove(old)
		} else if len(c.subs) >= s.feed.o.MaxSubscriptions {
			r.rejected = append(r.rejected, reject(ref, "TOO_MANY_SUBSCRIPTIONS"))
			continue
		}
		j := addedSub{sub: s.add(c, ref)}
		if j.sub.aheadOfShard = s.aheadSeq(ref, r); j.sub.aheadOfShard != 0 {
			j.resumed, c.aheadUntil = true, s.now.Add(s.feed.o.AheadWithin)
		} else {
			j.missedUpdates, j.resumed = s.missedUpdates(ref, r, room)
		}
		room -= len(j.missedUpdates)
		added = append(added, j)
	}
	if r.heartbeat != nil && len(added) > 0 {
		c.heartbeat = *r.heartbeat
	}
	s.enc.openAck(r.action, r.id, len(added) > 0)
	for i, j := range added {
		t := j.sub.topic
		s.enc.subscribed(t.in, t.kind, max(s.position(t).seq, j.sub.aheadOfShard), j.resumed, i > 0)
	}
	s.reply(c, s.enc.closeAck(r.rejected))
	for _, j := range added {
		switch {
		case c.phase != phaseOpen:
			return
		case !j.resumed:
			c.markStale(j.sub)
		case len(j.missedUpdates) > 0 && c.encoding == eventStream:
			c.push(appendEvents(nil, j.missedUpdates), nil)
		case len(j.missedUpdates) > 0:
			c.push(j.missedUpdates, nil)
		}
	}
	s.refresh(c)
	s.scheduleWrite(c)
}

// missedUpdates returns the updates from the client's position to the shard's, and whether they
// are available. The ticker and the desk's channels have no history, because their
// sequence numbers count the publications of one process.
func (s *shard) missedUpdates(ref topicRef, r *request, room int) ([]byte, bool) {
	if !ref.kind.resumes() {
		return nil, false
	}
	at := s.position(s.topic(ref))
	from, known := s.resumeSeq(ref, r)
	if !known {
		return nil, false
	}
	if from == at.seq {
		return nil, true
	}
	h := s.feed.topic(ref).history.Load()
	if h == nil {
		return nil, false
	}
	return h.since(nil, at.epoch, from, at.seq, room)
}

// aheadSeq returns the client's position if the shard will reach it in a moment, because
// the client was served by another shard or process that was further; else 0.
func (s *shard) aheadSeq(ref topicRef, r *request) uint64 {
	if !ref.kind.resumes() || r.resumeAfter != (enginePos{}) {
		return 0
	}
	at := s.position(s.topic(ref)).seq
	if from, known := s.resumeSeq(ref, r); known && from > at && from-at <= MaxResume {
		return from
	}
	return 0
}

// resumeSeq returns the client's position in a topic, if it has one in the topic's epoch.
func (s *shard) resumeSeq(ref topicRef, r *request) (uint64, bool) {
	if r.resumeAfter != (enginePos{}) {
		return s.seqAt(ref, r.resumeAfter)
	}
	epoch := s.position(s.topic(ref)).epoch
	if r.resume == nil || string(r.resumeEpoch) != "e"+strconv.FormatUint(epoch, 10) {
		return 0, false
	}
	from, known := r.resume[ref.kind.channel()+":"+ref.in.Symbol]
	return from, known
}

func reject(ref topicRef, code string) rejection {
	return rejection{
		channel: quotedChannel(ref.kind),
		symbol:  []byte(`"` + ref.in.Symbol + `"`),
		code:    code,
	}
}

// unsubscribe ends subscriptions and acknowledges them.
func (s *shard) unsubscribe(c *conn, r *request) {
	ended := c.subscribed(r)
	s.acknowledge(c, r, ended)
	if c.phase != phaseOpen {
		return
	}
	for _, sub := range ended {
		s.remove(sub)
	}
}

// resync sends new snapshots.
func (s *shard) resync(c *conn, r *request) {
	again := c.subscribed(r)
	s.acknowledge(c, r, again)
	if c.phase != phaseOpen {
		return
	}
	for _, sub := range again {
		c.markStale(sub)
	}
	s.refresh(c)
	s.scheduleWrite(c)
}

// subscribed returns c's subscriptions to r's topics, and rejects the topics without one.
func (c *conn) subscribed(r *request) []*subscription {
	var subs []*subscription
	for _, ref := range r.topics {
		if sub := c.find(ref); sub != nil {
			subs = append(subs, sub)
		} else {
			r.rejected = append(r.rejected, reject(ref, "NOT_SUBSCRIBED"))
		}
	}
	return subs
}

// acknowledge answers r with the list subs.
func (s *shard) acknowledge(c *conn, r *request, subs []*subscription) {
	s.enc.openAck(r.action, r.id, len(subs) > 0 || r.action == list)
	for i, sub := range subs {
		t := sub.topic
		s.enc.subscribed(t.in, t.kind, s.position(t).seq, false, i > 0)
	}
	s.reply(c, s.enc.closeAck(r.rejected))
}
