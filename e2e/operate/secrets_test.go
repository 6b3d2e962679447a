package operate

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/operator"
)

// Contents of each part of a node's URL, and input of strangers. Each is
// found wherever it goes.
const (
	secretUser, secretNodePassword = "SECRET-node-user", "SECRET-node-password"
	secretPath, secretQuery        = "SECRET-node-path", "SECRET-node-query"
	strangers                      = "STRANGER"
)

// leaks is a service with secrets in every place that has some, and what is known of
// them.
type leaks struct {
	t       *testing.T
	d       *programtest.Service
	secrets map[string]string // by what they are
	answers bytes.Buffer      // every answer that was sent
}

// startLeaks starts single-desk.yaml at the level debug, with its own key, a local
// operator, a message log, a node that answers and one that does not.
func startLeaks(t *testing.T) *leaks {
	t.Helper()
	hide := func(url string) string {
		return strings.Replace(url, "http://", "http://"+secretUser+":"+secretNodePassword+"@", 1) + "/" + secretPath + "?api-key=" + secretQuery
	}
	desk := fillDesk(t, hide(silentNode(t))+","+hide("http://127.0.0.1:1"))
	config := string(programtest.Must(os.ReadFile(desk.config)))
	config = regexp.MustCompile(`(?m)^operators:.*\n.*\n`).ReplaceAllString(config, "")
	config = strings.Replace(config, `signer_socket: `+filepath.Join(desk.folder, "socket"), `key_file: `+filepath.Join(desk.folder, "key.json"), 1)
	if err := os.WriteFile(desk.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &leaks{t: t, secrets: map[string]string{
		"node's user": secretUser, "node's password": secretNodePassword, "node's path": secretPath, "node's query": secretQuery,
		"FIX password": deployPassword, "hash of a password": "$argon2",
	}}
	l.d = programtest.StartServe(t, filepath.Join(desk.folder, "data"), "--config", desk.config, "--set", "urls.base_url=", "--set", "urls.api_url=",
		"--set", "log.level=debug", "--set", "fix.tls_cert_file=", "--set", "fix.tls_key_file=",
		"--set", "fix.message_log_dir="+filepath.Join(desk.folder, "messages"))
	l.secrets["operator's token"] = programtest.Must(operator.LocalToken(l.d.Data))
	var key []byte
	var numbers []int
	if err := json.Unmarshal(programtest.Must(os.ReadFile(filepath.Join(desk.folder, "key.json"))), &numbers); err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		key = append(key, byte(n))
	}
	seed := key[:32]
	l.secrets["key"], l.secrets["key in base58"] = string(seed), base58.Encode(key)
	l.secrets["key in hexadecimal"], l.secrets["key in base64"] = hex.EncodeToString(seed), base64.StdEncoding.EncodeToString(seed)[:40]
	l.secrets["key in numbers"] = strings.Trim(string(programtest.Must(json.Marshal(numbers[:8]))), "[]")
	return l
}

// request sends a request and returns the answer's body; errors end the test.
func (l *leaks) request(method, url, body string, headers ...string) []byte {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	text := programtest.Must(io.ReadAll(resp.Body))
	l.answers.Write(text)
	return text
}

// dvp gets a token by the handshake, and uses it and others.
func (l *leaks) dvp() {
	l.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	prove := func(signed string) (proof, signature string) { // of a new nonce, which is signed where signed is empty
		var challenge struct{ Nonce string }
		if err := json.Unmarshal(l.request("POST", l.d.At.Base+chaintest.PathHandshake, `{"pubkey":"`+base58.Encode(public)+`"}`), &challenge); err != nil || challenge.Nonce == "" {
			l.t.Fatal("no nonce: ", err)
		}
		signature = base58.Encode(ed25519.Sign(private, []byte(cmp.Or(signed, challenge.Nonce))))
		return `{"pubkey":"` + base58.Encode(public) + `","nonce":"` + challenge.Nonce + `","signature":"` + signature + `"}`, signature
	}
	wrong, _ := prove("another")
	l.request("POST", l.d.At.Base+chaintest.PathHandshake, wrong)
	proof, signature := prove("")
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	before := l.answers.Len()
	if err := json.Unmarshal(l.request("POST", l.d.At.Base+chaintest.PathHandshake, proof), &granted); err != nil || granted.AccessToken == "" {
		l.t.Fatalf("no token: %v %s", err, l.answers.Bytes()[before:])
	}
	l.answers.Truncate(before) // the one answer that may have it
	l.secrets["DvP token"], l.secrets["handshake's signature"] = granted.AccessToken, signature
	for _, token := range []string{granted.AccessToken, "SECRET-wrong-bearer"} {
		for _, path := range []string{"/rfq-native/dvp/build", "/rfq-native/dvp/submit"} {
			l.request("POST", l.d.At.Base+path, `{"build_id":"x"}`, "Authorization", "Bearer "+token)
			l.request("POST", l.d.At.Base+path, `{"build_id":`, "Authorization", "Bearer "+token)
		}
	}
	l.secrets["wrong DvP token"] = "SECRET-wrong-bearer"
}

// fix logs on with the right password and with a wrong one.
func (l *leaks) fix() {
	l.t.Helper()
	const wrong = "SECRET-wrong-password"
	l.secrets["wrong FIX password"] = wrong
	for password, good := range map[string]bool{deployPassword: true, wrong: false} {
		c, err := fixclient.Dial(l.t.Context(), fixclient.Options{
			Addr: l.d.At.FIX, SenderCompID: "FUND1", TargetCompID: "BLOCKDESK", Username: "fund1", Password: password, Timeout: runtest.HangTimeout,
		})
		if (err == nil) != good {
			l.t.Fatalf("good %v: %v", good, err)
		}
		if good {
			if err := c.Logout(); err != nil {
				l.t.Error(err)
			}
		}
	}
}

