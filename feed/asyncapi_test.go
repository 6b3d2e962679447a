package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blockdesk/internal/runtest"
	"blockdesk/sdk"
	"blockdesk/sdk/openapitest"
)

// channelsFile is the path of the AsyncAPI document.
var channelsFile = filepath.Join("..", "sdk", filepath.FromSlash(sdk.Channels))

// asyncAPI is the parsed AsyncAPI document.
type asyncAPI struct {
	text []byte
	// schemas validates. Its JSON Schema dialect and AsyncAPI's agree on everything that
	// the document uses.
	schemas *openapitest.Document

	Info struct {
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	Channels map[string]struct {
		Address     string               `json:"address"`
		Description string               `json:"description"`
		Messages    map[string]reference `json:"messages"`
	} `json:"channels"`
	Operations map[string]struct {
		Action   string      `json:"action"`
		Channel  reference   `json:"channel"`
		Messages []reference `json:"messages"`
		Reply    struct {
			Messages []reference `json:"messages"`
		} `json:"reply"`
		Bindings struct {
			HTTP struct {
				Query struct {
					Properties map[string]map[string]any `json:"properties"`
				} `json:"query"`
			} `json:"http"`
		} `json:"bindings"`
	} `json:"operations"`
	Components struct {
		Messages map[string]*asyncMessage  `json:"messages"`
		Schemas  map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

type reference struct {
	Ref string `json:"$ref"`
}

// name returns the name of the referenced element.
func (r reference) name() string { return r.Ref[strings.LastIndexByte(r.Ref, '/')+1:] }

type asyncMessage struct {
	Payload  reference `json:"payload"`
	Examples []struct {
		Payload json.RawMessage `json:"payload"`
	} `json:"examples"`
}

func readAsyncAPI(t testing.TB) *asyncAPI {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Channels)
	if err != nil {
		t.Fatal(err)
	}
	d := &asyncAPI{text: text}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	if d.schemas, err = openapitest.Parse(text); err != nil {
		t.Fatal(err)
	}
	return d
}

// kindOf returns the name of a message of the service. The constants in the schemas
// identify it.
func (d *asyncAPI) kindOf(text string) (string, error) {
	var head map[string]any
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return "", err
	}
	for name, m := range d.Components.Messages {
		members, _ := d.Components.Schemas[m.Payload.name()]["properties"].(map[string]any)
		if len(members) == 0 {
			continue // a request
		}
		same := true
		for _, member := range []string{"channel", "type", "action"} {
			schema, _ := members[member].(map[string]any)
			if schema == nil {
				same = same && head[member] == nil
				continue
			}
			list, _ := schema["enum"].([]any)
			same = same && (schema["const"] == head[member] || slices.Contains(list, head[member]))
		}
		if same {
			return name, nil
		}
	}
	return "", fmt.Errorf("no message of the document is %s", text)
}

// check validates a message of the service and returns its name.
func (d *asyncAPI) check(channel, text string) (string, error) {
	name, err := d.kindOf(text)
	if err != nil {
		return "", err
	}
	if _, there := d.Channels[channel].Messages[name]; !there {
		return "", fmt.Errorf("the channel %s has no message %s", channel, name)
	}
	if err := d.schemas.ValidateAs(d.Components.Messages[name].Payload.name(), []byte(text)); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return name, nil
}

// requests returns the names of the clients' messages.
func (d *asyncAPI) requests() []string {
	var all []string
	for _, o := range d.Operations {
		if o.Action == "receive" {
			all = append(all, o.Messages[0].name())
		}
	}
	return all
}

// accepts reports whether a request is valid by the document.
func (d *asyncAPI) accepts(text string) bool {
	return slices.ContainsFunc(d.requests(), func(name string) bool {
		return d.schemas.ValidateAs(d.Components.Messages[name].Payload.name(), []byte(text)) == nil
	})
}

// enum returns the values of a member of a schema.
func (d *asyncAPI) enum(t *testing.T, schema, member string) []string {
	t.Helper()
	members, _ := d.Components.Schemas[schema]["properties"].(map[string]any)
	one, _ := members[member].(map[string]any)
	list, _ := one["enum"].([]any)
	all := make([]string, len(list))
	for i := range list {
		all[i] = fmt.Sprint(list[i])
	}
	if len(all) == 0 {
		t.Fatalf("%s.%s has no values", schema, member)
	}
	slices.Sort(all)
	return all
}

// TestAsyncAPIRefers: every reference resolves, every message and schema is used, every
// example is valid, and every member that the service sends is described.
func TestAsyncAPIRefers(t *testing.T) {
	d := readAsyncAPI(t)
	var root map[string]any
	if err := json.Unmarshal(d.text, &root); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, found := range regexp.MustCompile(`"\$ref": "#/([^"]+)"`).FindAllSubmatch(d.text, -1) {
		used[string(found[1])] = true
		var at any = root
		for name := range strings.SplitSeq(string(found[1]), "/") {
			object, _ := at.(map[string]any)
			at = object[name]
		}
		if at == nil {
			t.Errorf("%s is not there", found[1])
		}
	}
	for name, m := range d.Components.Messages {
		if !used["components/messages/"+name] || len(m.Examples) != 1 {
			t.Errorf("the message %s is used nowhere, or has %d examples", name, len(m.Examples))
			continue
		}
		if err := d.schemas.ValidateAs(m.Payload.name(), m.Examples[0].Payload); err != nil {
			t.Errorf("the example of %s: %v", name, err)
		}
	}
	for name, schema := range d.Components.Schemas {
		if !used["components/schemas/"+name] {
			t.Errorf("the schema %s is used nowhere", name)
		}
		if schema["properties"] != nil && name != "Request" && schema["additionalProperties"] != false {
			t.Errorf("%s takes any member", name)
		}
	}
	for name, c := range d.Channels {
		for message := range c.Messages {
			if !used["channels/"+name+"/messages/"+message] {
				t.Errorf("no operation of %s has the message %s", name, message)
			}
		}
	}
}

// TestAsyncAPIShares: OpenAPI and AsyncAPI describe shared things alike: schemas of one
// name, and the members of a trade, of a ticker and of the stream's query.
func TestAsyncAPIShares(t *testing.T) {
	d := readAsyncAPI(t)
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	var rest struct {
		Info struct {
			Version string `json:"version"`
		} `json:"info"`
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In, Description string
				Schema                map[string]any
			} `json:"parameters"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	// Other paths have other parameters.
	_ = json.Unmarshal(text, &rest)
	if d.Info.Version != apiVersion || rest.Info.Version != apiVersion {
		t.Errorf("versions %s and %s, want %s", d.Info.Version, rest.Info.Version, apiVersion)
	}
	shared := 0
	for name, schema := range d.Components.Schemas {
		if other := rest.Components.Schemas[name]; other != nil {
			shared++
			if !reflect.DeepEqual(schema, other) {
				t.Errorf("%s is another one in %s: copy it", name, sdk.Specification)
			}
		}
	}
	if shared < 10 {
		t.Errorf("only %d schemas are of both", shared)
	}
	own := []string{"channel", "type", "symbol", "epoch", "seq", "engine_seq", "ts"}
	for ours, theirs := range map[string]string{"Print": "Trade", "TickerSnapshot": "Ticker", "TickerUpdate": "Ticker"} {
		members, _ := d.Components.Schemas[ours]["properties"].(map[string]any)
		others, _ := rest.Components.Schemas[theirs]["properties"].(map[string]any)
		for name, schema := range members {
			if (ours == "Print" || !slices.Contains(own, name)) && !reflect.DeepEqual(schema, others[name]) {
				t.Errorf("%s.%s is another one than %s's", ours, name, theirs)
			}
		}
	}
	query := d.Operations["openStream"].Bindings.HTTP.Query.Properties
	for _, p := range rest.Paths[streamPath]["get"].Parameters {
		if p.In != "query" {
			continue
		}
		ours := maps.Clone(query[p.Name])
		delete(ours, "description")
		if !reflect.DeepEqual(ours, p.Schema) || query[p.Name]["description"] != p.Description {
			t.Errorf("the parameter %s is another one", p.Name)
		}
		delete(query, p.Name)
	}
	if len(query) > 0 {
		t.Errorf("REST does not have the parameters %v", query)
	}
}

// TestAsyncAPIParses: AsyncAPI's own parser reads the document without a warning.
func TestAsyncAPIParses(t *testing.T) {
	t.Parallel()
	const folder = "../internal/clients/asyncapi"
	node, err := exec.LookPath("node")
	if err != nil {
		runtest.SkipMissing(t, "Node", "make tools, or install Node 22 or newer: https://nodejs.org")
	}
	if _, err := os.Stat(folder + "/node_modules/@asyncapi/parser"); err != nil {
		runtest.SkipMissing(t, "npm's @asyncapi/parser", "npm --prefix internal/clients/asyncapi ci")
	}
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, folder+"/check.mjs", channelsFile).CombinedOutput()
	if messages := len(readAsyncAPI(t).Components.Messages); err != nil || !strings.HasPrefix(string(out), fmt.Sprint(messages, " messages")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// codeWord matches codes and most actions.
var codeWord = regexp.MustCompile(`^"[A-Z]+(_[A-Z]+)+"$`)

// TestAsyncAPIKnowsTheCode: the document has exactly the codes and actions in this
// package's source, and its limits and close codes.
func TestAsyncAPIKnowsTheCode(t *testing.T) {
	d := readAsyncAPI(t)
	var actions []string
	for a := subscribe; parseAction([]byte(a.String())) == a; a++ {
		actions = append(actions, a.String())
	}
	slices.Sort(actions)
	if got := d.enum(t, "Request", "action"); !slices.Equal(got, actions) {
		t.Errorf("actions %v, want %v", got, actions)
	}
	channels := d.Components.Schemas["Channel"]["enum"].([]any)
	for k := range numKinds {
		if !slices.Contains(channels, any(k.channel())) {
			t.Errorf("no channel %s", k.channel())
		}
	}
	codes := append(d.enum(t, "Error", "code"), d.enum(t, "Rejection", "code")...)
	// OpenAPI describes the refusals of an upgrade or a stream.
	refusals := []string{"INVALID_FIELD", "MISSING_FIELD", "OVERLOADED", "RATE_LIMITED", "UNKNOWN_SYMBOL"}
	known := slices.Concat(actions, codes, refusals)
	written := map[string]bool{}
	for _, word := range literals(t) {
		if written[word] = true; !slices.Contains(known, word) {
			t.Errorf("%s is not in the document", word)
		}
	}
	for _, code := range codes {
		if !written[code] {
			t.Errorf("the code %s is never sent", code)
		}
	}
	_, table, found := strings.Cut(d.Channels["rfq"].Description, "\n| code | reason |\n")
	guide, err := os.ReadFile("../docs/websocket.md")
	if err != nil {
		t.Fatal(err)
	}
	if !found || !strings.Contains(string(guide), "| code | reason |\n"+strings.TrimSpace(table)+"\n") {
		t.Errorf("the close codes are not those of docs/websocket.md:\n%s", table)
	}
	o := Options{}.withDefaults()
	for _, limit := range []string{
		fmt.Sprintf("(%d bytes)", MaxFrame), fmt.Sprintf("%d levels", maxDepthJSON), fmt.Sprintf("%d bytes each", maxText),
		fmt.Sprintf("%d channels and %d symbols", maxChannels, maxSymbols), "1,024 updates", fmt.Sprintf("(and %d KiB)", maxResumeBytes>>10),
		fmt.Sprintf("%d KiB wait", o.MaxPending>>10), fmt.Sprintf("nothing for %.0f s", o.SlowAfter.Seconds()),
		fmt.Sprintf("%d KiB of answers unread for %.0f s", maxBacklog>>10, backlogWithin.Seconds()), fmt.Sprintf("%d subscriptions", o.MaxSubscriptions),
		fmt.Sprintf("%d messages a second", o.MessagesPerSecond), fmt.Sprintf("%d connections, all clients together 10,000", o.MaxPerIP),
	} {
		if !strings.Contains(d.Info.Description, limit) {
			t.Errorf("the description does not say %q", limit)
		}
	}
	if MaxResume != 1024 || o.MaxConnections != 10_000 {
		t.Error("the description says another limit")
	}
}

// literals returns the string literals of this package's source that look like codes.
func literals(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && codeWord.MatchString(text.Value) {
				word, _ := strconv.Unquote(text.Value)
				all = append(all, word)
			}
			return true
		})
	}
	if len(all) < 20 {
		t.Fatalf("only %v stand in the source", all)
	}
	return all
}
