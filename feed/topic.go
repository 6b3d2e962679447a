package feed

import (
	"slices"
	"sync/atomic"

	"blockdesk/market"
)

// sharedTopic is the state of a topic that Run and the shards share.
type sharedTopic struct {
	// subscribers counts the subscribers of all shards. Run encodes the topic while
	// there are any, and for linger more updates, as many as the history holds.
	subscribers atomic.Int64
	linger      atomic.Int64
	history     atomic.Pointer[history]
}

// needed reports whether the topic's next update must be encoded.
func (t *sharedTopic) needed() bool {
	return t.subscribers.Load() > 0 || t.linger.Load() > 0 && t.linger.Add(-1) >= 0
}

func (t *sharedTopic) addHistory(prev, now position, data []byte) {
	h := t.history.Load()
	if h == nil {
		h = &history{}
		t.history.Store(h)
	}
	h.add(prev, now, data)
}

// topic is one stream of a shard: an instrument and a kind.
type topic struct {
	in     *market.Instrument
	kind   kind
	subs   []*subscription
	shared *sharedTopic
	snap   encodedMessage // the last snapshot; zero = none
	snapOf position       // position of snap
}

func (s *shard) topic(ref topicRef) *topic {
	return &s.topics[int(ref.in.ID)*int(numKinds)+int(ref.kind)]
}

// position returns the position of t.
func (s *shard) position(t *topic) position {
	if t.kind >= marketKinds {
		return (*s.deskList(t.in.ID, t.kind)).position
	}
	return t.kind.position(s.views[t.in.ID])
}

// deskList returns the shard's current list of a desk kind.
func (s *shard) deskList(in market.InstrumentID, k kind) **deskList {
	return &s.lists[int(in)*int(deskKinds)+int(k-marketKinds)]
}

// remove ends a subscription. Its pending messages are still sent.
func (s *shard) remove(sub *subscription) {
	c, t := sub.conn, sub.topic
	last := len(t.subs) - 1
	t.subs[sub.index] = t.subs[last]
	t.subs[sub.index].index = sub.index
	t.subs[last] = nil
	t.subs = t.subs[:last]
	if sub.stale {
		c.staleSubs--
	}
	for i := range c.pending {
		if c.pending[i].sub == sub {
			c.updateBytes -= len(c.pending[i].data)
			c.pending[i].sub = nil
		}
	}
	c.subs = slices.DeleteFunc(c.subs, func(other *subscription) bool { return other == sub })
	if len(c.subs) == 0 {
		c.unsubscribedSince = s.now
	}
	t.shared.linger.Store(MaxResume)
	t.shared.subscribers.Add(-1)
	s.feed.stats.subscriptions.Add(-1)
}

func (s *shard) unsubscribeAll(c *conn) {
	for len(c.subs) > 0 {
		s.remove(c.subs[len(c.subs)-1])
	}
}
