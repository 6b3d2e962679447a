package session

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/datadictionary"

	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// dictionaryFile is what integrators download. It is the stock dictionary with
// customFields: go test ./fixgw/session -run TestDictionary -write-dictionary.
const dictionaryFile = "../../sdk/fix/FIX44-blockdesk.xml"

var writeDictionary = flag.Bool("write-dictionary", false, "write "+dictionaryFile+" anew")

// customFields are the fields that FIX44.xml does not have. Types are those of
// FIX 4.4. Numbers of 64 bits are STRING: readers of INT have 32.
var customFields = []struct {
	tag      quickfix.Tag
	name     string
	kind     string
	messages string // MsgTypes that may carry it
}{
	{wire.TagCustomFields, "CustomFields", "BOOLEAN", "A"},
	{wire.TagFillUSD, "FillUSD", "AMT", "S 8"},
	{wire.TagRail, "Rail", "STRING", "S 8"},
	{wire.TagDiscountBps, "DiscountBps", "INT", "S 8"},
	{wire.TagReferencePriceUSD, "ReferencePriceUSD", "PRICE", "S 8"},
	{wire.TagPaymentAmount, "PaymentAmount", "AMT", "S 8 B"},
	{wire.TagPaymentAtoms, "PaymentAtoms", "STRING", "S 8 B"},
	{wire.TagPayTo, "PayTo", "STRING", "S 8 B"},
	{wire.TagPaymentMint, "PaymentMint", "STRING", "S 8 B"},
	{wire.TagPaymentReference, "PaymentReference", "STRING", "B"},
	{wire.TagPaymentMemo, "PaymentMemo", "STRING", "B"},
	{wire.TagBaseAtoms, "BaseAtoms", "STRING", "S 8"},
	{wire.TagClaimState, "ClaimState", "STRING", "8 AE"},
	{wire.TagL1Signature, "L1Signature", "STRING", "8 AE"},
	{wire.TagFeeBps, "FeeBps", "INT", "S 8"},
	{wire.TagEpoch, "Epoch", "STRING", "W X"},
	{wire.TagFeedSeq, "FeedSeq", "STRING", "W X"},
	{wire.TagProtectionFills, "ProtectionFills", "INT", "i"},
	{wire.TagProtectionQty, "ProtectionQty", "QTY", "i"},
	{wire.TagProtectionMillis, "ProtectionMillis", "INT", "i"},
	{wire.TagMassCancelSession, "MassCancelSession", "BOOLEAN", "q"},
	{wire.TagSelfTrade, "SelfTradeType", "CHAR", "D i"},
	{wire.TagCancelOnDisconnect, "CancelOrdersOnDisconnect", "BOOLEAN", "A D"},
	{wire.TagDropCopy, "DropCopy", "BOOLEAN", "A"},
	{wire.TagProtectionReset, "MMProtectionReset", "BOOLEAN", "i"},
}

const dictionaryHead = `<!-- FIX 4.4 as QuickFIX has it, with the fields of a session that logs on with
     CustomFields (5600) = Y. Licence of the original: FIX44.LICENSE. -->
`

// blockdeskDictionary returns the stock dictionary with customFields.
func blockdeskDictionary(t *testing.T) []byte {
	t.Helper()
	text := dictionaryHead + strings.ReplaceAll(string(fix44), "\r\n", "\n")
	insert := func(after, before, line string) {
		at := strings.Index(text, after)
		if at < 0 || strings.Count(text, after) != 1 {
			t.Fatalf("FIX44.xml has not one %s", after)
		}
		at += strings.Index(text[at:], before)
		text = text[:at] + line + text[at:]
	}
	for _, f := range customFields {
		for _, msgType := range strings.Fields(f.messages) {
			insert(" msgtype='"+msgType+"'>", "\n  </message>", fmt.Sprintf("\n   <field name='%s' required='N' />", f.name))
		}
		insert("\n <fields>", " </fields>", fmt.Sprintf("  <field number='%d' name='%s' type='%s' />\n", f.tag, f.name, f.kind))
	}
	return []byte(text)
}

// TestDictionary: what integrators download is the stock dictionary and our
// fields, no more.
func TestDictionary(t *testing.T) {
	t.Parallel()
	want := blockdeskDictionary(t)
	if *writeDictionary {
		if err := os.WriteFile(dictionaryFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(dictionaryFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what customFields say: write it anew with -write-dictionary", dictionaryFile)
	}
	dd, err := datadictionary.Parse(dictionaryFile)
	if err != nil {
		t.Fatal(err)
	}
	stock, err := datadictionary.ParseSrc(bytes.NewReader(fix44))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(dd.FieldTypeByTag) - len(stock.FieldTypeByTag); n != len(customFields) {
		t.Errorf("%d fields more than the stock dictionary, want %d", n, len(customFields))
	}
	for msgType, m := range dd.Messages {
		for tag := range m.Fields {
			if _, known := stock.Messages[msgType].Fields[tag]; !known && !carries(msgType, tag) {
				t.Errorf("message %s has field %d", msgType, tag)
			}
		}
	}
	if license, err := os.ReadFile("../../sdk/fix/FIX44.LICENSE"); err != nil || len(license) == 0 {
		t.Errorf("the licence does not come with the dictionary: %v", err)
	}
	for _, f := range customFields {
		if known := dd.FieldTypeByTag[int(f.tag)]; known == nil || known.Name() != f.name {
			t.Errorf("field %d is not %s", f.tag, f.name)
		}
	}
}

func carries(msgType string, tag int) bool {
	for _, f := range customFields {
		if int(f.tag) == tag {
			for _, m := range strings.Fields(f.messages) {
				if m == msgType {
					return true
				}
			}
		}
	}
	return false
}

// TestDictionaryIsStock: the embedded dictionary is QuickFIX's, unchanged.
func TestDictionaryIsStock(t *testing.T) {
	t.Parallel()
	license, err := os.ReadFile("FIX44.LICENSE")
	if err != nil || !strings.Contains(string(license), "The QuickFIX Software License") {
		t.Errorf("the licence is not beside it: %v", err)
	}
	if _, err := newValidator(); err != nil {
		t.Error(err)
	}
}

// TestRejectsAreTheSame: of several tags that are missing the lowest is named,
// each time.
func TestRejectsAreTheSame(t *testing.T) {
	t.Parallel()
	v, err := newValidator()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		m := quickfix.NewMessage()
		raw := wiretest.Message("35=D|34=1|49=A|52=20260101-00:00:00.000|56=B|58=x|")
		if err := quickfix.ParseMessage(m, bytes.NewBuffer(raw)); err != nil {
			t.Fatal(err)
		}
		if reject := v.Validate(m); reject == nil || reject.RefTagID() == nil || *reject.RefTagID() != 11 {
			t.Fatalf("rejected for %v", reject)
		}
	}
}
