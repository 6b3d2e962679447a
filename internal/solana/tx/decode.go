package tx

import (
	"encoding/binary"
	"fmt"

	"blockdesk/internal/solana"
)

// Transaction is a message and its signatures, one for each required signer; the zero
// signature is an empty slot.
type Transaction struct {
	Signatures []solana.Signature
	Message    Message
	// Signed are the message's exact bytes, which are signed. The instructions'
	// accounts and data alias them: do not modify them.
	Signed []byte
}

// Decode decodes a transaction. The result shares nothing with b. Errors: [ErrTooLong],
// [ErrTruncated], [ErrTrailing], [ErrCount], [ErrVersion], [ErrMalformed].
func Decode(b []byte) (*Transaction, error) {
	if len(b) > MaxSizeV1 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(b))
	}
	t, r := &Transaction{}, reader{rest: append([]byte(nil), b...)}
	// In a legacy transaction 0x81 would mean 129 or more signatures, which fit no
	// packet.
	if len(b) > 0 && b[0] == prefixV1 {
		start := r.rest
		t.Message.readV1(&r)
		t.Signed = start[:len(start)-len(r.rest)]
		t.readSignatures(&r, int(t.Message.Header.Required))
		return whole(t, r.finish(&t.Message, nil))
	}
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(b))
	}
	t.readSignatures(&r, r.count())
	t.Signed = r.rest
	t.Message.readUpToV0(&r)
	var err error
	if n := len(t.Signatures); n != int(t.Message.Header.Required) {
		err = fmt.Errorf("%w: %d signatures for %d signers", ErrMalformed, n, t.Message.Header.Required)
	}
	return whole(t, r.finish(&t.Message, err))
}

// whole returns v, or nil and the error.
func whole[T any](v *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// DecodeMessage decodes a message without its signatures. The result shares nothing
// with b. Errors: as [Decode].
func DecodeMessage(b []byte) (*Message, error) {
	if len(b) > MaxSizeV1 {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(b))
	}
	m, r := &Message{}, reader{rest: append([]byte(nil), b...)}
	if len(b) > 0 && b[0] == prefixV1 {
		m.readV1(&r)
		return whole(m, r.finish(m, nil))
	}
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(b))
	}
	m.readUpToV0(&r)
	return whole(m, r.finish(m, nil))
}

func (t *Transaction) readSignatures(r *reader, n int) {
	if n*len(solana.Signature{}) > len(r.rest) {
		r.fail(ErrTruncated, "signatures")
		return
	}
	t.Signatures = make([]solana.Signature, n)
	for i := range t.Signatures {
		copy(t.Signatures[i][:], r.take(len(solana.Signature{})))
	}
}

// reader takes bytes from the front of rest; after an error it returns zeros.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(kind error, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", kind, what)
	}
}

// finish returns the error of a message that was read to its end.
func (r *reader) finish(m *Message, err error) error {
	switch {
	case r.err != nil:
		return r.err
	case len(r.rest) > 0:
		return fmt.Errorf("%w: %d", ErrTrailing, len(r.rest))
	case err != nil:
		return err
	default:
		return m.Check()
	}
}

// take returns the next n bytes, capped so that an append to them copies.
func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.rest) {
		r.fail(ErrTruncated, fmt.Sprintf("want %d bytes, %d are left", n, len(r.rest)))
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() uint8 {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); len(b) == 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a compact-u16: seven bits a byte, the low ones first, three bytes at
// most. Like the runtime it refuses a longer form than needed.
func (r *reader) count() int {
	n := 0
	for i := range 3 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		n |= int(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			if i > 0 && b == 0 || n > 0xffff {
				r.fail(ErrCount, fmt.Sprintf("%d is encoded in %d bytes", n, i+1))
				return 0
			}
			return n
		}
	}
	r.fail(ErrCount, "it has more than three bytes")
	return 0
}

// bytes reads a counted run of bytes.
func (r *reader) bytes() []byte { return r.take(r.count()) }

func (r *reader) header() (h Header) {
	if b := r.take(3); len(b) == 3 {
		h = Header{b[0], b[1], b[2]}
	}
	return h
}

func (r *reader) keys(n int) []solana.Address {
	b := r.take(n * len(solana.Address{}))
	if r.err != nil {
		return nil
	}
	keys := make([]solana.Address, n)
	for i := range keys {
		copy(keys[i][:], b[i*len(keys[i]):])
	}
	return keys
}

func (m *Message) readUpToV0(r *reader) {
	m.Version = Legacy
	if len(r.rest) > 0 && r.rest[0]&prefixMask != 0 {
		if r.byte() != prefixV0 {
			r.fail(ErrVersion, "it is neither legacy nor 0 nor 1")
			return
		}
		m.Version = V0
	}
	m.Header = r.header()
	m.Keys = r.keys(r.count())
	copy(m.Blockhash[:], r.take(len(m.Blockhash)))
	// An instruction takes three bytes at least.
	n := r.count()
	if n > len(r.rest)/3 {
		r.fail(ErrTruncated, "instructions")
		return
	}
	m.Instructions = make([]Instruction, n)
	for i := range m.Instructions {
		m.Instructions[i] = Instruction{Program: r.byte(), Accounts: r.bytes(), Data: r.bytes()}
	}
	if m.Version == V0 {
		m.readLookups(r)
	}
}

func (m *Message) readLookups(r *reader) {
	n := r.count()
	if n == 0 {
		return
	}
	if n > len(r.rest)/(len(solana.Address{})+2) {
		r.fail(ErrTruncated, "lookups")
		return
	}
	m.Lookups = make([]Lookup, n)
	for i := range m.Lookups {
		l := &m.Lookups[i]
		copy(l.Table[:], r.take(len(l.Table)))
		l.Writable, l.Readonly = r.bytes(), r.bytes()
	}
}

func (m *Message) readV1(r *reader) {
	m.Version = V1
	if r.byte() != prefixV1 {
		r.fail(ErrVersion, "it is not 1")
		return
	}
	m.Header = r.header()
	m.Config.Mask = ConfigMask(r.u32())
	copy(m.Blockhash[:], r.take(len(m.Blockhash)))
	instructions, keys := int(r.byte()), int(r.byte())
	m.Keys = r.keys(keys)
	m.readConfig(r)
	headers := r.take(instructions * 4)
	if r.err != nil {
		return
	}
	m.Instructions = make([]Instruction, instructions)
	for i := range m.Instructions {
		h := headers[i*4:]
		accounts := r.take(int(h[1]))
		m.Instructions[i] = Instruction{h[0], accounts, r.take(int(binary.LittleEndian.Uint16(h[2:])))}
	}
}

func (m *Message) readConfig(r *reader) {
	c := &m.Config
	if c.Mask&^knownMask != 0 || c.Mask&HasPriorityFee != 0 && c.Mask&HasPriorityFee != HasPriorityFee {
		r.fail(ErrMalformed, fmt.Sprintf("unknown bits in the config mask %#x", uint32(c.Mask)))
		return
	}
	if c.Mask&HasPriorityFee != 0 {
		c.PriorityFee = r.u64()
	}
	if c.Mask&HasUnits != 0 {
		c.Units = r.u32()
	}
	if c.Mask&HasLoadedBytes != 0 {
		c.LoadedBytes = r.u32()
	}
	if c.Mask&HasHeapBytes != 0 {
		c.HeapBytes = r.u32()
	}
}
