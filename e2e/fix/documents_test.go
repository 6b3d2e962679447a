package fix

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// The examples of sdk/fix/messages.md are what this program says. Each stands
// between a marker and the end of its block:
//
//	<!-- example new-order -->
//	```fix
//	8=FIX.4.4|9=…|35=D|…
//	```
//
// The tests hold conversations, pick the messages that the examples are of, put
// fixed values in place of those that differ each time, and compare.
// updateDocs in the environment writes the file instead.
const updateDocs = "UPDATE_FIX_DOCS"

var exampleBlock = regexp.MustCompile("<!-- example ([a-z0-9-]+) -->\n```fix\n([^`]*)```\n")

// example is one message of a conversation: the first one that was sent, or came,
// with these fields.
type example struct {
	name   string
	sent   bool   // by the client
	fields string // "35=8 150=F 39=1"
}

// spoken is one message as it was on the wire.
type spoken struct {
	sent   bool
	fields []docField
}

type docField struct {
	tag   int
	value string
}

func (s *spoken) get(tag int) string {
	for _, f := range s.fields {
		if f.tag == tag {
			return f.value
		}
	}
	return ""
}

func (s *spoken) matches(fields string) bool {
	for _, want := range strings.Fields(fields) {
		tag, value, _ := strings.Cut(want, "=")
		got := s.get(programtest.Must(strconv.Atoi(tag)))
		if got != value && (value != "*" || got == "") {
			return false
		}
	}
	return true
}

// conversation records what all its sessions send and get.
type conversation struct {
	t *testing.T

	mu  sync.Mutex
	all []*spoken
}

