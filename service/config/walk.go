package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// anyName stands for a name in the keys of a map.
const anyName = "<name>"

// eachValue calls each for every value of a configuration, in the order of its fields and
// of the names of a map. path contains list indices (rfq.pairs[0].via) and names
// (prices.SOL.pool), key does not (rfq.pairs[].via, prices.<name>.pool). A list or a map of
// structs is a value itself and comes before the values of its items.
func eachValue(v reflect.Value, path, key string, each func(path, key string, v reflect.Value)) {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue // no key
		}
		f, name := v.Field(i), v.Type().Field(i).Tag.Get("yaml")
		path, key := path+name, key+name
		switch {
		case f.Kind() == reflect.Struct:
			eachValue(f, path+".", key+".", each)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			each(path, key, f)
			for j := range f.Len() {
				eachValue(f.Index(j), fmt.Sprintf("%s[%d].", path, j), key+"[].", each)
			}
		case isTable(f.Type()):
			each(path, key, f)
			for _, item := range slices.SortedFunc(slices.Values(f.MapKeys()), func(a, b reflect.Value) int {
				return strings.Compare(a.String(), b.String())
			}) {
				entry := reflect.New(f.Type().Elem()).Elem()
				entry.Set(f.MapIndex(item))
				eachValue(entry, path+"."+item.String()+".", key+"."+anyName+".", each)
				if !reflect.DeepEqual(entry.Interface(), f.MapIndex(item).Interface()) {
					f.SetMapIndex(item, entry) // only then: readers may share the map
				}
			}
		default:
			each(path, key, f)
		}
	}
}

// isTable reports whether a type is a map of structs.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct
}

// Each calls each for every value, in the order of the fields. path contains list indices
// and names (rfq.pairs[0].via, prices.SOL.pool), key does not (rfq.pairs[].via,
// prices.<name>.pool).
func (c *Config) Each(each func(path, key string, v reflect.Value)) {
	eachValue(reflect.ValueOf(c).Elem(), "", "", each)
}

// Leaves returns the fields that the environment and flags can set, by path.
func (c *Config) Leaves() map[string]reflect.Value {
	leaves := map[string]reflect.Value{}
	c.Each(func(path, key string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Uint64:
			if path == key { // no item of a list
				leaves[path] = v
			}
		}
	})
	return leaves
}

// ValueText returns a value as text, as --set accepts it.
func ValueText(v reflect.Value) string {
	if v.Kind() == reflect.Map && v.Len() == 0 {
		return ""
	}
	if isTable(v.Type()) {
		return fmt.Sprintf("(%d)", v.Len())
	}
	if v.Kind() != reflect.Slice {
		return strings.TrimPrefix(fmt.Sprint(v.Interface()), "map")
	}
	if v.Type().Elem().Kind() != reflect.Struct {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(v.Interface()), "[]"), " ", ",")
	}
	return fmt.Sprintf("(%d)", v.Len())
}

func setLeaf(v reflect.Value, text string) (err error) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case reflect.Int:
		var n int
		n, err = strconv.Atoi(text)
		v.SetInt(int64(n))
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
	}
	if err != nil {
		return errors.New("want " + kindText(v.Kind()))
	}
	return nil
}

// kindText describes the values of a type.
func kindText(kind reflect.Kind) string {
	switch kind {
	case reflect.Int:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "keys with values"
}
