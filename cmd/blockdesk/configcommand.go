package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"blockdesk/internal/suggest"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// configCommand shows and checks the configuration.
func configCommand(s *settings) *cobra.Command {
	var asDemo, changed bool
	cmd := groupCommand(cobra.Command{
		Use: "config", Short: "Show and check the configuration, and list its keys",
		Long: "Show the configuration in force, a value a line, with its source: a line of the file, an\n" +
			"environment variable, a flag, or the default. Secrets are not shown: only the host of a\n" +
			"node's URL. See blockdesk help configuration for the order of the sources.",
		Example: "  blockdesk config\n" +
			"  blockdesk config --changed --set listen.fix=127.0.0.1:0\n" +
			"  blockdesk config keys listen",
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, sources, err := loadWithSources(s, asDemo)
		if err != nil {
			return err
		}
		return showConfig(cmd.OutOrStdout(), settingsOf(&cfg, sources, changed), s.json)
	}
	cmd.Flags().BoolVar(&asDemo, "demo", false, "as serve --demo would have it")
	cmd.Flags().BoolVar(&changed, "changed", false, "only values that differ from the default")
	cmd.AddCommand(configCheckCommand(s), configKeysCommand(s))
	return cmd
}

// loadWithSources returns the configuration, with the values of the demo if it is one.
func loadWithSources(s *settings, asDemo bool) (config.Config, config.Sources, error) {
	cfg, sources, err := s.loadAll()
	if err != nil {
		return cfg, nil, err
	}
	if cfg.Demo || asDemo {
		before := cfg
		before.RFQ.Pairs = append([]config.Pair{}, cfg.RFQ.Pairs...) // Fill changes them in place
		cfg.Demo = true
		demo.Fill(&cfg)
		sources.AddDemo(&before, &cfg)
	}
	return cfg, sources, nil
}

// settingLine is one configured value.
type settingLine struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Source string `json:"source"`
	text   string
}

// settingsOf lists the values; changed leaves defaults out.
func settingsOf(cfg *config.Config, sources config.Sources, changed bool) (out []settingLine) {
	secret := map[string]bool{}
	for i := range config.Keys {
		secret[config.Keys[i].Path] = config.Keys[i].Secret
	}
	cfg.Each(func(path, key string, v reflect.Value) {
		l := settingLine{Key: path, Value: v.Interface(), Source: sources.Of(path), text: config.ValueText(v)}
		if kind := v.Kind(); (kind == reflect.Slice || kind == reflect.Map) && v.Type().Elem().Kind() == reflect.Struct {
			if v.Len() > 0 {
				return // its items follow
			}
			l.text = "(none)"
		}
		if secret[key] && l.text != "" {
			l.text = redacted(l.text)
			l.Value = l.text
		}
		if !changed || l.Source != config.FromDefault {
			out = append(out, l)
		}
	})
	return out
}

// redacted replaces a secret. It leaves the hosts of URLs, as logs and metrics show them.
func redacted(text string) string {
	var hosts []string
	for _, part := range config.SplitList(text) {
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
	var asDemo bool
	cmd := &cobra.Command{
		Use: "check", Short: "Check whether a service would start with it", Args: cobra.NoArgs,
		Long: "Check the configuration as serve does, with the participants file, certificates and the key of\n" +
			"settlement. It starts and changes nothing. Exit code 1 if the configuration is invalid, with\n" +
			"the key and the line. serve --check is the same.",
		Example: "  blockdesk config check --demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			cfg.Demo = cfg.Demo || asDemo
			demo.Fill(&cfg)
			return checkConfig(s, cmd, &cfg)
		},
	}
	cmd.Flags().BoolVar(&asDemo, "demo", false, "as serve --demo would have it")
	return cmd
}

// checkConfig prints whether a service would start with a configuration.
func checkConfig(s *settings, cmd *cobra.Command, cfg *config.Config) error {
	if _, err := service.Check(cfg); err != nil {
		return configError{err}
	}
	return s.print(cmd, map[string]any{"valid": true}, "configuration is valid")
}

// keyLine is one key in the list of all.
type keyLine struct {
	Key         string `json:"key"`
	Default     string `json:"default"`
	Unit        string `json:"unit,omitempty"`
	Range       string `json:"range"`
	About       string `json:"about"`
	Environment string `json:"environment,omitempty"` // empty: in the file only
}

func configKeysCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "keys [PREFIX]", Short: "List every key with its default, unit and range", Args: cobra.MaximumNArgs(1),
		Long: "List every key of the configuration with its default, unit and range, or those that begin\n" +
			"with PREFIX. Keys with [] or <name> belong to the items of a list, which can only be set in the file.",
		Example: "  blockdesk config keys\n  blockdesk config keys rfq.pairs",
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := append(args, "")[0]
			lines := keyLines(prefix)
			if len(lines) == 0 {
				var names []string
				for i := range config.Keys {
					names = append(names, config.Keys[i].Path)
				}
				return usagef("no key begins with %q%s", prefix, suggest.Suffix(prefix, names))
			}
			return showKeys(cmd.OutOrStdout(), lines, s.json)
		},
	}
}

func keyLines(prefix string) (lines []keyLine) {
	cfg := config.Default()
	defaults := map[string]string{}
	cfg.Each(func(path, _ string, v reflect.Value) { defaults[path] = config.ValueText(v) })
	leaves := cfg.Leaves()
	for i := range config.Keys {
		k := &config.Keys[i]
		if !strings.HasPrefix(k.Path, prefix) {
			continue
		}
		l := keyLine{Key: k.Path, Default: cmp.Or(defaults[k.Path], k.Default), Unit: k.Unit, Range: k.Range(), About: k.About}
		if _, leaf := leaves[k.Path]; leaf {
			l.Environment = config.Variable(k.Path)
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
	fmt.Fprintln(t, "KEY\tDEFAULT\tUNIT\tRANGE\tDESCRIPTION")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.Key, dash(l.Default), dash(l.Unit), l.Range, l.About)
	}
	return t.Flush()
}
