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

// tokenItem is a DvP token in an answer of the admin address.
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
		Use: "token", Short: "List and revoke the DvP tokens of clients",
		Long: "List and revoke the DvP tokens that clients got by the handshake. The service stores only hashes\n" +
			"of tokens: a token is named by its token_id. For an operator's token see\n" +
			"docs/configuration.md.",
	})
	var f operatorFlags
	f.add(cmd)
	revoke := &cobra.Command{
		Use: "revoke TOKEN_ID", Short: "Revoke a token for good", Args: cobra.ExactArgs(1),
		Long: "Revoke a token for good, restarts included. After the command returns every request with it is\n" +
			"refused. Its client can get another token once an hour.",
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
		Use: "list", Short: "List the valid tokens, oldest first", Args: cobra.NoArgs,
		Long:    "List the valid tokens, oldest first, with the public key of each.",
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
	flags.BoolVar(&all, "all", false, "expired and revoked tokens too, as long as they are stored")
	flags.StringVar(&after, "after", "", "continue a list after this item")
	flags.IntVar(&limit, "limit", 0, "list at most this many tokens (default: the service's limit)")
	return cmd
}

// checkTokenID refuses a text that cannot be a token_id, before it gets into a URL: it could
// be a secret, which the service would log.
func checkTokenID(text string) error {
	rest, ok := strings.CutPrefix(text, "K")
	if !ok || len(rest) != 16 || strings.Trim(rest, "0123456789abcdef") != "" {
		return usagef("not a token_id: want K and 16 hexadecimal digits, see blockdesk token list")
	}
	return nil
}

// showTokens prints a line for each token.
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