// strange sends what strangers do: requests whose parts would forge or colour a
// line of the log, and half of them broken.
func (l *leaks) strange() {
	l.t.Helper()
	forged := strangers + "%0Alevel=ERROR%20msg=forged%1B[31m"
	for _, base := range []string{l.d.At.Base, l.d.At.API, l.d.At.Admin} {
		for _, path := range []string{"/api/v1/market/depth?symbol=", "/?token=", "/metrics?x=", "/" + strangers + "/", "/desk/tickets?x="} {
			l.request("GET", base+path+forged, "", "User-Agent", strangers+"\tx", "X-Request-Id", strangers, "X-Forwarded-For", strangers, "Cookie", "SECRET-cookie")
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			l.t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nX-A: " + strangers + "\x1b[31m\nlevel=ERROR msg=forged\r\nAuthorization: SECRET-cookie\r\n\r\n")); err != nil {
			l.t.Error(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err == nil {
			_, _ = io.CopyN(&l.answers, conn, 64)
		}
		conn.Close()
	}
	l.secrets["cookie"] = "SECRET-cookie"
}

// operate commands with the token and with a wrong one, and returns a backup.
func (l *leaks) operate() (backup string) {
	l.t.Helper()
	l.secrets["wrong operator's token"] = "SECRET-wrong-token"
	for _, token := range []string{l.secrets["operator's token"], "SECRET-wrong-token"} {
		l.request("GET", l.d.At.Admin+"/desk/locks", "", "Authorization", "Bearer "+token)
		l.request("POST", l.d.At.Admin+"/desk/locks", `{"locked":true,"reason":"a test"}`, "Authorization", "Bearer "+token)
		l.request("POST", l.d.At.Admin+"/desk/locks", `{"locked":`, "Authorization", "Bearer "+token)
	}
	backup = filepath.Join(l.t.TempDir(), "copy")
	l.request("POST", l.d.At.Admin+"/desk/backup", `{"to":"`+backup+`"}`, "Authorization", "Bearer "+l.secrets["operator's token"])
	for _, page := range []string{"/metrics", "/readyz", "/healthz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		l.request("GET", l.d.At.Admin+page, "")
	}
	return backup
}

// found lists the secrets that a text has.
func (l *leaks) found(text []byte) (list []string) {
	for what, secret := range l.secrets {
		if at := bytes.Index(text, []byte(secret)); at >= 0 {
			list = append(list, fmt.Sprintf("the %s: …%.160q", what, text[max(0, at-80):]))
		}
	}
	return list
}

func (l *leaks) search(where string, text []byte) {
	l.t.Helper()
	for _, what := range l.found(text) {
		l.t.Errorf("%s has %s", where, what)
	}
}

// searchFolder looks for them in all files below a folder.
func (l *leaks) searchFolder(where, folder string) {
	l.t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files++
			l.search(where+": "+filepath.Base(path), programtest.Must(os.ReadFile(path)))
		}
		return err
	})
	if err != nil || files == 0 {
		l.t.Errorf("%s: %d files: %v", where, files, err)
	}
}

// No secret gets out of a service, however it is spoken to: not into the log at its
// most talkative, not into answers, metrics, profiles, the journal's dump, a backup
// or the FIX message log. Input of strangers cannot begin a line of the log.
func TestNoSecretGetsOut(t *testing.T) {
	t.Parallel()
	l := startLeaks(t)
	l.dvp()
	l.fix()
	l.strange()
	backup := l.operate()
	await.True(t, "a look for the nodes", func() bool {
		return strings.Contains(string(l.request("GET", l.d.At.Admin+"/metrics", "")), "blockdesk_settlement_node_slot{")
	})
	if err := l.d.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, dump := programtest.EndsWith(t, "journal", "dump", "--data", l.d.Data); code != 0 || !strings.Contains(dump, "a test") {
		t.Errorf("the journal's dump: %d, %.300s", code, dump)
	} else {
		l.search("the journal's dump", []byte(dump))
	}
	log := []byte(l.d.Out.String())
	l.search("the log", log)
	l.search("an answer", l.answers.Bytes())
	l.searchFolder("the backup", backup)
	l.searchFolder("the message log", filepath.Join(filepath.Dir(l.d.Data), "messages"))
	for _, phrase := range []string{"settlement enabled", "FIX logon refused", "operator token refused", "FIX session logged on"} {
		if !bytes.Contains(log, []byte(phrase)) {
			t.Errorf("the log does not have %q, so it proves nothing:\n%.2000s", phrase, log)
		}
	}
	key := programtest.Must(os.ReadFile(filepath.Join(filepath.Dir(l.d.Data), "key.json")))
	if n := len(l.found(append(key, programtest.Must(os.ReadFile(filepath.Join(l.d.Data, operator.TokenFile)))...))); n != 2 {
		t.Errorf("the search finds %d secrets where there are two", n)
	}
	if bytes.ContainsRune(log, 0x1b) {
		t.Error("the log has control characters of strangers")
	}
	for line := range bytes.Lines(log) {
		if line[0] == '{' && !json.Valid(line) || bytes.HasPrefix(line, []byte("level=")) {
			t.Errorf("a broken line of the log: %s", line)
		}
	}
}
