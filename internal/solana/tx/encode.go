package tx

import (
	"encoding/binary"
	"fmt"

	"blockdesk/internal/solana"
)

// Append appends the message's encoding to dst without checking it: see
// [Message.Check]. Errors: [ErrMalformed] for a count that has no encoding.
func (m *Message) Append(dst []byte) ([]byte, error) {
	if m.Version == V1 {
		return m.appendV1(dst)
	}
	if m.Version == V0 {
		dst = append(dst, prefixV0)
	}
	dst = append(dst, m.Header.Required, m.Header.ReadonlySigned, m.Header.ReadonlyUnsigned)
	w := writer{dst: dst}
	w.count(len(m.Keys))
	for i := range m.Keys {
		w.dst = append(w.dst, m.Keys[i][:]...)
	}
	w.dst = append(w.dst, m.Blockhash[:]...)
	w.count(len(m.Instructions))
	for i := range m.Instructions {
		in := &m.Instructions[i]
		w.dst = append(w.dst, in.Program)
		w.bytes(in.Accounts)
		w.bytes(in.Data)
	}
	if m.Version == V0 {
		w.count(len(m.Lookups))
		for i := range m.Lookups {
			l := &m.Lookups[i]
			w.dst = append(w.dst, l.Table[:]...)
			w.bytes(l.Writable)
			w.bytes(l.Readonly)
		}
	}
	return w.dst, w.err
}

// Append appends the transaction's encoding to dst, from its Message, not from Signed.
// Errors: as [Message.Append].
func (t *Transaction) Append(dst []byte) ([]byte, error) {
	if t.Message.Version == V1 {
		dst, err := t.Message.Append(dst)
		for i := range t.Signatures {
			dst = append(dst, t.Signatures[i][:]...)
		}
		return dst, err
	}
	w := writer{dst: dst}
	w.count(len(t.Signatures))
	for i := range t.Signatures {
		w.dst = append(w.dst, t.Signatures[i][:]...)
	}
	if w.err != nil {
		return w.dst, w.err
	}
	return t.Message.Append(w.dst)
}

// writer appends values and keeps the first error.
type writer struct {
	dst []byte
	err error
}

// count appends a compact-u16.
func (w *writer) count(n int) {
	if n > 0xffff {
		w.err = fmt.Errorf("%w: a count of %d is too large", ErrMalformed, n)
		return
	}
	for n >= 0x80 {
		w.dst = append(w.dst, uint8(n)|0x80)
		n >>= 7
	}
	w.dst = append(w.dst, uint8(n))
}

func (w *writer) bytes(b []byte) {
	w.count(len(b))
	w.dst = append(w.dst, b...)
}

func (m *Message) appendV1(dst []byte) ([]byte, error) {
	if len(m.Keys) > MaxKeysV1 || len(m.Instructions) > MaxInstructionsV1 {
		return dst, fmt.Errorf("%w: %d keys, %d instructions: too many", ErrMalformed, len(m.Keys), len(m.Instructions))
	}
	h := &m.Header
	dst = append(dst, prefixV1, h.Required, h.ReadonlySigned, h.ReadonlyUnsigned)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.Config.Mask))
	dst = append(dst, m.Blockhash[:]...)
	dst = append(dst, uint8(len(m.Instructions)), uint8(len(m.Keys)))
	for i := range m.Keys {
		dst = append(dst, m.Keys[i][:]...)
	}
	dst = m.Config.append(dst)
	for i := range m.Instructions {
		in := &m.Instructions[i]
		if len(in.Accounts) > 0xff || len(in.Data) > 0xffff {
			return dst, fmt.Errorf("%w: instruction %d: %d accounts, %d bytes", ErrMalformed, i, len(in.Accounts), len(in.Data))
		}
		dst = append(dst, in.Program, uint8(len(in.Accounts)))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(in.Data)))
	}
	for i := range m.Instructions {
		dst = append(append(dst, m.Instructions[i].Accounts...), m.Instructions[i].Data...)
	}
	return dst, nil
}

