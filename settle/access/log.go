package access

import (
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/persist/kv"
)

// Entry is a token in the log. Times are Unix nanoseconds.
type Entry struct {
	ID        string
	Key       solana.Address
	IssuedAt  int64
	ExpiresAt int64
	RevokedAt int64  // 0 = not revoked
	RevokedBy string // "" = not revoked
}

func entryOf(i *issue, r *revocation) Entry {
	return Entry{
		ID: idOf(i.at), Key: i.key, IssuedAt: i.at, ExpiresAt: i.ends,
		RevokedAt: r.at, RevokedBy: r.by,
	}
}

// Revoke ends a token in the name of by, 1 to MaxName bytes, and returns its entry. A
// second Revoke changes nothing. After Revoke returns nil the token is not admitted,
// even after a restart. Errors: [ErrName], [ErrUnknownToken], [ErrLayout], errors of
// the store; after such an error this process no longer admits the token, but the
// next process does: repeat the call.
func (a *Access) Revoke(id, by string) (Entry, error) {
	if by == "" || len(by) > MaxName {
		return Entry{}, fmt.Errorf("%w: it has %d bytes", ErrName, len(by))
	}
	at, ok := parseID(id)
	if !ok {
		return Entry{}, ErrUnknownToken
	}
	a.writer.Lock()
	defer a.writer.Unlock()
	i, ok, err := readIssue(a.kv, at)
	if err != nil {
		return Entry{}, fmt.Errorf("access: token %s: %w", id, err)
	}
	if !ok {
		return Entry{}, fmt.Errorf("%w: %s", ErrUnknownToken, id)
	}
	a.forget(i.hash)
	r, revoked, err := readRevocation(a.kv, at)
	if err != nil {
		return Entry{}, fmt.Errorf("access: token %s: %w", id, err)
	}
	if revoked {
		return entryOf(&i, &r), nil
	}
	r = revocation{at: a.clock.now(), by: by}
	err = a.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(tokenKey(keyRevocation, at), r.value())
	}, true)
	if err != nil {
		return Entry{}, fmt.Errorf("access: revoke %s: %w", id, err)
	}
	return entryOf(&i, &r), nil
}

// List returns tokens in the order of their issue, revoked ones included: at most
// limit, 1 to MaxPage, that come after the id after, which need not exist and may be
// empty. Expired tokens are included with ended. It reads the store. Errors:
// [ErrUnknownToken] if after is no id, [ErrLayout], errors of the store.
func (a *Access) List(after string, limit int, ended bool) ([]Entry, error) {
	var from int64
	if after != "" {
		at, ok := parseID(after)
		if !ok {
			return nil, ErrUnknownToken // without the text, which may be a secret
		}
		from = at + 1
	}
	now := a.clock.now()
	if !ended {
		from = max(from, now-int64(TokenLifetime))
	}
	limit = min(limit, MaxPage)
	var list []Entry
	err := eachIssue(a.kv, from, func(i *issue) error {
		if !ended && i.ends <= now {
			return nil
		}
		r, _, err := readRevocation(a.kv, i.at)
		if list = append(list, entryOf(i, &r)); err == nil && len(list) >= limit {
			return kv.ErrStop
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("access: list: %w", err)
	}
	return list, nil
}

// maintain sweeps, stores the time, and deletes what is older than Retention.
func (a *Access) maintain() error {
	a.writer.Lock()
	defer a.writer.Unlock()
	now := a.clock.now()
	a.sweep(now)
	cut := now - int64(Retention)
	prune := cut-a.pruned >= int64(pruneEvery)
	err := a.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set([]byte{keyTime}, timeValue(now))
		if prune {
			deleteRange([]byte{keyIssue}, tokenKey(keyIssue, cut))
			deleteRange([]byte{keyRevocation}, tokenKey(keyRevocation, cut))
		}
	}, true)
	if err != nil {
		return fmt.Errorf("access: storing the time: %w", err)
	}
	if prune {
		a.pruned = cut
	}
	return nil
}
