package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// tokenItem is a DvP token as the admin address tells it.
type tokenItem struct {
	ID        string `json:"token_id"`
	Key       string `json:"pubkey"`
	State     string `json:"state"`
	IssuedAt  string `json:"issued_at"`
	ExpiresAt string `json:"expires_at"`
	RevokedAt string `json:"revoked_at"`
	RevokedBy string `json:"revoked_by"`
}

type (
	tokenAnswer struct {
		Token tokenItem `json:"token"`
	}
	tokensAnswer struct {
		Tokens []tokenItem `json:"tokens"`
		Next   string      `json:"next"`
	}
)

func tokenCommand(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use: "token", Short: "List and revoke the DvP tokens that clients have",
		Long: "List and revoke the DvP tokens that clients have got by the handshake. The service has no\n" +
			"token itself, only hashes: a token is named by its token_id. The operator's own token is\n" +
			"another thing, see docs/configuration.md.",
	})
	var f operatorFlags
	f.add(cmd)
	revoke := &cobra.Command{
		Use: "revoke TOKEN_ID", Short: "End a token for good: from now on, and after a restart too", Args: cobra.ExactArgs(1),
		Long: "End a token for good. When the command returns, no request with it is taken any more. Its client\n" +
			"may get another when the hour of his address is over.",
		Example: "  blockdesk token revoke K18e997c54c02cd15",
		RunE: operatorCommand(s, &f, func(args []string) (string, any, error) {
			return "/desk/tokens/" + args[0] + "/revoke", struct{}{}, checkTokenID(args[0])
		}, func(w io.Writer, a *tokenAnswer) error {
			return showTokens(w, &tokensAnswer{Tokens: []tokenItem{a.Token}})
		}),
	}
	cmd.AddCommand(tokenListCommand(s, &f), revoke)
	return cmd
}

func tokenListCommand(s *settings, f *operatorFlags) *cobra.Command {
	var all bool
	var after string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens that are not over, oldest first", Args: cobra.NoArgs,
		Long:    "List the tokens that are not over, oldest first, with the key that each is bound to.",
		Example: "  blockdesk token list\n  blockdesk token list --all --limit 20",
		RunE: operatorCommand(s, f, func([]string) (string, any, error) {
			query := url.Values{}
			if all {
				query.Set("all", "true")
			}
			if after != "" {
				query.Set("after", after)
			}
			if limit != 0 {
				query.Set("limit", strconv.Itoa(limit))
			}
			return "/desk/tokens?" + query.Encode(), nil, nil
		}, showTokens),
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "those that are over too, as long as the log has them")
	flags.StringVar(&after, "after", "", "go on from where a list ended")
	flags.IntVar(&limit, "limit", 0, "tokens, at most (default: the service's)")
	return cmd
}

// checkTokenID keeps what cannot be a token_id out of a URL, and a secret out of
// the service's logs.
func checkTokenID(text string) error {
	rest, ok := strings.CutPrefix(text, "K")
	if !ok || len(rest) != 16 || strings.Trim(rest, "0123456789abcdef") != "" {
		return usagef("this is no token_id: it is K and 16 hexadecimal digits, see blockdesk token list")
	}
	return nil
}

// showTokens prints one line a token.
func showTokens(w io.Writer, a *tokensAnswer) error {
	if len(a.Tokens) == 0 {
		_, err := fmt.Fprintln(w, "no tokens")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOKEN\tSTATE\tPUBKEY\tISSUED\tEXPIRES\tREVOKED\tBY")
	for i := range a.Tokens {
		k := &a.Tokens[i]
		revoked := "-"
		if k.RevokedAt != "" {
			revoked = shortTime(k.RevokedAt)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			k.ID, k.State, k.Key, shortTime(k.IssuedAt), shortTime(k.ExpiresAt), revoked, dash(k.RevokedBy))
	}
	if a.Next != "" {
		fmt.Fprintf(t, "more: --after %s\n", a.Next)
	}
	return t.Flush()
}
