package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"blockdesk/internal/suggest"
)

// Variables of the environment that hold a secret for the command line.
const (
	OperatorTokenEnv = "BLOCKDESK_OPERATOR_TOKEN" // an operator's token; a flag wins over it
	FIXPasswordEnv   = "BLOCKDESK_FIX_PASSWORD"   // the password of `fix client`
)

// envReserved are the BLOCKDESK_ variables that are not configuration keys.
var envReserved = []string{
	"BLOCKDESK_TESTDATA", "BLOCKDESK_CRASH_POINTS", "BLOCKDESK_BENCH_DIR", "BLOCKDESK_KILL_ROUNDS", "BLOCKDESK_SEED",
	"BLOCKDESK_CLAIMS", "BLOCKDESK_SETTLE_ROUNDS", "BLOCKDESK_FIX_SOAK", "BLOCKDESK_FEED_SECONDS", "BLOCKDESK_MIRROR_SECONDS",
	"BLOCKDESK_NEWCOMER", "BLOCKDESK_TEST_ALL", "BLOCKDESK_RACE_ALL", "BLOCKDESK_CLUSTER_ROUNDS", "BLOCKDESK_CLUSTER_SEED", "BLOCKDESK_CLUSTER_FAULT",
	"BLOCKDESK_SIMULATE_SEED", "BLOCKDESK_SIMULATE_SEEDS", "BLOCKDESK_SIMULATE_FOR", "BLOCKDESK_SIMULATE_FAULTS",
	OperatorTokenEnv, FIXPasswordEnv,
}

// Load reads the file (an empty path means blockdesk.yaml if it exists), then the
// environment, then sets ("path=value"), and returns the source of each value. Errors name
// the file and line, the variable, or the flag.
func Load(path string, environ, sets []string) (Config, Sources, error) {
	sources := Sources{}
	cfg, err := read(path, environ, sets, sources)
	if err != nil {
		return cfg, sources, err
	}
	return cfg, sources, sources.locate(cfg.Validate())
}

func read(path string, environ, sets []string, sources Sources) (Config, error) {
	cfg := Default()
	cfg.RFQ.Pairs = nil // the default ones need their instruments: completePairs
	isDefault := path == ""
	if isDefault {
		path = "blockdesk.yaml"
	}
	text, err := os.ReadFile(path)
	switch {
	case isDefault && errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return cfg, fmt.Errorf("config: %w", err)
	default:
		if err := cmp.Or(Decode(text, &cfg), fractionsOf(text)); err != nil {
			return cfg, fmt.Errorf("%s: %w", path, err)
		}
		sources.addFile(path, text)
	}
	cfg.completePairs()
	leaves := cfg.Leaves()
	leaves["journal"] = leaves["journal.kind"]
	if err := setByEnvironment(environ, leaves, sources); err != nil {
		return cfg, err
	}
	for _, kv := range sets {
		name, value, ok := strings.Cut(kv, "=")
		leaf, known := leaves[name]
		if !ok || !known {
			return cfg, flagf("--set %s: want path=value with a known path such as listen.fix%s",
				name, suggest.Suffix(name, slices.Collect(maps.Keys(leaves))))
		}
		if err := setLeaf(leaf, value); err != nil {
			return cfg, flagf("--set %s: %w", name, err)
		}
		sources[name] = "--set"
	}
	if cfg.Clustered() && cfg.Durability.Mode == "sync" {
		cfg.Durability.Mode = "quorum" // which is more
	}
	return cfg, nil
}

// FlagError is an error in a --set flag.
type FlagError struct{ error }

// Unwrap returns the wrapped error.
func (e FlagError) Unwrap() error { return e.error }

func flagf(format string, args ...any) error { return FlagError{fmt.Errorf(format, args...)} }

func setByEnvironment(environ []string, leaves map[string]reflect.Value, sources Sources) error {
	paths := map[string]string{} // by variable
	for path := range leaves {
		paths[Variable(path)] = path
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(envReserved, name) {
			continue
		}
		path, known := paths[name]
		if !known {
			return fmt.Errorf("environment: %s names no setting%s", name, suggest.Suffix(name, slices.Collect(maps.Keys(paths))))
		}
		if err := setLeaf(leaves[path], value); err != nil {
			return fmt.Errorf("environment: %s: %w", name, err)
		}
		sources[path] = "$" + name
	}
	return nil
}

// envPrefix is the prefix of variables that set a key.
const envPrefix = "BLOCKDESK_"

// Variable returns the environment variable that sets a key.
func Variable(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// Decode reads YAML and refuses unknown keys. Errors begin with [line:column].
func Decode(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	err := yaml.UnmarshalWithOptions(text, into, yaml.Strict(), yaml.DisallowUnknownField())
	var unknown *yaml.UnknownFieldError
	if _, ours := into.(*Config); ours && errors.As(err, &unknown) {
		return unknownKey(text, unknown.Token)
	}
	if err != nil {
		return plainError(text, err)
	}
	return nil
}

// unknownKey returns the error about a key of the file that is no setting, with the most
// similar name of its section.
func unknownKey(text []byte, t *token.Token) error {
	path := keyOfPath(keyAt(text, t.Position))
	section := path[:strings.LastIndexByte(path, '.')+1]
	var known []string
	for key := range keysByPath {
		if rest, within := strings.CutPrefix(key, section); within {
			name, _, _ := strings.Cut(rest, ".")
			known = append(known, strings.TrimSuffix(name, "[]"))
		}
	}
	slices.Sort(known)
	return fmt.Errorf("[%d:%d] unknown field %q%s", t.Position.Line, t.Position.Column, t.Value, suggest.Suffix(t.Value, known))
}

// plainError returns the decoder's error without names of Go types.
func plainError(text []byte, err error) error {
	var typed *yaml.TypeError
	var overflow *yaml.OverflowError
	var node *yaml.UnexpectedNodeTypeError
	want := reflect.Struct
	switch {
	case errors.As(err, &typed):
		want = typed.DstType.Kind()
	case errors.As(err, &overflow):
		want = overflow.DstType.Kind()
	case !errors.As(err, &node):
		return errors.New(yaml.FormatError(err, false, false))
	case node.Expected == ast.SequenceType:
		want = reflect.Slice
	}
	var located yaml.Error
	errors.As(err, &located)
	t := located.GetToken()
	at, value := t.Position, ""
	if !slices.Contains([]string{":", "{", "[", "-"}, t.Value) { // no value of one line
		value = fmt.Sprintf("%q: ", t.Value)
	}
	return fmt.Errorf("[%d:%d] %s: %swant %s", at.Line, at.Column, keyAt(text, at), value, kindText(want))
}

// fractionsOf refuses a fraction in place of a whole number, which the decoder rounds
// down.
func fractionsOf(text []byte) (err error) {
	eachNode(text, func(path string, t *token.Token) {
		k := keysByPath[keyOfPath(path)]
		n, notNumber := strconv.ParseFloat(t.Value, 64)
		if err == nil && k != nil && k.kind == reflect.Int && notNumber == nil && n != math.Trunc(n) {
			err = fmt.Errorf("[%d:%d] %s: %q: want %s", t.Position.Line, t.Position.Column, path, t.Value, kindText(k.kind))
		}
	})
	return err
}

var (
	listIndex = regexp.MustCompile(`\[\d+\]`)
	assetName = regexp.MustCompile(`^prices\.[^.]+`)
)

// keyOfPath returns the key of the value at a path.
func keyOfPath(path string) string {
	return assetName.ReplaceAllString(listIndex.ReplaceAllString(path, "[]"), "prices."+anyName)
}
