package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/persist/quorum"
	"blockdesk/prices"
	"blockdesk/settle/broadcast"
)

// TestKeys: every key describes itself and its range, the tags are known ones, the
// default is in the range, and a number outside is refused with its path.
func TestKeys(t *testing.T) {
	tags := []string{"yaml", "default", "words", "range", "unit", "form", "needs", "not", "is", "about"}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			for _, m := range regexp.MustCompile(`(\w+):"`).FindAllStringSubmatch(string(f.Tag), -1) {
				if f.IsExported() && !slices.Contains(tags, m[1]) {
					t.Errorf("%s.%s: tag %s", typ, f.Name, m[1])
				}
			}
			if f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map {
				f.Type = f.Type.Elem()
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	for i := range Keys {
		k := &Keys[i]
		if k.About == "" || k.Range() == "" {
			t.Errorf("%s says nothing of itself, or of its range", k.Path)
		}
		for _, other := range append(k.needs, k.not) {
			section := k.Path[:strings.LastIndexByte(k.Path, '.')+1]
			if other != "" && keysByPath[section+other] == nil {
				t.Errorf("%s: there is no key %s", k.Path, section+other)
			}
		}
	}
	cfg := Default()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.Each(func(path, key string, v reflect.Value) {
		k := keysByPath[key]
		if v.Kind() != reflect.Int || k.high == 0 {
			return
		}
		before := v.Int()
		for _, n := range []int{k.low - 1, k.high + 1} {
			v.SetInt(int64(n))
			if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("%s = %d: %v", path, n, err)
			}
		}
		v.SetInt(before)
	})
}

// TestLimitsOfPackages: ranges and defaults in tags are those of the packages that
// they are for.
func TestLimitsOfPackages(t *testing.T) {
	for path, want := range map[string][2]int{
		"peers":                         {0, quorum.MaxPeers},
		"prices":                        {0, prices.MaxAssets},
		"prices.<name>.sources":         {1, prices.MaxSources},
		"prices.<name>.max_spread_bps":  {1, market.MaxBps - 1},
		"operators":                     {0, rfq.MaxOperators / 2},
		"groups":                        {0, market.MaxShards},
		"groups[].number":               {1, market.MaxShards},
		"http.partner_per_minute":       {0, MaxPerMinute},
		"http.partner_burst":            {1, MaxBurst},
		"instruments[].price_decimals":  {0, market.MaxDecimals},
		"instruments[].qty_decimals":    {0, market.MaxDecimals},
		"rfq.fee_bps":                   {0, market.MaxBps - 1},
		"rfq.pairs[].rails":             {1, int(market.RailCount) - 1},
		"rfq.pairs[].corridor_bps":      {1, market.MaxBps - 1},
		"chain.blockhash_slots":         {broadcast.BlockhashLife, 100_000},
		"settle.units":                  {1, build.MaxUnits},
		"mirror.pairs":                  {0, mirror.MaxPairs},
		"mirror.pairs[].base_decimals":  {0, token.MaxDecimals},
		"mirror.pairs[].quote_decimals": {0, token.MaxDecimals},
	} {
		if k := keysByPath[path]; k.low != want[0] || k.high != want[1] {
			t.Errorf("%s: %s, want %d to %d", path, k.Range(), want[0], want[1])
		}
	}
	cfg, o := Default(), rpc.DefaultOptions()
	if Millis(cfg.Chain.TimeoutMS) != o.Timeout || Millis(cfg.Chain.AttemptTimeoutMS) != o.AttemptTimeout || cfg.Chain.BlockhashSlots != broadcast.BlockhashLife {
		t.Errorf("%+v", cfg.Chain)
	}
}

