package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// privateWord is a word that an engineer of the field would not know, or a way to begin a
// sentence that hides its subject. text matches it in comments, strings and documents;
// name lists the forms that identifiers may not have.
type privateWord struct {
	text  *regexp.Regexp
	name  string
	plain string
}

func word(text, name, plain string) privateWord {
	return privateWord{regexp.MustCompile(text), name, plain}
}

// begins matches at the beginning of a sentence.
const begins = `(?:^|[.:;!?] )`

var privateWords = []privateWord{
	word(`(?i)\b(?:tell|tells|told|untold)\b`, "tell told tells untold", "publish, report, return, notify, log"),
	word(begins+`(?:Who|Nobody who|One who|Those who)\b`, "", "name the subject: the client, the caller, the session"),
	word(`\b(?:of|to|by|for|from|as|with|than|that|which|when|where|if) who\b`, "who", "the client, the participant, the caller"),
	word(`(?i)\bdoors?\b`, "door doors", "gateway, or dependencies"),
	word(`(?i)\brosters?\b`, "roster", "session registry"),
	word(`(?i)\breigns?\b`, "reign", "term, term-start entry"),
	word(`(?i)\bunheard\b`, "unheard", "not received"),
	word(`(?i)\b(?:lender|lent|lends|loans?)\b`, "lender lent lend lends loan", "listener pool, gives"),
	word(`(?i)\bstrays?\b`, "stray strays", "unmatched payment"),
	word(`(?i)\bowed\b`, "owed", "refund due"),
	word(`(?i)\bdoubtful\b`, "doubtful", "outcome unknown"),
	word(`(?i)\blapsed?\b`, "lapse lapsed", "expired"),
	word(`(?i)\bdialects?\b`, "dialect", "encoding"),
	word(`(?i)\bbreach(?:es)?\b`, "breach", "protocol violation"),
	word(`(?i)\bwitness(?:es)?\b`, "witness", "agreeing node"),
	word(`(?i)\bintake\b`, "intake", "admission control"),
	word(`(?i)\bwishes\b`, "wishes", "request"),
	word(`(?i)\bparted\b`, "parted", "diverged"),
	word(`(?i)\bwhoever\b`, "whoever", "name the subject: the client, the caller, the session"),
	word(`(?i)\bfates?\b`, "fate fates", "outcome"),
	word(`\b[Nn]obody (?:who|that)\b`, "", "no client, no node, no caller"),
	word(`(?i)\b(?:blotters?|crowds?|shelf)\b`, "blotter crowd crowds shelf", "FIX session state, load clients, cache"),
	word(`\bOver when\b`, "", "Done when"),
	word(unwritten, "hop hops", "internal request, move"),
	word(unwritten, "fork forks", "diverge, diverged"),
	word(unwritten, "warm", "hot standby, uncounted"),
	word(unwritten, "carrier beats strips", "session, heartbeats, cached encodings"),
	word(unwritten, "patient urged worded", "retrying, a condition by its name, formatted"),
	word(unwritten, "belief", "majority"),
	word(unwritten, "appointment obstacle", "due time, problem"),
}

// unwritten matches no text: the word is plain English in a sentence and private as a name.
const unwritten = `\b\B`

// idioms are the field's own or plain English; they hide no private word.
var idioms = regexp.MustCompile(`(?i)cannot tell|\btells? (?:\S+ ){0,4}(?:apart|from)\b|\btells? (?:\S+ )?whether|tell damage from`)

// noSubject matches sentences of comments whose subject is no noun.
var noSubject = word(begins+`(?:One that|What)\b[^?]*$`, "", "name the subject with a noun")

// checkDocument checks the words of a document, line by line.
func (c *checker) checkDocument(name string, text []byte) {
	if path.Ext(name) != ".md" || strings.Contains("/"+name, "/testdata/") {
		return
	}
	for i, line := range strings.Split(string(text), "\n") {
		c.checkWords(name, i+1, line)
	}
}

// checkGoWords checks the words in the comments, strings and identifiers of a Go file.
// allow.txt can excuse a word in a file, for a public name that cannot change.
func (c *checker) checkGoWords(s *source) {
	for _, group := range s.file.Comments {
		for i, line := range strings.Split(group.Text(), "\n") {
			c.checkWords(s.name, s.line(group.Pos())+i, line)
			c.checkWord(s.name, s.line(group.Pos())+i, line, noSubject)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				c.checkWords(s.name, s.line(n.Pos()), strings.Trim(n.Value, "`\""))
			}
		case *ast.Ident:
			if n.Obj != nil && n.Obj.Pos() != n.Pos() {
				return true // a use; its declaration is reported
			}
			c.checkName(s, n)
		}
		return true
	})
}

func (c *checker) checkWords(name string, line int, text string) {
	for _, w := range privateWords {
		c.checkWord(name, line, text, w)
	}
}

func (c *checker) checkWord(name string, line int, text string, w privateWord) {
	found := strings.Trim(w.text.FindString(idioms.ReplaceAllString(text, "")), " .:;!?")
	if found != "" && !c.excused("word", name+":"+strings.ToLower(found)) {
		c.report(name, line, "word", fmt.Sprintf("%q: write %s", found, w.plain))
	}
}

func (c *checker) checkName(s *source, id *ast.Ident) {
	for _, part := range parts(id.Name) {
		for _, w := range privateWords {
			for _, private := range strings.Fields(w.name) {
				if part == private && !c.excused("word", s.name+":"+private) {
					c.report(s.name, s.line(id.Pos()), "word", fmt.Sprintf("the name %s: write %s", id.Name, w.plain))
				}
			}
		}
	}
}

// parts splits a Go name into its words, in lower case.
func parts(name string) []string {
	var out []string
	begin := 0
	for i, r := range name {
		if i > begin && (unicode.IsUpper(r) || r == '_') {
			out, begin = append(out, strings.ToLower(strings.Trim(name[begin:i], "_"))), i
		}
	}
	return append(out, strings.ToLower(strings.Trim(name[begin:], "_")))
}
