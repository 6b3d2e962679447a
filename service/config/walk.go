package config

import (
	"fmt"
	"reflect"
	"strings"
)

// eachValue calls each for every value of a configuration, in the order of its fields.
// path contains list indices (rfq.pairs[0].via), key does not (rfq.pairs[].via). A list
// of structs is a value itself and comes before the values of its items.
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
		default:
			each(path, key, f)
		}
	}
}

// Each calls each for every value, in the order of the fields. path contains list
// indices (rfq.pairs[0].via), key does not (rfq.pairs[].via).
func (c *Config) Each(each func(path, key string, v reflect.Value)) {
	eachValue(reflect.ValueOf(c).Elem(), "", "", each)
}

// checkRanges checks every value against the range of its key and returns the first
// error.
func (c *Config) checkRanges() (err error) {
	keys := map[string]*Key{}
	for i := range Keys {
		keys[Keys[i].Path] = &Keys[i]
	}
	c.Each(func(path, key string, v reflect.Value) {
		if k := keys[key]; err == nil && k != nil {
			err = k.check(path, v)
		}
	})
	return err
}

func (k *Key) check(path string, v reflect.Value) error {
	bounded := k.low != 0 || k.high != 0
	switch {
	case v.Kind() == reflect.Int && bounded:
		return Between(path, int(v.Int()), k.low, k.high)
	case v.Kind() == reflect.Slice && bounded:
		return Between(path, v.Len(), k.low, k.high)
	case v.Kind() == reflect.String && k.Words != nil:
		return oneOf(path, v.String(), k.Words...)
	case k.valid == nil:
		return nil
	}
	texts, isList := v.Interface().([]string)
	if !isList {
		texts = []string{v.String()}
	}
	for _, text := range texts {
		if err := k.valid(text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// Range describes the values that a key accepts.
func (k *Key) Range() string {
	switch {
	case k.Words != nil:
		return strings.Join(k.Words, ", ")
	case k.form == "list" && k.high != 0:
		return fmt.Sprintf("list of %d to %d", k.low, k.high)
	case k.high != 0:
		return fmt.Sprintf("%d to %d", k.low, k.high)
	}
	return k.form
}

// ValueText returns a value as text, as --set accepts it.
func ValueText(v reflect.Value) string {
	if v.Kind() == reflect.Map && v.Len() == 0 {
		return ""
	}
	if v.Kind() != reflect.Slice {
		return strings.TrimPrefix(fmt.Sprint(v.Interface()), "map")
	}
	if v.Type().Elem().Kind() != reflect.Struct {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(v.Interface()), "[]"), " ", ",")
	}
	return fmt.Sprintf("(%d)", v.Len())
}
