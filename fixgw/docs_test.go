package fixgw

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"
	"github.com/quickfixgo/quickfix/datadictionary"

	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/fixgw/marketdata"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/solana/eddsa"
)

// docsFolder has the documents for FIX clients.
var docsFolder = filepath.Join("..", "sdk", "fix")

// The reference documents these messages, by MsgType.
const documentedTypes = "A 0 1 2 3 4 5 8 9 j r q D E N F G H V W X Y i b R S AG AI Z AJ B AE AR AF AD AQ AN AO AP x y c d e f g h"

var (
	docHeading = regexp.MustCompile(`(?m)^## (.*)$`)
	docTypes   = regexp.MustCompile(`\(([0-9A-Za-z]{1,2})\)`)
	docRow     = regexp.MustCompile(`(?m)^\| ([0-9]+) \| ([A-Za-z0-9]+) \| ([YNC]) \| .* \|$`)
	docCustom  = regexp.MustCompile(`(?m)^Custom fields: (.*)\.$`)
	docRange   = regexp.MustCompile(`([0-9]+)(?: to ([0-9]+))?`)
	docExample = regexp.MustCompile("<!-- example ([a-z0-9-]+) -->\n```fix\n([^`]*)```\n")
	docCode    = regexp.MustCompile(`\b[cC]ode[A-Z]\w* *= "([A-Z_]+)"`)
	docKeyText = regexp.MustCompile("(?m)^public key: `([1-9A-Za-z]+)`$")
)

