package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"blockdesk/service/operator"
)

// maxReady bounds the answer of /readyz, in bytes.
const maxReady = 64 << 10

// running examines the service of the data folder, if one runs.
func running(ctx context.Context, o Options) []Finding {
	at, err := operator.ReadAddresses(o.Config.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{{Check: "service", State: Skipped, Text: "none has run on " + o.Config.DataDir}}
	} else if err != nil {
		return []Finding{{Check: "service", State: Problem, Text: err.Error()}}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	ready, answers := readiness(ctx, at.Admin)
	if !answers || !o.Config.RFQ.Enabled {
		return []Finding{ready}
	}
	return append([]Finding{ready}, pricesOf(ctx, o.Config.DataDir, at.Admin)...)
}

// readiness asks a service for its conditions. answers is false if it does not run.
func readiness(ctx context.Context, admin string) (f Finding, answers bool) {
	f = Finding{Check: "service", State: OK, Text: "ready"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"/readyz", nil)
	if err != nil {
		return Finding{Check: "service", State: Problem, Text: err.Error()}, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Finding{Check: "service", State: Skipped, Text: "none answers at " + admin}, false
	}
	defer resp.Body.Close()
	var answer struct {
		OK     bool `json:"ok"`
		Checks []struct {
			Name  string `json:"name"`
			OK    bool   `json:"ok"`
			Error string `json:"error"`
		} `json:"checks"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReady)).Decode(&answer); err != nil {
		return Finding{Check: "service", State: Problem, Text: fmt.Sprintf("%s/readyz: %v", admin, err)}, false
	}
	var failing []string
	for _, c := range answer.Checks {
		if !c.OK {
			failing = append(failing, c.Name+": "+c.Error)
		}
	}
	switch {
	case !answer.OK:
		f.State, f.Text = Problem, "not ready: "+strings.Join(failing, "; ")
	case len(failing) > 0:
		f.State, f.Text = Warning, "ready, without "+strings.Join(failing, "; ")
	default:
		return f, true
	}
	f.Do = "docs/runbook.md has each condition"
	return f, true
}

// pricesOf asks a service for the prices of its desk.
func pricesOf(ctx context.Context, dataDir, admin string) []Finding {
	token, err := operator.LocalToken(dataDir)
	if err != nil {
		return []Finding{{Check: "prices", State: Skipped, Text: "the operator token of this machine cannot be read"}}
	}
	client := operator.Client{URL: admin, Token: token, HTTP: http.DefaultClient}
	body, err := client.Do(ctx, "/desk/prices", nil)
	var answer struct {
		Prices []price `json:"prices"`
	}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil {
		return []Finding{{Check: "prices", State: Warning, Text: err.Error()}}
	}
	return []Finding{judgePrices(answer.Prices)}
}

// price is a price of GET /desk/prices.
type price struct {
	Pair  string  `json:"pair"`
	Rail  string  `json:"rail"`
	Price *string `json:"price_usd"`
	Stale bool    `json:"stale"`
}

func judgePrices(list []price) Finding {
	f := Finding{Check: "prices", State: OK, Text: fmt.Sprintf("%d prices are fresh", len(list))}
	var old []string
	for _, p := range list {
		if p.Stale || p.Price == nil {
			old = append(old, p.Pair+p.Rail) // one of the two is empty
		}
	}
	if len(old) > 0 {
		f.State, f.Text = Warning, "missing or too old: "+strings.Join(old, ", ")
		f.Do = "blockdesk price set; nothing is sold by such a price"
	}
	return f
}
