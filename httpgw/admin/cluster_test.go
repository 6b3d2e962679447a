package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// fakeCluster records its calls and returns what the test configures.
type fakeCluster struct {
	asked  []string
	err    error
	status ClusterStatus
}

func (p *fakeCluster) Status() ClusterStatus { return p.status }

func (p *fakeCluster) Add(id, address string, voter bool) error {
	p.asked = append(p.asked, "add "+id+" "+address+map[bool]string{true: " voter"}[voter])
	return p.err
}

func (p *fakeCluster) Remove(id string) error {
	p.asked = append(p.asked, "remove "+id)
	return p.err
}

func (p *fakeCluster) Finalize() error {
	p.asked = append(p.asked, "finalize")
	return p.err
}

func (p *fakeCluster) Transfer() error {
	p.asked = append(p.asked, "transfer")
	return p.err
}

// TestCluster: the status needs no token, changes need one, each refusal has its
// code, and repeated or malformed requests change nothing.
func TestCluster(t *testing.T) {
	t.Parallel()
	played := &fakeCluster{status: ClusterStatus{OK: true, ID: "a", Leader: ClusterMember{ID: "b", AdminURL: "http://127.0.0.1:9"}}}
	o := newOperatorRig(t).options(t)
	o.Cluster = played
	a := startAdmin(t, Options{Operate: &o})
	token := "Authorization: Bearer " + annToken + "\r\nContent-Type: application/json\r\n"
	post := func(path, body, headers string) (*http.Response, gatewaytest.ErrorBody) {
		request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), headers, body)
		resp, text := gatewaytest.Exchange(t, a.Addr(), request)
		if resp.StatusCode == http.StatusOK {
			return resp, gatewaytest.ErrorBody{}
		}
		return resp, gatewaytest.DecodeError(t, text)
	}

	resp, text := gatewaytest.Do(t, a.Addr(), "GET", "/cluster", "")
	var got ClusterStatus
	if err := json.Unmarshal(text, &got); err != nil || resp.StatusCode != http.StatusOK || got.Leader != played.status.Leader {
		t.Fatalf("%d %v %s", resp.StatusCode, err, text)
	}
	if resp, e := post("/desk/cluster/transfer", "{}", "Content-Type: application/json\r\n"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %d %+v", resp.StatusCode, e)
	}
	for _, body := range []string{"", "[]", `{"id":"d","ID":"e"}`, `{"id":"d","id":"e"}`, `{"id":1}`, `{"id":"d","more":1}`, `{"id":"d"`} {
		if resp, _ := post("/desk/cluster/members", body, token); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
	}
	for _, path := range []string{"/desk/cluster/transfer", "/desk/cluster/members/b/remove"} {
		if resp, _ := post(path, `{"to":"b"}`, token); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s with a member: %d", path, resp.StatusCode)
		}
	}
	if len(played.asked) > 0 {
		t.Fatalf("asked: %v", played.asked)
	}
	for _, c := range []struct{ path, body, asks string }{
		{"/desk/cluster/members", `{"id":"d","address":"127.0.0.1:1"}`, "add d 127.0.0.1:1"},
		{"/desk/cluster/members", `{"id":"d","address":"127.0.0.1:1","voter":true}`, "add d 127.0.0.1:1 voter"},
		{"/desk/cluster/members/d/remove", `{}`, "remove d"},
		{"/desk/cluster/transfer", `{}`, "transfer"},
		{"/desk/cluster/finalize", `{}`, "finalize"},
	} {
		for _, r := range []struct {
			err    error
			status int
			code   string
			reason string
		}{
			{nil, 200, "", ""},
			{ErrClusterLeader, 503, wire.CodeLeaderChanged, ""},
			{ErrClusterAddress, 400, wire.CodeInvalidField, ""},
			{ErrClusterTaken, 409, codeClusterState, "taken"},
			{ErrClusterUnknown, 404, codeUnknownNode, ""},
			{ErrClusterSelf, 409, codeClusterState, "leads"},
			{errors.New(`a "strange" one`), 503, codeClusterState, "not_done"},
		} {
			played.asked, played.err = nil, r.err
			resp, e := post(c.path, c.body, token)
			if resp.StatusCode != r.status || e.Code != r.code || e.Reason != r.reason || strings.Join(played.asked, ",") != c.asks {
				t.Errorf("%s, %v: %d %+v, asked %v", c.path, r.err, resp.StatusCode, e, played.asked)
			}
		}
	}
}

// TestClusterStandby: a standby answers operators with the leader, if it knows one,
// and others with 401.
func TestClusterStandby(t *testing.T) {
	t.Parallel()
	played := &fakeCluster{status: ClusterStatus{OK: true, ID: "a", Leader: ClusterMember{ID: "b", AdminURL: "http://127.0.0.1:9"}}}
	rig := newOperatorRig(t)
	o := Operations{Operators: rig.options(t).Operators, Cluster: played}
	a := startAdmin(t, Options{Operate: &o})
	token := "Authorization: Bearer " + annToken + "\r\n"
	for _, path := range []string{"/desk/tickets", "/desk/backup", "/desk/fix/sessions"} {
		if resp, _ := gatewaytest.Do(t, a.Addr(), "GET", path, ""); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, resp.StatusCode)
		}
		resp, text := gatewaytest.Do(t, a.Addr(), "GET", path, token)
		if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), `"leader":{"id":"b","url":"http://127.0.0.1:9"}`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	played.status.Leader = ClusterMember{}
	resp, text := gatewaytest.Do(t, a.Addr(), "GET", "/desk/tickets", token)
	if e := gatewaytest.DecodeError(t, text); resp.StatusCode != http.StatusServiceUnavailable || e.Code != wire.CodeLeaderChanged || strings.Contains(string(text), `"leader"`) {
		t.Errorf("without a leader: %d %s", resp.StatusCode, text)
	}
	if err := (Options{Operate: &Operations{Operators: o.Operators}}).Validate(); err == nil {
		t.Error("a service without a backup is taken for one that stands by")
	}
}
