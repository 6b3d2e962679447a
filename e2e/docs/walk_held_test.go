package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// heldElsewhere names a test of another kind for each sentence of sections 1 to 9 that no
// reader of one running service can see.
var heldElsewhere = []struct{ point, quote, test string }{
	{"1.5", "No token of the desk leaves without its payment.", "settle.TestAdversary"},
	{"1.7", "Execution is on `solana-mainnet-beta`.", "catalog.TestNetworkOfDocuments"},
	{"2.5", "| `status_24h`, `status_7d` |", "catalog.TestMirroredWindows"},
	{"2.5", "| `rolling_window_status` |", "catalog.TestGolden"},
	{"3", "An operator can revoke it", "httpgw/admin.TestOperatorTokens"},
	{"3", "`rpc_failover_active` is true while", "catalog.TestMirroredChain"},
	{"6.3", "The payloads are our choice", "feed.TestAsyncAPISession"},
	{"7", "| 429 | `EMISSION_PAR_IP_TROP_RECENTE` |", "settle/access.TestOneTokenAnHour"},
	{"8", "| refresh of mirrored market data | 10 s |", "service/config.TestDocumentedFileIsTheDefault"},
	{"8", "| path in a 404 |", "httpgw.TestNotFoundEcho"},
	{"8", "Our choices too: the discount of each size", "service/config.TestDocumentedFileIsTheDefault"},
	{"9", "A public name changes only with the old one kept for one version", "httpgw.TestTableIsDescribed"},
}

// saysNothing are sentences that only introduce others, or leave something open.
var saysNothing = []string{
	"Fixed words:", "Two rules hold:", "Other words of these members", "The fields of tickets, of the other market records and of the DvP status are our choice",
	"The states of tickets and claims are our choice",
}

