package httpgw

import "testing"

// TestMembers: the decoder can hold each body.
func TestMembersRFQ(t *testing.T) {
	for _, table := range [][]member{quoteMembers, claimMembers, paymentMembers} {
		long := 0
		for i := range table {
			switch of := &table[i]; {
			case of.kind == longMember && of.most <= maxLong:
				long++
			case of.kind == longMember, of.most > maxValue, of.most < 1:
				t.Errorf("%s: %d bytes", of.name, of.most)
			}
		}
		if long > 1 || len(table) > maxMembers {
			t.Errorf("%s and so on: %d members, %d long ones", table[0].name, len(table), long)
		}
	}
}
