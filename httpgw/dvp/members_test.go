package dvp

import (
	"testing"

	"blockdesk/httpgw/wire"
)

// TestMembers: the decoder can hold each body.
func TestMembers(t *testing.T) {
	for _, table := range [][]wire.Member{handshakeMembers, buildMembers, submitMembers} {
		long := 0
		for i := range table {
			switch of := &table[i]; {
			case of.Kind == wire.LongMember && of.MaxLen <= wire.MaxLongValue:
				long++
			case of.Kind == wire.LongMember, of.MaxLen > wire.MaxMemberValue, of.MaxLen < 1:
				t.Errorf("%s: %d bytes", of.Name, of.MaxLen)
			}
		}
		if long > 1 || len(table) > wire.MaxMembers {
			t.Errorf("%s and so on: %d members, %d long ones", table[0].Name, len(table), long)
		}
	}
}
