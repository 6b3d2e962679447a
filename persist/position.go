package persist

import (
	"fmt"
)

// Position is a point between two frames of a journal. The zero value is no position;
// Genesis is the first one.
type Position struct {
	Next  uint64 // Seq of the next command, at least 1
	Hash  uint64 // HashFrame of the frame before; 0 at Genesis
	Epoch uint64 // in force; 0 at Genesis
}

// Genesis returns the position before the first frame of any journal.
func Genesis() Position { return Position{Next: 1} }

// Last returns the Seq of the last command before the position, 0 at Genesis.
func (p *Position) Last() uint64 { return p.Next - 1 }

// Advance checks that f, whose HashFrame is hash, is the frame at p, and moves p past
// it. An error leaves p where it is.
func (p *Position) Advance(f *Frame, hash uint64) error {
	switch {
	case f.First != p.Next:
		return fmt.Errorf("the frame begins at seq %d, want %d", f.First, p.Next)
	case f.Previous != p.Hash:
		return fmt.Errorf("the frame follows a frame of hash %016x, but the one before it has hash %016x", f.Previous, p.Hash)
	case f.Epoch < p.Epoch:
		return fmt.Errorf("the frame is of epoch %d, the one before it of epoch %d: an epoch must not fall", f.Epoch, p.Epoch)
	}
	p.Next, p.Hash, p.Epoch = f.Last()+1, hash, f.Epoch
	return nil
}

// position is a Position with what the high-water mark records of it.
type position struct {
	Position
	first uint64 // first Seq of the frame before; 0: unknown, or Genesis
}

func (p *position) advance(f *Frame, hash uint64) error {
	if err := p.Advance(f, hash); err != nil {
		return err
	}
	p.first = f.First
	return nil
}

func (p *position) highWaterMark(phase phase) highWaterMarkRecord {
	return highWaterMarkRecord{phase: phase, last: p.Last(), first: p.first, hash: p.Hash, epoch: p.Epoch}
}
