package fixgw

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// testKey is the key of a name.
func testKey(name string) ed25519.PrivateKey {
	seed := [32]byte{}
	copy(seed[:], name)
	return ed25519.NewKeyFromSeed(seed[:])
}

func publicText(key ed25519.PrivateKey) string { return base58.Encode(key[ed25519.SeedSize:]) }

// keyDesk is a desk where MM has a key alone, TK key and password, PW a password.
func keyDesk(t *testing.T) *harness {
	return newDesk(t, []string{"MM", "TK", "PW"}, func(o *Options) {
		o.Participants[0].PasswordHash = ""
		o.Participants[0].Ed25519 = publicText(testKey("MM"))
		o.Participants[1].Ed25519 = base64.StdEncoding.EncodeToString(testKey("TK")[ed25519.SeedSize:])
	})
}

// signedLogon is a Logon of compID with number 1, signed at a moment.
func (d *harness) signedLogon(compID string, key ed25519.PrivateKey, at time.Time, more string) string {
	stamp := at.UTC().Format("20060102-15:04:05.000")
	text := strings.Join([]string{"A", compID, d.options.CompID, "1", stamp}, "\x01")
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
	return fmt.Sprintf("35=A|34=1|49=%s|52=%s|56=%s|95=%d|96=%s|98=0|108=60|141=Y|%s",
		compID, stamp, d.options.CompID, len(signature), signature, more)
}

// answer is what the gateway says to one message, to the end of the connection
// or to its first message.
func (d *harness) answer(fields string) string {
	d.t.Helper()
	r := d.raw()
	defer r.conn.Close()
	r.write(wiretest.Message(fields))
	if err := r.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		d.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := r.conn.Read(buf)
	if err != nil {
		d.t.Fatal(err)
	}
	return wiretest.Show(buf[:n])
}

// awaitFree waits until no connection has a session.
func (d *harness) awaitFree(compID string) {
	d.t.Helper()
	await.True(d.t, compID+" to be let go", func() bool {
		s := d.gateway.SessionNamed(compID)
		return s == nil || !s.Connected()
	})
}

// awaitLoggedOn waits until the gateway counts as logged on whose Logon it has
// answered: its goroutine notes it after it has sent the answer.
func (d *harness) awaitLoggedOn(compIDs ...string) {
	d.t.Helper()
	for _, compID := range compIDs {
		await.True(d.t, compID+" to be logged on", func() bool { return d.gateway.SessionNamed(compID).LoggedOn() })
	}
}

func TestSignedLogonTrades(t *testing.T) {
	t.Parallel()
	d := keyDesk(t)
	for _, compID := range []string{"MM", "TK"} {
		k := d.dial(compID, func(o *fixclient.Options) { o.Password, o.Key = "", testKey(compID) })
		k.order("a", "1", "1", "1", "")
		k.want("35=8 11=a 150=0")
		k.c.Close()
		d.awaitFree(compID)
	}
	// Where there is a password too, that also opens.
	d.dial("TK", nil).c.Close()
	d.awaitFree("TK")
	if got := d.answer(d.signedLogon("TK", testKey("TK"), time.Now(), "")); !strings.Contains(got, "|35=A|") {
		t.Errorf("without a username: %s", got)
	}
}

func TestSignedLogonRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := keyDesk(t)
		const wrong = "LOGON_REFUSED: username, signature or CompID is wrong"
		mm, now := testKey("MM"), time.Now()
		good := d.signedLogon("MM", mm, now, "")
		for name, c := range map[string]struct{ message, want string }{
			"another's key":          {d.signedLogon("MM", testKey("TK"), now, ""), wrong},
			"another's name":         {d.signedLogon("MM", mm, now, "553=tk|"), wrong},
			"another's CompID":       {strings.Replace(good, "49=MM", "49=TK", 1), wrong},
			"nobody's CompID":        {d.signedLogon("XX", mm, now, ""), wrong},
			"no key":                 {d.signedLogon("PW", mm, now, ""), wrong},
			"another number":         {strings.Replace(good, "|34=1|", "|34=2|", 1), wrong},
			"another time":           {strings.Replace(good, "|52=20", "|52=21", 1), wrong},
			"no base64":              {strings.Replace(good, "==|98", "!!|98", 1), wrong},
			"length is wrong":        {strings.Replace(good, "|95=88|", "|95=87|", 1), "INVALID_FIELD: RawDataLength (95)"},
			"length is missing":      {strings.Replace(good, "|95=88|", "|", 1), "INVALID_FIELD: RawDataLength (95)"},
			"no padding":             {strings.Replace(strings.Replace(good, "|95=88|", "|95=86|", 1), "==|98", "|98", 1), "INVALID_FIELD: RawData (96)"},
			"empty":                  {"35=A|34=1|49=MM|56=" + d.options.CompID + "|95=0|96=|98=0|108=60|", "INVALID_FIELD: RawData (96)"},
			"clock behind":           {d.signedLogon("MM", mm, now.Add(-session.MaxLogonSkew-5*time.Second), ""), "LOGON_REFUSED: SendingTime (52) is more than 30s"},
			"clock ahead":            {d.signedLogon("MM", mm, now.Add(session.MaxLogonSkew+time.Minute), ""), "LOGON_REFUSED: SendingTime (52) is more than 30s"},
			"password without a key": {d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|"), "LOGON_REFUSED: username, password or CompID is wrong"},
			"password beside a bad signature": {
				d.signedLogon("TK", mm, now, "553=tk|554="+sessiontest.Password+"|"), wrong,
			},
		} {
			if got := d.answer(c.message); !strings.Contains(got, "|35=5|34=1|") || !strings.Contains(got, c.want) {
				t.Errorf("%s: %s, want %q", name, got, c.want)
			}
		}
		if got := d.answer(good); !strings.Contains(got, "|35=A|") {
			t.Errorf("nothing wrong: %s", got)
		}
	})
}

// TestSignedLogonOpensOnce: bytes that were overheard open nothing, nor do they
// after a restart or when the first ones were refused for another reason.
func TestSignedLogonOpensOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := keyDesk(t)
		const again = "LOGON_REFUSED: SendingTime (52) is not later than that of the last signed Logon"
		at := time.Now()
		refuse := func(when string, at time.Time) {
			t.Helper()
			if got := d.answer(d.signedLogon("MM", testKey("MM"), at, "")); !strings.Contains(got, again) {
				t.Errorf("%s: %s", when, got)
			}
		}
		if got := d.answer(d.signedLogon("MM", testKey("MM"), at, "")); !strings.Contains(got, "|35=A|") {
			t.Fatal(got)
		}
		d.awaitFree("MM")
		refuse("the same", at)
		refuse("older", at.Add(-time.Second))
		d.stop()
		d.start()
		refuse("the same after a restart", at)
		k := d.dial("MM", func(o *fixclient.Options) { o.Password, o.Key = "", testKey("MM") })
		busy := time.Now().Add(session.MaxLogonSkew / 2)
		if got := d.answer(d.signedLogon("MM", testKey("MM"), busy, "")); !strings.Contains(got, "already connected") {
			t.Error(got)
		}
		k.c.Close()
		d.awaitFree("MM")
		refuse("after it was refused", busy)
	})
}
