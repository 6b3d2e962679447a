package store

import (
	"bytes"
	"fmt"
	"sync"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/settle/cosign"
)

// MaxRefundsOfPayment bounds the transactions that are ever made to pay one payment back,
// of which the earlier ones have expired.
const MaxRefundsOfPayment = 32

// RefundState is how far a transaction of refunds is. The numbers are on disk: frozen.
type RefundState uint8

const (
	// RefundPrepared: its bytes are stored, and it may have been signed.
	RefundPrepared RefundState = 1
	// RefundSigned: it may have been sent.
	RefundSigned RefundState = 2
	// RefundPaid: it is final.
	RefundPaid RefundState = 3
	// RefundExpired: it failed, or can never land any more.
	RefundExpired RefundState = 4
)

// Ended reports whether the state does not change any more.
func (s RefundState) Ended() bool { return s == RefundPaid || s == RefundExpired }

// RefundTransaction is a transaction that pays one or several payments back.
type RefundTransaction struct {
	State RefundState
	// Hash is that of its message.
	Hash solana.Hash
	// Raw is the whole transaction; the desk's slot is empty until it is signed.
	Raw []byte
	// LastValid is the height of the last block in which it can land, above 0.
	LastValid uint64
	// MadeAt, SignedAt and EndedAt are in Unix nanoseconds; 0 = not yet.
	MadeAt, SignedAt, EndedAt int64
	// Operator ordered it; By is the name, 0 to MaxWord bytes of printable ASCII.
	Operator market.OperatorID
	By       string

	// Items and Mint are what the bytes say; Signature is zero until it is signed. Put
	// sets them.
	Items     []cosign.RefundItem
	Mint      solana.Address // zero for SOL
	Signature solana.Signature
}

// Transaction returns a signed one for the tracker; the zero value if it is not signed.
func (r *RefundTransaction) Transaction() Transaction {
	if r.Signature == (solana.Signature{}) {
		return Transaction{}
	}
	return Transaction{
		kind: cosign.Refund, ordinal: 1, hash: r.Hash, signature: r.Signature, raw: r.Raw, lastValid: r.LastValid, signedAt: r.SignedAt,
		payment: r.Items[0].Payment,
	}
}

// read takes items and signature from the bytes, and checks all fields.
func (r *RefundTransaction) read() error {
	t, err := tx.Decode(r.Raw)
	if err != nil {
		return err
	}
	shape, err := cosign.CheckRefund(t.Signed, t.Message.FeePayer())
	if err != nil {
		return err
	}
	r.Items, r.Mint, r.Signature = shape.Items, shape.Mint, t.Signatures[0]
	signed := r.Signature != (solana.Signature{})
	switch {
	case tx.MessageHash(t.Signed) != r.Hash, r.LastValid == 0, r.MadeAt <= 0, len(r.Raw) > MaxRaw,
		r.By != "" && !validWord(r.By), signed != (r.SignedAt > 0), r.State.Ended() != (r.EndedAt > 0),
		r.State < RefundPrepared || r.State > RefundExpired, r.State == RefundSigned && !signed, r.State == RefundPrepared && signed:
		return ErrInvalid
	}
	return nil
}

// Refunds are the transactions of refunds, and the orders to make them, of a [Store].
type Refunds struct {
	kv kv.Store
	mu sync.Mutex // held while an entry is read and written
}

func (s *Refunds) write(fill func(set func(key, value []byte))) error {
	return s.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { fill(set) }, true)
}

func refundKey(hash solana.Hash) []byte     { return append([]byte{keyRefund}, hash[:]...) }
func openRefundKey(hash solana.Hash) []byte { return append([]byte{keyOpenRefund}, hash[:]...) }

func refundOfKey(payment solana.Signature, hash solana.Hash) []byte {
	return append(signatureKey(keyRefundOf, payment), hash[:]...)
}

func appendRefund(dst []byte, r *RefundTransaction) []byte {
	dst = append(dst, valueVersion, uint8(r.State))
	dst = le.AppendUint64(dst, r.LastValid)
	for _, at := range []int64{r.MadeAt, r.SignedAt, r.EndedAt} {
		dst = le.AppendUint64(dst, uint64(at))
	}
	dst = le.AppendUint16(dst, uint16(r.Operator))
	dst = append(append(dst, uint8(len(r.By))), r.By...)
	return append(dst, r.Raw...)
}

// decodeRefund decodes an entry; key is the whole key. Errors: [ErrDamaged].
func decodeRefund(key, value []byte) (*RefundTransaction, error) {
	k, v := reader{buf: key}, reader{buf: value}
	k.take(1)
	r := &RefundTransaction{Hash: solana.Hash(k.take(32))}
	v.version()
	r.State, r.LastValid, r.MadeAt, r.SignedAt, r.EndedAt = RefundState(v.u8()), v.u64(), v.i64(), v.i64(), v.i64()
	r.Operator = market.OperatorID(v.u16())
	r.By = string(v.take(int(v.u8())))
	r.Raw = bytes.Clone(v.rest())
	if !k.complete() || !v.complete() || r.read() != nil {
		return nil, fmt.Errorf("%w: refund %s", ErrDamaged, r.Hash)
	}
	return r, nil
}

