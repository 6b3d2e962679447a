package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fingerprintBytes is the length of a fingerprint, a truncated SHA-256: two different
// configurations have the same one with probability 2^-64.
const fingerprintBytes = 8

// ParticipantsPart is the part of a fingerprint for the content of the participants file,
// whose path is each node's own.
const ParticipantsPart = "participants"

// Fingerprint identifies the values that all nodes of a group must share: equal values
// give equal fingerprints in every process of one version. It is public, so of a secret
// it covers only whether it is set.
type Fingerprint struct {
	// Whole covers all parts. A part is the first word of its keys (risk of
	// risk.band_bps) or ParticipantsPart. Hexadecimal.
	Whole string
	Parts map[string]string
}

// FingerprintOf returns the fingerprint of a configuration with these participants.
// Their passwords are hashes with a random salt, so the fingerprint reveals nothing
// about them.
func FingerprintOf[P any](c *Config, participants []P) Fingerprint {
	all := *c
	if c.allInstruments != nil { // they route requests for another group's instruments
		all.Instruments = c.allInstruments
	}
	sums := map[string]hash.Hash{}
	add := func(part, path string, value any) {
		if sums[part] == nil {
			sums[part] = sha256.New()
		}
		fmt.Fprintf(sums[part], "%s=%#v\n", path, value)
	}
	all.Each(func(path, key string, v reflect.Value) {
		k := keysByPath[key]
		if k.own {
			return
		}
		value := v.Interface()
		switch {
		case k.Secret:
			value = !v.IsZero()
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct, isTable(v.Type()):
			value = v.Len() // its items follow
		case v.Kind() == reflect.Slice && v.Len() == 0, v.Kind() == reflect.Map && v.Len() == 0:
			value = nil // nil and empty are the same
		}
		add(partOfKey(key), path, value)
	})
	for i := range participants {
		add(ParticipantsPart, fmt.Sprint(i), participants[i])
	}
	return sealed(sums)
}

// partOfKey returns the first word of a key.
func partOfKey(key string) string {
	end := strings.IndexAny(key, ".[")
	if end < 0 {
		return key
	}
	return key[:end]
}

// sealed makes a fingerprint from the hashes of its parts.
func sealed(sums map[string]hash.Hash) Fingerprint {
	f := Fingerprint{Parts: make(map[string]string, len(sums))}
	whole := sha256.New()
	for _, part := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[part].Sum(nil)
		fmt.Fprintf(whole, "%s %x\n", part, sum)
		f.Parts[part] = hex.EncodeToString(sum[:fingerprintBytes])
	}
	f.Whole = hex.EncodeToString(whole.Sum(nil)[:fingerprintBytes])
	return f
}

// DifferentParts returns the sorted parts in which two fingerprints differ, including
// parts that only one of them has.
func DifferentParts(a, b map[string]string) []string {
	names := map[string]bool{}
	for _, parts := range []map[string]string{a, b} {
		for name := range parts {
			names[name] = names[name] || a[name] != b[name]
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return !names[name] })
}
