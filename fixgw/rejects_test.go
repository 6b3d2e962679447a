package fixgw

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// taken is a message that we take: fields in the order of the dictionary, a
// repeating group as one of them. bad is a value that its type does not allow,
// odd one that is not among the field's values; "" = the message has no such
// field. crowded has a group with one entry too few, mixed one whose fields stand
// in another order.
var taken = []struct {
	msgType        string
	fields         []string
	bad, odd       string
	crowded, mixed string
}{
	{"D", []string{"11=a", "55=SLUSD/USDC", "54=1", now60[:len(now60)-1], "38=1", "40=2", "44=1"}, "60=noon", "54=Z", "453=2|448=a|447=D|452=1", "453=1|448=a|452=1|447=D"},
	{"F", []string{"41=a", "11=b", "55=SLUSD/USDC", "54=1", now60[:len(now60)-1]}, "60=noon", "54=Z", "453=2|448=a|447=D|452=1", "453=1|448=a|452=1|447=D"},
	{"G", []string{"41=a", "11=b", "55=SLUSD/USDC", "54=1", now60[:len(now60)-1], "38=1", "40=2", "44=1"}, "44=cheap", "40=Z", "453=2|448=a|447=D|452=1", "453=1|448=a|452=1|447=D"},
	{"H", []string{"11=a", "55=SLUSD/USDC", "54=1"}, "202=low", "54=Z", "453=2|448=a|447=D|452=1", "453=1|448=a|452=1|447=D"},
	{"q", []string{"11=a", "530=7", now60[:len(now60)-1]}, "60=noon", "530=Z", "", ""},
	{"V", []string{"262=a", "263=0", "264=1", "267=1|269=0", "146=1|55=SLUSD/USDC"}, "264=deep", "263=9", "146=2|55=SLUSD/USDC", "146=1|55=SLUSD/USDC|48=a|22=8|48=b"},
	{"x", []string{"320=a", "559=4"}, "202=low", "559=9", "711=2|311=a", "711=1|311=a|305=8|309=b"},
	{"c", []string{"320=a", "321=0", "55=SLUSD/USDC"}, "202=low", "321=9", "711=2|311=a", "711=1|311=a|305=8|309=b"},
	{"e", []string{"324=a", "55=SLUSD/USDC", "263=0"}, "202=low", "263=9", "711=2|311=a", "711=1|311=a|305=8|309=b"},
	{"R", []string{"131=a", "146=1|55=SLUSD/USDC"}, "", "", "146=2|55=SLUSD/USDC", "146=1|55=SLUSD/USDC|15=USDC|54=1"},
	{"AJ", []string{"693=a", "117=b", "694=1", "55=SLUSD/USDC"}, "60=noon", "694=99", "453=2|448=a|447=D|452=1", "453=1|448=a|452=1|447=D"},
	{"AE", []string{"571=a", "570=N", "55=SLUSD/USDC", "32=1", "31=1", "75=20260101", now60[:len(now60)-1], "552=1|54=1|37=5"}, "32=some", "570=Z", "552=2|54=1|37=5", "552=1|54=1|37=5|453=1|448=a|452=1|447=D"},
}