// Put stores an unsigned transaction of refunds, and returns when it is on disk.
// most has what may be paid back in all of each of its payments, in atoms. None of them
// may have another transaction that is open, and together with those that are paid no
// more than that goes back. The same one again changes nothing. Errors: [ErrConflict];
// [ErrFull] beyond MaxRefundsOfPayment; [ErrInvalid]; [ErrDamaged]; errors of the kv.Store.
func (s *Refunds) Put(r *RefundTransaction, most []uint64) (*RefundTransaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored, ok, err := s.Get(r.Hash); err != nil || ok {
		return stored, err
	}
	put := *r
	put.Raw, put.State, put.SignedAt, put.EndedAt = bytes.Clone(r.Raw), RefundPrepared, 0, 0
	if put.read() != nil || len(most) != len(put.Items) {
		return nil, fmt.Errorf("%w: refund %s is not a transaction of refunds", ErrInvalid, r.Hash)
	}
	for i := range put.Items {
		x := &put.Items[i]
		list, err := s.Of(x.Payment)
		if err != nil {
			return nil, err
		}
		paid, open := PaidOf(list, x.Payment)
		switch {
		case open || paid > most[i] || uint64(x.Amount) > most[i]-paid:
			return nil, fmt.Errorf("%w: payment %s has an open refund, or too much would go back", ErrConflict, x.Payment)
		case len(list) >= MaxRefundsOfPayment:
			return nil, fmt.Errorf("%w: payment %s has %d refunds, which is the maximum", ErrFull, x.Payment, len(list))
		}
	}
	err := s.write(func(set func(key, value []byte)) {
		set(refundKey(put.Hash), appendRefund(nil, &put))
		set(openRefundKey(put.Hash), nil)
		for i := range put.Items {
			set(refundOfKey(put.Items[i].Payment, put.Hash), nil)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("refund %s: %w", put.Hash, err)
	}
	return &put, nil
}

// PaidOf returns how many atoms of a payment a list of refunds has paid back, and whether
// one of them is open.
func PaidOf(list []*RefundTransaction, payment solana.Signature) (paid uint64, open bool) {
	for _, r := range list {
		open = open || !r.State.Ended()
		for i := range r.Items {
			if x := &r.Items[i]; r.State == RefundPaid && x.Payment == payment {
				paid += uint64(x.Amount)
			}
		}
	}
	return paid, open
}

// Sign stores the signed bytes of a transaction of refunds, and returns when they
// are on disk. Errors: [ErrNotFound] if Put has not stored it; [ErrConflict] if it
// has ended, or is stored under another signature; [ErrInvalid]; errors of the kv.Store.
func (s *Refunds) Sign(x cosign.SignedRefund, at int64) (*RefundTransaction, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok, err := s.Get(x.Hash())
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%w: refund %s", ErrNotFound, x.Hash())
	case r.State.Ended() || r.State == RefundSigned && !bytes.Equal(r.Raw, x.Bytes()):
		return nil, fmt.Errorf("%w: refund %s has ended, or has another signature", ErrConflict, x.Hash())
	case r.State == RefundPrepared:
		r.State, r.SignedAt, r.Raw = RefundSigned, at, bytes.Clone(x.Bytes())
	}
	if r.read() != nil {
		return nil, fmt.Errorf("%w: refund %s is not a signed transaction of refunds", ErrInvalid, x.Hash())
	}
	// Written even if it is stored already, because an earlier sync may have failed.
	if err := s.write(func(set func(key, value []byte)) { set(refundKey(r.Hash), appendRefund(nil, r)) }); err != nil {
		return nil, fmt.Errorf("refund %s: %w", r.Hash, err)
	}
	return r, nil
}

// End records how a transaction of refunds ended, and returns when that is on disk.
// The first end stands. Errors: [ErrInvalid] unless paid or expired; [ErrNotFound];
// [ErrConflict] for another end; errors of the kv.Store.
func (s *Refunds) End(hash solana.Hash, end RefundState, at int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok, err := s.Get(hash)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: refund %s", ErrNotFound, hash)
	case !end.Ended() || at <= 0:
		return fmt.Errorf("%w: refund %s: its end must be paid or expired, at a time", ErrInvalid, hash)
	case r.State.Ended() && r.State != end:
		return fmt.Errorf("%w: refund %s has ended in another way", ErrConflict, hash)
	case r.State.Ended():
		return nil
	}
	r.State, r.EndedAt = end, at
	open := openRefundKey(hash)
	err = s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set(refundKey(hash), appendRefund(nil, r))
		deleteRange(open, kv.After(open))
	}, true)
	if err != nil {
		return fmt.Errorf("refund %s: %w", hash, err)
	}
	return nil
}

// Get returns a transaction of refunds by the hash of its message. Errors:
// [ErrDamaged], errors of the kv.Store.
func (s *Refunds) Get(hash solana.Hash) (*RefundTransaction, bool, error) {
	key := refundKey(hash)
	value, ok, err := s.kv.Get(key)
	if err != nil || !ok {
		return nil, false, err
	}
	r, err := decodeRefund(key, value)
	return r, err == nil, err
}

