package fixgw

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/internal/await"
)

// initiator is a stock quickfix client.
type initiator struct {
	id       quickfix.SessionID
	password string
	logon    map[quickfix.Tag]string // further fields of its Logon
	in       chan sessiontest.Message
	on       chan bool
}

func (i *initiator) OnCreate(quickfix.SessionID) {}
func (i *initiator) OnLogon(quickfix.SessionID)  { i.on <- true }
func (i *initiator) OnLogout(quickfix.SessionID) {}
func (i *initiator) ToAdmin(m *quickfix.Message, id quickfix.SessionID) {
	if t, _ := m.MsgType(); t == "A" {
		m.Body.SetString(553, strings.ToLower(id.SenderCompID))
		m.Body.SetString(554, i.password)
		for tag, value := range i.logon {
			m.Body.SetString(tag, value)
		}
	}
}
func (i *initiator) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }
func (i *initiator) FromAdmin(m *quickfix.Message, _ quickfix.SessionID) quickfix.MessageRejectError {
	if t, _ := m.MsgType(); t == "3" || t == "5" {
		i.in <- sessiontest.Message(strings.Clone(m.String()))
	}
	return nil
}

func (i *initiator) FromApp(m *quickfix.Message, _ quickfix.SessionID) quickfix.MessageRejectError {
	i.in <- sessiontest.Message(strings.Clone(m.String()))
	return nil
}

func (i *initiator) want(t testing.TB, fields string) sessiontest.Message {
	t.Helper()
	m := await.Receive(t, "a message to "+i.id.SenderCompID, i.in)
	m.Want(t, fields)
	return m
}

func (i *initiator) send(t testing.TB, msgType string, fields ...string) {
	t.Helper()
	m := quickfix.NewMessage()
	m.Header.SetString(35, msgType)
	for _, f := range fields {
		tag, value, _ := strings.Cut(f, "=")
		n, err := strconv.Atoi(tag)
		if err != nil {
			t.Fatal(err)
		}
		m.Body.SetString(quickfix.Tag(n), value)
	}
	if err := quickfix.SendToTarget(m, i.id); err != nil {
		t.Fatal(err)
	}
}

// stockStores makes the stock client's own stores, with a lock: that client answers a
// ResendRequest while its application sends, and its stores know nothing of that.
type stockStores struct{}

func (stockStores) Create(id quickfix.SessionID) (quickfix.MessageStore, error) {
	store, err := quickfix.NewMemoryStoreFactory().Create(id)
	return &stockStore{MessageStore: store}, err
}

type stockStore struct {
	mu sync.Mutex
	quickfix.MessageStore
}

func (s *stockStore) NextSenderMsgSeqNum() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.NextSenderMsgSeqNum()
}

func (s *stockStore) IncrNextSenderMsgSeqNum() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.IncrNextSenderMsgSeqNum()
}

func (s *stockStore) SetNextSenderMsgSeqNum(next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.SetNextSenderMsgSeqNum(next)
}

func (s *stockStore) SaveMessage(n int, m []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.SaveMessage(n, m)
}

func (s *stockStore) SaveMessageAndIncrNextSenderMsgSeqNum(n int, m []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.SaveMessageAndIncrNextSenderMsgSeqNum(n, m)
}

func (s *stockStore) GetMessages(from, to int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.MessageStore.GetMessages(from, to)
}

// IterateMessages holds no lock while it shows a message: the client sends it then.
func (s *stockStore) IterateMessages(from, to int, show func([]byte) error) error {
	messages, err := s.GetMessages(from, to)
	for i := 0; i < len(messages) && err == nil; i++ {
		err = show(messages[i])
	}
	return err
}

