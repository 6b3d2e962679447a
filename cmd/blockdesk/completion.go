package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// completionCommand prints the completion script of a shell.
func completionCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "completion", Short: "Print the script that completes commands in a shell",
		Long: "Print the script that completes commands, flags and their values in bash, zsh, fish or\n" +
			"PowerShell: pairs, rails, configuration keys, and the tickets, claims, tokens and sessions of a\n" +
			"running service.",
		Example: "  source <(blockdesk completion bash)",
	})
	for _, shell := range []struct {
		name, install string
		script        func(*cobra.Command, *bytes.Buffer) error
	}{
		{
			"bash", "  source <(blockdesk completion bash)   # in this shell; in ~/.bashrc for every one",
			func(root *cobra.Command, b *bytes.Buffer) error {
				err := root.GenBashCompletionV2(b, true)
				b.WriteString(bashWords)
				return err
			},
		},
		{
			"zsh", "  source <(blockdesk completion zsh)    # in this shell; in ~/.zshrc, after compinit, for every one",
			func(root *cobra.Command, b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		},
		{
			"fish", "  blockdesk completion fish | source    # in this shell; in ~/.config/fish/config.fish for every one",
			func(root *cobra.Command, b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
		},
		{
			"powershell", "  blockdesk completion powershell | Out-String | Invoke-Expression   # also in $PROFILE",
			func(root *cobra.Command, b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) },
		},
	} {
		cmd.AddCommand(&cobra.Command{
			Use: shell.name, Short: "The script for " + shell.name, Args: cobra.NoArgs,
			Long: "Print the script that completes commands in " + shell.name + ". With --json it is the member script.", Example: shell.install,
			RunE: func(cmd *cobra.Command, _ []string) error {
				var b bytes.Buffer
				if err := shell.script(cmd.Root(), &b); err != nil {
					return err
				}
				return s.print(cmd, map[string]any{"shell": shell.name, "script": b.String()}, strings.TrimSuffix(b.String(), "\n"))
			},
		})
	}
	return cmd
}
