// Package wiretest has what the tests of several packages of the FIX gateway share:
// messages, instruments, and a stock client's judgement of our messages.
package wiretest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/datadictionary"

	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// Message frames fields, written with | for SOH, between BodyLength and
// CheckSum.
func Message(fields string) []byte {
	body := strings.ReplaceAll(fields, "|", "\x01")
	msg := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s", len(body), body)
	sum := byte(0)
	for _, b := range msg {
		sum += b
	}
	return fmt.Appendf(msg, "10=%03d\x01", sum)
}

// Instruments returns three: SLUSD/USDC has a tick of 0.0001 and a lot of 0.01; 92C/SLUSD
// has a tick of 5 and whole lots.
func Instruments(t testing.TB) *market.Instruments {
	t.Helper()
	set, err := market.NewInstruments([]market.Instrument{
		{ID: 0, Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", PriceDecimals: 4, QtyDecimals: 2, Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1e9, MaxPrice: 1e9, Source: market.Matched},
		{ID: 1, Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", PriceDecimals: 0, QtyDecimals: 0, Tick: 5, Lot: 1, MinQty: 1, MaxQty: 1e6, MaxPrice: 1e6, Source: market.Matched},
		{ID: 2, Symbol: "MIR/USDC", Base: "MIR", Quote: "USDC", PriceDecimals: 2, QtyDecimals: 2, Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1e6, MaxPrice: 1e6, Source: market.Mirrored},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Show returns a message with | for SOH.
func Show(raw []byte) string { return strings.ReplaceAll(string(raw), "\x01", "|") }

// Checker holds messages to the stock dictionary, as a stock client does.
type Checker struct {
	mu         sync.Mutex
	validator  quickfix.Validator
	Dictionary *datadictionary.DataDictionary
}

var (
	// StockChecker returns the one with QuickFIX's dictionary.
	StockChecker = sync.OnceValue(func() *Checker { return newChecker("fixgw", "session", "FIX44.xml") })
	// CustomChecker returns the one with the dictionary of a session with 5600=Y.
	CustomChecker = sync.OnceValue(func() *Checker { return newChecker("sdk", "fix", "FIX44-blockdesk.xml") })
)

// CheckerFor returns the one for a session with these fields in its Logon.
func CheckerFor(logonFields string) *Checker {
	if strings.Contains(logonFields, "5600=Y") {
		return CustomChecker()
	}
	return StockChecker()
}

// newChecker reads a dictionary by its path in the repository.
func newChecker(path ...string) *Checker {
	root, err := runtest.ModuleRoot()
	if err != nil {
		panic(err)
	}
	dd, err := datadictionary.Parse(filepath.Join(root, filepath.Join(path...)))
	if err != nil {
		panic(err)
	}
	return &Checker{Dictionary: dd, validator: quickfix.NewValidator(quickfix.ValidatorSettings{
		CheckFieldsOutOfOrder: true, CheckFieldsHaveValues: true, RejectInvalidMessage: true, CheckUserDefinedFields: true,
	}, dd, nil)}
}

// Check reports what a stock client would refuse a message for.
func (c *Checker) Check(raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := quickfix.NewMessage()
	if err := quickfix.ParseMessageWithDataDictionary(m, bytes.NewBuffer(bytes.Clone(raw)), c.Dictionary, c.Dictionary); err != nil {
		return err
	}
	if err := c.validator.Validate(m); err != nil {
		return fmt.Errorf("%w, tag %v", err, err.RefTagID())
	}
	return nil
}

// reportOrder is how the fields follow each other: Side begins its group.
var reportOrder = []int{571, 487, 856, 570, 150, 572, 818, 55, 32, 31, 75, 60, 552, 54, 37}

// PaymentReportBody returns the body of an AE, written with | for SOH.
func PaymentReportBody(fields map[int]string) string {
	var b strings.Builder
	for _, tag := range reportOrder {
		if value, ok := fields[tag]; ok {
			fmt.Fprintf(&b, "%d=%s|", tag, value)
		}
	}
	return b.String()
}

// SumOf returns the sum of bytes that CheckSum (10) has.
func SumOf(text string) byte {
	sum := byte(0)
	for i := range len(text) {
		sum += text[i]
	}
	return sum
}

// OrdinaryRequests are ordinary requests, in the form of Message.
var OrdinaryRequests = []string{
	"35=D|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=a|55=SLUSD/USDC|54=1|60=20260101-00:00:00|38=10|40=2|44=1.5|59=1|",
	"35=D|34=7|49=MM|56=US|52=20260101-00:00:00|1=acc|11=a|21=1|55=X|54=2|60=20260101-00:00:00.123456|38=1.50|111=.5|40=4|44=1|99=2.|59=6|126=20260102-00:00:00.000|18=6|",
	"35=D|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=a|55=X|54=1|60=20260101-00:00:00.000|40=1|59=6|432=20260101|",
	"35=F|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=b|41=a|37=12|55=X|54=1|60=20260101-00:00:00.000|38=1|",
	"35=G|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=b|41=a|55=X|54=1|60=20260101-00:00:00.000|38=1|40=2|44=1|",
	"35=H|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=b|37=1|55=X|54=1|",
	"35=q|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=b|530=7|60=20260101-00:00:00.000|",
	"35=q|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=b|530=1|55=X|54=2|60=20260101-00:00:00.000|",
	"35=D|34=7|49=MM|52=20260101-00:00:00.000|56=US|11=stp|55=SLUSD/USDC|54=1|60=20260101-00:00:00.000|38=5|40=2|44=1|7928=O|",
}
