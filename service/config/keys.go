package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Key is one key of the configuration, with the rules of its field's tags:
//
//	default  of a leaf, or of the values of a map; none: "", 0, false or an empty list
//	words    the only values of a text, separated by commas; "" may be left out
//	range    of a number, or of the length of a list: 1 to 10
//	unit     of a number or a decimal
//	form     of a text: the name of one of formats, or a description that nothing checks
//	needs    keys of the same section that must be set with this one, while the section is in use
//	not      a key of the same section that must not be set with this one
//	is       own: each node of a group may have its own value; secret: never shown;
//	         unique: no two items of the list have the same value
//	about    help text
type Key struct {
	Path      string // rfq.pairs[].max_age_s
	Default   string
	About     string
	Unit      string
	Words     []string
	low, high int // both 0: no range
	form      format
	needs     []string
	not       string
	Secret    bool
	own       bool
	unique    bool
	kind      reflect.Kind
}

// The largest rates of requests, which 0 stands for.
const (
	MaxPerMinute = 60_000_000
	MaxBurst     = 1_000_000
)

// Keys are all keys in the order of the documents.
var Keys = keysOf(reflect.TypeFor[Config](), "")

var keysByPath = maps.Collect(func(yield func(string, *Key) bool) {
	for i := range Keys {
		if !yield(Keys[i].Path, &Keys[i]) {
			return
		}
	}
})

// keysOf reads the tags of a struct and of the structs below it. It panics on a wrong
// tag.
func keysOf(t reflect.Type, prefix string) (keys []Key) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue // no key
		}
		path := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, keysOf(f.Type, path+".")...)
			continue
		}
		keys = append(keys, keyOf(path, f))
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			keys = append(keys, keysOf(f.Type.Elem(), path+"[].")...)
		}
		if isTable(f.Type) {
			keys = append(keys, keysOf(f.Type.Elem(), path+"."+anyName+".")...)
		}
	}
	return keys
}

func keyOf(path string, f reflect.StructField) Key {
	list := func(tag string) []string {
		if text, ok := f.Tag.Lookup(tag); ok {
			return strings.Split(text, ",")
		}
		return nil
	}
	is := list("is")
	k := Key{
		Path: path, Default: f.Tag.Get("default"), About: f.Tag.Get("about"), Unit: f.Tag.Get("unit"), Words: list("words"),
		needs: list("needs"), not: f.Tag.Get("not"), Secret: slices.Contains(is, "secret"), own: slices.Contains(is, "own"),
		unique: slices.Contains(is, "unique"), kind: f.Type.Kind(),
	}
	if text, ok := f.Tag.Lookup("range"); ok {
		if _, err := fmt.Sscanf(text, "%d to %d", &k.low, &k.high); err != nil {
			panic(path + ": " + err.Error())
		}
	}
	form, known := formats[f.Tag.Get("form")]
	if k.form = form; !known {
		k.form.name = f.Tag.Get("form")
	}
	return k
}

// Range describes the values that a key accepts.
func (k *Key) Range() string {
	prefix := ""
	switch k.kind {
	case reflect.Slice:
		prefix = "list of "
	case reflect.Map:
		prefix = "map of "
	}
	switch {
	case k.Words != nil:
		return prefix + k.words()
	case k.high != 0:
		return fmt.Sprintf("%s%d to %d", prefix, k.low, k.high)
	case k.form.name != "":
		return k.form.name
	case k.kind == reflect.Slice:
		return "list"
	case k.kind == reflect.Bool:
		return "true or false"
	}
	return "whole number"
}

// words returns the words of a key without the empty one.
func (k *Key) words() string {
	return strings.TrimPrefix(strings.Join(k.Words, ", "), ", ")
}

// check checks one value. The error begins with path.
func (k *Key) check(path string, v reflect.Value) error {
	if k.high != 0 {
		size := v.Len
		if v.CanInt() {
			size = func() int { return int(v.Int()) }
		}
		if err := CheckRange(path, size(), k.low, k.high); err != nil {
			return err
		}
	}
	texts, isList := v.Interface().([]string)
	if v.Kind() == reflect.String {
		texts = []string{v.String()}
	}
	for i, text := range texts {
		switch {
		case k.Words != nil && !slices.Contains(k.Words, text):
			return fmt.Errorf("%s: %q is not one of %s", path, text, k.words())
		case isList && k.unique && slices.Contains(texts[:i], text):
			return fmt.Errorf("%s: %s appears twice", path, text)
		case k.form.check != nil:
			if err := k.form.check(text); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

// CheckRange checks low <= value <= high; the error names the key.
func CheckRange(key string, value, low, high int) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %d is outside %d to %d", key, value, low, high)
	}
	return nil
}

// SplitList returns the non-empty parts of comma-separated text, without spaces around
// them.
func SplitList(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
