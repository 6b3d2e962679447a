package sdk

import (
	"regexp"
	"strings"

	"blockdesk/sdk/openapitest"
)

// specifiedMarket are the paths of the market data's documents in the service
// description's 4.2, each on both addresses, as it lists them.
func specifiedMarket() map[string]string {
	const documents = `status, price, marketcap, oracle/heartbeat, pools, pools/{pool_address}, pairs, fees, claims, debt, tokens, metadata,
		pair-metadata, proof, stream, integration-manifest, submission-packs, provider-packs, openapi.json, schemas, tokenlist, wallet-index,
		pool-registry, examples, adapters, lite/market-summary, lite/pair-metadata, lite/tokenlist, lite/pool-registry, lite/latest-price,
		lite/latest-candle, lite/latest-trade, lite/latest-fees`
	const files = `/integration-manifest.json, /submission-packs.json, /provider-packs.json, /proof.json, /market.json, /metadata.json,
		/openapi.json, /schemas.json, /tokenlist.json, /wallet-index.json, /pool-registry.json, /examples.json, /adapters.json,
		/market-summary.json, /pair-metadata-lite.json, /tokenlist-lite.json, /pool-registry-lite.json, /latest-price.json,
		/latest-candle.json, /latest-trade.json, /latest-fees.json, /pair.json, /price.json, /candles.json, /trades.json, /fees.json,
		/wallets.json, /pair-metadata.json`
	const wellKnown = `svc-discovery.json, svc-program.json, svc-ecosystem.json, svc-wallets.json, svc-integrators.json, svc.json`
	all := map[string]string{}
	for prefix, list := range map[string]string{"/api/v1/market/": documents, "": files, "/.well-known/": wellKnown} {
		for name := range strings.SplitSeq(list, ",") {
			all["GET "+prefix+strings.TrimSpace(name)] = "ab"
		}
	}
	return all
}

const (
	geckoPath    = "/api/v1/market/adapters/coingecko/"
	capPath      = "/api/v1/market/adapters/coinmarketcap/"
	screenerPath = "/api/v1/market/adapters/dexscreener/"
)

// partnerQueries are what an adapter may be asked; nil: it takes no query.
func partnerQueries(path string) []string {
	const ticker = "?ticker_id=SLUSD_USDC"
	switch path {
	case geckoPath + "orderbook":
		return []string{ticker, "?ticker_id=92C_SLUSD", ticker + "&depth=0", ticker + "&depth=200", ticker + "&depth=201", ticker + "&depth=1"}
	case geckoPath + "historical_trades":
		return []string{
			ticker, ticker + "&type=buy", ticker + "&type=sell&limit=1000", ticker + "&limit=1", ticker + "&limit=0", ticker + "&end_time=1",
			ticker + "&start_time=9223372036853", "?ticker_id=92C_SLUSD",
		}
	case screenerPath + "asset":
		return []string{"?id=92C", "?id=USDC"}
	case screenerPath + "pair":
		return []string{"?id=SLUSD_USDC", "?id=92C_SLUSD"}
	case screenerPath + "events":
		return []string{"?fromBlock=0&toBlock=9223372036854775807", "?fromBlock=1&toBlock=1"}
	}
	return nil
}

