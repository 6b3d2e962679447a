package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// configCommand shows and checks the configuration. It starts nothing.
func configCommand(s *settings) *cobra.Command {
	var demo, changed bool
	cmd := groupCommand(cobra.Command{
		Use: "config", Short: "Show what is configured and where each value is from; check it; list the keys",
		Long: "Show the configuration that is in force, a value a line, with where it is from: a file's\n" +
			"line, a variable of the environment, a flag, or the default. Secrets are not shown: of a\n" +
			"node's URL only its host. blockdesk help configuration tells which source wins.",
		Example: "  blockdesk config\n" +
			"  blockdesk config --changed --set listen.fix=127.0.0.1:0\n" +
			"  blockdesk config keys listen",
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, sources, err := s.sourced(demo)
		if err != nil {
			return err
		}
		return showConfig(cmd.OutOrStdout(), settingsOf(&cfg, sources, changed), s.json)
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "as serve --demo would have it")
	cmd.Flags().BoolVar(&changed, "changed", false, "only what is no default")
	cmd.AddCommand(configCheckCommand(s), configKeysCommand(s))
	return cmd
}

// sourced is load with where each value is from.
func (s *settings) sourced(demo bool) (Config, configSources, error) {
	sources := configSources{}
	cfg, err := s.loadNoting(sources)
	if err != nil {
		return cfg, nil, err
	}
	if cfg.Demo || demo {
		before := cfg
		before.RFQ.Pairs = append([]PairConfig{}, cfg.RFQ.Pairs...) // fillDemo changes them in place
		cfg.Demo = true
		cfg.fillDemo()
		sources.addDemo(&before, &cfg)
	}
	return cfg, sources, nil
}

// settingLine is one value of the configuration.
type settingLine struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`
	text   string
}

// settingsOf lists the values; changed leaves defaults out.
func settingsOf(cfg *Config, sources configSources, changed bool) (out []settingLine) {
	secret := map[string]bool{}
	for i := range configKeys {
		secret[configKeys[i].key] = configKeys[i].secret
	}
	cfg.each(func(path, key string, v reflect.Value) {
		l := settingLine{Key: path, Value: v.Interface(), Source: sources.of(path), text: valueText(v)}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
			if v.Len() > 0 {
				return // its values come by themselves
			}
			l.text = "(none)"
		}
		if secret[key] && l.text != "" {
			l.text = hidden(l.text)
			l.Value = l.text
		}
		if !changed || l.Source != fromDefault {
			out = append(out, l)
		}
	})
	return out
}

// hidden stands for a secret. Of URLs it leaves the host, which is how logs and
// metrics name a node.
func hidden(text string) string {
	var hosts []string
	for _, part := range splitList(text) {
		u, err := url.Parse(part)
		if err != nil || u.Host == "" {
			return "(hidden)"
		}
		hosts = append(hosts, u.Scheme+"://"+u.Host)
	}
	return strings.Join(hosts, ",") + " (the rest is hidden)"
}

func showConfig(w io.Writer, lines []settingLine, asJSON bool) error {
	if asJSON {
		return printJSON(w, map[string]any{"ok": true, "settings": append([]settingLine{}, lines...)})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tFROM")
	for _, l := range lines {
		text := l.text
		if text == "" {
			text = `""`
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", l.Key, text, l.Source)
	}
	return t.Flush()
}

func configCheckCommand(s *settings) *cobra.Command {
	var demo bool
	cmd := &cobra.Command{
		Use: "check", Short: "Tell whether a service would start with this configuration", Args: cobra.NoArgs,
		Long: "Check the configuration as serve does, with the participants file, certificates and what\n" +
			"settlement needs; nothing is started and nothing is changed. Exit code 1 where it cannot be\n" +
			"used, with the key and the line. serve --check is the same.",
		Example: "  blockdesk config check --demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || demo
			cfg.fillDemo()
			return s.checked(cmd.OutOrStdout(), &cfg)
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "as serve --demo would have it")
	return cmd
}

// checked tells whether a service would start with a configuration.
func (s *settings) checked(w io.Writer, cfg *Config) error {
	if err := cfg.checkSettlement(); err != nil {
		return configError{err}
	}
	if _, err := cfg.participants(); err != nil {
		return configError{err}
	}
	if _, err := cfg.FIX.tls(); err != nil {
		return configError{err}
	}
	if s.json {
		return printJSON(w, map[string]any{"ok": true, "valid": true})
	}
	_, err := fmt.Fprintln(w, "configuration is valid")
	return err
}

// keyLine is one key in the list of all.
type keyLine struct {
	Key         string `json:"key"`
	Default     string `json:"default"`
	Unit        string `json:"unit,omitempty"`
	Range       string `json:"range"`
	About       string `json:"about"`
	Environment string `json:"environment,omitempty"` // empty: in the file alone
}

func configKeysCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "keys [PREFIX]", Short: "List every key with its default, unit and range", Args: cobra.MaximumNArgs(1),
		Long: "List every key of the configuration with its default, unit and range, or those that begin\n" +
			"with PREFIX. Keys with [] are of the items of a list, which only a file can have.",
		Example: "  blockdesk config keys\n  blockdesk config keys rfq.pairs",
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := append(args, "")[0]
			lines := keyLines(prefix)
			if len(lines) == 0 {
				var names []string
				for i := range configKeys {
					names = append(names, configKeys[i].key)
				}
				return usagef("no key begins with %q%s", prefix, didYouMean(prefix, names))
			}
			return showKeys(cmd.OutOrStdout(), lines, s.json)
		},
	}
}

func keyLines(prefix string) (lines []keyLine) {
	cfg := defaultConfig()
	defaults := map[string]string{}
	cfg.each(func(path, _ string, v reflect.Value) { defaults[path] = valueText(v) })
	leaves := map[string]reflect.Value{}
	collectLeaves(reflect.ValueOf(&cfg).Elem(), "", leaves)
	for i := range configKeys {
		k := &configKeys[i]
		if !strings.HasPrefix(k.key, prefix) {
			continue
		}
		l := keyLine{Key: k.key, Default: defaults[k.key], Unit: k.unit, Range: k.span(), About: k.about}
		if _, leaf := leaves[k.key]; leaf {
			l.Environment = variableOf(k.key)
		}
		lines = append(lines, l)
	}
	return lines
}

func showKeys(w io.Writer, lines []keyLine, asJSON bool) error {
	if asJSON {
		return printJSON(w, map[string]any{"ok": true, "keys": lines})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tDEFAULT\tUNIT\tRANGE\tWHAT IT IS")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Key, dash(l.Default), dash(l.Unit), l.Range, l.About)
	}
	return t.Flush()
}

// loadNoting is load that notes in sources where values are from.
func (s *settings) loadNoting(sources configSources) (Config, error) {
	cfg, err := readConfig(s.config, os.Environ(), s.sets, sources)
	if err == nil && s.data != "" {
		cfg.DataDir = s.data
		sources["data_dir"] = "--data"
	}
	if err != nil && !isUsage(err) {
		err = configError{err}
	}
	return cfg, err
}
