package main

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// completion is a completer and a directive for the shell.
type completion struct {
	values completer // nil: none
	then   cobra.ShellCompDirective
}

func (c completion) flag(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if c.values == nil {
		return nil, c.then
	}
	return c.values(cmd, typed), c.then
}

// arg completes the first argument: no command completes more.
func (c completion) arg(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.flag(cmd, args, typed)
}

const (
	noFiles = cobra.ShellCompDirectiveNoFileComp
	folders = cobra.ShellCompDirectiveFilterDirs
	noSpace = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
)

func words(list ...string) completion {
	return completion{func(*cobra.Command, string) []string { return list }, noFiles}
}

// files completes files with these extensions; without extensions all files.
func files(endings ...string) completion {
	if len(endings) == 0 {
		return completion{nil, cobra.ShellCompDirectiveDefault}
	}
	return completion{func(*cobra.Command, string) []string { return endings }, cobra.ShellCompDirectiveFilterFileExt}
}

// flagValues returns the completions of flags by name, for all commands. A flag without one
// takes a free text or a number.
func flagValues(s *settings) map[string]completion {
	return map[string]completion{
		"config": files("yaml", "yml"), "data": {nil, folders}, "set": {completeSettings, noSpace}, "role": words(config.RoleAll, config.RoleNode, config.RoleFollower),
		"pair": {completePairs(s), noFiles}, "rail": words(railNames()...), "rails": {completeRails, noSpace},
		"kind":    words(moneyFailing, moneyOutcomeUnknown, moneyRefunds, moneyUnmatched),
		"comp-id": {completeSessions(s), noFiles}, "to": {completeSessions(s), noFiles},
		"book":       words("ladder", "naive"),
		"durability": words("sync", "interval"),
		"day":        words("amzn\tlevel 5, the whole day", "aapl\tlevel 10, 998 rows", "own\tmade rows, no file needed"),
		"part":       words(benchParts()...),
		"type":       words("A\tLogon", "D\tNewOrderSingle", "8\tExecutionReport", "F\tOrderCancelRequest", "G\tOrderCancelReplaceRequest"),
		"folder":     {nil, folders}, "dir": {nil, folders}, "testdata": {nil, folders},
		"key": files(), "socket": files(), "record": files(), "password-file": files(), "sequence-file": files(),
		"ca": files("pem", "crt"), "cert": files("pem", "crt"), "cert-key": files("pem", "key"), "html": files("html"),
	}
}

// argumentValues returns the completions of the first argument by command path.
func argumentValues(s *settings) map[string]completion {
	return map[string]completion{
		"blockdesk ticket amend": {completeTickets(s), noFiles}, "blockdesk ticket withdraw": {completeTickets(s), noFiles},
		"blockdesk money abandon": {completeMoney(s, "claim_id", moneyFailing), noFiles}, "blockdesk money release": {completeMoney(s, "claim_id", moneyOutcomeUnknown), noFiles},
		"blockdesk money refunded": {completeMoney(s, "l1_signature", moneyRefunds), noFiles}, "blockdesk money resolve": {completeMoney(s, "l1_signature", moneyUnmatched), noFiles},
		"blockdesk token revoke": {completeTokens(s), noFiles},
		"blockdesk fix kick":     {completeSessions(s), noFiles}, "blockdesk fix reset-seq": {completeSessions(s), noFiles},
		"blockdesk cluster remove": {completeNodes(s), noFiles},
		"blockdesk config keys":    {completeKeys, noFiles},
		"blockdesk backup":         {nil, folders}, "blockdesk restore": {nil, folders}, "blockdesk fix cert": {nil, folders},
		"blockdesk fix log": files("log"), "blockdesk key new": files(), "blockdesk key show": files(),
	}
}

// completeValues registers the completions of arguments and flags of the tree.
func completeValues(s *settings, cmd *cobra.Command) {
	flags, arguments := flagValues(s), argumentValues(s)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		seen := map[*pflag.Flag]bool{}
		register := func(f *pflag.Flag) {
			c, known := flags[f.Name]
			if !known {
				c = completion{nil, noFiles}
			}
			if !seen[f] && f.Value.Type() != "bool" {
				if err := cmd.RegisterFlagCompletionFunc(f.Name, c.flag); err != nil {
					panic(err) // cannot happen: the flag exists
				}
			}
			seen[f] = true
		}
		cmd.LocalNonPersistentFlags().VisitAll(register)
		cmd.PersistentFlags().VisitAll(register)
		if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
			c, known := arguments[cmd.CommandPath()]
			if !known {
				c = completion{nil, noFiles}
			}
			cmd.ValidArgsFunction = c.arg
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cmd)
}

