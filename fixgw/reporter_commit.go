package fixgw

import (
	"context"
	"encoding/binary"
	"time"

	"blockdesk/persist/kv"
)

// A commit takes the reports, orders, answers and position of some milliseconds together,
// because it costs as much for one report as for ten.

const (
	// saveDelay is how long the reports that have been sent wait for more before
	// they are committed.
	saveDelay = 2 * time.Millisecond
	// maxCommitBytes is how many bytes of messages one commit takes in.
	maxCommitBytes = 4 << 20
)

// committer commits the reporter's work.
type committer struct{ follower *reporter }

// Run commits until ctx ends or the store fails.
func (v committer) Run(ctx context.Context) error {
	f := v.follower
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return nil
		}
		pause.Reset(saveDelay)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		f.mu.Lock()
		err := f.commit()
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// commitDue reports whether a commit is due.
func (f *reporter) commitDue() bool {
	return f.reports > 0 || len(f.changed) > 0 || f.desk.hasChanges() || time.Since(f.saved) > f.gateway.options.SyncEvery
}

// markChanged adds o to the next commit.
func (f *reporter) markChanged(o *order) {
	if !o.dirty {
		o.dirty = true
		f.changed = append(f.changed, o)
	}
}

// deliver sends the reports of one batch of events, a session's in one go. While
// replaying it only stores them.
func (f *reporter) deliver() error {
	for _, s := range f.senders {
		deliver := s.deliver
		if f.replaying {
			deliver = s.store
		}
		if err := deliver(&s.reports); err != nil {
			return err
		}
		s.reports.clear()
		if !s.uncommitted {
			s.uncommitted = true
			f.uncommitted = append(f.uncommitted, s)
		}
	}
	f.senders = f.senders[:0]
	return nil
}

// commit writes all changes, the messages about them, and the position in one step. The
// message stores stay locked meanwhile, so that a resend finds each message either waiting
// or stored.
func (f *reporter) commit() error { return f.commitSynced(false) }

// commitSynced is commit, synced if sync is true.
func (f *reporter) commitSynced(sync bool) error {
	if err := f.deliver(); err != nil {
		return err
	}
	if err := f.commitMessages(); err != nil {
		return err
	}
	for _, s := range f.uncommitted {
		s.Messages.Lock()
	}
	place, epoch := f.commitPosition()
	f.cursor = binary.BigEndian.AppendUint64(f.cursor[:0], place.seq)
	f.cursor = binary.BigEndian.AppendUint32(f.cursor, place.index)
	f.cursor = binary.BigEndian.AppendUint32(f.cursor, uint32(epoch))
	err := f.store.Commit(place.whole(), f.cursor, f.fill, sync)
	for _, s := range f.uncommitted {
		if failed := s.Messages.Filled(err); err == nil {
			err = failed
		}
		s.uncommitted = false
		s.Messages.Unlock()
	}
	f.uncommitted = f.uncommitted[:0]
	if err != nil {
		return err
	}
	f.afterCommit()
	return nil
}

// commitMessages commits the messages alone, session by session, if they are too many for one
// commit. Messages may be stored ahead of the position.
func (f *reporter) commitMessages() error {
	waiting := 0
	for _, s := range f.uncommitted {
		waiting += s.Messages.UnsavedBytes()
	}
	if waiting <= maxCommitBytes {
		return nil
	}
	for _, s := range f.uncommitted {
		if err := s.Messages.Save(); err != nil {
			return err
		}
	}
	return nil
}

// fill adds everything to a commit. The message stores of uncommitted are locked.
func (f *reporter) fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	for _, s := range f.uncommitted {
		s.Messages.Fill(set, deleteRange)
	}
	day := dayOf(f.at)
	for _, o := range f.changed {
		f.value = o.appendRecord(f.value[:0])
		f.key = liveKey(f.key[:0], o.ID)
		if o.Live() {
			set(f.key, f.value)
			continue
		}
		deleteRange(f.key, kv.After(f.key))
		if o.QuoteSet == 0 { // no ClOrdID names it
			f.key = closedKey(f.key[:0], day, o.ID)
			set(f.key, f.value)
		}
	}
	for i, r := range f.answers {
		f.gateway.answered.add(day, f.owners[i].Number, []byte(r.clOrdID))
		f.key = answerKey(f.key[:0], day, f.owners[i].Number, []byte(r.clOrdID))
		f.value = appendAnswer(f.value[:0], answer{request: r.msgType, id: r.id, msgType: r.answer, content: r.content, body: r.body})
		set(f.key, f.value)
	}
	if key := []byte{keyUnfinished}; f.unfinished {
		set(key, nil)
	} else if f.storedUnfinished {
		deleteRange(key, kv.After(key))
	}
	f.desk.commit(set, deleteRange)
	f.gateway.history.Commit(set)
}

// commitPosition returns the larger of next and stored, and its epoch.
func (f *reporter) commitPosition() (position, uint64) {
	if f.next.before(f.stored) {
		return f.stored, f.storedEpoch
	}
	return f.next, f.epoch
}

// afterCommit forgets the changes that the commit has stored.
func (f *reporter) afterCommit() {
	f.storedUnfinished = f.unfinished
	f.desk.afterCommit()
	f.gateway.history.AfterCommit()
	for i, r := range f.answers {
		f.owners[i].answerStored(r)
	}
	for _, r := range f.replaced {
		r.order.owner.close(r)
	}
	for _, o := range f.changed {
		o.dirty = false
		if !o.Live() {
			delete(f.orders, o.ID)
			o.owner.forget(o)
		}
	}
	f.changed, f.answers, f.owners, f.replaced = f.changed[:0], f.answers[:0], f.owners[:0], f.replaced[:0]
	f.reports, f.saved = 0, time.Now()
}