// docSection is one heading of the reference.
type docSection struct {
	title    string
	types    []string
	names    map[int]string
	required map[int]bool
	examples map[string]sessiontest.Message
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docsFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readReference(t *testing.T) []docSection {
	t.Helper()
	text := readDocument(t, "messages.md")
	headings := append(docHeading.FindAllStringSubmatchIndex(text, -1), []int{len(text)})
	var sections []docSection
	for i, at := range headings[:len(headings)-1] {
		s := docSection{title: text[at[2]:at[3]], names: map[int]string{}, required: map[int]bool{}, examples: map[string]sessiontest.Message{}}
		for _, m := range docTypes.FindAllStringSubmatch(s.title, -1) {
			s.types = append(s.types, m[1])
		}
		body := text[at[1]:headings[i+1][0]]
		for _, m := range docRow.FindAllStringSubmatch(body, -1) {
			tag, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			if s.names[tag] != "" {
				t.Errorf("%s: tag %d is there twice", s.title, tag)
			}
			s.names[tag], s.required[tag] = m[2], m[3] == "Y"
		}
		if m := docCustom.FindStringSubmatch(body); m != nil {
			addCustom(t, &s, sections[1].names, m[1])
		}
		for _, m := range docExample.FindAllStringSubmatch(body, -1) {
			s.examples[m[1]] = sessiontest.Message(strings.ReplaceAll(strings.TrimSpace(m[2]), "|", "\x01"))
		}
		sections = append(sections, s)
	}
	return sections
}

// addCustom adds the custom fields of a text such as "5601 to 5608, 5611 and 5614", whose
// names the table of custom fields has.
func addCustom(t *testing.T, s *docSection, names map[int]string, text string) {
	t.Helper()
	for _, m := range docRange.FindAllStringSubmatch(text, -1) {
		from, err := strconv.Atoi(m[1])
		to := from
		if err == nil && m[2] != "" {
			to, err = strconv.Atoi(m[2])
		}
		if err != nil {
			t.Fatal(err)
		}
		for tag := from; tag <= to; tag++ {
			if names[tag] == "" || s.names[tag] != "" {
				t.Errorf("%s: custom field %d has no name, or is there twice", s.title, tag)
			}
			s.names[tag] = names[tag]
		}
	}
}

// The tables of the reference fit the dictionary, the examples fit the tables and
// the dictionary. That the examples are what the service sends is
// TestFIXDocuments of e2e/fix.
func TestMessageReference(t *testing.T) {
	t.Parallel()
	custom := wiretest.CustomChecker()
	sections := readReference(t)
	if len(sections) < 2 || len(sections[0].types) > 0 || len(sections[1].types) > 0 {
		t.Fatal("the first tables are not those of header and trailer and of the custom fields")
	}
	around := sections[0].names
	missing := map[string]bool{}
	for _, msgType := range strings.Fields(documentedTypes) {
		missing[msgType] = true
	}
	for _, s := range sections {
		for tag, name := range s.names {
			if f := custom.Dictionary.FieldTypeByTag[tag]; f == nil || f.Name() != name {
				t.Errorf("%s: tag %d is not %s in the dictionary", s.title, tag, name)
			}
		}
		for _, msgType := range s.types {
			delete(missing, msgType)
			def := custom.Dictionary.Messages[msgType]
			if def == nil {
				t.Errorf("%s: no message %s in the dictionary", s.title, msgType)
				continue
			}
			checkTable(t, &s, def)
		}
		if len(s.types) > 0 && len(s.examples) == 0 {
			t.Errorf("%s: no example", s.title)
		}
		for name, example := range s.examples {
			checkExample(t, custom, &s, around, name, example)
		}
	}
	for msgType := range missing {
		t.Errorf("no section for %s", msgType)
	}
}

// checkTable: what the dictionary requires is Y, and no field is of another
// message. A section of several messages may say C.
func checkTable(t *testing.T, s *docSection, def *datadictionary.MessageDef) {
	t.Helper()
	for tag := range def.RequiredTags {
		if s.names[tag] == "" || !s.required[tag] && len(s.types) == 1 {
			t.Errorf("%s: the dictionary requires tag %d, the table does not", s.title, tag)
		}
	}
	for tag := range s.names {
		if _, ok := def.Tags[tag]; !ok {
			t.Errorf("%s: tag %d is no field of %s", s.title, tag, def.MsgType)
		}
	}
}

// checkExample: a valid message that has the table's fields and no others.
func checkExample(t *testing.T, custom *wiretest.Checker, s *docSection, around map[int]string, name string, example sessiontest.Message) {
	t.Helper()
	if len(example) == 0 {
		t.Errorf("example %s is empty", name)
		return
	}
	valid, fields := wiretest.StockChecker(), map[int]bool{}
	wire.EachField(example, func(tag int, _ []byte) {
		fields[tag] = true
		if tag >= 5000 {
			valid = custom
		}
		if s.names[tag] == "" && around[tag] == "" {
			t.Errorf("example %s: tag %d is in no table", name, tag)
		}
	})
	if err := valid.Check(example); err != nil {
		t.Errorf("example %s breaks the dictionary: %v", name, err)
	}
	for tag, required := range s.required {
		if required && !fields[tag] && len(s.types) == 1 {
			t.Errorf("example %s: tag %d is required and not there", name, tag)
		}
	}
}

// The signed Logon of the reference is right for the key that the rules of
// engagement print beside it.
func TestDocumentedSignature(t *testing.T) {
	t.Parallel()
	found := docKeyText.FindStringSubmatch(readDocument(t, "rules-of-engagement.md"))
	if found == nil {
		t.Fatal("the rules have no key")
	}
	key, err := base58.Decode(found[1])
	if err != nil || len(key) != ed25519.PublicKeySize {
		t.Fatalf("no key: %q", found[1])
	}
	var signed sessiontest.Message
	for _, s := range readReference(t) {
		if example := s.examples["logon-signed"]; example != nil {
			signed = example
		}
	}
	l, err := wire.ParseLogon(signed, "BLOCKDESK", wire.MinHeartBtInt)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(string(l.Signature))
	if err != nil || len(signature) != ed25519.SignatureSize {
		t.Fatalf("no signature: %q", l.Signature)
	}
	if !eddsa.Verify([32]byte(key), l.SignedText(), [64]byte(signature)) {
		t.Error("the example's signature is not right for the key")
	}
}

// Every code and word that Text (58) may begin with is in the rules.
func TestDocumentedCodes(t *testing.T) {
	t.Parallel()
	rules := readDocument(t, "rules-of-engagement.md")
	var files []string
	for _, folder := range []string{"*.go", "*/*.go"} {
		some, err := filepath.Glob(folder)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	codes := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docCode.FindAllSubmatch(source, -1) {
			codes++
			if !strings.Contains(rules, "`"+string(m[1])+"`") {
				t.Errorf("%s has the code %s, the rules have not", file, m[1])
			}
		}
	}
	if codes < 10 {
		t.Errorf("only %d codes found in the source", codes)
	}
	// No FIX client can send what these refuse.
	mirrors := []event.Reason{event.ReasonNotMirrored, event.ReasonStaleSlot, event.ReasonOutOfSequence}
	for reason := event.ReasonUser; reason < 1<<10; reason++ {
		if reason.String() != "unknown" && !slices.Contains(mirrors, reason) && !strings.Contains(rules, "`"+reason.String()+"`") {
			t.Errorf("the rules do not have the word %s", reason)
		}
	}
}

// The limits that the rules name are those of the code.
func TestDocumentedLimits(t *testing.T) {
	t.Parallel()
	rules := readDocument(t, "rules-of-engagement.md")
	o := Options{}.withDefaults()
	for _, want := range []string{
		fmt.Sprintf("a connection has %d KiB and %d s", o.LogonBytes>>10, o.LogonTimeout/time.Second),
		fmt.Sprintf("%d connections may be in that state, %d of one address", o.MaxPending, o.MaxPendingPerIP),
		fmt.Sprintf("%d sessions may be configured", o.MaxSessions),
		fmt.Sprintf("A message is at most %d KiB", o.MaxMessage>>10),
		fmt.Sprintf("%d KiB of bytes that are no FIX message", session.MaxGarbage>>10),
		fmt.Sprintf("closed when %d MiB waits", o.MaxOutbox>>20),
		fmt.Sprintf("HeartBtInt (108) from %d to %d", wire.MinHeartBtInt, wire.MaxHeartBtInt),
		fmt.Sprintf("within %d s of the service's clock", session.MaxLogonSkew/time.Second),
		fmt.Sprintf("a text after %d s, whatever the reason", o.RefuseDelay/time.Second),
		fmt.Sprintf("newest %s kept messages", thousands(o.MaxReplay)),
		fmt.Sprintf("%s numbers are kept", thousands(o.KeepMessages)),
		fmt.Sprintf("by at most %s: ask for the gap", thousands(o.ReserveSeqs)),
		fmt.Sprintf("%d ResendRequests at once", session.MaxResends),
		fmt.Sprintf("up to %d KiB, and processed", session.MaxAhead>>10),
		fmt.Sprintf("does not come in %d s", o.GapTimeout/time.Second),
		fmt.Sprintf("%d messages a second and session", o.Rate),
		fmt.Sprintf("%s requests of a session may wait", thousands(o.MaxPendingOrders)),
		fmt.Sprintf("have %d s to log on before", o.RestartGrace/time.Second),
		fmt.Sprintf("%d subscriptions a session", o.MaxSubscriptions),
		fmt.Sprintf("When you are %d KiB behind", marketdata.StaleBytes>>10),
		fmt.Sprintf("up to %d orders", lists.MaxOrders),
		fmt.Sprintf("%d payment reports (AE) of a session may wait", o.MaxSessionProofs),
	} {
		if !strings.Contains(rules, want) {
			t.Errorf("the rules do not say %q", want)
		}
	}
}

// thousands writes a number below a million with a comma.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
