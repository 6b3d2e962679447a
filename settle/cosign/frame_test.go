package cosign

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// TestGoldenFrames freezes what is on the wire.
func TestGoldenFrames(t *testing.T) {
	job := Job{&draft{Summary: Summary{Kind: Deliver}, raw: []byte{1, 2, 3}}}
	for want, f := range map[string]frame{
		"02000101":                           {requestAddress, nil},
		"0600010202010203":                   signFrame(job),
		"22000181" + "a1" + zeros(30) + "af": addressFrame(solana.Address{0xa1, 31: 0xaf}),
		"42000182" + "51" + zeros(62) + "5f": signatureFrame(solana.Signature{0x51, 63: 0x5f}),
		"030001ff04":                         refusalFrame(RefusalMessage),
		"04000103" + "1200":                  limitsRequest(18),
		"43000183" + "02" + "11" + zeros(30) + "1f" + "0100000000000000" + "0200000000000000" + "0300000000000000" + "0400000000000000": limitsFrame(
			[]LimitUse{{Class: LimitRefund, Mint: solana.Address{0x11, 31: 0x1f}, Hour: 1, MaxHour: 2, Day: 3, MaxDay: 4}}, 0),
	} {
		if got := hex.EncodeToString(f.append(nil)); got != want {
			t.Errorf("frame %s, want %s", got, want)
		}
	}
	for want, r := range []Refusal{1: RefusalFrame, 2: RefusalShape, 3: RefusalSlots, 4: RefusalMessage, 5: RefusalDeliveries, 6: RefusalFull, 7: RefusalRecord, 8: RefusalBusy, 9: RefusalKey, 10: RefusalToken, 11: RefusalPayee, 12: RefusalPrice, 13: RefusalHour, 14: RefusalDay, 15: RefusalNoLimits, 16: RefusalRefunds} {
		if int(r) != want {
			t.Errorf("refusal %s is %d, want %d", r, r, want)
		}
	}
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

// TestWords: every number has a word of its own.
func TestWords(t *testing.T) {
	words := map[string]bool{}
	for r := range RefusalRefunds + 2 {
		if r == 0 || r > RefusalRefunds {
			if r.String() != "refusal?" {
				t.Errorf("refusal %d is %s", r, r)
			}
			continue
		}
		if words[r.String()] || r.String() == "refusal?" {
			t.Errorf("refusal %d is %s", r, r)
		}
		words[r.String()] = true
	}
	if Cosign.String() != "cosign" || Deliver.String() != "deliver" || Refund.String() != "refund" || Kind(0).String() != "kind?" || Kind(4).String() != "kind?" {
		t.Error("words of kinds")
	}
}

// TestFrameLimits: the largest frame is read, one byte more is refused unread.
func TestFrameLimits(t *testing.T) {
	most := frame{requestSign, make([]byte, MaxSignerFrame-headSize)}
	if got, err := readFrame(bytes.NewReader(most.append(nil))); err != nil || len(got.body) != len(most.body) {
		t.Errorf("the largest: %d bytes, %v", len(got.body), err)
	}
	if room := len(most.body) - 1; room != tx.MaxSize {
		t.Errorf("room for a transaction of %d bytes", room)
	}
	more := frame{requestSign, make([]byte, MaxSignerFrame-headSize+1)}
	r := bytes.NewReader(more.append(nil))
	if _, err := readFrame(r); !errors.Is(err, errFrame) || r.Len() != len(more.body) {
		t.Errorf("one byte more: %v, %d bytes left", err, r.Len())
	}
	for text, want := range map[string]error{
		"":           io.EOF,
		"02":         io.ErrUnexpectedEOF,
		"020001":     io.ErrUnexpectedEOF,
		"03000101":   io.ErrUnexpectedEOF,
		"0400010101": io.ErrUnexpectedEOF,
		"00000101":   errFrame,
		"01000101":   errFrame,
		"ffff0101":   errFrame,
		"02000001":   errFrame,
		"02000201":   errFrame,
		"47455420":   errFrame, // an HTTP request
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readFrame(bytes.NewReader(b)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// TestParse: an answer counts only if it is of the type that was asked for, and of
// its size.
func TestParse(t *testing.T) {
	var address solana.Address
	if err := addressFrame(deskAddress).parse(answerAddress, address[:]); err != nil || address != deskAddress {
		t.Errorf("%s, %v", solana.Base58(address), err)
	}
	for _, f := range []frame{
		{},
		{requestAddress, nil},
		{answerAddress, nil},
		{answerAddress, make([]byte, 31)},
		{answerAddress, make([]byte, 33)},
		signatureFrame(solana.Signature{}),
		{answerSignature, deskAddress[:]},
		{answerRefusal, nil},
		{answerRefusal, []byte{4, 4}},
	} {
		var into solana.Address
		if err := f.parse(answerAddress, into[:]); !errors.Is(err, errFrame) || into != (solana.Address{}) {
			t.Errorf("frame %#x of %d bytes: %v", f.kind, len(f.body), err)
		}
	}
	var into solana.Signature
	if err := refusalFrame(RefusalMessage).parse(answerSignature, into[:]); !errors.Is(err, RefusalMessage) {
		t.Errorf("a refusal: %v", err)
	}
}

// FuzzFrame: what is read is written as the same bytes, however it comes, and
// nothing behind it is read.
func FuzzFrame(f *testing.F) {
	f.Add(frame{requestAddress, nil}.append(nil))
	f.Add(frame{requestSign, make([]byte, 100)}.append(nil))
	f.Add(refusalFrame(RefusalBusy).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		got, err := readFrame(r)
		slow, slowErr := readFrame(iotest.OneByteReader(bytes.NewReader(b)))
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("%v at once, %v byte by byte", err, slowErr)
		}
		if err != nil {
			return
		}
		if read := len(b) - r.Len(); !bytes.Equal(got.append(nil), b[:read]) || !bytes.Equal(slow.body, got.body) {
			t.Fatalf("read %d bytes as %x", read, got.append(nil))
		}
	})
}
