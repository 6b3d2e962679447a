package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// filledConfig has something in every list, and nothing that is empty.
func filledConfig() Config {
	cfg := Default()
	cfg.Peers = []Peer{{ID: "a", Address: "127.0.0.1:1"}, {ID: "b", Address: "127.0.0.1:2"}}
	cfg.Tokens = []Token{{Symbol: "SLUSD"}}
	cfg.Mirror.Pairs = []MirrorPair{{Symbol: "SOL/USDC", Observed: []Observed{{Label: "reserve"}}}}
	cfg.Prices["SOL"] = DefaultPriceRule()
	cfg.Operators = []OperatorToken{{Name: "ann", TokenSHA256: "11"}}
	cfg.Groups = []Group{{Name: "eu", Number: 1, Nodes: []GroupNode{{Base: "http://a"}}}}
	cfg.Each(func(_, _ string, v reflect.Value) {
		if v.Kind() == reflect.String && v.IsZero() {
			v.SetString("given")
		}
	})
	return cfg
}

// TestFingerprint changes each value of a configuration: the part that it belongs to
// becomes another one, unless it is a node's own, or a secret, which is not shown.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	before := filledConfig()
	was := FingerprintOf[any](&before, nil)
	if again := filledConfig(); !reflect.DeepEqual(FingerprintOf[any](&again, nil), was) || len(was.Whole) != 2*fingerprintBytes {
		t.Fatalf("%+v", was)
	}
	reported, seen := 0, map[string]bool{}
	before.Each(func(at, key string, _ reflect.Value) {
		cfg := filledConfig()
		cfg.Each(func(path, _ string, v reflect.Value) {
			if path != at {
				return
			}
			switch {
			case v.Kind() == reflect.String:
				v.SetString(v.String() + "x")
			case v.Kind() == reflect.Bool:
				v.SetBool(!v.Bool())
			case v.CanInt():
				v.SetInt(v.Int() + 1)
			case v.CanUint():
				v.SetUint(v.Uint() + 1)
			case isTable(v.Type()):
				v.Set(reflect.ValueOf(Prices{"SOL": {}, "SLUSD": {}}))
			case v.Kind() == reflect.Map:
				v.Set(reflect.ValueOf(map[string]string{"mail": "a@b"}))
			default:
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
		})
		now := FingerprintOf[any](&cfg, nil)
		var want []string
		if k := keysByPath[key]; !k.own && !k.Secret {
			want = []string{partOfKey(key)}
			reported++
		}
		seen[key] = true
		if apart := DifferentParts(was.Parts, now.Parts); !slices.Equal(apart, want) || (now.Whole == was.Whole) != (want == nil) {
			t.Errorf("%s: %v differ, want %v", at, apart, want)
		}
	})
	for key := range keysByPath {
		if !seen[key] {
			t.Errorf("%s was not changed", key)
		}
	}
	if reported < 100 {
		t.Errorf("only %d values are reported", reported)
	}
}

// TestFingerprintOfSecrets: the fingerprint shows whether a secret is given.
func TestFingerprintOfSecrets(t *testing.T) {
	t.Parallel()
	with, without := filledConfig(), filledConfig()
	with.Chain.RPCURLs, without.Chain.RPCURLs = "https://node.example/?key=secret", ""
	if apart := DifferentParts(FingerprintOf[any](&with, nil).Parts, FingerprintOf[any](&without, nil).Parts); !slices.Equal(apart, []string{"chain"}) {
		t.Errorf("with nodes and without: %v", apart)
	}
}

// TestFingerprintOfGroups: another group's instruments are routed by, so they count;
// which group a process is of does too.
func TestFingerprintOfGroups(t *testing.T) {
	t.Parallel()
	load := func(group string) *Config {
		t.Helper()
		cfg, err := loadYAML(t, strings.Replace(groupsYAML(secretFile(t), euNodeYAML, usNodeYAML), "group: eu", "group: "+group, 1))
		if err != nil {
			t.Fatal(err)
		}
		return &cfg
	}
	eu, changed, us := load("eu"), load("eu"), load("us")
	changed.Instruments[1].MaxQty = "7"
	for _, cfg := range []*Config{eu, changed, us} {
		*cfg = cfg.SelectGroup()
	}
	was := FingerprintOf[any](eu, nil)
	if apart := DifferentParts(was.Parts, FingerprintOf[any](changed, nil).Parts); !slices.Equal(apart, []string{"instruments"}) {
		t.Errorf("another group's instrument: %v", apart)
	}
	if apart := DifferentParts(was.Parts, FingerprintOf[any](us, nil).Parts); !slices.Contains(apart, "routing") {
		t.Errorf("another group: %v", apart)
	}
	if all := slices.Sorted(maps.Keys(was.Parts)); !slices.Contains(all, "risk") || slices.Contains(all, "listen") {
		t.Errorf("parts: %v", all)
	}
}