func (c *conversation) record(sent bool, message []byte) {
	s := &spoken{sent: sent}
	for part := range bytes.SplitSeq(bytes.TrimSuffix(message, []byte{1}), []byte{1}) {
		tag, value, _ := strings.Cut(string(part), "=")
		if n, err := strconv.Atoi(tag); err == nil {
			s.fields = append(s.fields, docField{n, value})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, s)
}

// logOn logs a firm on by its password, or as change says.
func (c *conversation) logOn(address, name string, change func(*fixclient.Options)) *fixtest.Session {
	c.t.Helper()
	o := fixclient.Options{
		Addr: address, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: programtest.Password, Trace: c.record,
	}
	if change != nil {
		change(&o)
	}
	return fixtest.LogOnAs(c.t, o)
}

// await returns the first message that an example is of.
func (c *conversation) await(e example) *spoken {
	c.t.Helper()
	var found *spoken
	await.True(c.t, "the message of example "+e.name, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.all {
			if s.sent == e.sent && s.matches(e.fields) {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// published waits until so many updates of the book have come: each change to the book
// is then an update of its own, however slow its readers are.
func (c *conversation) published(n int) {
	c.t.Helper()
	await.Equal(c.t, "updates of the book", n, func() (updates int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.all {
			if !s.sent && s.matches("35=X") {
				updates++
			}
		}
		return updates
	})
}

// compare holds the document to the conversation, or writes it.
func (c *conversation) compare(examples []example) {
	c.t.Helper()
	path := filepath.Join("..", "..", "sdk", "fix", "messages.md")
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	f := newFixer()
	messages := make(map[string]string, len(examples))
	found := make([]*spoken, len(examples))
	for i, e := range examples {
		found[i] = c.await(e)
		f.learn(found[i])
	}
	for i, e := range examples {
		messages[e.name] = f.fix(found[i])
	}
	updated := exampleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		parts := exampleBlock.FindStringSubmatch(block)
		now, mine := messages[parts[1]]
		if !mine {
			return block // of another conversation
		}
		delete(messages, parts[1])
		if now+"\n" != parts[2] && os.Getenv(updateDocs) == "" {
			c.t.Errorf("example %s of messages.md is\n%sand the service says\n%s\n(%s=1 go test ./e2e/fix -run TestFIXDocuments writes it)",
				parts[1], parts[2], now, updateDocs)
		}
		return "<!-- example " + parts[1] + " -->\n```fix\n" + now + "\n```\n"
	})
	for name := range messages {
		c.t.Errorf("messages.md has no example %s", name)
	}
	if os.Getenv(updateDocs) != "" {
		if err := os.WriteFile(path, []byte(updated), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

// fixer replaces what no two runs have in common: times, numbers that the service
// gives, keys. Equal texts stay equal.
type fixer struct {
	ids   map[string]string // by what they replace
	count map[string]int    // given so far, by kind
}

func newFixer() *fixer { return &fixer{ids: map[string]string{}, count: map[string]int{}} }

// docKey signs the example of a signed Logon anew, since its time is replaced. Its
// public key is in the rules of engagement.
var docKey = func() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("blockdesk FIX example"))
	return ed25519.NewKeyFromSeed(seed[:])
}()

const (
	docDay  = "20260105"
	docTime = "09:30:00.000"
	docNow  = docDay + "-" + docTime
)

// docNames are what the firms of the tests are called in the document.
var docNames = map[string]string{programtest.FirmA: "FIRM1", programtest.FirmA2: "FIRM1-COPY", programtest.FirmB: "FIRM2"}

// docConstants replace whole values.
var docConstants = map[int]string{
	52: docNow, 60: docNow, 122: docNow, 42: docNow, 75: docDay, 272: docDay, 273: docTime,
	62: docDay + "-09:30:15.000", 126: docDay + "-09:35:00.000",
}

var (
	numberIDs  = regexp.MustCompile(`\b[0-9]{12,20}\b`)
	deskIDs    = regexp.MustCompile(`\b[CQ][0-9a-z]{13}\b`) // of claims and quotes
	execIDs    = regexp.MustCompile(`^[0-9]+-[0-9]+-[0-9]+M?$`)
	localIDs   = regexp.MustCompile(`^G[0-9a-z]+-[0-9]+$`)
	base58Text = regexp.MustCompile(`\b[1-9A-HJ-NP-Za-km-z]{32,88}\b`)
	timesOfDay = regexp.MustCompile(`\b20[0-9]{2}-?[0-9]{2}-?[0-9]{2}[-T][0-9:]{8}(\.[0-9]+)?Z?\b`)
)

// idTags have numbers of orders.
var idTags = map[int]bool{37: true, 58: true}

// learn gives a replacement to each id of a message that has none yet.
func (f *fixer) learn(s *spoken) {
	for _, field := range s.fields {
		if execIDs.MatchString(field.value) {
			f.give(field.value, "exec", func(n int) string { return fmt.Sprintf("%d-1-1", 100+n) })
		}
		if localIDs.MatchString(field.value) {
			f.give(field.value, "local", func(n int) string { return fmt.Sprintf("Gdk3v0p7xq2a1-%d", n) })
		}
		if field.tag != 96 {
			for _, word := range base58Text.FindAllString(field.value, -1) {
				f.give(word, "key", func(n int) string { return docBase58(n, len(word) > 50) })
			}
		}
		for _, word := range deskIDs.FindAllString(field.value, -1) {
			f.give(word, word[:1], func(n int) string { return fmt.Sprintf("%c0123456789%03d", word[0], 100+n) })
		}
		if idTags[field.tag] {
			for _, word := range numberIDs.FindAllString(field.value, -1) {
				f.give(word, "id", func(n int) string { return strconv.Itoa(7_000_000_000_000 + n) })
			}
		}
	}
}

func (f *fixer) give(value, kind string, next func(n int) string) {
	if f.ids[value] == "" {
		f.count[kind]++
		f.ids[value] = next(f.count[kind])
	}
}

// docBase58 is the n-th key of the document: an account, or a signature.
func docBase58(n int, signature bool) string {
	if signature {
		sum := sha512.Sum512([]byte{byte(n)})
		return base58.Encode(sum[:])
	}
	sum := sha256.Sum256([]byte{byte(n)})
	return base58.Encode(sum[:])
}

// fix returns the message as the document has it: fields in their order, with |
// for SOH, and with the length and checksum of what is there now.
func (f *fixer) fix(s *spoken) string {
	fields := make([]docField, len(s.fields))
	copy(fields, s.fields)
	signed := s.get(35) == "A" && s.get(96) != ""
	for i := range fields {
		fields[i].value = f.value(s, fields[i])
	}
	now := &spoken{fields: fields}
	for i := range fields {
		switch {
		case fields[i].tag == 96 && signed:
			parts := []string{"A", now.get(49), now.get(56), now.get(34), now.get(52)}
			fields[i].value = base64.StdEncoding.EncodeToString(ed25519.Sign(docKey, []byte(strings.Join(parts, "\x01"))))
		case fields[i].tag == 95 && !signed:
			fields[i].value = strconv.Itoa(len(docTransaction))
		}
	}
	return assemble(fields)
}

// docTransaction stands for the base64 of a transaction, which takes no two lines
// in a document.
const docTransaction = "AQAAAAAAAAAAAAAA...shortened...AAAA"

func (f *fixer) value(s *spoken, field docField) string {
	if constant := docConstants[field.tag]; constant != "" {
		return constant
	}
	switch field.tag {
	case 34:
		if s.get(35) == "A" || s.get(35) == "5" && field.value == "1" {
			return "1"
		}
		return "12"
	case 45:
		return "12"
	case 96:
		return docTransaction
	case 49, 56, 553, 448:
		if name := docNames[field.value]; name != "" {
			return name
		}
		return field.value
	}
	if whole := f.ids[field.value]; whole != "" {
		return whole
	}
	text := base58Text.ReplaceAllStringFunc(field.value, f.or)
	text = deskIDs.ReplaceAllStringFunc(text, f.or)
	if idTags[field.tag] {
		text = numberIDs.ReplaceAllStringFunc(text, f.or)
	}
	return timesOfDay.ReplaceAllString(text, docNow)
}

func (f *fixer) or(word string) string {
	if other := f.ids[word]; other != "" {
		return other
	}
	return word
}

// assemble writes the fields with their length (9) and checksum (10).
func assemble(fields []docField) string {
	var body strings.Builder
	for _, field := range fields[2 : len(fields)-1] {
		fmt.Fprintf(&body, "%d=%s\x01", field.tag, field.value)
	}
	text := fmt.Sprintf("8=FIX.4.4\x019=%d\x01%s", body.Len(), body.String())
	sum := byte(0)
	for i := range len(text) {
		sum += text[i]
	}
	return strings.ReplaceAll(fmt.Sprintf("%s10=%03d\x01", text, sum), "\x01", "|")
}

// send sends a message, written with | for SOH; T stands for the time.
func send(s *fixtest.Session, msgType, body string) {
	s.T.Helper()
	body = strings.ReplaceAll(body, "60=T|", "60="+time.Now().UTC().Format("20060102-15:04:05.000")+"|")
	if err := s.Client.Send(msgType, []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		s.T.Fatal(err)
	}
}

// docExamples are what needs no chain.
var docExamples = []example{
	{"logon", true, "35=A 553=* 8013=N"},
	{"logon-signed", true, "35=A 95=88"},
	{"logon-answer", false, "35=A"},
	{"logon-refused", false, "35=5 34=1"},
	{"logout", true, "35=5"},
	{"test-request", true, "35=1"},
	{"heartbeat", false, "35=0 112=*"},
	{"resend-request", true, "35=2"},
	{"gap-fill", false, "35=4 123=Y"},
	{"reject", false, "35=3"},
	{"business-reject", false, "35=j"},
	{"new-order", true, "35=D 11=buy-1"},
	{"execution-new", false, "35=8 11=buy-1 150=0"},
	{"execution-partial", false, "35=8 11=buy-1 150=F 39=1"},
	{"execution-replaced", false, "35=8 150=5"},
	{"execution-cancelled", false, "35=8 11=cancel-1 150=4"},
	{"execution-rejected", false, "35=8 150=8 103=1"},
	{"execution-status", false, "35=8 150=I"},
	{"execution-again", false, "35=8 43=Y 11=buy-1 150=0"},
	{"cancel", true, "35=F"},
	{"replace", true, "35=G"},
	{"cancel-reject", false, "35=9"},
	{"status-request", true, "35=H"},
	{"new-list", true, "35=E 66=list-1"},
	{"list-status", false, "35=N 431=3"},
	{"list-refused", false, "35=N 431=7"},
	{"mass-cancel", true, "35=q"},
	{"mass-cancel-report", false, "35=r"},
	{"mass-status-request", true, "35=AF"},
	{"mass-status", false, "35=8 584=orders-1"},
	{"trade-request", true, "35=AD"},
	{"trade-request-ack", false, "35=AQ"},
	{"trade-reported", false, "35=AE 568=trades-1"},
	{"position-request", true, "35=AN"},
	{"position-ack", false, "35=AO"},
	{"position", false, "35=AP"},
	{"drop-copy", false, "35=AE"},
	{"mass-quote", true, "35=i 117=quote-1"},
	{"mass-quote-answer", false, "35=b 117=quote-2"},
	{"mass-quote-cancel", true, "35=Z"},
	{"announcement", false, "35=B 56=AA"},
	{"security-list-request", true, "35=x"},
	{"security-list", false, "35=y"},
	{"security-definition-request", true, "35=c"},
	{"security-definition", false, "35=d"},
	{"security-status-request", true, "35=e"},
	{"security-status", false, "35=f"},
	{"trading-session-request", true, "35=g"},
	{"trading-session", false, "35=h"},
	{"market-data-request", true, "35=V 263=1"},
	{"market-data-snapshot", false, "35=W 262=book-1"},
	{"market-data-increment", false, "35=X 262=book-1 279=0 269=1"},
	{"market-data-orders", false, "35=W 262=orders-1"},
	{"market-data-order", false, "35=X 262=orders-1"},
	{"market-data-reject", false, "35=Y"},
}

// claimExamples are what needs a desk and a chain.
var claimExamples = []example{
	{"quote-request", true, "35=R"},
	{"quote", false, "35=S 131=ask-1"},
	{"quote-custom", false, "35=S 5601=*"},
	{"quote-refused", false, "35=AG"},
	{"quote-accepted", true, "35=D 11=take-1"},
	{"quote-hit", true, "35=AJ 694=1"},
	{"quote-passed", false, "35=AI 297=11"},
	{"quote-cancelled", false, "35=Z 131=ask-5"},
	{"quote-removed", false, "35=AI 297=6 131=ask-5"},
	{"claim-reserved", false, "35=8 11=take-1 150=A"},
	{"claim-package", false, "35=B 95=*"},
	{"claim-paid", false, "35=8 11=take-1 150=0"},
	{"claim-settled", false, "35=8 11=take-1 150=F"},
	{"claim-refused", false, "35=8 11=take-2 150=8"},
	{"payment-report", true, "35=AE 571=paid-1"},
	{"payment-accepted", false, "35=AR 939=0"},
	{"payment-refused", false, "35=AR 939=1"},
	{"claim-captured", false, "35=AE 39=2"},
}

// docConfig adds to the tests' firms a session that logs on by a signature.
func docConfig(t *testing.T) string {
	t.Helper()
	config := programtest.Config(t, "")
	file := programtest.ParticipantsFile(config)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key := base58.Encode(docKey.Public().(ed25519.PublicKey))
	text = fmt.Appendf(text, "  - {name: FIRM3, number: 3, comp_ids: [FIRM3], ed25519: %s}\n", key)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// The messages that a session sends and gets, but for quotes and claims.
func TestFIXDocuments(t *testing.T) {
	t.Parallel()
	service := programtest.Start(t, docConfig(t))
	at := service.Addresses.FIX
	c := &conversation{t: t}
	talkSession(c, at)
	talkOrders(c, at, service.Addresses.API)
	programtest.CLI(t, service, "fix", "announce", "restart at 18:00 UTC, two minutes")
	c.compare(docExamples)
}

// talkSession has what sessions say: both logons, a refused one, a test, a gap.
func talkSession(c *conversation, at string) {
	if _, err := fixclient.Dial(c.t.Context(), fixclient.Options{
		Addr: at, SenderCompID: programtest.FirmB, TargetCompID: "BLOCKDESK", Username: programtest.FirmB, Password: "wrong", Trace: c.record,
		Timeout: runtest.HangTimeout,
	}); err == nil {
		c.t.Fatal("a wrong password opens a session")
	}
	signed := c.logOn(at, "FIRM3", func(o *fixclient.Options) { o.Username, o.Password, o.Key = "", "", docKey })
	send(signed, "1", "112=are you there|")
	c.await(example{"heartbeat", false, "35=0 112=*"})
	if err := signed.Client.Logout(); err != nil {
		c.t.Fatal(err)
	}
}

// talkInstruments asks what may be traded, and whether it is.
func talkInstruments(c *conversation, s *fixtest.Session) {
	send(s, "x", "320=all-1|559=4|")
	c.await(example{"security-list", false, "35=y"})
	send(s, "c", "320=terms-1|321=0|55="+programtest.Symbol+"|")
	c.await(example{"security-definition", false, "35=d"})
	send(s, "e", "324=status-1|55="+programtest.Symbol+"|263=0|")
	c.await(example{"security-status", false, "35=f"})
	send(s, "g", "335=session-1|263=1|")
	c.await(example{"trading-session", false, "35=h"})
}

// talkRebuild asks for what a client that has lost everything needs.
func talkRebuild(s *fixtest.Session) {
	send(s, "AF", "584=orders-1|585=7|")
	s.Expect(map[int]string{35: "8", 150: "I", 912: "Y"})
	send(s, "AD", "568=trades-1|569=0|")
	s.Expect(map[int]string{35: "AQ"})
	s.Expect(map[int]string{35: "AE", 912: "Y"})
	send(s, "AN", "710=position-1|724=0|1=house|581=1|715="+docDay+"|60=T|")
	s.Expect(map[int]string{35: "AO"})
	s.Expect(map[int]string{35: "AP"})
}

// talkOrders has a day of two firms.
func talkOrders(c *conversation, at, api string) {
	a := c.logOn(at, programtest.FirmA, func(o *fixclient.Options) { o.LogonFields, o.KeepSequence = "8013=N\x01", true })
	c.logOn(at, programtest.FirmA2, func(o *fixclient.Options) { o.Username, o.LogonFields = programtest.FirmA, "9406=Y\x01" })
	b := c.logOn(at, programtest.FirmB, nil)
	talkInstruments(c, b)
	send(a, "D", "11=buy-1|55="+programtest.Symbol+"|54=1|60=T|38=100|40=2|44=0.9985|59=1|")
	a.Expect(map[int]string{35: "8", 150: "0"})
	// An order is acknowledged before the book shows it.
	await.True(c.t, "the order in the book", func() bool {
		return strings.Contains(programtest.Get(c.t, api+"/api/v1/market/depth?symbol="+programtest.Symbol), `"0.998500"`)
	})
	send(b, "V", "262=book-1|263=1|264=10|265=1|267=3|269=0|269=1|269=2|146=1|55="+programtest.Symbol+"|")
	c.await(example{"market-data-snapshot", false, "35=W"})
	send(b, "D", "11=sell-1|55="+programtest.Symbol+"|54=2|60=T|38=40|40=2|44=0.9985|59=3|")
	a.Expect(map[int]string{35: "8", 150: "F"})
	c.published(1)
	send(a, "G", "11=replace-1|41=buy-1|55="+programtest.Symbol+"|54=1|60=T|38=90|40=2|44=0.9980|59=1|")
	a.Expect(map[int]string{35: "8", 150: "5"})
	c.published(2)
	send(a, "H", "11=replace-1|55="+programtest.Symbol+"|54=1|")
	a.Expect(map[int]string{35: "8", 150: "I"})
	talkRebuild(a)
	send(a, "F", "11=cancel-1|41=replace-1|55="+programtest.Symbol+"|54=1|60=T|")
	a.Expect(map[int]string{35: "8", 150: "4"})
	c.published(3)
	send(a, "F", "11=cancel-2|41=replace-1|55="+programtest.Symbol+"|54=1|60=T|")
	a.Expect(map[int]string{35: "9"})
	send(a, "D", "11=sell-2|55="+programtest.Symbol+"|54=2|60=T|38=25|40=2|44=1.0015|59=1|")
	a.Expect(map[int]string{35: "8", 150: "0"})
	c.published(4)
	send(a, "q", "11=mass-1|530=1|55="+programtest.Symbol+"|60=T|")
	a.Expect(map[int]string{35: "8", 150: "4"})
	a.Expect(map[int]string{35: "r"})
	send(a, "D", "11=buy-2|55=NO/SUCH|54=1|60=T|38=1|40=2|44=1|59=1|")
	a.Expect(map[int]string{35: "8", 150: "8"})
	send(a, "D", "11=buy-3|55="+programtest.Symbol+"|54=1|60=T|38=1|44=1|")
	a.Expect(map[int]string{35: "3"})
	send(a, "B", "148=hello|33=1|58=hello|")
	a.Expect(map[int]string{35: "j"})
	send(b, "V", "262=book-1|263=1|264=10|265=1|267=1|269=0|146=1|55="+programtest.Symbol+"|")
	c.await(example{"market-data-reject", false, "35=Y"})
	talkByOrder(c, a, b)
	talkMassQuotes(a)
	talkLists(a)
	if err := a.Client.Resend(1, 0); err != nil {
		c.t.Fatal(err)
	}
}

// talkByOrder has an order beside another one, for a client that sees orders.
func talkByOrder(c *conversation, maker, reader *fixtest.Session) {
	c.published(5)
	send(maker, "D", "11=buy-4|55="+programtest.Symbol+"|54=1|60=T|38=15|40=2|44=0.9970|59=1|")
	maker.Expect(map[int]string{35: "8", 150: "0"})
	c.published(6)
	send(reader, "V", "262=orders-1|263=1|264=10|265=1|266=N|267=2|269=0|269=1|146=1|55="+programtest.Symbol+"|")
	c.await(example{"market-data-orders", false, "35=W 262=orders-1"})
	send(maker, "D", "11=buy-5|55="+programtest.Symbol+"|54=1|60=T|38=30|40=2|44=0.9970|59=1|")
	maker.Expect(map[int]string{35: "8", 150: "0"})
	c.await(example{"market-data-order", false, "35=X 262=orders-1"})
	send(reader, "V", "262=orders-1|263=2|264=10|265=1|267=1|269=0|146=1|55="+programtest.Symbol+"|")
	send(maker, "q", "11=mass-2|530=1|55="+programtest.Symbol+"|60=T|")
	maker.Expect(map[int]string{35: "8", 150: "4"})
	maker.Expect(map[int]string{35: "8", 150: "4"})
	maker.Expect(map[int]string{35: "r"})
}

// talkLists enters a list, has one refused, and cancels what its session has.
func talkLists(s *fixtest.Session) {
	list := func(id, more string) {
		order := "55=" + programtest.Symbol + "|54=1|38=10|40=2|44="
		send(s, "E", "66="+id+"|394=3|68=2|73=2|11="+id+"-a|67=1|"+order+"0.95|59=1|11="+id+"-b|67=2|"+order+"0.94|"+more+"|")
	}
	for _, c := range []struct{ id, more, exec, status string }{{"list-1", "59=1", "0", "3"}, {"list-2", "59=4", "8", "7"}} {
		list(c.id, c.more)
		s.Expect(map[int]string{35: "8", 150: c.exec})
		s.Expect(map[int]string{35: "8", 150: c.exec})
		s.Expect(map[int]string{35: "N", 431: c.status})
	}
	send(s, "q", "11=mass-3|530=7|5620=Y|60=T|")
	s.Expect(map[int]string{35: "8", 150: "4"})
	s.Expect(map[int]string{35: "8", 150: "4"})
	s.Expect(map[int]string{35: "r", 533: "2"})
}

// talkMassQuotes quotes, has an entry refused, and withdraws.
func talkMassQuotes(s *fixtest.Session) {
	const set = "296=1|302=1|304=1|295=1|299=1|55=" + programtest.Symbol
	send(s, "i", "117=quote-1|301=2|5617=3|5619=1000|"+set+"|132=0.98|133=1.02|134=50|135=50|")
	s.Expect(map[int]string{35: "b", 117: "quote-1", 297: "0"})
	send(s, "i", "117=quote-2|301=2|"+set+"|132=1.02|133=1.02|134=50|135=50|")
	s.Expect(map[int]string{35: "b", 117: "quote-2", 297: "5"})
	send(s, "Z", "117=quote-3|298=4|")
	s.Expect(map[int]string{35: "b", 117: "quote-3", 297: "4"})
}

// Quotes, claims and payments, settled on a chain.
func TestFIXDocumentsOfClaims(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1, FirmWallet: true})
	c := &conversation{t: t}
	a := c.logOn(r.Server.Addresses.FIX, programtest.FirmA, nil)
	custom := c.logOn(r.Server.Addresses.FIX, programtest.FirmA2, func(o *fixclient.Options) { o.Username, o.LogonFields = programtest.FirmA, "5600=Y\x01" })
	talkQuotes(c, a, custom)
	talkClaim(c, r, a)
	quote(custom, "ask-5")
	programtest.CLI(t, r.Server, "lock", "--pair", programtest.Symbol, "--reason", "example")
	c.compare(claimExamples)
}

// anotherClaim returns the id of a claim that is not there: id with another last digit.
func anotherClaim(id string) string {
	if rest, ok := strings.CutSuffix(id, "0"); ok {
		return rest + "1"
	}
	return id[:len(id)-1] + "0"
}

// quote asks for one of 1,000 dollars and returns its id.
func quote(s *fixtest.Session, id string) string {
	s.T.Helper()
	send(s, "R", "131="+id+"|146=1|55="+programtest.Symbol+"|54=1|152=1000|15=USDC|")
	return s.Expect(map[int]string{35: "S", 131: id})[117]
}

// talkQuotes asks for quotes, and passes.
func talkQuotes(c *conversation, s, custom *fixtest.Session) {
	quote(custom, "ask-3")
	send(s, "R", "131=ask-2|146=1|55="+programtest.Symbol+"|54=1|152=1001|")
	s.Expect(map[int]string{35: "AG", 131: "ask-2"})
	passed := quote(s, "ask-4")
	send(s, "AJ", "693=pass-1|117="+passed+"|694=6|55="+programtest.Symbol+"|")
	s.Expect(map[int]string{35: "AI", 297: "11"})
	hit := quote(custom, "ask-6")
	send(custom, "AJ", "693=hit-1|117="+hit+"|694=1|55="+programtest.Symbol+"|60=T|")
	custom.Expect(map[int]string{35: "8", 150: "A", 693: "hit-1"})
	custom.Expect(map[int]string{35: "B"})
}

// talkClaim takes a quote, pays for it and sees it settled; then it takes the
// quote again.
func talkClaim(c *conversation, r *chaintest.Rig, s *fixtest.Session) {
	take := "117=" + quote(s, "ask-1") + "|55=" + programtest.Symbol + "|54=1|60=T|152=1000|40=D|"
	send(s, "D", "11=take-1|"+take)
	claim := s.Expect(map[int]string{35: "8", 150: "A", 39: "A"})
	offer := s.Expect(map[int]string{35: "B"})
	payment := r.Wallet(1).Sign(programtest.Must(base64.StdEncoding.DecodeString(offer[96])))
	r.MustBroadcast(payment.Raw)
	report := fmt.Sprintf("571=%%s|572=%%s|818=%s|570=N|55=%s|32=%s|31=%s|75=%s|60=T|552=1|54=1|37=%s|", payment.Signature, programtest.Symbol,
		claim[38], claim[44], time.Now().UTC().Format("20060102"), claim[37])
	send(s, "AE", fmt.Sprintf(report, "paid-1", claim[37]))
	send(s, "AE", fmt.Sprintf(report, "paid-2", anotherClaim(claim[37])))
	c.await(example{"claim-captured", false, "35=AE 39=2"})
	send(s, "D", "11=take-2|"+take)
}
