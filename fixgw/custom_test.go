package fixgw

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/datadictionary"

	"blockdesk/engine"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/persist/kv/kvtest"
)

// dictionaryFile is what integrators download. It is the stock dictionary with
// customFields: go test ./fixgw -run TestDictionary -write-dictionary.
const dictionaryFile = "../sdk/fix/FIX44-blockdesk.xml"

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
	{wire.TagCancelOnDisconnect, "CancelOrdersOnDisconnect", "BOOLEAN", "A"},
	{wire.TagDropCopy, "DropCopy", "BOOLEAN", "A"},
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
	if license, err := os.ReadFile("../sdk/fix/FIX44.LICENSE"); err != nil || len(license) == 0 {
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

// TestCustomMarketData: who has asked for custom fields hears where the message
// is in the feed; who has not hears what a stock client knows, on the same book.
func TestCustomMarketData(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "PLAIN", "RICH"}, nil)
	mm, plain := d.dial("MM", nil), d.dial("PLAIN", nil)
	rich := d.dial("RICH", func(o *fixclient.Options) { o.LogonFields = "5600=Y\x01" })
	position := func(v uint64) string { return fmt.Sprintf("5615=%d 5616=%d", d.views.View(0).Epoch, v) }
	d.awaitView(0, "a view", func(*engine.View) bool { return true })
	const kinds, trades = "267=3|269=0|269=1|269=2|", "267=1|269=2|"
	for _, k := range []*client{plain, rich} {
		k.send("V", "262=s|263=0|264=0|"+kinds+"146=1|55=SLUSD/USDC|")
		k.send("V", "262=all|263=1|264=0|265=1|"+kinds+"146=1|55=SLUSD/USDC|")
		k.send("V", "262=trades|263=1|264=0|265=1|"+trades+"146=1|55=SLUSD/USDC|")
		for _, id := range []string{"s", "all", "trades"} {
			if m := k.want("35=W 262=" + id); k == plain && m.get(5615)+m.get(5616) != "" {
				t.Errorf("a stock client gets %s", m)
			} else if k == rich {
				m.want(t, position(1))
			}
		}
	}
	mm.order("b", "1", "10", "1", "59=1|")
	plain.want("35=X 262=all 5615= 5616= 268=1 271=10.00")
	m := rich.want("35=X 262=all 268=1 271=10.00")
	d.awaitView(0, "a bid in the view", func(v *engine.View) bool { return len(v.Bids) == 1 })
	m.want(t, position(d.views.View(0).DepthSeq))
	mm.want("150=0")
}

// TestCustomSession: a stock quickfix initiator with our dictionary, and one
// with the stock dictionary and no word of custom fields, get what they can read.
func TestCustomSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"PLAIN", "RICH"}, nil)
	const at = "60=20260101-00:00:00.000"
	for _, c := range []struct {
		compID, dictionary string
		logon              map[quickfix.Tag]string
		carries            bool
	}{
		{"PLAIN", "FIX44.xml", nil, false},
		{"RICH", dictionaryFile, map[quickfix.Tag]string{wire.TagCustomFields: "Y", wire.TagCancelOnDisconnect: "N", wire.TagDropCopy: "N"}, true},
	} {
		i := d.initiate(c.compID, c.dictionary, c.logon)
		i.send(t, "V", "262=m", "263=1", "264=5", "265=1", "267=3\x01269=0\x01269=1\x01269=2", "146=1\x0155=92C/SLUSD")
		if m := i.want(t, "35=W 262=m"); (m.get(5615) != "") != c.carries || (m.get(5616) != "") != c.carries {
			t.Errorf("%s: %s", c.compID, m)
		}
		i.send(t, "D", "11="+c.compID, "55=92C/SLUSD", "54=1", "38=10", "40=2", "44=5", "59=1", at)
		seen := map[string]bool{}
		for !seen["8"] || !seen["X"] {
			m := i.want(t, "")
			seen[m.get(35)] = true
			if m.get(35) == "X" && (m.get(5616) != "") != c.carries {
				t.Errorf("%s: %s", c.compID, m)
			}
			if m.get(35) != "8" && m.get(35) != "X" {
				t.Fatalf("%s: unexpected %s", c.compID, m)
			}
		}
		i.send(t, "x", "320=l", "559=4")
		i.want(t, "35=y 560=0 393=3")
	}
}