// initiate logs on as compID with a dictionary and further fields of the Logon.
func (d *harness) initiate(compID, dictionary string, logon map[quickfix.Tag]string) *initiator {
	t := d.t
	t.Helper()
	host, port, _ := strings.Cut(d.addr(), ":")
	i := &initiator{password: sessiontest.Password, logon: logon, in: make(chan sessiontest.Message, 1000), on: make(chan bool, 10)}
	settings := quickfix.NewSettings()
	s := quickfix.NewSessionSettings()
	for k, v := range map[string]string{
		config.BeginString: "FIX.4.4", config.SenderCompID: compID, config.TargetCompID: d.options.CompID,
		config.SocketConnectHost: host, config.SocketConnectPort: port, config.HeartBtInt: "30",
		config.DataDictionary: dictionary, config.ReconnectInterval: "1",
	} {
		s.Set(k, v)
	}
	var err error
	if i.id, err = settings.AddSession(s); err != nil {
		t.Fatal(err)
	}
	q, err := quickfix.NewInitiator(i, stockStores{}, settings, quickfix.NewNullLogFactory())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Stop)
	await.Receive(t, "the Logon of "+compID, i.on)
	return i
}

// TestStockClient: an unchanged quickfix initiator with the stock dictionary
// trades, watches the market, and finds its messages again.
func TestStockClient(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"QF", "TK"}, nil)
	i := d.initiate("QF", "session/FIX44.xml", nil)
	tk := d.dial("TK", nil)
	const at = "60=20260101-00:00:00.000"
	i.send(t, "D", "11=a", "55=SLUSD/USDC", "54=1", "38=10", "40=2", "44=1", "59=1", at)
	i.want(t, "35=8 11=a 150=0 39=0")
	i.send(t, "V", "262=m", "263=1", "264=5", "265=1", "267=3\x01269=0\x01269=1\x01269=2", "146=1\x0155=SLUSD/USDC")
	i.want(t, "35=W 262=m")
	tk.order("x", "2", "4", "1", "59=3|")
	reports, updates := 0, 0
	for reports == 0 || updates == 0 {
		switch m := i.want(t, ""); m.Get(35) {
		case "8":
			m.Want(t, "11=a 150=F 39=1 32=4.00")
			reports++
		case "X":
			updates++
		default:
			t.Fatalf("unexpected %s", m)
		}
	}
	i.send(t, "G", "11=b", "41=a", "55=SLUSD/USDC", "54=1", "38=8", "40=2", "44=1", at)
	for m := i.want(t, ""); m.Get(35) != "8"; m = i.want(t, "") {
	}
	i.send(t, "H", "11=b", "55=SLUSD/USDC", "54=1")
	i.send(t, "F", "11=c", "41=b", "55=SLUSD/USDC", "54=1", "38=8", at)
	i.send(t, "F", "11=d", "41=b", "55=SLUSD/USDC", "54=1", "38=8", at)
	i.send(t, "q", "11=e", "530=7", at)
	i.send(t, "V", "262=m", "263=1", "264=101", "265=1", "267=1\x01269=0", "146=1\x0155=SLUSD/USDC")
	i.send(t, "D", "11=f", "55=NO/PE", "54=1", "38=10", "40=2", "44=1", at)
	i.send(t, "B", "148=x", "33=1\x0158=x")
	got := map[string]int{}
	for got["8"] < 3 || got["9"] < 1 || got["r"] < 1 || got["Y"] < 1 || got["j"] < 1 {
		got[i.want(t, "").Get(35)]++
	}
	if got["3"]+got["5"] > 0 {
		t.Errorf("session messages among %v", got)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"desk"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	d := newDesk(t, []string{"MM"}, func(o *Options) {
		o.TLS = secure
	})
	mm := d.dial("MM", func(o *fixclient.Options) { o.TLS = &tls.Config{RootCAs: roots, ServerName: "desk"} })
	mm.order("a", "1", "1", "1", "")
	mm.want("35=8 11=a 150=0")
	d.stop()

	// A handshake that never ends is cut like a logon that never comes.
	d.options.LogonTimeout = time.Second
	d.start()
	plain := d.raw()
	plain.write([]byte("x"))
	plain.rest()
}
