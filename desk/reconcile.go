package desk

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/persist/kv"
)

// Reconcile replaces Start if the store and the journal disagree: the journal has lost
// commands that the store has (a crash in mode interval, an older backup), or the store
// has lost data. It deletes the answers and the history of commands after seq. If the
// store has lost data of earlier commands, the answers to those keys and the states of
// those claims stay lost. board and seq are as for Start.
//
// After a crash during Reconcile the store must be reconciled again.
func (d *Desk) Reconcile(board *rfq.ReadModel, seq uint64) error {
	f := &d.projector
	if err := f.deleteAnswersAfter(seq); err != nil {
		return err
	}
	if err := f.deleteHistoryAfter(seq); err != nil {
		return err
	}
	if err := f.deleteSalesAfter(seq); err != nil {
		return err
	}
	for _, list := range [][]*rfq.Ticket{f.board.View().Tickets, board.View().Tickets} {
		for _, t := range list {
			f.changedTickets[t.ID] = struct{}{}
		}
	}
	f.board = board
	f.applied, f.seq, f.loss = seq, seq, nil
	if err := f.commit(true); err != nil {
		return err
	}
	return d.Start(board, seq)
}

// sweepBatch is the number of entries that sweep visits before it commits.
const sweepBatch = 4096

// sweep calls visit for every entry whose key begins with kind, and commits the batch
// that visit fills, with an unchanged cursor.
func (f *projector) sweep(kind byte, visit func(key, value []byte) error) error {
	lo := []byte{kind}
	for more := true; more; {
		more = false
		n := 0
		err := kv.Each(f.desk.store, lo, []byte{kind + 1}, func(key, value []byte) error {
			if n++; n > sweepBatch {
				more = true
				lo = bytes.Clone(key)
				return kv.ErrStop
			}
			return visit(key, value)
		})
		if err != nil {
			return err
		}
		if f.batch.Len() > 0 {
			if err := f.commit(false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *projector) deleteHistoryAfter(seq uint64) error {
	for _, entries := range []struct {
		kind        byte
		size, seqAt int
	}{
		{keyHistory, historyKeySize, 1 + 8},
		{keyPayment, paymentKeySize, 1 + 64},
	} {
		err := f.sweep(entries.kind, func(key, _ []byte) error {
			if len(key) != entries.size {
				return fmt.Errorf("%w: %x is not the key of a claim's history", ErrLayout, key)
			}
			if binary.BigEndian.Uint64(key[entries.seqAt:]) > seq {
				f.batch.Delete(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteSalesAfter deletes the sales of commands after seq.
func (f *projector) deleteSalesAfter(seq uint64) error {
	f.sales.init()
	return f.sweep(keySale, func(key, value []byte) error {
		if bytes.Equal(key, []byte{keySale}) {
			return nil
		}
		s, err := parseSale(key, value)
		if err == nil && s.Seq > seq {
			f.batch.Delete(key)
		}
		return err
	})
}

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
