package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"reflect"
	"slices"
	"strings"

	"blockdesk/fixgw"
)

// fingerprintBytes is how much of a SHA-256 a fingerprint has: two configurations
// that differ have the same one by chance in one case of 2^64.
const fingerprintBytes = 8

// participantsPart is the part of a fingerprint that the participants file is: its
// content, since its place is each node's own.
const participantsPart = "participants"

// fingerprint stands for what of a configuration has to be alike on all nodes of a
// group: the same values give the same one, in every process of one version. Anybody
// may see it, so of a secret it has only whether it is given.
type fingerprint struct {
	// whole stands for all parts; parts are by the first word of their keys (risk of
	// risk.band_bps), and participantsPart. Hexadecimal.
	whole string
	parts map[string]string
}

// fingerprint of this configuration with these participants. Passwords in them are
// hashes with a random salt, which nobody can guess who has not the file.
func (c *Config) fingerprint(participants []fixgw.Participant) fingerprint {
	alike := map[string]*configKey{}
	for i := range configKeys {
		if k := &configKeys[i]; !k.own {
			alike[k.key] = k
		}
	}
	all := *c
	if c.whole != nil { // requests for another group's instruments are routed by them
		all.Instruments = c.whole
	}
	sums := map[string]hash.Hash{}
	add := func(part, path string, value any) {
		if sums[part] == nil {
			sums[part] = sha256.New()
		}
		fmt.Fprintf(sums[part], "%s=%#v\n", path, value)
	}
	all.each(func(path, key string, v reflect.Value) {
		k := alike[key]
		if k == nil {
			return
		}
		value := v.Interface()
		switch {
		case k.secret:
			value = !v.IsZero()
		case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
			value = v.Len() // the values of its items come by themselves
		case v.Kind() == reflect.Slice && v.Len() == 0, v.Kind() == reflect.Map && v.Len() == 0:
			value = nil // none, however it is written
		}
		add(partOfKey(key), path, value)
	})
	for i := range participants {
		add(participantsPart, fmt.Sprint(i), participants[i])
	}
	return sealed(sums)
}

// partOfKey is the first word of a key.
func partOfKey(key string) string {
	end := strings.IndexAny(key, ".[")
	if end < 0 {
		return key
	}
	return key[:end]
}

// sealed makes the fingerprint of its parts' sums.
func sealed(sums map[string]hash.Hash) fingerprint {
	f := fingerprint{parts: make(map[string]string, len(sums))}
	whole := sha256.New()
	for _, part := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[part].Sum(nil)
		fmt.Fprintf(whole, "%s %x\n", part, sum)
		f.parts[part] = hex.EncodeToString(sum[:fingerprintBytes])
	}
	f.whole = hex.EncodeToString(whole.Sum(nil)[:fingerprintBytes])
	return f
}

// partsApart are the parts in which two fingerprints differ, sorted. One that only
// one of them has is one of these.
func partsApart(a, b map[string]string) []string {
	names := map[string]bool{}
	for _, parts := range []map[string]string{a, b} {
		for name := range parts {
			names[name] = names[name] || a[name] != b[name]
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return !names[name] })
}
