package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/fixgw"
)

// filledConfig has something in every list, and nothing that is empty.
func filledConfig() Config {
	cfg := defaultConfig()
	cfg.Peers = []PeerConfig{{ID: "a", Address: "127.0.0.1:1"}, {ID: "b", Address: "127.0.0.1:2"}}
	cfg.Tokens = []TokenConfig{{Symbol: "SLUSD"}}
	cfg.Mirror.Pairs = []MirrorPairConfig{{Symbol: "SOL/USDC", Observed: []ObservedConfig{{Label: "reserve"}}}}
	cfg.Operators = []OperatorTokenConfig{{Name: "ann", TokenSHA256: "11"}}
	cfg.Groups = []GroupConfig{{Name: "eu", Number: 1, Nodes: []GroupNodeConfig{{Base: "http://a"}}}}
	cfg.each(func(_, _ string, v reflect.Value) {
		if v.Kind() == reflect.String && v.IsZero() {
			v.SetString("given")
		}
	})
	return cfg
}

// TestFingerprint changes each value of a configuration: the part that it belongs to
// becomes another one, unless it is a node's own, or a secret, which is not told.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	keys := map[string]*configKey{}
	for i := range configKeys {
		keys[configKeys[i].key] = &configKeys[i]
	}
	before := filledConfig()
	was := before.fingerprint(nil)
	if again := filledConfig(); !reflect.DeepEqual(again.fingerprint(nil), was) || len(was.whole) != 2*fingerprintBytes {
		t.Fatalf("%+v", was)
	}
	told, seen := 0, map[string]bool{}
	before.each(func(at, key string, _ reflect.Value) {
		cfg := filledConfig()
		cfg.each(func(path, _ string, v reflect.Value) {
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
			case v.Kind() == reflect.Map:
				v.Set(reflect.ValueOf(map[string]string{"mail": "a@b"}))
			default:
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			}
		})
		now := cfg.fingerprint(nil)
		var want []string
		if k := keys[key]; !k.own && !k.secret {
			want = []string{partOfKey(key)}
			told++
		}
		seen[key] = true
		if apart := partsApart(was.parts, now.parts); !slices.Equal(apart, want) || (now.whole == was.whole) != (want == nil) {
			t.Errorf("%s: %v differ, want %v", at, apart, want)
		}
	})
	for key := range keys {
		if !seen[key] {
			t.Errorf("%s was not changed", key)
		}
	}
	if told < 100 {
		t.Errorf("only %d values are told of", told)
	}
}

// TestFingerprintOfSecrets: whether a secret is given is told.
func TestFingerprintOfSecrets(t *testing.T) {
	t.Parallel()
	with, without := filledConfig(), filledConfig()
	with.Chain.RPCURLs, without.Chain.RPCURLs = "https://node.example/?key=secret", ""
	if apart := partsApart(with.fingerprint(nil).parts, without.fingerprint(nil).parts); !slices.Equal(apart, []string{"chain"}) {
		t.Errorf("with nodes and without: %v", apart)
	}
}

// TestFingerprintOfParticipants: whatever is changed of one is told, and how the file
// is written, and where it is, is not.
func TestFingerprintOfParticipants(t *testing.T) {
	t.Parallel()
	parse := func(text string) []fixgw.Participant {
		t.Helper()
		list, err := fixgw.ParseParticipants([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	hash, err := testHash()
	if err != nil {
		t.Fatal(err)
	}
	cfg := filledConfig()
	one := fmt.Sprintf("participants:\n  - {name: A, number: 1, comp_ids: [A], password_hash: %q}\n", hash)
	was := cfg.fingerprint(parse(one))
	if got := cfg.fingerprint(parse("# a word\n" + strings.Replace(one, "number: 1", "stp: cancel_newest, number: 1", 1))); got.whole != was.whole {
		t.Error("the same participants, written otherwise, are told apart")
	}
	for _, change := range []func(p *fixgw.Participant){
		func(p *fixgw.Participant) { p.Name = "B" },
		func(p *fixgw.Participant) { p.Number = 2 },
		func(p *fixgw.Participant) { p.CompIDs = []string{"A", "A2"} },
		func(p *fixgw.Participant) { p.PasswordHash += "x" },
		func(p *fixgw.Participant) { p.Ed25519 = "key" },
		func(p *fixgw.Participant) { p.Wallet = "wallet" },
		func(p *fixgw.Participant) { p.STP = book.STPCancelBoth },
		func(p *fixgw.Participant) { p.Limits = []fixgw.Limit{{Symbol: "*", BandBps: 1}} },
	} {
		list := parse(one)
		change(&list[0])
		if apart := partsApart(was.parts, cfg.fingerprint(list).parts); !slices.Equal(apart, []string{participantsPart}) {
			t.Errorf("%+v: %v", list[0], apart)
		}
	}
	if apart := partsApart(was.parts, cfg.fingerprint(nil).parts); !slices.Equal(apart, []string{participantsPart}) {
		t.Errorf("without participants: %v", apart)
	}
}

// TestFingerprintOfGroups: another group's instruments are routed by, so they count;
// which group a process is of does too.
func TestFingerprintOfGroups(t *testing.T) {
	t.Parallel()
	load := func(group string) *Config {
		t.Helper()
		cfg, err := loadText(t, strings.Replace(twoGroups(groupsSecret(t), euNode, usNode), "group: eu", "group: "+group, 1))
		if err != nil {
			t.Fatal(err)
		}
		return &cfg
	}
	eu, changed, us := load("eu"), load("eu"), load("us")
	changed.Instruments[1].MaxQty = "7"
	for _, cfg := range []*Config{eu, changed, us} {
		cfg.takeGroup()
	}
	was := eu.fingerprint(nil)
	if apart := partsApart(was.parts, changed.fingerprint(nil).parts); !slices.Equal(apart, []string{"instruments"}) {
		t.Errorf("another group's instrument: %v", apart)
	}
	if apart := partsApart(was.parts, us.fingerprint(nil).parts); !slices.Contains(apart, "routing") {
		t.Errorf("another group: %v", apart)
	}
	if all := slices.Sorted(maps.Keys(was.parts)); !slices.Contains(all, "risk") || slices.Contains(all, "listen") {
		t.Errorf("parts: %v", all)
	}
}
