package sessiontest

import (
	"strings"
	"sync"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/participants/participantstest"
	"blockdesk/market"
)

const Password = "correct horse"

// testHash is a cheap hash of Password.
var testHash = sync.OnceValue(func() string { return participantstest.Hash(Password) })

// Participants returns one for each CompID, numbered from 1.
func Participants(compIDs ...string) []participants.Participant {
	var list []participants.Participant
	for i, id := range compIDs {
		list = append(list, participants.Participant{
			Name: strings.ToLower(id), Number: market.ParticipantID(i + 1), CompIDs: []string{id},
			PasswordHash: testHash(), STP: book.STPCancelNewest,
		})
	}
	return list
}