// choicesHeldBy names the tests that hold each point of section C, where the documents that
// it refers to have no tests of their own.
var choicesHeldBy = map[string][]string{
	"C.1.1":  {"service/config.TestDocumentedFileIsTheDefault", "httpgw.TestRoutesBySurfaceAndMethod", "e2e/operate.TestDeployedStart"},
	"C.1.2":  {"httpgw.TestURLDefaults", "e2e/service.TestClaimWithoutAChain", "e2e/service.TestKillLosesNothingAcknowledged"},
	"C.2.1":  {"e2e/sdk.TestConformance", "httpgw/wire.TestMoneyText"},
	"C.2.2":  {"e2e/sdk.TestConformance"},
	"C.2.3":  {"e2e/sdk.TestConformance"},
	"C.2.4":  {"httpgw.TestConditionalGet", "httpgw.TestHeadEqualsGet"},
	"C.2.5":  {"httpgw.TestIdempotencyKeys", "desk.TestKeyReused", "desk.TestKeyTTL"},
	"C.2.6":  {"httpgw.TestQueries"},
	"C.3.1":  {"httpgw.TestCodesAreDescribed", "httpgw.TestRefusalsOfAllRoutesAreDescribed", "httpgw.TestErrorExamplesAreAnswers"},
	"C.3.2":  {"httpgw.TestLimitOnTheWire", "httpgw.TestWriteLimit", "httpgw.TestPartnerLimitIsItsOwn", "httpgw.TestDvPLimitOnTheWire", "httpgw.TestClientAddress"},
	"C.4.1":  {"e2e/settle.TestNothingFirmThatDoesNotSell", "httpgw/rfq.TestNothingIsSaidToSellThatDoesNot", "engine/rfq.TestSellableNow"},
	"C.4.2":  {"engine/rfq.TestPriceArithmetic", "engine/rfq.TestCorridor", "engine/rfq.TestOffer"},
	"C.4.3":  {"engine/rfq.TestTranscripts", "service.TestQuoteAfterAMove", "httpgw.TestQuote"},
	"C.4.4":  {"httpgw.TestClaim", "httpgw.TestClaimHistory", "httpgw.TestFreshTransaction"},
	"C.4.5":  {"httpgw.TestWalletSignature", "httpgw.TestProofByToken", "httpgw.TestProofIsNoPartOfTheKey"},
	"C.4.6":  {"engine/rfq.TestTranscripts", "engine/rfq.TestLaws", "e2e/settle.TestSettle"},
	"C.4.7":  {"httpgw.TestVerifyPayment", "httpgw.TestPaymentProof", "settle/proof.TestAttacks"},
	"C.4.8":  {"settle.TestBlockTimeDecides"},
	"C.4.9":  {"settle.TestSurplusIsPaidBack", "settle.TestDust"},
	"C.4.10": {"httpgw.TestSolanaPay", "httpgw/rfq.TestSolanaPayAccepts"},
	"C.4.11": {"httpgw.TestRFQTrades", "feed.TestSales", "desk.TestSales"},
	"C.4.12": {"engine/rfq.TestWalletLimit", "httpgw/rfq.TestRailReasons"},
	"C.4.13": {"httpgw.TestNobodyHoldsTheTrancheForNothing", "settle.TestSeenPayment", "httpgw/terms.TestUnprovenRefusals"},
	"C.5.1":  {"settle/access.TestHandshake", "settle/access.TestForgeries", "settle/access.TestGrantKeepsItsSecret", "settle/access.TestUsedNonces"},
	"C.5.2":  {"httpgw.TestBuild", "httpgw.TestSubmit", "e2e/settle.TestSubmitAttacks"},
	"C.5.3":  {"httpgw/terms.TestGuardsAreTotal", "httpgw.TestSubmitRefusals", "httpgw.TestBuildState"},
	"C.5.4":  {"httpgw/rfq.TestRFQGolden"},
	"C.6.1":  {"service/config.TestMirroredBookPricesNothing", "engine.TestMirrorAdmission"},
	"C.6.2":  {"httpgw.TestOneBook", "e2e/feed.TestIndependentWebSocketClient"},
	"C.6.3":  {"httpgw/market.TestCandlePages", "feed/archive.TestPages"},
	"C.6.4":  {"catalog.TestOneTruth", "catalog.TestNothingInvented"},
	"C.6.5":  {"mirror.TestServiceListsOfThree", "e2e/mirror.TestMirrorFollowsTheChain"},
	"C.6.6":  {"feed.TestStreamMessages", "feed.TestStreamResume"},
	"C.6.7":  {"httpgw.TestPartnerBooks", "httpgw.TestGeckoTrades", "httpgw.TestCoinMarketCapTrades", "httpgw.TestScreenerEvents", "httpgw/market.TestChainSwapEvents", "feed/archive.TestDefinitionsOfOldStores", "catalog.TestTokenListSchema"},
	"C.6.8":  {"httpgw/market.TestUDFHistory", "httpgw/market.TestUDFSymbols", "httpgw/market.TestUDFLongHistory"},
	"C.6.9":  {"catalog.TestPaidFees", "catalog.TestTotalsHoldTheWindows", "catalog.TestPresentSnapshot", "catalog.TestStaleWindows"},
	"C.6.10": {"e2e/docs.TestLinks"},
	"C.6.11": {"httpgw/wire.TestCheckParams"},
	"C.6.12": {"mirror.TestServiceRecords", "catalog.TestPresentSnapshot"},
	"C.7":    {"feed.TestGuide", "feed.TestResume", "feed.TestSlowConsumer", "feed.TestCloseCode"},
	"C.8":    {"fixgw.TestDocumentedCodes", "fixgw.TestDocumentedLimits"},
	"C.8.1":  {"fixgw.TestTradingSession", "fixgw.TestSecurityStatus"},
	"C.8.2":  {"fixgw.TestStockClient", "fixgw.TestSignedLogonTrades"},
	"C.8.3":  {"fixgw.TestOrderLife", "fixgw.TestClaimEnds", "fixgw.TestRepeats", "fixgw.TestNothingIsIgnored"},
	"C.8.4":  {"fixgw.TestMassQuote", "fixgw.TestQuoteProtection"},
	"C.8.5":  {"fixgw.TestRateLimit", "fixgw.TestSlowReader"},
	"C.9.1":  {"engine/book.TestTranscripts"},
	"C.9.2":  {"engine/book.TestTranscripts"},
	"C.9.3":  {"engine/book.TestTranscripts", "fixgw.TestSelfTradeType"},
	"C.9.4":  {"engine.TestRiskIsExact", "engine.TestTranscripts"},
	"C.9.5":  {"engine.TestEndingInSlices", "engine.TestExpirySlices", "engine/rfq.TestSlices"},
	"C.9.6":  {"engine.TestTranscripts", "engine.TestAuctionsAgree", "engine.TestAuctionEndsByTicks"},
	"C.9.7":  {"persist.TestCrash", "persist.TestPowerCut", "persist.TestVerifyFindsAll", "persist.TestInterval"},
	"C.10":   {"e2e/docs.TestClusterRunbook"},
	"C.10.1": {"httpgw.TestStandby", "fixgw.TestDeposedFIX"},
	"C.10.2": {"e2e/cluster.TestFollowersUnderFaults"},
	"C.10.3": {"persist/quorum.TestVoterWithoutMemory"},
	"C.10.4": {"e2e/cluster.TestUpgrade"},
	"C.10.5": {"httpgw.TestShardsForwardTheTaker"},
	"C.11.1": {"settle.TestGuardedDelivery", "settle.TestGuardedCountersignature", "settle.TestGuardedPrice", "service.TestStalePriceHoldsDeliveries"},
	"C.11.2": {"settle.TestInventedPaymentOthersHang", "settle/proof.TestEveryNode", "settle.TestNetwork"},
	"C.11.3": {"settle.TestCrashAtEveryStep", "settle/broadcast.TestHistoryQuorum", "settle/broadcast.TestSnapshot"},
	"C.11.4": {"settle.TestRefund", "settle.TestRefundCrashes", "settle.TestRefundLostStore"},
	"C.11.5": {"settle.TestLocks", "settle.TestGuardedDelivery", "settle.TestRefundProblems"},
	"C.11.6": {"settle/cosign.TestLimitsOfATransaction", "settle/cosign.TestThief"},
}