// Of returns all transactions that were made to pay a payment back, in no order.
// Errors: [ErrDamaged], errors of the kv.Store.
func (s *Refunds) Of(payment solana.Signature) (list []*RefundTransaction, err error) {
	lo := signatureKey(keyRefundOf, payment)
	hi := append(bytes.Clone(lo), bytes.Repeat([]byte{0xff}, len(solana.Hash{})+1)...)
	return s.readAt(lo, hi, 1+len(payment), MaxRefundsOfPayment+1)
}

// Open returns the transactions of refunds that have not ended. Errors:
// [ErrDamaged], errors of the kv.Store.
func (s *Refunds) Open() ([]*RefundTransaction, error) {
	return s.readAt([]byte{keyOpenRefund}, []byte{keyOpenRefund + 1}, 1, MaxOpenRefunds)
}

// MaxOpenRefunds bounds what Open returns.
const MaxOpenRefunds = 1 << 18

// readAt reads the refunds whose hash is in the keys of a range, at an offset.
func (s *Refunds) readAt(lo, hi []byte, offset, most int) (list []*RefundTransaction, err error) {
	var hashes []solana.Hash
	err = kv.Each(s.kv, lo, hi, func(key, _ []byte) error {
		if len(key) != offset+len(solana.Hash{}) {
			return fmt.Errorf("%w: the key of a refund", ErrDamaged)
		}
		if hashes = append(hashes, solana.Hash(key[offset:])); len(hashes) == most {
			return kv.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		r, ok, err := s.Get(hash)
		if err == nil && !ok {
			err = fmt.Errorf("%w: refund %s is missing", ErrDamaged, hash)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// PaidBack is a payment that was paid back.
type PaidBack struct {
	cosign.RefundItem
	Mint              solana.Address // zero for SOL
	RefundTransaction *RefundTransaction
}

// PaidBack lists the payments that were paid back by transactions of this store, after a
// payment's signature, in the order of the signatures; at most limit, and
// MaxUnmatchedPage. Errors: [ErrDamaged], errors of the kv.Store.
func (s *Refunds) PaidBack(after solana.Signature, limit int) (list []PaidBack, err error) {
	limit = min(limit, MaxUnmatchedPage)
	if limit <= 0 {
		return nil, nil
	}
	lo := append(signatureKey(keyRefundOf, after), bytes.Repeat([]byte{0xff}, len(solana.Hash{})+1)...)
	if after == (solana.Signature{}) {
		lo = []byte{keyRefundOf}
	}
	err = kv.Each(s.kv, lo, []byte{keyRefundOf + 1}, func(key, _ []byte) error {
		k := reader{buf: key}
		k.take(1)
		payment, hash := solana.Signature(k.take(64)), solana.Hash(k.take(32))
		if !k.complete() {
			return fmt.Errorf("%w: the key of a refund", ErrDamaged)
		}
		r, ok, err := s.Get(hash)
		if err != nil || !ok || r.State != RefundPaid {
			return err
		}
		for _, x := range r.Items {
			if x.Payment == payment {
				list = append(list, PaidBack{x, r.Mint, r})
			}
		}
		if len(list) == limit {
			return kv.ErrStop
		}
		return nil
	})
	return list, err
}

// Order is an operator's order to pay a payment back.
type Order struct {
	Payment  solana.Signature
	Operator market.OperatorID
	By       string // 1 to MaxWord bytes of printable ASCII
	At       int64  // Unix nanoseconds, above 0
}

// PutOrders stores orders, and returns when they are on disk. A payment that is ordered
// already keeps its first order. Errors: [ErrInvalid], errors of the kv.Store.
func (s *Refunds) PutOrders(list []Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(func(set func(key, value []byte)) {
		for i := range list {
			x := &list[i]
			value := le.AppendUint64([]byte{valueVersion}, uint64(x.At))
			value = le.AppendUint16(value, uint16(x.Operator))
			set(signatureKey(keyOrder, x.Payment), append(value, x.By...))
		}
	})
}

// DropOrder forgets the order of a payment, which was paid back in this way or another.
// Errors: those of the map.
func (s *Refunds) DropOrder(payment solana.Signature) error {
	key := signatureKey(keyOrder, payment)
	return s.kv.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) { deleteRange(key, kv.After(key)) }, false)
}

// Orders returns all orders. Errors: [ErrDamaged], errors of the kv.Store.
func (s *Refunds) Orders() (list []Order, err error) {
	err = kv.Each(s.kv, []byte{keyOrder}, []byte{keyOrder + 1}, func(key, value []byte) error {
		k, v := reader{buf: key}, reader{buf: value}
		k.take(1)
		x := Order{Payment: solana.Signature(k.take(64))}
		v.version()
		x.At, x.Operator, x.By = v.i64(), market.OperatorID(v.u16()), string(v.rest())
		if !k.complete() || !v.complete() || x.At <= 0 || !validWord(x.By) {
			return fmt.Errorf("%w: the order to pay back payment %s", ErrDamaged, x.Payment)
		}
		list = append(list, x)
		return nil
	})
	return list, err
}