// badPartnerQueries are what it may not, with the code and reason of the refusal.
func badPartnerQueries(path string) map[string][2]string {
	missing, unknown, repeated := [2]string{"MISSING_FIELD", ""}, [2]string{"UNKNOWN_SYMBOL", ""}, [2]string{"INVALID_FIELD", "repeated"}
	number, limit := [2]string{"INVALID_FIELD", "not_whole"}, [2]string{"INVALID_LIMIT", ""}
	const ticker = "?ticker_id=SLUSD_USDC"
	byID := func(name string) map[string][2]string {
		return map[string][2]string{
			"": missing, "?" + name + "=": missing, "?" + name + "=x": unknown, "?" + name + "=%zz": unknown, "?" + name + "=SLUSD%2FUSDC": unknown,
			"?" + name + "=x&" + name + "=x": repeated, "?" + name + "=" + strings.Repeat("x", 97): unknown,
		}
	}
	switch path {
	case geckoPath + "orderbook":
		bad := byID("ticker_id")
		for _, depth := range []string{"2147483648", "-1", "x", "", "1.5", "+1"} {
			bad[ticker+"&depth="+depth] = number
		}
		bad[ticker+"&depth=1&depth=1"] = repeated
		return bad
	case geckoPath + "historical_trades":
		bad := byID("ticker_id")
		for _, text := range []string{"1001", "-1", "x"} {
			bad[ticker+"&limit="+text] = limit
		}
		bad[ticker+"&type=both"], bad[ticker+"&type=buy&type=buy"] = [2]string{"INVALID_FIELD", "unknown_side"}, repeated
		bad[ticker+"&start_time=x"], bad[ticker+"&end_time=9223372036854"] = number, number
		return bad
	case screenerPath + "asset", screenerPath + "pair":
		return byID("id")
	case screenerPath + "events":
		return map[string][2]string{
			"": missing, "?fromBlock=1": missing, "?toBlock=1": missing, "?fromBlock=x&toBlock=1": number,
			"?fromBlock=1&toBlock=9223372036854775808": number, "?fromBlock=2&toBlock=1": {"INVALID_FIELD", "before_from"},
		}
	}
	return nil
}

// Members that may be absent: those of objects whose members are data, and those
// that the description or a public format leaves open.
var (
	dataMembers = regexp.MustCompile(`^missing (/.*)?/(endpoints|contacts|sources|limits|endpoint_sets(/[^/]+)?|service_roles|links|adapters|` +
		`endpoint_mapping|facts|extensions)/[^/]+$`)
	openMembers = regexp.MustCompile(`^missing (/.*)?/(notes|blocker|onchain_symbol|logoURI|extensions|totalSupply)$`)
)

// newerMembers are members that the document does not require, because earlier versions
// of the service do not have them. This one has, by path.
var newerMembers = map[string][]string{
	"/api/v1/rfq/status":                       {"accepting_reason", "prices"},
	"/api/v1/rfq/market-tickets":               {"accepting", "accepting_reason"},
	"/api/v1/rfq/market-tickets.compact":       {"accepting", "accepting_reason"},
	"/api/v1/rfq/current-sellable-ticket":      {"accepting", "accepting_reason"},
	"/rfq-native/market-tickets.json":          {"accepting", "accepting_reason"},
	"/rfq-native/current-sellable-ticket.json": {"accepting", "accepting_reason"},
	"/api/v1/exchange/board":                   {"accepting", "accepting_reason"},
	"/api/v1/rfq/tokens":                       {"price_source", "confidence_usd"},
	"/api/v1/market/adapters/dexscreener/pair": {"createdAtBlockNumber", "createdAtBlockTimestamp", "createdAtTxnId"},
	"/api/v1/dvp/status": {
		"grace_s", "unproven", "dust", "anchor_source", "published_at", "anchor_age_s", "confidence_usd", "firm_bps", "on_chain", "on_chain_at", "prices",
	},
}

// mayMiss reports whether an answer is right without a member.
func mayMiss(path, what string) bool {
	switch {
	case strings.HasPrefix(path, "/.well-known/svc") && regexp.MustCompile(`^missing /(tokens|program|families)$`).MatchString(what):
		return true
	case path == capPath+"assets", path == capPath+"ticker": // by symbol
		return strings.Count(what, "/") == 1 && strings.HasPrefix(what, "missing ")
	case path == geckoPath+"historical_trades" && (what == "missing /buy" || what == "missing /sell"):
		return true
	}
	return dataMembers.MatchString(what) || openMembers.MatchString(what)
}

// pools asks for pools that there are not: without a chain there is none.
func (c *conformance) pools(o *openapitest.Operation, address string) {
	path := strings.TrimSuffix(o.Path, "{pool_address}")
	c.methods(o, address, path+"Poo1")
	for _, pool := range []string{"Poo1", "x", strings.Repeat("x", 64)} {
		c.expect(404, "UNKNOWN_POOL", "", "GET", address, o.Path, path+pool, "")
	}
	for _, pool := range []string{"", ".", "..", "%31", strings.Repeat("x", 65)} {
		if err := c.d.CheckUnknown(c.exchange("GET", address, o.Path, path+pool, "")); err != nil {
			c.t.Errorf("%s%s: %v", path, pool, err)
		}
	}
}
