package session

import (
	"sync/atomic"
	"time"

	"blockdesk/internal/ratelimit"
)

// rates are what a session may do in a second. Above messages it gets business rejects,
// above flood its connection ends; resends limits its ResendRequests.
type rates struct{ messages, flood, resends ratelimit.Rate }

func newRates(perSecond int) rates {
	return rates{
		messages: ratelimit.NewRate(perSecond, time.Second, perSecond), flood: ratelimit.NewRate(hardRate*perSecond, time.Second, hardRate*perSecond),
		resends: ratelimit.NewRate(1, time.Second, MaxResends),
	}
}

// limits count what a session has used of its rates.
type limits struct {
	messages, resends ratelimit.Bucket
	strikes           int           // messages over the rate
	struck            time.Time     // last of them
	limited           atomic.Uint64 // messages over the rate, since the start
}

// over counts a message and reports whether it is above the rate. ended means that more
// than most messages in a row were, so that the session must end.
func (l *limits) over(now time.Time, rate ratelimit.Rate, most int) (over, ended bool) {
	if l.messages.Take(now.UnixNano(), rate) {
		if l.strikes > 0 && now.Sub(l.struck) > time.Second {
			l.strikes = 0
		}
		return false, false
	}
	l.limited.Add(1)
	l.struck = now
	l.strikes++
	return true, l.strikes > most
}
