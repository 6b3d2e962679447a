package config

import (
	"reflect"
	"strings"
	"testing"
)

// TestConfigKeys holds the table of keys to the configuration: every key is there,
// in its order, a number has a range that its default lies in, and what is outside
// is refused with its path.
func TestConfigKeys(t *testing.T) {
	var want []string
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				continue // no key
			}
			key := prefix + f.Tag.Get("yaml")
			switch {
			case f.Type.Kind() == reflect.Struct:
				walk(f.Type, key+".")
			case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
				want = append(want, key)
				walk(f.Type.Elem(), key+"[].")
			default:
				want = append(want, key)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	var got []string
	for i := range Keys {
		k := &Keys[i]
		got = append(got, k.Path)
		if k.About == "" || k.Range() == "" {
			t.Errorf("%s says nothing of itself, or of its range", k.Path)
		}
	}
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("row %d of configKeys is not the key of Config there:\n has %v\nwant %v", i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
	cfg := Default()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	bounds := map[string]*Key{}
	for i := range Keys {
		bounds[Keys[i].Path] = &Keys[i]
	}
	cfg.Each(func(path, key string, v reflect.Value) {
		k := bounds[key]
		if v.Kind() != reflect.Int || k.form == "list" || k.high == 0 {
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