// TestLogonWishes: what a Logon asks for outlives the connection and the
// process, until the next Logon; anything but Y and N is refused.
func TestLogonWishes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	has := func(cancel, dropCopy, custom bool) {
		t.Helper()
		s := d.gateway.sessionNamed("MM")
		if s.cancelOnDisconnect.Load() != cancel || s.dropCopy.Load() != dropCopy || s.custom.Load() != custom {
			t.Errorf("cancel %v, drop copy %v, custom %v; want %v, %v, %v",
				s.cancelOnDisconnect.Load(), s.dropCopy.Load(), s.custom.Load(), cancel, dropCopy, custom)
		}
	}
	with := func(fields string) func(*fixclient.Options) {
		return func(o *fixclient.Options) { o.LogonFields = fields }
	}
	leave := func(k *client) {
		k.c.Close()
		d.awaitStats("nobody there", func(s Stats) bool { return s.Connections == 0 && s.Sessions == 0 })
	}
	has(false, false, false) // nobody has asked for anything
	for _, c := range []struct {
		fields                   string
		cancel, dropCopy, custom bool
	}{
		{"", true, false, false},
		{"8013=N\x01", false, false, false},
		{"9406=Y\x01", true, true, false},
		{"5600=Y\x01", true, false, true},
		{"8013=N\x019406=Y\x015600=Y\x01", false, true, true},
		{"8013=Y\x019406=N\x015600=N\x01", true, false, false},
		{"8013=N\x019406=Y\x015600=Y\x01", false, true, true},
	} {
		leave(d.dial("MM", with(c.fields)))
		has(c.cancel, c.dropCopy, c.custom)
	}
	d.stop()
	d.start()
	has(false, true, true)
	for _, tag := range []int{wire.TagCustomFields, wire.TagCancelOnDisconnect, wire.TagDropCopy} {
		_, err := fixclient.Dial(t.Context(), fixclient.Options{
			Addr: d.addr(), SenderCompID: "MM", TargetCompID: d.options.CompID, Username: "mm", Password: testPassword,
			LogonFields: fmt.Sprintf("%d=1\x01", tag),
		})
		if want := fmt.Sprintf("INVALID_FIELD: tag %d %q: must be Y or N", tag, "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tag %d: %v, want %s", tag, err, want)
		}
	}
	has(false, true, true) // a refused Logon asks for nothing
}

// TestSessionRecordOfOld: a record of before there were flags has 0 or 1 for
// cancel on disconnect.
func TestSessionRecordOfOld(t *testing.T) {
	t.Parallel()
	for old, want := range map[byte]wire.LogonFlags{0: 0, 1: wire.FlagCancelOnDisconnect} {
		store, o := kvtest.New(), storeOptions(nil)
		s := openStore(t, store, o)
		if err := s.setFlags(wire.LogonFlags(old)); err != nil {
			t.Fatal(err)
		}
		sendOne(t, s, "8")
		value, _, err := store.Get(sessionKey(nil, 1))
		if err != nil || len(value) != sessionRecordSize || value[32] != old {
			t.Fatalf("record %x, %v", value, err)
		}
		if again := openStore(t, store, o); again.flags != want {
			t.Errorf("%d is read as %b", old, again.flags)
		}
	}
}

// TestResendWithoutCustom: so it is when it is resent.
func TestResendWithoutCustom(t *testing.T) {
	t.Parallel()
	s := openStore(t, kvtest.New(), storeOptions(nil))
	if err := s.setFlags(wire.FlagCustomFields); err != nil {
		t.Fatal(err)
	}
	const head, tail = "35=8|34=1|49=A|52=20260101-00:00:00.000|56=B|37=7|", "11=a|58=x|"
	rich := wiretest.Message(head + "5601=100|5612=paid|" + tail)
	if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(1, rich); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags wire.LogonFlags
		want  []byte
	}{{wire.FlagCustomFields, rich}, {wire.FlagCancelOnDisconnect, wiretest.Message(head + tail)}, {wire.FlagCustomFields | wire.FlagDropCopy, rich}} {
		if err := s.setFlags(c.flags); err != nil {
			t.Fatal(err)
		}
		messages, err := s.GetMessages(1, 1)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		const checkSum = len("nnn\x01")
		if got := messages[0]; !bytes.Equal(got[:len(got)-checkSum], c.want[:len(c.want)-checkSum]) {
			t.Errorf("flags %b: %s, want %s", c.flags, wiretest.Show(got), wiretest.Show(c.want))
		}
		if err := quickfix.ParseMessage(quickfix.NewMessage(), bytes.NewBuffer(messages[0])); err != nil {
			t.Errorf("quickfix cannot send it again: %v", err)
		}
	}
}