func (c *Config) append(dst []byte) []byte {
	if c.Mask&HasPriorityFee != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, c.PriorityFee)
	}
	if c.Mask&HasUnits != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, c.Units)
	}
	if c.Mask&HasLoadedBytes != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, c.LoadedBytes)
	}
	if c.Mask&HasHeapBytes != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, c.HeapBytes)
	}
	return dst
}

// Check checks a message against the runtime's structural rules. Every decoded message
// has passed it. Errors: [ErrMalformed].
func (m *Message) Check() error {
	h, static := &m.Header, len(m.Keys)
	switch {
	case m.Version < Legacy || m.Version > V1:
		return fmt.Errorf("%w: unknown version %d", ErrMalformed, m.Version)
	case h.ReadonlySigned >= h.Required:
		return fmt.Errorf("%w: no writable fee payer: %d signers, %d of them read-only", ErrMalformed, h.Required, h.ReadonlySigned)
	case int(h.Required)+int(h.ReadonlyUnsigned) > static:
		return fmt.Errorf("%w: %d signers and %d read-only of %d keys", ErrMalformed, h.Required, h.ReadonlyUnsigned, static)
	case m.Version == Legacy && h.Required >= prefixMask:
		return fmt.Errorf("%w: %d signers in a legacy message", ErrMalformed, h.Required)
	case m.Version != V0 && len(m.Lookups) > 0:
		return fmt.Errorf("%w: version %v has no address lookups", ErrMalformed, m.Version)
	case m.Version != V1 && m.Config != Config{}:
		return fmt.Errorf("%w: version %v has no config", ErrMalformed, m.Version)
	}
	for i := range m.Lookups {
		if len(m.Lookups[i].Writable)+len(m.Lookups[i].Readonly) == 0 {
			return fmt.Errorf("%w: lookup %d loads nothing", ErrMalformed, i)
		}
	}
	writable, readonly := m.LookupKeys()
	all := static + writable + readonly
	if all > MaxKeys {
		return fmt.Errorf("%w: %d keys: too many", ErrMalformed, all)
	}
	if err := m.checkInstructions(static, all); err != nil {
		return err
	}
	if m.Version == V1 {
		if err := m.checkV1(); err != nil {
			return err
		}
	}
	return m.checkDistinct()
}

// checkInstructions: a program is a static key and not the fee payer.
func (m *Message) checkInstructions(static, all int) error {
	for i := range m.Instructions {
		in := &m.Instructions[i]
		if in.Program == 0 || int(in.Program) >= static {
			return fmt.Errorf("%w: instruction %d calls key %d of %d", ErrMalformed, i, in.Program, static)
		}
		for _, a := range in.Accounts {
			if int(a) >= all {
				return fmt.Errorf("%w: instruction %d names key %d of %d", ErrMalformed, i, a, all)
			}
		}
	}
	return nil
}

func (m *Message) checkV1() error {
	c := &m.Config
	switch {
	case m.Header.Required > MaxSignaturesV1, len(m.Keys) > MaxKeysV1, len(m.Instructions) > MaxInstructionsV1:
		return fmt.Errorf("%w: %d signers, %d keys, %d instructions: too many", ErrMalformed, m.Header.Required, len(m.Keys), len(m.Instructions))
	case c.Mask&HasHeapBytes != 0 && (c.HeapBytes%1024 != 0 || c.HeapBytes < minHeap || c.HeapBytes > maxHeap):
		return fmt.Errorf("%w: a heap of %d bytes is out of range", ErrMalformed, c.HeapBytes)
	}
	return nil
}

// checkDistinct compares all pairs, which is fastest for so few keys.
func (m *Message) checkDistinct() error {
	for i := range m.Keys {
		for j := i + 1; j < len(m.Keys); j++ {
			if m.Keys[i] == m.Keys[j] {
				return fmt.Errorf("%w: key %s is listed twice", ErrMalformed, solana.Base58(m.Keys[i]))
			}
		}
	}
	return nil
}