// sentence is one of the specification, a row of its tables included.
type sentence struct{ point, text string }

var (
	numberedHeading = regexp.MustCompile(`^##+ (C\.\d+|\d+(?:\.\d+)?)\.? `)
	numberedItem    = regexp.MustCompile(`^(\d+)\. `)
	sentenceEnd     = regexp.MustCompile("\\.\\s+([A-Z`(])")
)

// sentencesOf returns the sentences of all numbered sections, with the number of each.
func sentencesOf(document string) (all []sentence) {
	section, point, row := "", "", 0
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		if m := numberedHeading.FindStringSubmatch(line); m != nil {
			section, point = m[1], m[1]
			continue
		}
		if section == "" || line == "" || line[0] == '#' {
			row = 0
			continue
		}
		if line[0] == '|' {
			if row++; row > 2 { // behind the heading and the rule
				all = append(all, sentence{point, line})
			}
			continue
		}
		row = 0
		if m := numberedItem.FindStringSubmatch(line); m != nil {
			point, line = section+"."+m[1], line[len(m[0]):]
		} else if !strings.HasPrefix(line, "- ") {
			point = section
		}
		for _, text := range strings.Split(sentenceEnd.ReplaceAllString(strings.TrimPrefix(line, "- "), ".\x00$1"), "\x00") {
			all = append(all, sentence{point, text})
		}
	}
	return all
}

// TestSpecificationIsHeld: every sentence of sections 1 to 9 is held by a step of the walk or
// by a named test, every point of section C by a step or by named tests, and no step or name
// is of a sentence that is not there any more.
func TestSpecificationIsHeld(t *testing.T) {
	all := sentencesOf(readTracked(t, "docs/specification.md"))
	held := make([]bool, len(all))
	hold := func(point, quote string) {
		found := false
		for i := range all {
			if all[i].point == point && strings.Contains(all[i].text, quote) {
				found, held[i] = true, true
			}
		}
		if !found {
			t.Errorf("%s is not in the specification: %s", point, quote)
		}
	}
	for _, s := range walkSteps {
		for _, quote := range s.quotes {
			hold(s.point, quote)
		}
	}
	named := map[string]bool{}
	for _, h := range heldElsewhere {
		hold(h.point, h.quote)
		named[h.test] = true
	}
	points := map[string]bool{}
	for i, s := range all {
		choice := strings.HasPrefix(s.point, "C.")
		if choice {
			points[s.point] = true
		}
		introduces := slices.ContainsFunc(saysNothing, func(text string) bool { return strings.Contains(s.text, text) })
		if !held[i] && !introduces && len(choicesHeldBy[s.point]) == 0 {
			t.Errorf("nothing holds %s: %s", s.point, s.text)
		}
	}
	for point, tests := range choicesHeldBy {
		if !points[point] {
			t.Errorf("the specification has no %s", point)
		}
		for _, test := range tests {
			named[test] = true
		}
	}
	for _, test := range slices.Sorted(maps.Keys(named)) {
		if !exists(t, test) {
			t.Errorf("there is no %s", test)
		}
	}
}
