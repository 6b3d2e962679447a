package access

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/internal/solana"
)

// TestHandshake: the way of the description, part 5, with the bounds of every
// promise on its way.
func TestHandshake(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	a := mustOpen(t, w.options(), newMemKV())
	c, err := a.Challenge(p.key)
	if err != nil {
		t.Fatal(err)
	}
	if want := (int64(day0)/1e6 + 60_000) * 1e6; c.ExpiresAt != want {
		t.Errorf("expires at %d, want %d", c.ExpiresAt, want)
	}
	raw, err := base64.StdEncoding.DecodeString(c.Nonce)
	if err != nil || !bytes.HasPrefix(raw, append([]byte("svc_dvp_handshake_v1\x00"), p.key[:]...)) {
		t.Errorf("nonce %x, %v: want protocol and key", raw, err)
	}
	g, err := a.Issue(p.key, c.Nonce, p.sign(c.Nonce), client(1))
	if err != nil {
		t.Fatal(err)
	}
	if g.Key != p.key || g.ExpiresAt != day0+week || !strings.HasPrefix(g.Secret, "dvp_") || len(g.Secret) != 47 {
		t.Errorf("granted %+v with a secret of %d characters until %d", g, len(g.Secret), g.ExpiresAt)
	}
	a.admits(t, g, true)
	w.pass(week - 1)
	a.admits(t, g, true)
	w.pass(1)
	a.admits(t, g, false)
}