// configured returns the configuration for a completion: the defaults if it is invalid.
func configured(s *settings) config.Config {
	cfg, err := s.load()
	if err != nil {
		return config.Default()
	}
	return cfg
}

func completePairs(s *settings) completer {
	return func(*cobra.Command, string) (out []string) {
		cfg := configured(s)
		for i := range cfg.Instruments {
			out = append(out, cfg.Instruments[i].Symbol)
		}
		return out
	}
}

func railNames() (out []string) {
	for r := market.RailUSDC; r < market.RailCount; r++ {
		out = append(out, r.String())
	}
	return out
}

// completeRails completes a list of rails: each once, after a comma.
func completeRails(_ *cobra.Command, typed string) (out []string) {
	before := ""
	if i := strings.LastIndex(typed, ","); i >= 0 {
		before = typed[:i+1]
	}
	for _, rail := range railNames() {
		if !slices.Contains(strings.Split(before, ","), rail) {
			out = append(out, before+rail)
		}
	}
	return out
}

// completeSettings completes KEY=VALUE: keys, and after = the words of a key.
func completeSettings(_ *cobra.Command, typed string) (out []string) {
	cfg := config.Default()
	leaves := cfg.Leaves()
	name, _, value := strings.Cut(typed, "=")
	for i := range config.Keys {
		k := &config.Keys[i]
		leaf, ok := leaves[k.Path]
		switch {
		case !ok || value && k.Path != name:
		case !value:
			out = append(out, cobra.CompletionWithDesc(k.Path+"=", k.About))
		case leaf.Kind() == reflect.Bool:
			out = append(out, name+"=true", name+"=false")
		default:
			for _, word := range k.Words {
				out = append(out, name+"="+word)
			}
		}
	}
	return out
}

func completeKeys(*cobra.Command, string) (out []string) {
	for i := range config.Keys {
		out = append(out, cobra.CompletionWithDesc(config.Keys[i].Path, config.Keys[i].About))
	}
	return out
}

// query reads an answer of the running service into v. Without one v stays empty.
func query(s *settings, cmd *cobra.Command, path string, v any) {
	var f operatorFlags
	if flag := cmd.Flag("admin"); flag != nil {
		f.admin = flag.Value.String()
	}
	if flag := cmd.Flag("operator-token"); flag != nil {
		f.token = flag.Value.String()
	}
	client, err := f.dial(s)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	_ = client.Get(ctx, path, v) // no values are offered
}

func completeTickets(s *settings) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		var a operator.TicketsAnswer
		query(s, cmd, "/desk/tickets", &a)
		for i := range a.Tickets {
			t := &a.Tickets[i]
			out = append(out, cobra.CompletionWithDesc(t.OrderID, t.Pair+" "+t.State+" "+t.Label))
		}
		return out
	}
}

// completeMoney completes claims or payments of one list of money.
func completeMoney(s *settings, member, kind string) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		var a moneyAnswer
		query(s, cmd, "/desk/money?kind="+kind, &a)
		for _, m := range a.Lists[kind].Items {
			id := m.Claim
			if member == "l1_signature" {
				id = m.Signature
			}
			if id != "" {
				out = append(out, cobra.CompletionWithDesc(id, m.Amount+" "+m.Rail+" "+m.Reason))
			}
		}
		return out
	}
}

func completeTokens(s *settings) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		var a tokensAnswer
		query(s, cmd, "/desk/tokens", &a)
		for i := range a.Tokens {
			out = append(out, cobra.CompletionWithDesc(a.Tokens[i].ID, a.Tokens[i].Key))
		}
		return out
	}
}

func completeSessions(s *settings) completer {
	return func(cmd *cobra.Command, _ string) (out []string) {
		var a fixSessionsAnswer
		query(s, cmd, "/desk/fix/sessions", &a)
		for i := range a.Sessions {
			out = append(out, cobra.CompletionWithDesc(a.Sessions[i].CompID, a.Sessions[i].Participant+", "+a.Sessions[i].State))
		}
		return out
	}
}