// TestSessionRejects: what each message we take is refused for, with the reason
// and the tag that FIX 4.4 has for it.
func TestSessionRejects(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	dictionary := wiretest.StockChecker().Dictionary
	tagOf := func(field string) string { tag, _, _ := strings.Cut(field, "="); return tag }
	for _, m := range taken {
		rejected := func(why, reason, tag string, fields ...string) {
			t.Helper()
			mm.send(m.msgType, strings.Join(fields, "|")+"|")
			code := wire.CodeInvalidField
			if reason == "1" {
				code = wire.CodeMissingField
			}
			got := mm.next()
			if got.Pick(35, 372, 373, 371) != fmt.Sprintf("35=3 372=%s 373=%s 371=%s", m.msgType, reason, tag) ||
				!strings.HasPrefix(got.Get(58), code+": tag "+tag+": ") || got.Get(45) == "" {
				t.Errorf("%s, %s: %s, want 373=%s 371=%s", m.msgType, why, got, reason, tag)
			}
		}
		without := func(i int) []string { return slices.Delete(slices.Clone(m.fields), i, i+1) }
		with := func(i int, field string) []string {
			fields := slices.Clone(m.fields)
			fields[i] = field
			return fields
		}
		// replace puts a field in the place of the one with its tag, or at the end.
		replace := func(field string) []string {
			for i := range m.fields {
				if tagOf(m.fields[i]) == tagOf(field) {
					return with(i, field)
				}
			}
			return append(slices.Clone(m.fields), field)
		}
		required := map[string]bool{}
		for tag := range dictionary.Messages[m.msgType].RequiredTags {
			required[fmt.Sprint(tag)] = true
		}
		for i, field := range m.fields {
			if required[tagOf(field)] {
				rejected("without "+field, "1", tagOf(field), without(i)...)
				delete(required, tagOf(field))
			}
			rejected("no value of "+field, "4", tagOf(field), with(i, tagOf(field)+"=")...)
		}
		if len(required) > 0 {
			t.Errorf("%s: required and not tried: %v", m.msgType, slices.Sorted(maps.Keys(required)))
		}
		more := func(field string) []string { return append(slices.Clone(m.fields), field) }
		rejected("tag of no field", "0", "4999", more("4999=x")...)
		rejected("another message's field", "2", "434", more("434=1")...)
		if m.msgType != "R" { // whose group has it, deep inside
			rejected("a group's field alone", "2", "539", more("539=1")...)
		}
		rejected("a field twice", "13", tagOf(m.fields[0]), more(m.fields[0])...)
		rejected("a header's field", "14", "50", more("50=x")...)
		for field, reason := range map[string]string{m.bad: "6", m.odd: "5"} {
			if field != "" {
				rejected(field, reason, tagOf(field), replace(field)...)
			}
		}
		if m.crowded != "" {
			rejected(m.crowded, "16", tagOf(m.crowded), replace(m.crowded)...)
			late := m.mixed[strings.LastIndexByte(m.mixed, '|')+1:]
			rejected(m.mixed, "15", tagOf(late), replace(m.mixed)...)
		}
	}
	mm.send("ZZ", "58=x|")
	if m := mm.want("35=3 372=ZZ 373=11 371="); m.Get(58) != "INVALID_FIELD: Invalid MsgType" {
		t.Errorf("%s", m)
	}
	mm.order("alive", "1", "1", "1", "")
	mm.want("35=8 11=alive 150=0")
}

// TestBusinessRejects: what no session reject is for names the message by its own
// id, where it has one.
func TestBusinessRejects(t *testing.T) {
	t.Parallel()
	// The clock stands, so that no pause gives a session a token.
	now := time.Now()
	d := newDesk(t, []string{"MM", "FAST"}, func(o *Options) {
		o.Rate, o.Now = 50, func() time.Time { return now }
	})
	mm := d.dial("MM", nil)
	for _, c := range []struct{ msgType, body, id string }{
		{"v", "320=v|", "v"},
		{"a", "649=q|117=b|55=SLUSD/USDC|", "q"},
		{"W", "55=SLUSD/USDC|268=0|", ""},
		{"Y", "262=a|", ""},
		{"B", "148=x|33=1|58=x|", ""},
		{"j", "372=8|380=0|", ""},
	} {
		mm.send(c.msgType, c.body)
		m := mm.want("35=j 380=3 372=" + c.msgType + " 379=" + c.id)
		if want := fmt.Sprintf("UNSUPPORTED: MsgType (35) %q", c.msgType); m.Get(58) != want || m.Get(45) == "" {
			t.Errorf("%s, want %s", m, want)
		}
	}
	fast := d.dial("FAST", nil)
	const listed = "320=a|559=1|"
	const tooMany = 60 // and fewer than end the session
	for range tooMany {
		fast.send("x", listed)
	}
	for range tooMany {
		fast.next()
	}
	for _, c := range []struct{ msgType, body, id string }{
		{"H", "11=o|55=SLUSD/USDC|54=1|", "o"},
		{"V", "262=m|263=0|264=1|267=1|269=0|146=1|55=SLUSD/USDC|", "m"},
		{"e", "324=s|263=0|55=SLUSD/USDC|", "s"},
		{"x", "320=" + strings.Repeat("l", wire.MaxRequestID+1) + "|559=4|", strings.Repeat("l", wire.MaxRequestID)},
	} {
		fast.send(c.msgType, c.body)
		m := fast.want("35=j 380=4 372=" + c.msgType + " 379=" + c.id)
		if m.Get(58) != "RATE_LIMITED: more than 50 messages a second" {
			t.Errorf("%s", m)
		}
	}
}