// TestProtocol: every way that a presentation can be wrong, what it is called,
// whether it burns the nonce, and that none of them uses up the hour.
func TestProtocol(t *testing.T) {
	p, other := newPerson(1), newPerson(2)
	decoded := func(n string) []byte {
		raw, err := base64.StdEncoding.DecodeString(n)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	encoded := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		name  string
		act   func(a *Access, w *watch, nonce string) error
		want  error
		burns bool
	}{
		{"right", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, p.sign(n), client(2))
			return err
		}, nil, true},
		{"at its last moment", func(a *Access, w *watch, n string) error {
			w.pass(60*second - 456_789 - 1) // it was rounded down to the millisecond
			_, err := a.Issue(p.key, n, p.sign(n), client(2))
			return err
		}, nil, true},
		{"no signature", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, solana.Signature{}, client(1))
			return err
		}, desk.ErrBadProof, true},
		{"signed by another", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, other.sign(n), client(1))
			return err
		}, desk.ErrBadProof, true},
		{"signed the bytes, not their base64", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, p.sign(string(decoded(n))), client(1))
			return err
		}, desk.ErrBadProof, true},
		{"signed with a line's end", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, p.sign(n+"\n"), client(1))
			return err
		}, desk.ErrBadProof, true},
		{"another key's nonce", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(other.key, n, other.sign(n), client(1))
			return err
		}, desk.ErrBadNonce, true},
		{"another nonce's signature", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n, p.sign(a.mustChallenge(t, p.key)), client(1))
			return err
		}, desk.ErrBadProof, true},
		{"empty", func(a *Access, _ *watch, _ string) error {
			_, err := a.Issue(p.key, "", p.sign(""), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"with a line's end", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, n+"\n", p.sign(n+"\n"), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"with a space before", func(a *Access, _ *watch, n string) error {
			_, err := a.Issue(p.key, " "+n, p.sign(" "+n), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"without padding", func(a *Access, _ *watch, n string) error {
			bare := strings.TrimRight(n, "=")
			_, err := a.Issue(p.key, bare, p.sign(bare), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"a line's end in the place of its padding", func(a *Access, _ *watch, n string) error {
			text := strings.TrimRight(n, "=") + "\n\n"
			_, err := a.Issue(p.key, text, p.sign(text), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"other bits before the padding", func(a *Access, _ *watch, n string) error {
			last := byte(1) // two characters carry the last byte; four bits of the second are zero
			const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
			at := strings.IndexByte(alphabet, n[NonceText-3])
			text := n[:NonceText-3] + string(alphabet[byte(at)|last]) + "=="
			_, err := a.Issue(p.key, text, p.sign(text), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"cut short", func(a *Access, _ *watch, n string) error {
			text := encoded(decoded(n)[:nonceSize-1])
			_, err := a.Issue(p.key, text, p.sign(text), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"one byte more", func(a *Access, _ *watch, n string) error {
			text := encoded(append(decoded(n), 0))
			_, err := a.Issue(p.key, text, p.sign(text), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"another process's", func(_ *Access, w *watch, n string) error {
			_, err := mustOpen(t, w.options(), newMemKV()).Issue(p.key, n, p.sign(n), client(1))
			return err
		}, desk.ErrBadNonce, false},
		{"at its end", func(a *Access, w *watch, n string) error {
			w.pass(60*second - 456_789)
			_, err := a.Issue(p.key, n, p.sign(n), client(1))
			return err
		}, ErrNonceExpired, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWatch()
			a := mustOpen(t, w.options(), newMemKV())
			nonce := a.mustChallenge(t, p.key)
			err := c.act(a, w, nonce)
			if !errors.Is(err, c.want) || errors.Is(err, desk.ErrBadNonce) != errors.Is(c.want, desk.ErrBadNonce) {
				t.Errorf("%v, want %v", err, c.want)
			}
			_, err = a.Issue(p.key, nonce, p.sign(nonce), client(1))
			if c.burns != errors.Is(err, ErrNonceUsed) {
				t.Errorf("presented again: %v; burnt is %v", err, c.burns)
			}
			if c.burns || errors.Is(c.want, ErrNonceExpired) {
				if _, err := a.prove(t, p, client(1)); err != nil {
					t.Errorf("the hour is used up: %v", err)
				}
			}
		})
	}
}

// TestNonceBits: every single bit of a nonce counts.
func TestNonceBits(t *testing.T) {
	p := newPerson(1)
	a := mustOpen(t, newWatch().options(), newMemKV())
	nonce := a.mustChallenge(t, p.key)
	n, ok := parseNonce(nonce)
	if !ok {
		t.Fatal("not ours")
	}
	for bit := range nonceSize * 8 {
		f := n
		f[bit/8] ^= 1 << (bit % 8)
		if _, err := a.Issue(p.key, f.text(), p.sign(f.text()), client(1)); !errors.Is(err, desk.ErrBadNonce) {
			t.Errorf("bit %d flipped: %v", bit, err)
		}
	}
	if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(1)); err != nil {
		t.Errorf("after all of them: %v", err)
	}
}

// TestHour: to the nanosecond, for each client by itself.
func TestHour(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	a := mustOpen(t, w.options(), newMemKV())
	a.mustProve(t, p, client(1))
	a.mustProve(t, p, client(2)) // a key may have many tokens
	_, err := a.prove(t, newPerson(2), client(1))
	if rest := tooSoon(t, err); rest != hour {
		t.Errorf("at once: wait %d", rest)
	}
	w.pass(hour - 1)
	_, err = a.prove(t, p, client(1))
	if rest := tooSoon(t, err); rest != 1 {
		t.Errorf("a nanosecond before: wait %d", rest)
	}
	w.pass(1)
	a.mustProve(t, p, client(1))
	_, err = a.prove(t, p, client(1))
	if rest := tooSoon(t, err); rest != hour {
		t.Errorf("after the second: wait %d", rest)
	}
}

// TestTooSoonReportsBeforeTheProof: a client whose hour is not over is refused before
// its proof is checked, and the nonce is used up, so there is nothing to probe.
func TestTooSoonReportsBeforeTheProof(t *testing.T) {
	p := newPerson(1)
	a := mustOpen(t, newWatch().options(), newMemKV())
	a.mustProve(t, p, client(1))
	nonce := a.mustChallenge(t, p.key)
	_, err := a.Issue(p.key, nonce, solana.Signature{}, client(1))
	tooSoon(t, err)
	if _, err := a.Issue(p.key, nonce, p.sign(nonce), client(2)); !errors.Is(err, ErrNonceUsed) {
		t.Errorf("again: %v", err)
	}
}

func TestAdmitStrangers(t *testing.T) {
	a := mustOpen(t, newWatch().options(), newMemKV())
	g := a.mustProve(t, newPerson(1), client(1))
	secrets := []string{"", "dvp_", g.ID, " " + g.Secret, g.Secret + " ", g.Secret[:46], strings.ToUpper(g.Secret), newSecret()}
	for i := range g.Secret {
		b := []byte(g.Secret)
		b[i] ^= 1
		secrets = append(secrets, string(b))
	}
	for _, s := range secrets {
		if key, ok := a.Admit([]byte(s)); ok || key != (solana.Address{}) {
			t.Errorf("admits %q", s)
		}
	}
}

func TestAdmitAllocatesNothing(t *testing.T) {
	a := mustOpen(t, Options{}, newMemKV())
	secret := []byte(a.mustProve(t, newPerson(1), client(1)).Secret)
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok := a.Admit(secret); !ok {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestRevoke(t *testing.T) {
	w, p := newWatch(), newPerson(1)
	kv := newMemKV()
	a := mustOpen(t, w.options(), kv)
	g, other := a.mustProve(t, p, client(1)), a.mustProve(t, p, client(2))
	w.pass(5 * second)
	e, err := a.Revoke(g.ID, "ann")
	want := Entry{ID: g.ID, Key: p.key, IssuedAt: day0, ExpiresAt: day0 + week, RevokedAt: day0 + 5*second, RevokedBy: "ann"}
	if err != nil || e != want {
		t.Errorf("revoked: %+v, %v, want %+v", e, err, want)
	}
	w.pass(second)
	if e, err := a.Revoke(g.ID, "bob"); err != nil || e != want {
		t.Errorf("a second time: %+v, %v, want %+v", e, err, want)
	}
	for _, a := range []*Access{a, mustOpen(t, w.options(), kv)} {
		a.admits(t, g, false)
		a.admits(t, other, true)
		// Revoking gives no hour back.
		_, err := a.prove(t, p, client(1))
		tooSoon(t, err)
	}
	for _, id := range []string{"", "K", "K0000000000000000", "Kffffffffffffffff", strings.ToUpper(g.ID), g.ID + "0", g.ID[1:], idOf(7)} {
		if _, err := a.Revoke(id, "ann"); !errors.Is(err, ErrUnknownToken) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for by, want := range map[string]error{"": ErrName, strings.Repeat("n", MaxName): nil, strings.Repeat("n", MaxName+1): ErrName} {
		if _, err := a.Revoke(other.ID, by); !errors.Is(err, want) {
			t.Errorf("by %d bytes: %v", len(by), err)
		}
	}
}

func TestList(t *testing.T) {
	w := newWatch()
	a := mustOpen(t, w.options(), newMemKV())
	var all []desk.Grant
	for i := range byte(5) {
		all = append(all, a.mustProve(t, newPerson(uint64(i)), client(i)))
		w.pass(hour)
	}
	if _, err := a.Revoke(all[3].ID, "ann"); err != nil {
		t.Fatal(err)
	}
	w.pass(week - 3*hour) // the first two and the third are over
	page := func(after string, limit int, ended bool) string {
		t.Helper()
		list, err := a.List(after, limit, ended)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, e := range list {
			for i, g := range all {
				if g.ID == e.ID && g.Key == e.Key && g.ExpiresAt == e.ExpiresAt && e.IssuedAt == day0+int64(i)*hour {
					fmt.Fprint(&b, i, e.RevokedBy, " ")
				}
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		after string
		limit int
		ended bool
		want  string
	}{
		{"", 10, false, "3ann 4 "},
		{"", 1, false, "3ann "},
		{all[3].ID, 10, false, "4 "},
		{all[4].ID, 10, false, ""},
		{"", 10, true, "0 1 2 3ann 4 "},
		{"", 2, true, "0 1 "},
		{all[1].ID, 2, true, "2 3ann "},
		{idOf(1), 0, true, "0 "}, // a limit is 1 or more
		{idOf(1), MaxPage + 1, false, "3ann 4 "},
	} {
		if got := page(c.after, c.limit, c.ended); got != c.want {
			t.Errorf("after %s, %d, ended %v: %q, want %q", c.after, c.limit, c.ended, got, c.want)
		}
	}
	if _, err := a.List("x", 1, false); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("after no id: %v", err)
	}
}

// TestGrantKeepsItsSecret: printing a Grant does not show its secret.
func TestGrantKeepsItsSecret(t *testing.T) {
	g := desk.Grant{Secret: "dvp_secret", ID: "K1"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "grant", g)
	text := fmt.Sprintf("%v %+v %#v %s %q", g, g, g, g, g) + log.String()
	if strings.Contains(text, "secret") || !strings.Contains(log.String(), "K1") {
		t.Error(text)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{MaxTokens: -1}, {MaxUsedNonces: -1}} {
		if _, err := Open(o, newMemKV()); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	// The defaults are the system's clocks.
	a := mustOpen(t, Options{}, newMemKV())
	before := time.Now()
	g := a.mustProve(t, newPerson(1), client(1))
	if at := g.ExpiresAt - int64(TokenLifetime); at < before.UnixNano() || at > time.Now().UnixNano() {
		t.Errorf("issued at %v, after %v", time.Unix(0, at), before)
	}
	if a.maxTokens != 262_144 || a.usedNonces.max != 131_072 {
		t.Errorf("limits %d and %d", a.maxTokens, a.usedNonces.max)
	}
}
