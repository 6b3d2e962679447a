package desk

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

// expired reports whether an answer of time at is older than KeyTTL.
func (f *projector) expired(at int64) bool { return f.at-at >= int64(f.desk.o.KeyTTL) }
