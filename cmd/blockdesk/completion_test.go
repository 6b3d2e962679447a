package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// completed asks the program, as a shell's script does, what may stand behind these
// words; descriptions are left out.
func completed(t *testing.T, words ...string) (values []string, errOut string) {
	t.Helper()
	var out, printed strings.Builder
	if exit := execute(t.Context(), append([]string{"__complete"}, words...), &out, &printed); exit != exitDone {
		t.Errorf("completing %q: exit code %d: %s", words, exit, printed.String())
	}
	for line := range strings.Lines(out.String()) {
		value, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if value != "" && !strings.HasPrefix(value, ":") {
			values = append(values, value)
		}
	}
	return values, printed.String()
}

// TestCompletion: commands, flags and values are completed, from the program, the
// configuration and a running service.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := programtest.StartDemo(t)
	await.True(t, "the demo's tickets", func() bool {
		got, _ := completed(t, "ticket", "withdraw", "--data", d.Data, "")
		return len(got) > 0
	})
	stub := httptest.NewServer(http.HandlerFunc(playSettling))
	defer stub.Close()
	for line, want := range map[string][]string{
		"tick|":                      {"ticket"},
		"ticket |":                   {"amend", "list", "post", "withdraw"},
		"ticket post --pa|":          {"--pair"},
		"ticket post --pair |":       {"92C/SLUSD", "SLUSD/USDC"},
		"ticket post --rails USDC,|": {"USDC,SOL"},
		"lock --rail |":              {"SOL", "USDC"},
		"--set log.le|":              {"log.level="},
		"--set log.level=|":          {"log.level=debug", "log.level=error", "log.level=info", "log.level=warn"},
		"--set demo=|":               {"demo=false", "demo=true"},
		"config keys mirror.every|":  {"mirror.every_ms"},
		"money list --kind d|":       {moneyOutcomeUnknown},
		"--config |":                 {"yaml", "yml"},
		"help exit|":                 {"exit-codes"},
		"completion |":               {"bash", "fish", "powershell", "zsh"},
		"ticket withdraw --data " + d.Data + " T1|":                   {"T1"},
		"fix kick --data " + d.Data + " |":                            {"GUEST", "MAKER", "TAKER"},
		"money release --admin " + stub.URL + " --operator-token t |": {"C1"},
		"ticket withdraw T1 --data " + d.Data + " |":                  nil,
	} {
		words := strings.Split(strings.TrimSuffix(line, "|"), " ")
		offers := func() []string {
			got, _ := completed(t, words...)
			slices.Sort(got)
			got = slices.DeleteFunc(got, func(v string) bool {
				typed := words[len(words)-1]
				return !strings.HasPrefix(v, typed) || typed == "" && strings.HasPrefix(v, "-") // required flags
			})
			if words[len(words)-1] == "T1" {
				got = got[:min(len(got), 1)] // and T10, where the demo has so many
			}
			return got
		}
		// A service that does not answer within completeWithin is left out.
		await.Value(t, fmt.Sprintf("%s to be completed as %q", line, want), offers, func(got []string) bool { return slices.Equal(got, want) })
	}
}

// TestCompletionWithoutService: where no service runs, or one that does not answer,
// nothing is offered, nothing is said, and a person does not wait for an answer.
func TestCompletionWithoutService(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer slow.Close()
	defer close(held)
	for _, words := range [][]string{
		{"ticket", "withdraw", "--data", t.TempDir(), ""},
		{"ticket", "withdraw", "--admin", "127.0.0.1:1", "--operator-token", "t", ""},
		{"ticket", "withdraw", "--admin", slow.URL, "--operator-token", "t", ""},
		{"ticket", "withdraw", "--config", filepath.Join(t.TempDir(), "none.yaml"), ""},
	} {
		got, printed := completed(t, words...)
		if len(got) > 0 || strings.Contains(printed, "blockdesk:") {
			t.Errorf("%q: %q, %s", words, got, printed)
		}
	}
}

// TestCompletionInShells has real shells complete by the script.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "blockdesk")); err != nil {
		t.Fatal(err)
	}
	for shell, script := range map[string]string{
		// The behaviour of bash for Tab, without bash-completion: it splits at = and :, and
		// wants what stands behind the last of them.
		"bash": `compopt() { :; }
source <(blockdesk completion bash)
behind() {
	want=$1 COMP_LINE=$2; shift 2
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_POINT=${#COMP_LINE} COMP_TYPE=9
	__start_blockdesk
	[[ ${COMPREPLY[*]} == "$want"* ]] || { echo "$COMP_LINE: ${COMPREPLY[*]}"; exit 1; }
}
behind 'debug info warn error' 'blockdesk config --set log.level=' blockdesk config --set log.level = ''
behind debug 'blockdesk config --set=log.level=de' blockdesk config --set = log.level = de
behind --rail 'blockdesk lock --admin http://127.0.0.1:1 --rai' blockdesk lock --admin http : //127.0.0.1 : 1 --rai
behind config 'blockdesk conf' blockdesk conf
behind withdraw 'blockdesk ticket wi' blockdesk ticket wi
echo "${COMPREPLY[@]}"`,
		"zsh":  `autoload -U compinit && compinit -u; source <(blockdesk completion zsh) && whence -w _blockdesk && blockdesk __complete ticket wi`,
		"fish": `blockdesk completion fish | source; complete -C 'blockdesk ticket wi'`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				runtest.SkipMissing(t, shell, "apt-get install "+shell)
			}
			ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, "-c", script)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "withdraw") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