// TestEveryKeyIsRefused: a value of every key that is out of range or of a wrong type
// is refused with the key and the place that it comes from, without a Go type.
func TestEveryKeyIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.yaml")
	for i := range Keys {
		k := &Keys[i]
		for name, value := range wrongValues(k) {
			if err := os.WriteFile(file, []byte(yamlOf(k.Path, value)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := Load(file, nil, nil)
			switch {
			case err == nil:
				t.Errorf("%s: %s: %s is accepted", k.Path, name, value)
			case !strings.Contains(err.Error(), indexed(k.Path)) || regexp.MustCompile(`Go (value|struct)|cannot unmarshal|reflect|\bof type\b`).MatchString(err.Error()):
				t.Errorf("%s: %s: %s: %v", k.Path, name, value, err)
			case !strings.Contains(err.Error(), "c.yaml"):
				t.Errorf("%s: %s: the error names no line: %v", k.Path, name, err)
			}
		}
	}
}

// wrongValues returns values in YAML that a key refuses, by what is wrong.
func wrongValues(k *Key) map[string]string {
	out := map[string]string{}
	switch k.kind {
	case reflect.Int:
		out["text"], out["list"], out["keys"], out["fraction"] = "many", "[1]", "{a: 1}", "1.5"
		out["too large for a number"] = "99999999999999999999"
		if k.high != 0 {
			out["below"], out["above"] = strconv.Itoa(k.low-1), strconv.Itoa(k.high+1)
		}
	case reflect.Uint64:
		out["text"], out["negative"], out["list"] = "many", "-1", "[1]"
	case reflect.Bool:
		out["text"], out["number"], out["list"] = "perhaps", "7", "[true]"
	case reflect.Map:
		out["text"], out["list"] = "a", "[a]"
	case reflect.String:
		out["list"], out["keys"] = "[a]", "{a: b}"
		if k.Words != nil {
			out["word"] = "nonsense"
		}
	case reflect.Slice:
		out["text"], out["keys"] = "a", "{a: b}"
		if k.low > 0 {
			out["none"] = "[]"
		}
		if k.Words != nil {
			out["word"], out["twice"] = "[nonsense]", "["+k.Words[0]+", "+k.Words[0]+"]"
		}
	}
	wrong := map[string]string{
		"FIX address": "nowhere", "SHA-256": "abc", "USD": "-1", "USD amount": "1e9", "address": "abc", "address or none": "abc", "addresses": "abc",
		"URL": "http://%zz", "dust SOL": "1e-2", "feed id": "abc", "dust USDC": "2", "group name": "EU", "http": "ftp://a", "label": strings.Repeat("x", maxLabel+1),
		"listen": "127.0.0.1:65536", "nodes": "wss://a", "operator name": "a b", "peer URL": "a?b", "proxy": "[nobody]",
		"socket": strings.Repeat("x", maxSocketPath+1), "time of day": "24:00", "token URI": "logo.svg", "token name": strings.Repeat("x", MaxTokenName+1), "ws": "ftp://a",
	}
	for name, f := range formats {
		if reflect.ValueOf(f.check).Pointer() == reflect.ValueOf(k.form.check).Pointer() && f.name == k.form.name && wrong[name] != "" {
			out["form"] = wrong[name]
		}
	}
	return out
}

// requiredKeys are the keys that an item of a list must have, so that another key of it
// is checked.
func requiredKeys(list string) []string {
	node := []string{`base_url: "http://a"`, `api_url: "http://b"`, `ws_url: "ws://c"`, `fix: "d:1"`}
	return map[string][]string{
		"instruments":             {"book_source: matched"},
		"rfq.pairs":               {"base_mint: " + PlaceholderSLUSD, "rails: [USDC]", "price_source: book", "corridor_bps: 1"},
		"mirror.pairs":            {"base_mint: " + PlaceholderSLUSD, "quote_mint: " + PlaceholderUSDC},
		"mirror.pairs[].observed": {"address: " + PlaceholderSLUSD, "role: guarantee_reserve"},
		"operators":               {"name: ann", "token_sha256: " + strings.Repeat("ab", 32)},
		"groups":                  {"name: eu", "number: 1", "nodes: [{" + strings.Join(node, ", ") + "}]"},
		"groups[].nodes":          node,
	}[list]
}

// yamlOf sets one key, in the first item of a list.
func yamlOf(path, value string) string {
	path = strings.Replace(path, anyName, SolAsset, 1)
	text, indent := "", ""
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, isItem := strings.CutSuffix(part, "[]")
		text += "\n" + indent + name + ":"
		indent += "  "
		if !isItem {
			continue
		}
		text += "\n" + indent + "-"
		indent += "  "
		for _, line := range requiredKeys(strings.TrimSuffix(strings.Join(parts[:i+1], "."), "[]")) {
			if !strings.HasPrefix(line, strings.TrimSuffix(parts[i+1], "[]")+":") {
				text += "\n" + indent + line
			}
		}
	}
	return text + " " + value + "\n"
}

// indexed is the path of a key in the first item of its lists, or in the entry SOL.
func indexed(path string) string {
	return strings.Replace(strings.ReplaceAll(path, "[]", "[0]"), anyName, SolAsset, 1)
}
