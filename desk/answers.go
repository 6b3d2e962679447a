package desk

import (
	"encoding/binary"
	"fmt"

	"blockdesk/persist/kv"
)

// A prune deletes at most twice as many answers as were added since the last one, and
// pruneExtra more, and at most pruneMax: more than one commit can add.
const (
	pruneExtra = 256
	pruneMax   = 16 << 10
)

// writeAnswer stores the answer to the key of the request that has just ended. The
// first answer stays until it is KeyTTL old.
func (f *projector) writeAnswer(r *Result) error {
	id := &f.key.Key.ID
	first, known, err := f.answeredAt(id)
	if err != nil {
		return err
	}
	if known && !f.expired(first) {
		return nil
	}
	if known {
		f.keyScratch = ageKey(f.keyScratch[:0], first, id)
		f.batch.Delete(f.keyScratch)
	} else {
		f.keys++
		f.newKeys++
	}
	f.scratch = appendAnswer(f.scratch[:0], &answer{body: f.key.Key.Body, seq: f.seq, result: *r})
	f.keyScratch = answerKey(f.keyScratch[:0], id)
	f.batch.Set(f.keyScratch, f.scratch)
	f.keyScratch = ageKey(f.keyScratch[:0], r.At, id)
	f.batch.Set(f.keyScratch, nil)
	f.newAnswers[*id] = r.At
	f.oldest = min(f.oldest, r.At)
	return nil
}

func (f *projector) answeredAt(id *[16]byte) (at int64, ok bool, err error) {
	if at, ok = f.newAnswers[*id]; ok {
		return at, true, nil
	}
	f.keyScratch = answerKey(f.keyScratch[:0], id)
	value, ok, err := f.desk.store.Get(f.keyScratch)
	if err != nil || !ok {
		return 0, false, err
	}
	a, err := parseAnswer(value)
	if err != nil {
		return 0, false, err
	}
	return a.result.At, true, nil
}

// prune deletes answers older than KeyTTL, by the time of the last outcome, and the
// oldest ones beyond MaxKeys; a bounded number. The batch must be empty.
func (f *projector) prune() error {
	budget := min(2*f.newKeys+pruneExtra, pruneMax)
	f.newKeys = 0
	if !f.overLimit() && !f.expired(f.oldest) {
		return nil
	}
	f.oldest = noAnswer
	var last []byte
	err := kv.Each(f.desk.store, f.pruneFrom, []byte{keyAge + 1}, func(key, _ []byte) error {
		if len(key) != ageKeySize {
			return fmt.Errorf("%w: the key %x of an answer's age", ErrLayout, key)
		}
		at := int64(binary.BigEndian.Uint64(key[1:]))
		if budget == 0 || !f.overLimit() && !f.expired(at) {
			f.oldest = at
			return kv.ErrStop
		}
		budget--
		f.keys--
		f.batch.Delete(key)
		f.batch.Delete(answerKey(f.keyScratch[:0], (*[16]byte)(key[9:])))
		last = append(last[:0], key...)
		return nil
	})
	if err != nil || last == nil {
		return err
	}
	// A scan from the start would pass over all tombstones.
	f.pruneFrom = kv.After(last)
	return f.commit(false)
}

func (f *projector) overLimit() bool { return f.keys > uint64(f.desk.o.MaxKeys) }

// expired reports whether an answer of time at is older than KeyTTL.
func (f *projector) expired(at int64) bool { return f.at-at >= int64(f.desk.o.KeyTTL) }

func (f *projector) deleteAnswersAfter(seq uint64) error {
	return f.sweep(keyAnswer, func(key, value []byte) error {
		if len(key) != answerKeySize {
			return fmt.Errorf("%w: the key %x of an answer", ErrLayout, key)
		}
		a, err := parseAnswer(value)
		if err != nil || a.seq <= seq {
			return err
		}
		f.keys--
		f.batch.Delete(key)
		f.batch.Delete(ageKey(nil, a.result.At, (*[16]byte)(key[1:])))
		return nil
	})
}
