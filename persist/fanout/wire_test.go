package fanout

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/persist"
)

// TestGoldenMessages freezes the bytes of the messages.
func TestGoldenMessages(t *testing.T) {
	newest := persist.Position{Next: 0x1122334455667788, Hash: 0x0102030405060708, Epoch: 9}
	requestHead := head{kind: kindSnapshotRequest, seq: newest.Next}
	requestHead.setSnapshotOffset(0x0000000a00000005)
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"part": {
			appendMessage(nil, &head{kind: kindFramePiece, term: 7, seq: newest.Next, total: 8, offset: 3}, []byte("abc")),
			"42 44 46 4e 01 01 00 00 0700000000000000 8877665544332211 08000000 03000000 616263",
		},
		"heartbeat": {
			appendHeartbeat(nil, 7, &heartbeat{position: newest, durable: 6, at: 5}),
			"42 44 46 4e 01 02 00 00 0700000000000000 8877665544332211 00000000 00000000 " +
				"0807060504030201 0900000000000000 0600000000000000 0500000000000000",
		},
		"snapshot request": {
			appendMessage(nil, &requestHead),
			"42 44 46 4e 01 03 00 00 0000000000000000 8877665544332211 05000000 0a000000",
		},
		"piece": {
			appendPiece(nil, 7, 0x0000000a00000005, &piece{position: newest, size: 3, bytes: []byte("xyz")}),
			"42 44 46 4e 01 04 00 00 0700000000000000 8877665544332211 05000000 0a000000 " +
				"0807060504030201 0900000000000000 0300000000000000 78797a",
		},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(c.want, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(want, castagnoli))
		if !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n%x\nwant\n%x", name, c.got, want)
		}
	}
	h, body, err := parseMessage(appendHeartbeat(nil, 7, &heartbeat{position: newest, durable: 6, at: 5}))
	if b := parseHeartbeat(&h, body); err != nil || b != (heartbeat{position: newest, durable: 6, at: 5}) || h.term != 7 {
		t.Errorf("heartbeat %+v: %v", b, err)
	}
	h, body, err = parseMessage(appendPiece(nil, 7, 1<<33+5, &piece{position: newest, size: 3, bytes: []byte("xyz")}))
	if p := parsePiece(&h, body); err != nil || p.position != newest || p.size != 3 || string(p.bytes) != "xyz" || h.snapshotOffset() != 1<<33+5 {
		t.Errorf("piece %+v of %+v: %v", p, h, err)
	}
}

