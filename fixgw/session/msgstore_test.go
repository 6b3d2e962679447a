package session

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quickfixgo/quickfix"
	"pgregory.net/rapid"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

func storeOptions(change func(*Options)) *Options {
	o := Options{Address: "x", Participants: sessiontest.Participants("A")}
	if change != nil {
		change(&o)
	}
	o = o.WithDefaults()
	return &o
}

func openStore(t testing.TB, store kv.Store, o *Options) *MessageStore {
	t.Helper()
	s, err := openedMessageStore(store, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sendOne stores the next message as quickfix does and returns its number.
func sendOne(t testing.TB, s *MessageStore, msgType string) int {
	t.Helper()
	seq := s.NextSenderMsgSeqNum()
	if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(seq, storedMessage(seq, msgType)); err != nil {
		t.Fatal(err)
	}
	return seq
}

func storedMessage(seq int, msgType string) []byte {
	return wiretest.Message(fmt.Sprintf("35=%s|34=%d|", msgType, seq))
}

func numbersOf(t testing.TB, s *MessageStore, begin, end int) string {
	t.Helper()
	var b strings.Builder
	if err := s.IterateMessages(begin, end, func(m []byte) error {
		fmt.Fprintf(&b, "%s%s ", sessiontest.Message(m).Get(35), sessiontest.Message(m).Get(34))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// TestNumbersNeverFall is the promise of the package doc: whatever a crash loses
// of the commits that were not synced, no outgoing number is used twice.
func TestNumbersNeverFall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := storeOptions(func(o *Options) { o.ReserveSeqs = rapid.IntRange(2, 20).Draw(t, "reserve") })
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		disk, used, began := kvtest.New(), 0, 1
		for range rapid.IntRange(1, 6).Draw(t, "lives") {
			s, err := openedMessageStore(disk, 1, o)
			if err != nil {
				t.Fatal(err)
			}
			if next := s.NextSenderMsgSeqNum(); next <= used {
				t.Fatalf("number %d is used again, after %d", next, used)
			} else if next > max(used+1, began)+o.ReserveSeqs {
				t.Fatalf("number %d leaves a hole after %d", next, used)
			} else {
				began = next
			}
			for range rapid.IntRange(0, 60).Draw(t, "sends") {
				switch rapid.IntRange(0, 9).Draw(t, "step") {
				case 0:
					if s.needsReserve() {
						if err := s.extend(); err != nil {
							t.Fatal(err)
						}
					}
				case 1:
					if err := s.IncrNextTargetMsgSeqNum(); err != nil {
						t.Fatal(err)
					}
				default:
					used = s.NextSenderMsgSeqNum()
					if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(used, storedMessage(used, "8")); err != nil {
						t.Fatal(err)
					}
				}
			}
			if rapid.Bool().Draw(t, "clean") {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if again, _ := openedMessageStore(disk, 1, o); again.NextSenderMsgSeqNum() != s.NextSenderMsgSeqNum() {
					t.Fatal("a clean stop leaves a hole")
				}
			}
			disk = disk.CrashAnywhere(r)
		}
	})
}

// TestExtendAgainstSends: sends that outrun their reservation while it is being
// made safe.
func TestExtendAgainstSends(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	s := openStore(t, disk, storeOptions(func(o *Options) { o.ReserveSeqs = 8 }))
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 500 {
				if err := s.extend(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range 2000 {
		sendOne(t, s, "8")
	}
	group.Wait()
	if next := openStore(t, disk.Prefix(disk.Synced()), storeOptions(nil)).NextSenderMsgSeqNum(); next < 2001 {
		t.Errorf("a crash would go on with %d", next)
	}
}

func TestIterateMessages(t *testing.T) {
	t.Parallel()
	s := openStore(t, kvtest.New(), storeOptions(func(o *Options) { o.MaxReplay = 3 }))
	for _, msgType := range []string{"A", "8", "0", "W", "9", "8", "X", "r", "0", "5"} { // 1..10
		sendOne(t, s, msgType)
	}
	for _, c := range []struct {
		begin, end int
		want       string
	}{
		{1, 10, "95 86 r8 010"}, // the newest three, and the last number for the gap fill
		{1, 8, "95 86 r8"},
		{1, 6, "82 95 86"},
		{5, 6, "95 86"},
		{7, 7, "07"},
		{3, 4, "04"},
		{9, 10, "010"},
		{10, 9, ""},
		{-5, 1, "01"},
		{0, -1, ""},
	} {
		if got := numbersOf(t, s, c.begin, c.end); got != c.want {
			t.Errorf("%d to %d: %q, want %q", c.begin, c.end, got, c.want)
		}
	}
	messages, err := s.GetMessages(1, 8)
	if err != nil || len(messages) != 3 || !bytes.Equal(messages[0], storedMessage(5, "9")) {
		t.Errorf("GetMessages: %q, %v", messages, err)
	}
	stop := errors.New("stop")
	if err := s.IterateMessages(1, 8, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error became %v", err)
	}
}

// TestIterateHoldsNoLock: quickfix sends gap fills from inside the iteration.
func TestIterateHoldsNoLock(t *testing.T) {
	t.Parallel()
	s := openStore(t, kvtest.New(), storeOptions(nil))
	sendOne(t, s, "8")
	done := make(chan error, 1)
	go func() {
		done <- s.IterateMessages(1, 1, func([]byte) error {
			sendOne(t, s, "8")
			return nil
		})
	}()
	if err := await.Receive(t, "the end of an iteration in which a message is sent", done); err != nil {
		t.Error(err)
	}
}

func TestOldMessagesAreDeleted(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	s := openStore(t, disk, storeOptions(func(o *Options) { o.KeepMessages, o.ReserveSeqs = 100, 100_000 }))
	for range 3*pruneStep + 200 {
		sendOne(t, s, "8")
	}
	count := 0
	disk.Scan([]byte{keyMessage}, []byte{keyMessage + 1}, func(_, _ []byte) bool { count++; return true })
	if count < 100 || count > 100+pruneStep {
		t.Errorf("%d messages are kept, want 100 to %d", count, 100+pruneStep)
	}
}

// TestMessagesAreDeletedByAge: what is too old goes, whatever the client has fetched, and
// the numbers stay.
func TestMessagesAreDeletedByAge(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	s := openStore(t, disk, storeOptions(nil))
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 5 {
		seq := s.NextSenderMsgSeqNum()
		sent := begin.Add(time.Duration(n) * 24 * time.Hour).Format("20060102-15:04:05.000")
		if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(seq, wiretest.Message(fmt.Sprintf("35=8|34=%d|52=%s|", seq, sent))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		before time.Time
		want   string
	}{{begin, "81 82 83 84 85"}, {begin.Add(time.Second), "82 83 84 85"}, {begin.Add(72 * time.Hour), "84 85"}, {begin.Add(1000 * time.Hour), "05"}} {
		if err := s.dropBefore(c.before); err != nil {
			t.Fatal(err)
		}
		if got := numbersOf(t, s, 1, 5); got != c.want {
			t.Errorf("before %s: %q, want %q", c.before, got, c.want)
		}
	}
	again := openStore(t, disk, storeOptions(nil))
	if seq := sendOne(t, again, "8"); seq < 6 {
		t.Errorf("the next number is %d", seq)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	s := openStore(t, disk, storeOptions(nil))
	for range 5 {
		sendOne(t, s, "8")
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if disk.Synced() != disk.Commits() {
		t.Error("a reset is not synced")
	}
	if s.NextSenderMsgSeqNum() != 1 || s.NextTargetMsgSeqNum() != 1 || numbersOf(t, s, 1, 5) != "05" {
		t.Errorf("after a reset: %d, %d, %q", s.NextSenderMsgSeqNum(), s.NextTargetMsgSeqNum(), numbersOf(t, s, 1, 5))
	}
}

func TestSessionNumbersAreForEver(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	for _, c := range []struct {
		name string
		list []sessionOwner
		want []uint16
	}{
		{"new", []sessionOwner{{"B", 7}, {"A", 1}}, []uint16{1, 2}},
		{"again", []sessionOwner{{"A", 1}, {"C", 7}, {"B", 7}}, []uint16{2, 3, 1}},
		{"given away", []sessionOwner{{"A", 1}, {"B", 1}}, []uint16{2, 4}},
		{"given on", []sessionOwner{{"B", 9}, {"B2", 9}}, []uint16{5, 6}},
		{"back with the second", []sessionOwner{{"B", 1}}, []uint16{4}},
		{"back with the first", []sessionOwner{{"B", 7}, {"C", 7}}, []uint16{1, 3}},
	} {
		disk = disk.Prefix(disk.Synced())
		got, err := sessionNumbers(disk, c.list)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for i, o := range c.list {
			if got[o] != c.want[i] {
				t.Errorf("%s: %v is %d, want %d", c.name, o, got[o], c.want[i])
			}
		}
	}
}

// TestOldSessionNumber: an assignment without a participant belongs to the CompID's
// present participant, and to no later one.
func TestOldSessionNumber(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	if err := disk.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(assignKey("A"), []byte{0, 5})
	}, true); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint16{5, 6} {
		o := sessionOwner{"A", market.ParticipantID(i + 1)}
		if got, err := sessionNumbers(disk, []sessionOwner{o}); err != nil || got[o] != want {
			t.Errorf("%v is %v, %v, want %d", o, got, err, want)
		}
	}
}

// TestStoreFailureIsFinal: after one failed commit nothing is said to be stored
// any more.
func TestStoreFailureIsFinal(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	s := openStore(t, disk, storeOptions(nil))
	sendOne(t, s, "8")
	disk.FailCommits(kvtest.ErrBroken)
	if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(2, storedMessage(2, "8")); !errors.Is(err, kvtest.ErrBroken) {
		t.Fatalf("a failed commit says %v", err)
	}
	disk.FailCommits(nil)
	for name, f := range map[string]func() error{
		"send": func() error { return s.SaveMessageAndIncrNextSenderMsgSeqNum(2, storedMessage(2, "8")) },
		"incr": s.IncrNextTargetMsgSeqNum, "extend": s.extend, "close": s.Close,
	} {
		if err := f(); !errors.Is(err, kvtest.ErrBroken) {
			t.Errorf("%s after a failure: %v", name, err)
		}
	}
}

func TestKeptTypes(t *testing.T) {
	t.Parallel()
	s := openStore(t, kvtest.New(), storeOptions(nil))
	kept := []string{"8", "9", "r", "j", "B", "AE", "AR"}
	passed := []string{"0", "1", "2", "3", "4", "5", "A", "W", "X", "Y", "y", "d", "f", "S", "Z", "AG", "AI"}
	var want []string
	for i, msgType := range passed { // each kept one among others
		sendOne(t, s, msgType)
		if i < len(kept) {
			want = append(want, fmt.Sprint(kept[i], sendOne(t, s, kept[i])))
		}
	}
	last := s.NextSenderMsgSeqNum() - 1
	want = append(want, fmt.Sprint("0", last)) // where the last gap ends
	if got := numbersOf(t, s, 1, last); got != strings.Join(want, " ") {
		t.Errorf("a resend brings %q, want %q", got, want)
	}
}

func openedMessageStore(store kv.Store, session uint16, o *Options) (*MessageStore, error) {
	s := newMessageStore()
	return s, s.open(store, session, o)
}

// TestSessionRecordOfOld: a record of before there were flags has 0 or 1 for
// cancel on disconnect.
func TestSessionRecordOfOld(t *testing.T) {
	t.Parallel()
	for old, want := range map[byte]wire.LogonFlags{0: 0, 1: wire.FlagCancelOnDisconnect} {
		store, o := kvtest.New(), storeOptions(nil)
		s := openStore(t, store, o)
		if err := s.setFlags(wire.LogonFlags(old)); err != nil {
			t.Fatal(err)
		}
		sendOne(t, s, "8")
		value, _, err := store.Get(sessionKey(nil, 1))
		if err != nil || len(value) != sessionRecordSize || value[32] != old {
			t.Fatalf("record %x, %v", value, err)
		}
		if again := openStore(t, store, o); again.flags != want {
			t.Errorf("%d is read as %b", old, again.flags)
		}
	}
}

// TestResendWithoutCustom: so it is when it is resent.
func TestResendWithoutCustom(t *testing.T) {
	t.Parallel()
	s := openStore(t, kvtest.New(), storeOptions(nil))
	if err := s.setFlags(wire.FlagCustomFields); err != nil {
		t.Fatal(err)
	}
	const head, tail = "35=8|34=1|49=A|52=20260101-00:00:00.000|56=B|37=7|", "11=a|58=x|"
	rich := wiretest.Message(head + "5601=100|5612=paid|" + tail)
	if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(1, rich); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags wire.LogonFlags
		want  []byte
	}{{wire.FlagCustomFields, rich}, {wire.FlagCancelOnDisconnect, wiretest.Message(head + tail)}, {wire.FlagCustomFields | wire.FlagDropCopy, rich}} {
		if err := s.setFlags(c.flags); err != nil {
			t.Fatal(err)
		}
		messages, err := s.GetMessages(1, 1)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		const checkSum = len("nnn\x01")
		if got := messages[0]; !bytes.Equal(got[:len(got)-checkSum], c.want[:len(c.want)-checkSum]) {
			t.Errorf("flags %b: %s, want %s", c.flags, wiretest.Show(got), wiretest.Show(c.want))
		}
		if err := quickfix.ParseMessage(quickfix.NewMessage(), bytes.NewBuffer(messages[0])); err != nil {
			t.Errorf("quickfix cannot send it again: %v", err)
		}
	}
}
