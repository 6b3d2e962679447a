package main

import (
	"fmt"
	"reflect"
	"strings"
)

// eachValue calls each for every value of a configuration, in the order of its
// fields: path has the numbers of lists (rfq.pairs[0].via), key has not
// (rfq.pairs[].via). A list of structs is a value itself, before its own.
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

// each is eachValue of this configuration.
func (c *Config) each(each func(path, key string, v reflect.Value)) {
	eachValue(reflect.ValueOf(c).Elem(), "", "", each)
}

// checkRanges holds every value to the range of its key. The error names the first
// that is outside.
func (c *Config) checkRanges() (err error) {
	keys := map[string]*configKey{}
	for i := range configKeys {
		keys[configKeys[i].key] = &configKeys[i]
	}
	c.each(func(path, key string, v reflect.Value) {
		if k := keys[key]; err == nil && k != nil {
			err = k.check(path, v)
		}
	})
	return err
}

func (k *configKey) check(path string, v reflect.Value) error {
	bounded := k.low != 0 || k.high != 0
	switch {
	case v.Kind() == reflect.Int && bounded:
		return between(path, int(v.Int()), k.low, k.high)
	case v.Kind() == reflect.Slice && bounded:
		return between(path, v.Len(), k.low, k.high)
	case v.Kind() == reflect.String && k.words != nil:
		return oneOf(path, v.String(), k.words...)
	}
	return nil
}

// span says which values a key takes, for people.
func (k *configKey) span() string {
	switch {
	case k.words != nil:
		return strings.Join(k.words, ", ")
	case k.form == "list" && k.high != 0:
		return fmt.Sprintf("list of %d to %d", k.low, k.high)
	case k.high != 0:
		return fmt.Sprintf("%d to %d", k.low, k.high)
	}
	return k.form
}

// valueText is a value as the command line and people write it.
func valueText(v reflect.Value) string {
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
