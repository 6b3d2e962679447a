package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// docsFile is the documentation of the configuration. Its first block of YAML is made from
// Keys.
var docsFile = filepath.Join("..", "..", "docs", "configuration.md")

const (
	docsBegin = "<!-- made by UPDATE_GOLDEN=1 go test ./service/config -run TestConfigurationDocument: change the tags of config.Config, not these lines -->\n"
	docsEnd   = "<!-- end -->\n"
)

// TestConfigurationDocument compares the generated part of docs/configuration.md with the
// keys.
func TestConfigurationDocument(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), docsBegin)
	_, after, ends := strings.Cut(rest, docsEnd)
	if !begins || !ends {
		t.Fatal("docs/configuration.md has no generated part")
	}
	want := before + docsBegin + documentedFile() + docsEnd + after
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("docs/configuration.md is stale: UPDATE_GOLDEN=1 go test ./service/config -run TestConfigurationDocument writes it")
	}
}

// TestDocumentedFileIsTheDefault: the documentation's file has every key with its
// default.
func TestDocumentedFileIsTheDefault(t *testing.T) {
	_, rest, _ := strings.Cut(documentedFile(), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	var cfg Config
	if err := Decode([]byte(example), &cfg); err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.TrustedProxies = []string{}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("the example is\n%+v\nthe defaults are\n%+v", cfg, want)
	}
}

// documentedFile is a file with every key that has a default.
func documentedFile() string {
	var b strings.Builder
	b.WriteString("```yaml\n")
	cfg := Default()
	writeSection(&b, reflect.ValueOf(cfg), "", "")
	b.WriteString("```\n")
	return b.String()
}

func writeSection(b *strings.Builder, v reflect.Value, prefix, indent string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, path := f.Tag.Get("yaml"), prefix+f.Tag.Get("yaml")
		k, isList := keysByPath[path], f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct
		switch {
		case name == "":
		case f.Type.Kind() == reflect.Struct:
			writeLine(b, indent+name+":", f.Tag.Get("about"))
			writeSection(b, v.Field(i), path+".", indent+"  ")
		case isList && v.Field(i).Len() > 0:
			writeLine(b, indent+name+":", k.comment())
			for j := range v.Field(i).Len() {
				var item strings.Builder
				writeSection(&item, v.Field(i).Index(j), path+"[].", indent+"    ")
				text := strings.Replace(item.String(), indent+"    ", indent+"  - ", 1)
				if j > 0 { // the first item has the comments
					text = withoutComments(text)
				}
				b.WriteString(text)
			}
		default:
			writeLine(b, indent+name+": "+valueYAML(v.Field(i)), k.comment())
		}
	}
}

func withoutComments(text string) (out string) {
	for line := range strings.Lines(text) {
		value, _, _ := strings.Cut(line, " #")
		out += strings.TrimRight(value, " \n") + "\n"
	}
	return out
}

// writeLine writes a line with its comment in a column of its own, where it fits.
func writeLine(b *strings.Builder, text, comment string) {
	if comment != "" {
		text = fmt.Sprintf("%-27s# %s", text+" ", comment)
	}
	b.WriteString(strings.TrimRight(text, " ") + "\n")
}

func valueYAML(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		if text == "" || strings.Trim(text, "0123456789.") == "" {
			return `"` + text + `"`
		}
		return text
	case reflect.Map:
		return "{}"
	case reflect.Slice:
		if v.Len() == 0 {
			return "[]"
		}
		return "[" + strings.ReplaceAll(ValueText(v), ",", ", ") + "]"
	}
	return fmt.Sprint(v.Interface())
}

// comment is the help text of a key with its words. The unit of a number stands in its name;
// `blockdesk config keys` has the ranges.
func (k *Key) comment() string {
	if k.Words != nil && !strings.Contains(k.About, k.Words[len(k.Words)-1]+":") {
		return k.About + " (" + k.words() + ")"
	}
	if k.Unit != "" && !strings.Contains(k.Path, "_") {
		return k.About + " (" + k.Unit + ")"
	}
	return k.About
}

// TestDocumentedItems: the examples of the page have every key of the lists that are empty
// by default.
func TestDocumentedItems(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(text), docsEnd)
	n := 0
	for i := range Keys {
		k := &Keys[i]
		list, _, isItem := strings.Cut(strings.Replace(k.Path, "."+anyName, "[]", 1), "[]")
		if !isItem || list == "instruments" || strings.HasPrefix(list, "rfq.") {
			continue
		}
		n++
		if name := k.Path[strings.LastIndex(k.Path, ".")+1:]; !regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.TrimSuffix(name, "[]")) + `:`).MatchString(examples) {
			t.Errorf("docs/configuration.md has no %s", k.Path)
		}
	}
	if n < 40 {
		t.Errorf("only %d keys", n)
	}
}