// TestHostileMessages: messages that no publisher of this version sends are refused,
// even with a valid checksum.
func TestHostileMessages(t *testing.T) {
	sealed := func(change func(p []byte) []byte) []byte {
		p := appendMessage(nil, &head{kind: kindFramePiece, term: 1, seq: 1, total: 4}, []byte("abcd"))
		p = change(p[:len(p)-tailSize])
		return binary.LittleEndian.AppendUint32(p, crc32.Checksum(p, castagnoli))
	}
	set := func(at int, v byte) func([]byte) []byte {
		return func(p []byte) []byte { p[at] = v; return p }
	}
	if _, _, err := parseMessage(sealed(func(p []byte) []byte { return p })); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"nothing":                nil,
		"short":                  make([]byte, headSize+tailSize-1),
		"long":                   make([]byte, MaxMessageBytes+1),
		"other magic":            sealed(set(0, 'X')),
		"version 0":              sealed(set(4, 0)),
		"version 2":              sealed(set(4, 2)),
		"no kind":                sealed(set(5, 0)),
		"unknown kind":           sealed(set(5, byte(kindUnknown))),
		"reserved":               sealed(set(7, 1)),
		"seq 0":                  sealed(set(16, 0)),
		"past the frame":         sealed(set(28, 1)),
		"a frame too long":       sealed(func(p []byte) []byte { binary.LittleEndian.PutUint32(p[24:], persist.MaxFrameBytes+1); return p }),
		"offset wraps":           sealed(func(p []byte) []byte { binary.LittleEndian.PutUint32(p[28:], 1<<32-1); return p }),
		"no bytes":               sealed(func(p []byte) []byte { return p[:headSize] }),
		"a short heartbeat":      sealed(set(5, byte(kindHeartbeat))),
		"a request with a body":  sealed(set(5, byte(kindSnapshotRequest))),
		"a piece of no snapshot": sealed(set(5, byte(kindSnapshotPiece))),
		"checksum":               appendMessage(nil, &head{kind: kindFramePiece, term: 1, seq: 1, total: 4}, []byte("abcd"))[:headSize+7],
	} {
		if _, _, err := parseMessage(data); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAssembly: frames cut into pieces of any length are assembled again; a lost,
// doubled or swapped piece drops at most the frames that it touches, and never makes
// another one.
func TestAssembly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			h    head
			body []byte
		}
		var frames [][]byte
		var parts []part
		for seq := range uint64(rapid.IntRange(1, 8).Draw(t, "frames")) {
			frame := bytes.Repeat([]byte{byte(seq + 1)}, rapid.IntRange(1, 50).Draw(t, "bytes"))
			frames = append(frames, frame)
			eachPiece(frame, rapid.IntRange(1, 60).Draw(t, "most"), func(offset int, p []byte) bool {
				parts = append(parts, part{head{kind: kindFramePiece, seq: seq + 1, total: uint32(len(frame)), offset: uint32(offset)}, p})
				return true
			})
		}
		whole := rapid.Bool().Draw(t, "whole")
		var a assembly
		got := 0
		for i := 0; i < len(parts); i++ {
			p := parts[i]
			if !whole && rapid.IntRange(0, 5).Draw(t, "outcome") == 0 {
				p = parts[rapid.IntRange(0, len(parts)-1).Draw(t, "instead")]
			}
			frame, dropped := a.add(&p.h, p.body)
			if whole && dropped {
				t.Fatal("dropped")
			}
			if frame == nil {
				continue
			}
			got++
			if !bytes.Equal(frame, frames[p.h.seq-1]) {
				t.Fatalf("frame %x of seq %d", frame, p.h.seq)
			}
		}
		if whole && got != len(frames) {
			t.Fatalf("%d frames of %d", got, len(frames))
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(appendMessage(nil, &head{kind: kindFramePiece, term: 1, seq: 1, total: 4}, []byte("abcd")), []byte("x"))
	f.Add(appendHeartbeat(nil, 7, &heartbeat{position: persist.Genesis()}), []byte(nil))
	f.Add(appendPiece(nil, 7, 5, &piece{position: persist.Genesis(), size: 3, bytes: []byte("xyz")}), []byte("y"))
	f.Add(appendMessage(nil, &head{kind: kindSnapshotRequest}), []byte("z"))
	f.Fuzz(func(t *testing.T, data, more []byte) {
		var a assembly
		for _, m := range [][]byte{data, more} {
			if n := len(m) - tailSize; n >= 0 {
				binary.LittleEndian.PutUint32(m[n:], crc32.Checksum(m[:n], castagnoli))
			}
			h, body, err := parseMessage(m)
			if err != nil {
				continue
			}
			switch h.kind {
			case kindFramePiece:
				if frame, _ := a.add(&h, body); len(frame) > persist.MaxFrameBytes {
					t.Fatalf("a frame of %d bytes", len(frame))
				}
				if len(a.buf) > int(a.total) {
					t.Fatalf("%d bytes of a frame of %d", len(a.buf), a.total)
				}
			case kindHeartbeat:
				b := parseHeartbeat(&h, body)
				if again := appendHeartbeat(nil, h.term, &b); h.total == 0 && h.offset == 0 && !bytes.Equal(again, m) {
					t.Fatalf("%x, again %x", m, again)
				}
			case kindSnapshotPiece:
				p := parsePiece(&h, body)
				if again := appendPiece(nil, h.term, h.snapshotOffset(), &p); !bytes.Equal(again, m) {
					t.Fatalf("%x, again %x", m, again)
				}
			case kindSnapshotRequest:
				_ = h.snapshotOffset()
			}
		}
	})
}
