package admin

import (
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
)

// TestDeskMetrics: each metric has its name; without a desk there is none.
func TestDeskMetrics(t *testing.T) {
	a := startAdmin(t, Options{Desk: DeskSources{
		Stats: func() desk.Stats {
			return desk.Stats{Waiting: 1, Keys: 2, Cursor: 3, Busy: 4, Timeouts: 5, Replayed: 6, Conflicts: 7}
		},
		View: func() *rfq.View {
			v := gatewaytest.FixedView()
			v.Pairs[1].Anchor, v.Pairs[1].AnchorAt = 0, 0
			return v
		},
		Instruments: gatewaytest.NewBooks(t).Set, Now: func() int64 { return gatewaytest.ViewTime + int64(5*time.Minute) },
	}})
	_, body := gatewaytest.Do(t, a.Addr(), "GET", "/metrics", "Connection: close\r\n")
	for name, value := range map[string]string{
		"requests_waiting": "1", "answers_kept": "2", "cursor_seq": "3", "busy_total": "4", "timeouts_total": "5",
		"replayed_total": "6", "conflicts_total": "7", "tickets_open": "4", "reserved_usd": "250", "locks": "1",
		`price_age_seconds{of="SLUSD/USDC"}`: "360", `price_age_seconds{of="92C/SLUSD"}`: "+Inf", `price_age_seconds{of="SOL"}`: "360",
		`price_unusable{of="SLUSD/USDC"}`: "0", `price_unusable{of="92C/SLUSD"}`: "1", `price_unusable{of="SOL"}`: "1",
	} {
		if !strings.Contains(string(body), "\nblockdesk_desk_"+name+" "+value+"\n") {
			t.Errorf("/metrics lacks blockdesk_desk_%s %s", name, value)
		}
	}
	_, body = gatewaytest.Do(t, startAdmin(t, Options{}).Addr(), "GET", "/metrics", "Connection: close\r\n")
	if strings.Contains(string(body), "blockdesk_desk_") {
		t.Error("a metric without a source")
	}
}
